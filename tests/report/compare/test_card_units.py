"""How far units of one card lie apart, of constructed fleets, and how many miss a figure by that alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.record import Record, finding
from report.compare.card_units import (
    UnitSpread,
    missing_share,
    unit_spread,
    unit_spreads,
    units_of_most,
)
from report.stats.contrast import assumed_reach
from tests.helpers.records_builder import LM, changed, machine, series_of
from tests.helpers.records_devices import LEAD, runs
from tests.helpers.records_fleet import CARD, fleet
from tests.helpers.trial_tables import analysed, trials_of


def units(records: list[Record]) -> int:
    return len(units_of_most(trials_of(records)))


def test_the_spread_of_a_card_is_that_of_the_mean_rates_of_all_its_units():
    trials = trials_of(fleet(slow={37: 0.12, 5: 0.06}))
    rates = [np.mean([trial.samples_per_second for trial in own]) for own in units_of_most(trials).values()]
    spread = unit_spreads(trials)[CARD]
    assert spread == UnitSpread(pytest.approx(np.log(rates).std(ddof=1)), 63, 64)


def test_nodes_of_one_session_are_as_many_units_as_those_of_several():
    together = [record.model_copy(update={"session": LEAD}) for record in fleet(12)]
    assert units(together) == units(fleet(12)) == 12


def processors(*cores: float, verdict: str = "valid") -> list[Record]:
    """A machine for each number of usable cores of one processor, as fast as it has cores."""
    made = []
    for place, usable in enumerate(cores):
        on = machine("Constructed CPU", label=f"cpu-{place}", digits=f"{place:x}")
        on = on.model_copy(update={"cpu": on.cpu.model_copy(update={"usable": usable})})
        session = LEAD if not place else f"20260130-{place:06x}"
        made += series_of(
            LM, "fp32-ieee", (1 + place / 1e4) / usable, on=on, card="Constructed CPU", session=session
        )
    return [changed(one, environment__device="cpu", summary__verdict=verdict) for one in made]


def test_processors_of_other_numbers_of_cores_are_no_units_of_one_model():
    assert [units(processors(*cores)) for cores in ((8, 8, 8), (8, 8, 1, 8), (8, 1, 8))] == [3, 3, 2]
    (card,) = {trial.card for trial in trials_of(processors(8))}
    assert unit_spreads(trials_of(processors(8, 8, 1)))[card] == UnitSpread(units=2)


def test_units_with_another_driver_or_without_a_proven_trial_do_not_count():
    assert units(processors(8, 8, 8, verdict="unproven")) == 0
    newer = []
    for record in fleet(4, seed=3):
        cards = tuple(gpu.model_copy(update={"driver": "590.00"}) for gpu in record.machine.gpus)
        newer.append(record.model_copy(update={"machine": record.machine.model_copy(update={"gpus": cards})}))
    assert units([*fleet(8), *newer]) == 8
    invalid = fleet(4, seed=4, verdict="invalid", causes=(finding("not-finite", loss="nan", step=3),))
    assert units([*fleet(8), *invalid]) == 8


def test_the_measured_spread_replaces_the_assumed_one_in_every_purchase_figure_whatever_work_it_is_of():
    # Each card's own work is ResNet-50 in FP32; the fleet ran it in mixed precision.
    work = runs("fp32-ieee", 0.1, repeats=5)
    before, after = (
        analysed([*work, *more]) for more in ([], fleet(30, card="Constructed Card A", cards_per_machine=1))
    )
    assert before.clause and not before.clause.spread.measured
    assert after.clause and after.clause.spread.measured and after.clause.spread.units == 30


def test_another_unit_of_a_model_adds_two_draws_and_counts_by_its_own_degrees_of_freedom():
    assumed, five = UnitSpread().assumption, UnitSpread(0.02, 4, 5).assumption
    assert assumed_reach([assumed]) == pytest.approx(1.96 * math.sqrt(2) * 0.03, rel=1e-4)
    assert assumed_reach([assumed] * 2) == pytest.approx(1.96 * 2 * 0.03, rel=1e-4)
    assert assumed_reach([five] * 2) == pytest.approx(2.776 * 0.04, rel=1e-3)


ASSUMED = UnitSpread()


def simulated(cv: float, df: float, margin: float, machines: int = 200_000) -> float:
    """By drawing the unit of the figure, the machine, and how wrong the measured spread is."""
    random = np.random.default_rng(7)
    true = cv * np.sqrt(df / random.chisquare(df, machines)) if math.isfinite(df) else cv
    ordered, delivered = random.normal(size=(2, machines))
    return float(((delivered - ordered) * true < math.log1p(-margin)).mean())


@pytest.mark.parametrize(("cv", "df", "margin"), [(0.03, math.inf, 0.05), (0.02, 2, 0.05), (0.05, 9, 0.1)])
def test_the_share_is_that_of_a_simulation(cv, df, margin):
    assert missing_share(UnitSpread(cv, df, 3), margin) == pytest.approx(simulated(cv, df, margin), abs=0.004)


def test_of_the_assumed_spread_a_ninth_misses_until_three_units_are_on_record():
    two, three = unit_spread((100.0, 102.0)), unit_spread((100.0, 101.0, 102.0))
    assert missing_share(ASSUMED, 0.05) == pytest.approx(1 / 9, abs=0.003)
    assert missing_share(two, 0.05) == missing_share(ASSUMED, 0.05) != missing_share(three, 0.05)


def test_units_that_do_not_differ_miss_nothing_and_a_wider_margin_misses_less():
    assert missing_share(UnitSpread(0.0), 0.05) == 0.0
    assert missing_share(ASSUMED, 0.1) < missing_share(ASSUMED, 0.05)
