"""A model is name, memory and chip. Every record here is constructed."""

from __future__ import annotations

import pytest

from harness.record import Record
from harness.record.published.claim_set import is_same_card
from report.compare.card_units import unit_spreads
from report.compare.cells import cells_of
from report.compare.comparison import compare_sides
from report.trials.trial import TrialResult
from tests.helpers import records_builder as build
from tests.helpers.record_sets import LEAD, series
from tests.helpers.trial_tables import trials_of

NAME = "NVIDIA GeForce RTX 2060"
GIB = 2**30


def units(sizes: dict[str, float], chips: dict[str, str] | None = None) -> list[Record]:
    """Of each machine, by its digit, three runs on a card of so many GiB, the first machine leading."""
    records = []
    for place, (digit, gib) in enumerate(sizes.items()):
        told = {
            "measurement__device__unit": digit * 16,
            "measurement__device__memory_bytes": round(gib * GIB),
            "measurement__device__capability": (chips or {}).get(digit),
        }
        on = build.machine(NAME, label=f"card-{digit}", digits=digit)
        session = LEAD if digit == "a" else f"20260130-{digit * 6}"
        made = series(
            seconds=(0.1 if gib > 8 else 0.2) * (1 + place / 1e4), on=on, card=NAME, session=session
        )
        records += [build.changed(one, **told) for one in made]
    return records


def models(trials: tuple[TrialResult, ...]) -> list[str]:
    return sorted({trial.card for trial in trials})


def test_cards_of_one_name_and_two_memories_are_two_models_wherever_they_meet():
    records = units({"a": 5.8, "b": 5.8, "c": 11.8, "d": 11.8, "e": 11.8})
    trials = trials_of(records)
    assert models(trials) == [f"{NAME} 12 GB", f"{NAME} 6 GB"]
    spreads = unit_spreads(trials)
    assert (spreads[f"{NAME} 6 GB"].units, spreads[f"{NAME} 12 GB"].units) == (2, 3)
    comparison = compare_sides("machine", cells_of(trials))
    assert {side.card for side in comparison.sides} == set(models(trials))


def test_cards_of_one_name_and_two_chips_are_two_models():
    trials = trials_of(units({"a": 12, "b": 12}, {"a": "gfx1030", "b": "gfx1031"}))
    assert models(trials) == [f"{NAME} gfx1030", f"{NAME} gfx1031"]


@pytest.mark.parametrize("other", [12.0, 11.76, 11.25])
def test_what_error_correction_and_drivers_take_of_a_memory_makes_no_other_model(other):
    assert models(trials_of(units({"a": 12.0, "b": other}))) == [NAME]


def test_a_published_figure_of_a_card_is_not_held_against_its_namesake_of_another_memory():
    def same(published: str, gib: float | None) -> bool:
        return is_same_card(published, f"NVIDIA GeForce {published}", (), gib and round(gib * GIB))

    assert same("RTX 2060", 5.8) and not same("RTX 2060", 11.8)
    assert same("RTX 3080", 9.8) and not same("RTX 3080", 11.8)
    assert same("RTX 2060", None) and same("RTX 2080 Ti", 10.8)
