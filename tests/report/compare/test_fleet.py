"""A fleet of constructed units: their order, their spread, and what it replaces."""

from __future__ import annotations

import numpy as np
import pytest

from harness.record import Record, finding
from report.compare.spread import Fleet, UnitSpread, fleets, unit_spreads
from tests.helpers.records_builder import LM, changed, machine, series_of
from tests.helpers.records_devices import LEAD, runs
from tests.helpers.records_fleet import CARD, fleet
from tests.helpers.trial_tables import analysed, trials_of


def one(records: list[Record], lead: str | None = LEAD) -> Fleet:
    (found,) = fleets(trials_of(records), lead)
    return found


@pytest.fixture(scope="module")
def sixty_four() -> Fleet:
    return one(fleet(slow={37: 0.12, 5: 0.06}))


def test_units_stand_by_their_speed_with_the_spread_of_all_of_them(sixty_four):
    assert len(sixty_four.units) == 64
    rates = [unit.rate for unit in sixty_four.units]
    assert rates == sorted(rates, reverse=True)
    assert [unit.name for unit in sixty_four.units[:-3:-1]] == [
        "constructed-node-09, card 1",
        "constructed-node-01, card 1",
    ]
    assert sixty_four.units[-1].share == pytest.approx(0.88, abs=0.03)
    assert sixty_four.spread.units == 64
    assert sixty_four.spread.cv == pytest.approx(np.log(rates).std(ddof=1))
    assert 0 < sixty_four.told_apart < 0.01


def test_nodes_of_one_session_are_as_many_units_as_those_of_several():
    together = [record.model_copy(update={"session": LEAD}) for record in fleet(12)]
    assert len(one(together).units) == len(one(fleet(12)).units) == 12


def test_cards_of_a_node_whose_places_nobody_tells_have_names_of_their_own():
    untold = [record.model_copy(update={"cards_given": (0,)}) for record in fleet(8)]
    names = [unit.name for unit in one(untold).units]
    assert len(set(names)) == 8
    assert all(name.startswith("constructed-node-0") for name in names)


def test_a_unit_that_ran_once_says_nothing_of_how_far_its_runs_lie_apart():
    assert one(fleet(8, repeats=1)).told_apart is None


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
    assert len(one(processors(8, 8, 8)).units) == 3
    assert len(one(processors(8, 8, 1, 8)).units) == 3
    assert fleets(trials_of(processors(8, 1, 8)), LEAD) == ()
    (card,) = {trial.card for trial in trials_of(processors(8))}
    assert unit_spreads(trials_of(processors(8, 8, 1))).of(card) == UnitSpread(units=2)


def test_runs_that_are_not_proven_are_no_units():
    assert fleets(trials_of(processors(8, 8, 8, verdict="unproven")), LEAD) == ()


def test_units_of_another_card_another_driver_or_of_an_invalid_trial_are_in_no_fleet():
    other = fleet(4, card="Constructed Card G", seed=2)
    both = fleets(trials_of([*fleet(8), *other]), LEAD)
    assert [(found.card, len(found.units)) for found in both] == [(CARD, 8), ("Constructed Card G", 4)]
    newer = [
        record.model_copy(
            update={
                "machine": record.machine.model_copy(
                    update={
                        "gpus": tuple(
                            gpu.model_copy(update={"driver": "590.00"}) for gpu in record.machine.gpus
                        )
                    }
                )
            }
        )
        for record in fleet(4, seed=3)
    ]
    assert len(one([*fleet(8), *newer]).units) == 8
    invalid = fleet(4, seed=4, verdict="invalid", causes=(finding("not-finite", loss="nan", step=3),))
    assert len(one([*fleet(8), *invalid]).units) == 8


def test_two_units_are_no_fleet_and_a_page_of_another_card_shows_none():
    assert not fleets(trials_of(fleet(2, cards_per_machine=1)), LEAD)
    assert not fleets(trials_of(fleet(8)), "20260101-000000")


def test_processors_are_units_by_their_machine():
    found = one(
        [
            changed(record, environment__device="cpu", measurement__device__unit=None, cards_given=())
            for record in fleet(5, cards_per_machine=1)
        ]
    )
    assert sorted(unit.name for unit in found.units) == [f"constructed-node-0{n}" for n in range(5)]


def test_the_measured_spread_replaces_the_assumed_one_in_every_purchase_figure_whatever_work_it_is_of():
    # Each card's own work is ResNet-50 in FP32; the fleet ran it in mixed precision.
    work = runs("fp32-ieee", 0.1, repeats=5)
    before, after = (
        analysed([*work, *more]) for more in ([], fleet(30, card="Constructed Card A", cards_per_machine=1))
    )
    assert not before.spreads.of("Constructed Card A").measured
    spread = after.spreads.of("Constructed Card A")
    assert spread.measured and spread.units == 30
