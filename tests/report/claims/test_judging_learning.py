from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from harness.record import Claim, Record, finding
from report.compare import cells as stats
from report.compare.cells import cells_of
from tests.helpers import records_builder as build
from tests.helpers.claims_builder import KIND, claim, lacks, series, word
from tests.helpers.trial_tables import trials_of

LEARNING = {**KIND, "quality": "accuracy", "epochs": 12}


def learned(first: int, *, batch: int = 512, fall: float = 0.0, repeats: int = 5) -> list[Record]:
    """Runs that have 0.75 after so many epochs, a repeat more or less, and fall back between two of them."""
    records = []
    for place, record in enumerate(
        series(kind=LEARNING, batch_size=batch, repeats=repeats, first_order=batch)
    ):
        assert record.measurement is not None
        had = first + place % 2
        epochs = [
            epoch.model_copy(
                update={
                    "quality": min(0.3 + 0.45 * epoch.index / had, 0.76)
                    - (fall * (1 + place / 10) if epoch.index == 2 else 0.0)
                }
            )
            for epoch in record.measurement.epochs
        ]
        records.append(build.changed(record, measurement__epochs=tuple(epochs)))
    return records


def to_target(relation: str, target: float = 0.75, **changes: Any) -> Claim:
    sides = {at: {"model": "mlp", "precision": "fp32-ieee", "batch_size": 512 * at} for at in (1, 4)}
    values: dict[str, Any] = {
        "kind": "order",
        "metric": "epochs_to_target",
        "target": target,
        "of": sides[4],
        "over": sides[1],
        "relation": relation,
        "value": None,
        "unit": "epochs",
        "half_digit": 0.0,
        "card_class": "any",
    }
    return claim(**{**values, **changes})


def test_epochs_to_a_target_are_compared_where_every_run_of_both_sides_had_it():
    records = [*learned(4), *learned(9, batch=2048)]
    assert word(to_target("greater"), records) == "holds"
    assert word(to_target("less"), records) == "fails"
    assert word(to_target("greater", metric="seconds_to_target", unit="s"), records) == "holds"


def test_a_run_that_ended_without_its_target_is_averaged_with_no_other():
    records = [*learned(4), *learned(12, batch=2048)]
    assert word(to_target("greater"), records) is None


def lost(record: Record) -> Record:
    """The same run, whose loss is no number at its end."""
    nan = finding("not-finite", loss=math.nan, step=99)
    return build.changed(record, summary__findings=(nan,), summary__verdict="invalid")


def test_a_run_that_ends_in_nan_did_not_reach_its_target_and_one_that_was_disturbed_is_left_out():
    three = learned(4, repeats=3)
    (cell,) = cells_of(trials_of([*three[:2], lost(three[2])]))
    found = stats.to_target(cell, 0.75)
    assert (found.reached, found.runs, found.epochs.mean, found.seconds.mean) == (2, 3, None, None)
    trials = [
        replace(trial.with_findings(finding("foreign-process", other_mib=900.0, card=0)), verdict="invalid")
        for trial in cell.trials
        if trial.lost
    ]
    (cell,) = cells_of([*cell.trials[:2], *trials])
    found = stats.to_target(cell, 0.75)
    assert (found.reached, found.runs, found.epochs.n) == (2, 2, 2)


def test_runs_that_their_program_s_own_seed_makes_equal_are_one_run():
    first, *others = learned(4, repeats=3)
    assert first.measurement is not None
    losses, epochs = first.measurement.losses, first.measurement.epochs
    equal = [
        build.changed(one, measurement__losses=losses, measurement__epochs=epochs) for one in (first, *others)
    ]
    (cell,) = cells_of(trials_of(equal))
    assert (cell.figures["quality"].n, cell.throughput.n) == (1, 3)
    assert (stats.to_target(cell, 0.75).reached, stats.to_target(cell, 0.75).runs) == (1, 1)
    (cell,) = cells_of(trials_of([first, *others]))
    assert cell.figures["quality"].n == 3


def test_no_claim_is_judged_on_the_runs_that_did_not_end_in_nan():
    first, *others = learned(9, batch=2048)
    records = [*learned(4), lost(first), *others]
    assert word(to_target("greater"), records) is None
    best = {"kind": "quality", "metric": "best_accuracy", "unit": "fraction", "over": None, "target": None}
    of = {"model": "mlp", "batch_size": 2048}
    assert lacks(to_target("less", of=of, epochs=12, value=0.8, **best), records[5:]) == {"learning"}


def test_a_target_on_a_part_of_the_validation_judges_no_claim():
    records = []
    for record in [*learned(4), *learned(9, batch=2048)]:
        assert record.measurement is not None
        epochs = [epoch.model_copy(update={"valid_batches": 2}) for epoch in record.measurement.epochs]
        records.append(build.changed(record, measurement__epochs=tuple(epochs)))
    assert word(to_target("greater"), records) is None


def test_falls_between_early_epochs_are_told_apart_by_their_difference_since_they_may_be_none():
    falls = {"metric": "early_fall", "target": None, "unit": "fraction", "epochs": 12}
    smooth, rough = learned(4), learned(9, batch=2048, fall=0.1)
    assert word(to_target("greater", **falls), [*smooth, *rough]) == "holds"
    assert word(to_target("less", **falls), [*smooth, *rough]) == "fails"
    assert word(to_target("greater", **falls), [*smooth, *learned(9, batch=2048)]) == "open"


def test_a_target_that_was_not_reached_is_a_best_accuracy_below_it():
    below = {"kind": "quality", "metric": "best_accuracy", "unit": "fraction", "over": None}
    best = to_target("less", target=None, of={"model": "mlp", "batch_size": 512}, epochs=12, **below)
    found = {bound: word(best.model_copy(update={"value": bound}), learned(4)) for bound in (0.7, 0.8)}
    assert found == {0.7: "fails", 0.8: "holds"}
