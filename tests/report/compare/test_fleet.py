"""A fleet of constructed units: how far they lie apart, and what that replaces."""

from __future__ import annotations

import numpy as np
import pytest

from harness.record import Record, finding
from report.compare.card_units import UnitSpread, mean_rate, unit_spreads, units_of_most
from tests.helpers.records_builder import LM, changed, machine, series_of
from tests.helpers.records_devices import LEAD, runs
from tests.helpers.records_fleet import CARD, fleet
from tests.helpers.trial_tables import analysed, trials_of


def units(records: list[Record]) -> int:
    return len(units_of_most(trials_of(records)))


def test_the_spread_of_a_card_is_that_of_the_mean_rates_of_all_its_units():
    trials = trials_of(fleet(slow={37: 0.12, 5: 0.06}))
    rates = [mean_rate(own) for own in units_of_most(trials).values()]
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
    assert not before.spreads["Constructed Card A"].measured
    spread = after.spreads["Constructed Card A"]
    assert spread.measured and spread.units == 30
