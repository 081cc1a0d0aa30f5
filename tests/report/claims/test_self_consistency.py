"""Published figures held against their own sources: constructed ones rule by rule, then those on record."""

from __future__ import annotations

import os
from typing import Any

import pytest

from harness.record import Claim
from harness.record.claims import load_claims
from report.claims.self_consistency import sentences, tables
from report.claims.self_consistency.rules import RULES, inconsistencies
from report.page.render import published_record
from report.sections.published.self_consistency import by_rule, table
from tests.helpers import ROOT

PAGE = ROOT / "docs" / "published-record.md"


def claim(**changes: Any) -> Claim:
    values: dict[str, Any] = {
        "id": "constructed",
        "study": "007",
        "kind": "absolute",
        "workload": "toy",
        "protocol": "published/1",
        "metric": "protocol_seconds",
        "of": {},
        "unit": "s",
        "source": "a book, table 1",
    }
    made = {**values, **changes}
    for name in ("of", "over"):
        if name in made:
            made[name] = {"card": "T4", "model": "resnet50", "precision": "fp32-ieee", **made[name]}
    return Claim.model_validate(made)


def seconds(value: float, precision: str = "fp32-ieee", **side: Any) -> Claim:
    return claim(value=value, half_digit=0.5, of={"precision": precision, **side})


def sentence(**changes: Any) -> Claim:
    """Full precision takes `value` times as long as FP16."""
    sides = {"of": {"precision": "fp16-master", "card": None}, "over": {"card": None}}
    return claim(**{"kind": "ratio", "unit": "x", "words": "FP16 is faster.", **sides, **changes})


def order(**changes: Any) -> Claim:
    return sentence(**{"kind": "order", "relation": "less", **changes})


FIGURES = (seconds(7318), seconds(4952, "fp16-master"))


def throughput(value: float, gpus: int = 1, **changes: Any) -> Claim:
    side = {"gpus": gpus, **changes.pop("of", {})}
    return claim(metric="throughput", unit="images/s", value=value, of=side, **changes)


def test_a_sentence_that_its_own_figures_contradict_is_found_with_how_far_they_are_apart():
    (found,) = sentences.sentences((*FIGURES, sentence(value=1.18, half_digit=0.005)))
    assert (found.study, found.said) == ("007", "FP16 is faster.")
    assert found.own == "T4: fp16-master 4,952 s against fp32-ieee 7,318 s, 1.48 times"
    assert found.factor == pytest.approx(7318 / 4952 / 1.18)
    assert found.sources == ("a book, table 1",)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"value": 1.45}, 0),
        ({"value": 1.45, "margin": 0.01}, 1),
        ({"value": 1.45, "margin": 0.01, "half_digit": 0.05}, 0),
        ({"value": 1.4, "relation": "greater"}, 0),
        ({"value": 1.6, "relation": "greater"}, 1),
        ({"value": 1.4, "relation": "less"}, 1),
        ({"value": None}, 0),
        ({"value": 1.18, "words": None}, 0),
        ({"value": 1.18, "study": "008"}, 0),
        ({"value": 1.18, "epochs": 30, "over": {"model": "resnet18", "card": None}}, 0),
    ],
)
def test_a_sentence_is_only_held_against_what_it_speaks_of_within_margin_and_rounding(changes, found):
    assert len(list(sentences.sentences((*FIGURES, sentence(**changes))))) == found


def test_an_order_that_is_the_other_way_round_or_a_tie_is_found():
    slower = (seconds(1692), seconds(1708, "fp16-master"))
    tied = (seconds(583), seconds(583, "fp16-master"))
    assert [len(list(sentences.sentences((*pair, order())))) for pair in (FIGURES, slower, tied)] == [
        0,
        1,
        1,
    ]


def test_what_a_sentence_leaves_open_is_equal_in_both_of_its_figures():
    on_two_cards = (*FIGURES, seconds(9387, card="L4"), seconds(12000, "fp16-master", card="L4"))
    (found,) = sentences.sentences((*on_two_cards, order()))
    assert found.own.startswith("L4: ")
    mixed = (seconds(7318, options={"data": "real"}), seconds(8000, "fp16-master", options={"data": "made"}))
    assert not list(sentences.sentences((*mixed, order())))


def test_of_two_prints_of_one_figure_the_finer_one_counts():
    minutes = seconds(1680).model_copy(update={"half_digit": 30.0})
    exact = (seconds(1692), seconds(1700, "fp16-master"))
    (found,) = sentences.sentences((minutes, *exact, order()))
    assert "1,692 s" in found.own


def test_what_is_called_the_largest_is_held_against_all_models():
    deeper = (seconds(10707, model="resnet152"), seconds(6681, "fp16-master", model="resnet152"))
    called = sentence(superlative="largest", value=None)
    (found,) = sentences.superlatives((*FIGURES, *deeper, called))
    assert found.own == "T4: ResNet-152 1.603 times, ResNet-50 1.478 times"
    assert not list(sentences.superlatives((*FIGURES, *deeper, sentence(superlative="smallest", value=None))))
    assert not list(sentences.sentences((*FIGURES, *deeper, called)))


def items(metric: str, value: int) -> Claim:
    return claim(kind="structure", metric=metric, value=value, unit="images")


def test_a_number_of_items_is_the_sum_of_its_parts():
    parts = (items("train_items", 70), items("valid_items", 10))
    whole = (*parts, items("test_items", 20))
    (found,) = sentences.totals((*whole, items("data_items", 1000)))
    assert (found.said, found.own) == ("1,000 images", "70 + 10 + 20 = 100")
    assert found.factor == pytest.approx(10)
    assert not list(sentences.totals((*whole, items("data_items", 100))))
    assert not list(sentences.totals((*parts, items("data_items", 1000))))


def test_two_figures_for_one_thing_are_found_unless_rounding_or_another_release_tells_them_apart():
    (found,) = sentences.doubles((seconds(16), seconds(12.6)))
    assert found.factor == pytest.approx(16 / 12.6)
    assert "16 s" in found.said and "12.6 s" in found.own
    assert not list(sentences.doubles((seconds(16), seconds(15))))
    assert not list(sentences.doubles((seconds(16), seconds(12.6, card="L4"))))
    stacks = ("PyTorch 0.3.1, CUDA 8", "PyTorch 0.4.0, CUDA 8")
    releases = [seconds(16 - 4 * at).model_copy(update={"stack": stack}) for at, stack in enumerate(stacks)]
    assert not list(sentences.doubles(releases))


def test_several_devices_that_gain_more_than_their_number_are_found():
    (found,) = tables.beyond_linear((throughput(36), throughput(641, 8)))
    assert found.own == "8 devices give 17.81 times the throughput of one"
    assert found.factor == pytest.approx(641 / 36 / 8)
    assert not list(tables.beyond_linear((throughput(83), throughput(616, 8))))
    assert not list(tables.beyond_linear((throughput(36, stack="NGC 21.03"), throughput(641, 8))))
    quicker = (claim(value=800), claim(value=90, of={"gpus": 8}))
    assert len(list(tables.beyond_linear(quicker))) == 1


def test_a_figure_ten_times_off_its_row_and_column_is_found_where_three_others_tell_the_trend():
    row = (throughput(52), throughput(117, 2), throughput(233, 4))
    (found,) = tables.off_trend((*row, throughput(13346, 8)))
    assert found.factor == pytest.approx(13346 / 8 / (233 / 4))
    assert "on 8 devices" in found.said
    assert not list(tables.off_trend((*row[:2], throughput(13346, 8))))


def test_rows_of_one_table_by_several_releases_are_found_and_files_of_a_folder_are_not():
    rows = [
        throughput(100 + at, source=f"a site, fp16.csv, row '{at}'", stack=f"NGC {release}, driver 5")
        for at, release in enumerate(("24.10", "24.03/24.05", "24.10"))
    ]
    (found,) = tables.mixed_releases(rows)
    assert found.own == "NGC 24.03, 24.05, 24.10"
    assert found.said == "one table: 3 figures of ResNet-50 side by side"
    apart = [row.model_copy(update={"source": row.source.replace("fp16.csv", "files/")}) for row in rows]
    assert not list(tables.mixed_releases(apart))
    assert not list(tables.mixed_releases(rows[::2]))


def test_a_row_that_is_named_after_another_form_of_card_is_found():
    row = throughput(21880, 8, source="a site, fp16.csv, row '8xH200_SXM'", of={"card": "H200 NVL 141GB"})
    (found,) = tables.other_cards((row,))
    assert (found.said, found.own) == ("row '8xH200_SXM': 21,880 images/s", "measured on H200 NVL 141GB")
    same = row.model_copy(update={"of": row.of.model_copy(update={"card": "H200 SXM 141GB"})})
    assert not list(tables.other_cards((same,)))


def test_the_speed_of_a_run_that_guesses_is_found():
    classes = {"options": {"classes": 10}}
    timed = claim(value=641, of=classes)
    guessed = claim(kind="quality", metric="accuracy", value=0.1, unit="fraction", of=classes)
    (found,) = tables.guesses((timed, guessed))
    assert (found.said, found.own) == (
        "ResNet-50 fp32-ieee T4: 641 s",
        "accuracy 10 %, that of guessing among 10 classes",
    )
    assert not list(tables.guesses((timed, guessed.model_copy(update={"value": 0.8}))))


@pytest.fixture(scope="module")
def found():
    return inconsistencies(load_claims(ROOT).claims)


@pytest.mark.parametrize(
    ("rule", "study", "own"),
    [
        ("Sentences beside figures", "001", "2.78 times"),
        (
            "Sentences beside figures",
            "004",
            "RTX 2080 Ti: fp16-master 4,952 s against fp32-ieee 7,318 s, 1.48 times",
        ),
        (
            "Sentences beside figures",
            "004",
            "GTX 1080 Ti: fp16-master 7,680 s against fp32-ieee 9,387 s, 1.22 times",
        ),
        ("Sentences beside figures", "004", "RTX 2080 Ti: fp16-master 1,708 s against fp32-ieee 1,692 s"),
        (
            "Sentences beside figures",
            "003",
            "tensorflow 1,525 s against keras-tensorflow 2,151 s, 1.41 times",
        ),
        ("Sentences beside figures", "003", "keras-tensorflow 2,276 s against tensorflow 2,009 s"),
        ("Sentences beside figures", "003", "pytorch-loss-per-gpu 525 s against pytorch 516 s"),
        (
            "The largest and the smallest",
            "004",
            "RTX 2080 Ti: ResNet-152 1.603 times, ResNet-101 1.478 times",
        ),
        ("The largest and the smallest", "004", "GTX 1080 Ti: ResNet-50 1.242 times, ResNet-101 1.222 times"),
        ("Totals", "003", "87,306 + 7,616 + 17,198 = 112,120"),
        ("Two figures for one thing", "003", "12.6 s"),
        ("More than the number of devices", "nvidia", "8 devices give 17.81 times"),
        ("Off row and column", "lambda", "57 times the median"),
        ("Several releases in one table", "lambda", "NGC 24.03, 24.05, 24.09, 24.10, 25.06"),
        ("Another card than the name", "lambda", "measured on H200 NVL 141GB"),
        ("Fast, and nothing learned", "004-perbos", "accuracy 10 %"),
    ],
)
def test_what_is_known_to_disagree_is_found(found, rule, study, own):
    listed = next(each for known, each in found.items() if known.name == rule)
    assert any(one.study == study and own in one.own for one in listed), [one.own for one in listed]


def test_claims_that_fit_together_give_no_table_and_rules_that_find_nothing_are_left_out():
    assert inconsistencies(FIGURES) == {}
    assert table({}) is None


def test_every_rule_finds_something_on_record_and_every_finding_names_its_source(found):
    assert list(found) == list(RULES)
    shown = table(found)
    assert shown and len(shown.rows) == sum(map(len, found.values()))
    assert all(row[-1].startswith(("github:", "https://")) for row in shown.rows)


def test_the_page_of_the_published_record_is_what_the_rules_find(found):
    text = published_record(by_rule(found))
    if os.environ.get("GPUDYNO_ACCEPT") == "1":
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "GPUDYNO_ACCEPT=1 writes it anew"
