"""Expected values on constructed tables whose truth is known, and what is refused or told apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.errors import UserError
from harness.record.published.cards import load_cards
from report.expected import expected
from report.expected.expected import Refusal, expectation_of, model_of, quantile
from report.expected.figures import PublishedRow, figures_of, read_tables, task_of
from report.expected.model import FEWEST_CARDS, MixedModelFit, described, fit, modelled
from report.expected.specs import CardSpecs, load_specs, named
from tests.helpers import ROOT

SCATTER = 0.05
"""Of the constructed figures about what the specifications give."""


def a_card(number, rng, **changes):
    size = rng.uniform(1, 4)
    fields = {
        "name": f"Constructed {number}",
        "vendor": "NVIDIA",
        "architecture": ("Alpha", "Beta", "Gamma")[number % 3],
        "year": 2018 + number % 5,
        "form": "PCIe",
        "fp32_tflops": 10 * size,
        "fp16_tflops": 40 * size * rng.uniform(0.8, 1.2),
        "bandwidth_gbs": 400 * size**0.8,
        "memory_gb": float(rng.choice([16, 24, 48])),
        "power_watts": 150 * size**0.5,
    }
    return CardSpecs(**{**fields, **changes})


def a_row(card, work, speed, unit="images/s", software="one", **changes):
    fields = {
        "source": "constructed",
        "licence": "CC0-1.0",
        "commit": "not recorded",
        "path": "",
        "program": "constructed",
        "work": work,
        "precision": "amp-fp16",
        "batch_rule": "tuned",
        "card": card.name,
        "software": software,
        "unit": unit,
        "value": speed,
    }
    return PublishedRow(**{**fields, **changes})


@pytest.fixture(scope="module")
def constructed():
    """Cards, and rows whose truth is 2 × peak^0.5 × bandwidth^0.4 by work, with scatter."""
    rng = np.random.default_rng(7)
    cards = [a_card(number, rng) for number in range(16)]
    rows = []
    for card in cards:
        own = rng.normal(0, SCATTER)
        for place in range(6):
            software = ("one", "two")[int(card.name.split()[1]) % 4 > 1]
            log = math.log(2 * card.fp16_tflops**0.5 * card.bandwidth_gbs**0.4) + place + own
            rows.append(
                a_row(card, f"work {place}", math.exp(log + rng.normal(0, SCATTER / 2)), software=software)
            )
    return {card.name: card for card in cards}, rows


@pytest.fixture(scope="module")
def looks(constructed):
    """Each of eight cards left out: its rows with what was expected of them, by its specifications."""
    specs, rows = constructed
    found = []
    for card in list(specs.values())[:8]:
        own = [row for row in rows if row.card == card.name]
        model = model_of([row for row in rows if row.card != card.name], specs)
        for row in own[3:]:
            found.append((row.value, model.ask(card, task_of(row), software=f"constructed {row.software}")))
    return found


def inside(value, said):
    return said.low <= value <= said.high


def test_ranges_of_nine_in_ten_hold_about_nine_in_ten_figures_of_a_known_truth(looks):
    assert 0.8 <= np.mean([inside(value, said) for value, said in looks]) <= 1.0
    assert {said.published for _, said in looks} == {0}


def test_ranges_are_about_as_wide_as_the_truth_scatters(looks):
    truth = math.exp(1.645 * SCATTER * math.sqrt(1.25))
    assert truth * 0.95 <= np.median([said.factor for _, said in looks]) <= truth * 1.15


@pytest.fixture(scope="module")
def model(constructed):
    specs, rows = constructed
    return model_of(rows, specs)


def test_a_software_of_no_table_widens_the_range(model, constructed):
    card = constructed[0]["Constructed 4"]
    task = next(iter(model.tasks.values()))
    known, new = (model.ask(card, task, software=name) for name in ("constructed one", None))
    assert new.factor > known.factor


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"vendor": "AMD"}, "vendor"),
        ({"architecture": "Omega"}, "architecture"),
        ({"memory_gb": 8}, "memory"),
        ({"bandwidth_gbs": 20000}, "specification"),
    ],
)
def test_nothing_is_expected_where_the_model_was_not_calibrated(model, changes, reason):
    card = a_card(0, np.random.default_rng(1), name="Constructed new", **changes)
    said = model.ask(card, next(iter(model.tasks.values())))
    assert isinstance(said, Refusal)
    assert said.reason == reason


def test_a_task_of_too_few_cards_has_no_expected_value(constructed):
    specs, rows = constructed
    few = [a_row(card, "rare", 5.0) for card in list(specs.values())[: FEWEST_CARDS - 1]]
    model = model_of([*rows, *few], specs)
    assert task_of(few[0]).key not in model.tasks
    said = model.ask(specs["Constructed 0"], task_of(few[0]))
    assert isinstance(said, Refusal)
    assert said.reason == "task"


def test_times_and_rates_give_the_same_expectation(constructed):
    specs, rows = constructed
    times = [row.model_copy(update={"unit": "ms/step", "value": 1000 / row.value}) for row in rows]
    card = specs["Constructed 5"]
    rate = model_of(rows, specs).ask(card, task_of(rows[0]))
    time = model_of(times, specs).ask(card, task_of(times[0]))
    assert time.value == pytest.approx(1000 / rate.value)
    assert (time.low, time.high) == pytest.approx((1000 / rate.high, 1000 / rate.low))


def test_a_fit_that_was_kept_says_the_same(constructed, tmp_path, monkeypatch):
    specs, rows = constructed
    monkeypatch.setattr(expected, "read_tables", lambda root: {"constructed": rows})
    monkeypatch.setattr(expected, "load_specs", lambda root, cards: specs)
    said = [
        expected.kept(tmp_path, (), tmp_path / "state").ask(specs["Constructed 6"], task_of(rows[0]))
        for _ in range(2)
    ]
    assert len(list((tmp_path / "state").iterdir())) == 1
    assert said[1].value == pytest.approx(said[0].value)
    assert said[1].factor == pytest.approx(said[0].factor, rel=1e-3)


def test_a_card_is_answered_in_every_task_beside_the_cards_whose_peaks_are_nearest(model, constructed):
    specs, card = constructed[0], a_card(1, np.random.default_rng(2), name="Constructed new")
    found = expectation_of(model, card)
    assert len(found.rows) == 6 and not found.refused
    factors = [row.factor for row in found.rows]
    assert factors == sorted(factors)
    nearest = sorted(specs, key=lambda name: abs(math.log(specs[name].fp16_tflops / card.fp16_tflops)))
    assert [[name for name, _ in row.neighbours] for row in found.rows] == [nearest[:2]] * 6


def test_a_task_of_one_program_has_ranges_by_its_own_errors_which_its_cards_keep():
    """Nested: a card's range is by the errors of others that are left out together with it."""
    rows = [row for table in read_tables(ROOT).values() for row in table]
    fitted = fit(modelled(described(figures_of(rows), load_specs(ROOT, load_cards(ROOT)))))
    own, figures = expected.own_errors(fitted), fitted.figures
    assert list(own) == ["GPT-2 on rented cards"], "rasbt's eight cards are too few for a range of their own"
    (task,) = set(figures.task[figures.program == "GPT-2 on rented cards"])
    of_card = {card: figures.index[figures.card == card].to_numpy() for card in own["GPT-2 on rented cards"]}
    asked = {card: rows[(figures.task.iloc[rows] == task).to_numpy()] for card, rows in of_card.items()}

    def left_out(card, *others):
        gone = np.sort(np.concatenate([of_card[one] for one in (card, *others)]))
        error, deviation = fitted.before(gone).without(gone, asked[card])
        return np.abs(error), deviation

    missed, factors = 0, []
    for card in of_card:
        scores = {
            other: tuple(error / deviation)
            for other in of_card
            if other != card
            for error, deviation in (left_out(other, card),)
        }
        error, deviation = left_out(card)
        reach = quantile(scores, expected.COVERAGE) * deviation
        missed += int((error > reach).any())
        factors.append(math.exp(reach.max()))
    assert (len(of_card), missed) == (16, 1)
    assert np.median(factors) < 1.25


def test_too_few_cards_give_no_range():
    assert quantile({f"card {n}": (1.0,) for n in range(8)}, 0.9) == math.inf
    assert quantile({f"card {n}": (1.0,) for n in range(9)}, 0.9) == 1.0


def test_an_unknown_card_is_answered_by_the_nearest_names_and_the_columns_to_give():
    specs = load_specs(ROOT, load_cards(ROOT))
    assert named("rtx 4090", specs).name == "RTX 4090"
    for other in ("RTX 2070", "RTX 4000", "RX 7900"):
        with pytest.raises(UserError, match="is no one card of the tables; use R"):
            named(other, specs)
    with pytest.raises(UserError, match="RTX PRO 6000 Blackwell WS or RTX PRO 6000 Blackwell Server"):
        named("RTX PRO 6000", specs)
    with pytest.raises(UserError) as refused:
        named("RTX 4091", specs)
    assert "RTX 4090" in str(refused.value)
    assert "bandwidth_gbs" in str(refused.value)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("unit", "furlongs"), ("value", "-3"), ("precision", "fp12")),
        *(("batch", "many"), ("batch_rule", ""), ("commit", "main")),
    ],
)
def test_a_table_with_a_wrong_field_is_refused_with_its_line(tmp_path, column, value):
    folder = tmp_path / "results" / "tables" / "published"
    folder.mkdir(parents=True)
    row = a_row(a_card(1, np.random.default_rng(3)), "work", 3.0).model_dump(mode="json", exclude_none=True)
    row = {**row, "batch": "", column: value}
    (folder / "constructed.csv").write_text(
        ",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n", encoding="utf-8"
    )
    with pytest.raises(UserError, match="line 2"):
        read_tables(tmp_path)


def test_specifications_stand_in_one_place_and_of_every_published_card(tmp_path):
    cards = load_cards(ROOT)
    specs = load_specs(ROOT, cards)
    rows = [row for table in read_tables(ROOT).values() for row in table]
    assert {row.card for row in rows} <= set(specs)
    folder = tmp_path / "results" / "tables"
    folder.mkdir(parents=True)
    text = (ROOT / "results/tables/cards.csv").read_text(encoding="utf-8")
    twice = text.replace("GTX 1070,", "RTX 3090,", 1)
    assert twice != text
    (folder / "cards.csv").write_text(twice, encoding="utf-8")
    with pytest.raises(UserError, match="RTX 3090"):
        load_specs(tmp_path, cards)


def test_precisions_and_fixed_batches_are_tasks_of_their_own():
    card = a_card(1, np.random.default_rng(3))
    rows = [
        a_row(card, "work", 3.0, batch=batch, batch_rule=rule, precision=precision)
        for precision, batch, rule in (
            ("fp32-ieee", 8, "fixed"),
            ("fp32-ieee", 16, "fixed"),
            ("fp32-tf32", 8, "fixed"),
            ("fp32-tf32", 8, "tuned"),
            ("fp32-tf32", 16, "tuned"),
        )
    ]
    figures = figures_of(rows)
    assert len(figures) == 4
    assert figures.rows.tolist().count(2) == 1


def test_a_card_is_scored_before_any_of_its_figures_is_known_to_be_an_outlier(model):
    places = np.arange(4)
    loose = np.zeros(len(model.fit.figures))
    loose[[1, 9]] = 0.5
    fitted = MixedModelFit(model.fit.figures.assign(loose=loose))
    before = fitted.before(places)
    assert np.flatnonzero(before.figures.loose).tolist() == [9]
    assert before.precision == pytest.approx(MixedModelFit(before.figures).precision, rel=1e-4, abs=1e-4)
    assert fitted.before(np.array([2, 3])) is fitted


def test_a_card_with_figures_of_a_task_is_answered_by_them_though_the_model_would_refuse_it(constructed):
    specs, rows = constructed
    card = a_card(0, np.random.default_rng(1), name="Constructed new", architecture="Omega", vendor="AMD")
    own = [a_row(card, "work 0", 700.0, software="three"), a_row(card, "work 0", 720.0, software="four")]
    model = model_of([*rows, *own], {**specs, card.name: card})
    found = model.answers(card, model.tasks.values())
    said, refused = found.pop(task_of(own[0])), set(found.values())
    assert said.published == 2
    assert 600 < said.value < 770
    assert {one.reason for one in refused} == {"vendor"}


@pytest.mark.parametrize("name", ["Strix Halo", "quantum card"])
def test_a_name_that_is_near_to_no_card_is_offered_none(name):
    with pytest.raises(UserError) as refused:
        named(name, load_specs(ROOT, load_cards(ROOT)))
    assert "use " not in str(refused.value)
