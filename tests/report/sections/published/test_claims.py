"""Published claims on the page: one sentence, what the others need, and rows that can be told apart."""

from __future__ import annotations

from collections import Counter

from harness.record import Claim
from harness.record.claims import load_claims
from report.claims.judgeable import Way
from report.claims.judged import Judged
from report.sections.published import claims
from report.stats.equivalence import Verdict, Word
from tests.helpers import ROOT
from tests.report.claims.test_studies import claim


def judged(word: Word, *because: str, study: str = "x") -> Judged:
    return Judged(claim("T4", 1.0, study=study), Verdict(word, because))


def test_one_sentence_says_how_many_claims_can_be_checked_and_what_came_of_it():
    results = [
        judged("reproduced"),
        judged("holds here"),
        judged("not reproduced"),
        judged("inconclusive"),
        judged("inconclusive"),
        judged("not comparable", "card: A instead of T4"),
    ]
    assert claims.checked(results) == (
        "Of 6 published claims 5 can be checked on this machine: 2 hold, 1 does not, 2 are open."
    )


def test_claims_that_wait_for_a_run_are_counted_with_the_command_that_judges_them():
    waiting = judged("not comparable", "batch size: 32 instead of 48")
    ways = {waiting.claim.id: Way("perbos", {"a": 60.0})}
    run_them = "`invoke run --claims here --budget 2h`"
    assert claims.checked([judged("reproduced"), waiting], ways) == (
        f"Of 2 published claims 2 can be checked on this machine: 1 holds, 0 do not, "
        f"1 needs one more command: {run_them}."
    )
    assert claims.checked([waiting] * 2, ways) == (
        "Of 2 published claims 2 can be checked on this machine. None is judged yet: "
        f"{run_them} judges as many as two hours allow."
    )


def test_claims_that_were_judged_are_counted_by_what_they_are_of():
    results = [judged("reproduced"), judged("not reproduced"), judged("inconclusive")]
    assert claims.by_metric(results) == "Of seconds 1 of 3 hold (1 open)."


def test_claims_that_need_the_same_are_counted_together_with_what_would_do():
    results = [
        judged("not comparable", "batch size: 32 instead of 48", "image size: 64 instead of 224"),
        judged("not comparable", "batch size: 32 instead of 128", "image size: 64 instead of 224", study="y"),
        judged("not comparable", "workload 'cnn' was not measured here"),
        judged("not comparable", "stack: PyTorch 2.13.0 instead of 1.11"),
        judged("reproduced"),
    ]
    table = claims.unmet(results)
    assert table is not None
    assert table.rows == (
        ("batch size 48 or 128; image size 224", "2", "x, y"),
        ("workload 'cnn' was not measured here", "1", "x"),
        ("stack PyTorch 1.11", "1", "x"),
    )


def test_another_model_is_a_reason_of_its_own_and_no_precision_is_beside_others():
    results = [
        judged("not comparable", "model: resnet18 instead of resnet50", "batch size: 32 instead of 98"),
        judged("not comparable", "model: resnet18 instead of resnet34"),
        judged("not comparable", "precision: fp32-ieee instead of amp-fp16", "batch size: 32 instead of 64"),
        judged("not comparable", "precision: fp32-ieee instead of amp-fp16"),
    ]
    table = claims.unmet(results)
    assert table is not None
    assert [row[0] for row in table.rows] == [
        "model ResNet-50 or ResNet-34",
        "batch size 64",
        "precision amp-fp16",
    ]


def test_a_page_that_can_check_nothing_says_so():
    results = [judged("not comparable", "reason")] * 3
    assert claims.checked(results) == (
        "None of 3 published claims can be checked by these runs. "
        "`invoke claims --here` names those that this machine can check."
    )


def test_many_reasons_become_few_rows_that_count_every_claim():
    results = [judged("not comparable", f"reason {n}") for n in range(40)]
    table = claims.unmet(results)
    assert table is not None and len(table.rows) == claims.MOST_REASONS + 1
    assert sum(int(row[1]) for row in table.rows) == 40


def test_an_unmet_claim_names_the_command_that_would_judge_it_here_and_how_long_it_takes():
    results = [
        Judged(
            claim("T4", 1.0, study="x").model_copy(update={"id": name}), Verdict("not comparable", (because,))
        )
        for name, because in (("one", "a"), ("two", "a"), ("three", "a"), ("four", "b"))
    ]
    ways = {
        "one": Way("perbos", {"t1": 3600.0, "t2": 1800.0}),
        "two": Way("perbos", {"t2": 1800.0, "t3": 1800.0}),
        "three": Way("quick", {"t4": 60.0}),
    }
    table = claims.unmet(results, ways)
    assert table is not None and table.columns[-1] == "Here, by"
    assert [row[-1] for row in table.rows] == [
        "invoke run --plan perbos, about 2 h: 2 claims\ninvoke run --plan quick, about 60 s: 1 claim",
        "–",
    ]
    (view,) = claims.views(results, (), ways, alone=False)
    assert view.apart is not None
    assert [row[-1].split("\n")[1:] for row in view.apart.rows] == [
        ["invoke run --claim one, about 90 min here"],
        ["invoke run --claim two, about 60 min here"],
        ["invoke run --claim three, about 60 s here"],
        [],
    ]


def test_what_differs_in_many_values_names_some_and_counts_the_rest():
    results = [judged("not comparable", f"batch size: 1 instead of {n}") for n in range(10, 20)]
    table = claims.unmet(results)
    assert table is not None and table.rows[0][0] == "batch size 10, 11, 12 or 7 others"


def test_both_sides_of_a_ratio_say_what_they_share_once():
    both = {"card": "T4", "model": "resnet50"}
    ratio = claim(
        "T4",
        1.5,
        kind="ratio",
        of={**both, "precision": "amp-fp16", "batch_size": 64},
        over={**both, "precision": "fp32-ieee", "batch_size": 32},
    )
    assert claims.short(ratio) == "Seconds, T4 ResNet-50: fp32-ieee batch 32 over amp-fp16 batch 64"


def test_the_rows_of_a_study_in_the_register_can_be_told_apart():
    """By label and figure: a publication may give one figure twice, such as from a table and a log."""
    labels = Counter(
        (each.study, claims.row_label(each), claims.published(each), each.source)
        for each in load_claims(ROOT).claims
    )
    assert [label for label, n in labels.items() if n > 1] == []
    assert max(len(label) for _, label, _, _ in labels) <= 160


def test_a_claim_in_words_alone_is_named_by_them():
    silent = claim("T4", 1.0).model_copy(update={"value": None, "words": "Mixed precision gains something."})
    assert isinstance(silent, Claim)
    assert claims.row_label(silent) == "Mixed precision gains something. (T4)"
