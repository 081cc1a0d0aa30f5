"""Sides of constructed records: what is said of a pair, places, what keeps a side out, and what differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from report.compare.cells import cells_of
from report.compare.comparison import Comparison, compare_sides
from report.expected.software_effect import SoftwareEffect
from report.stats.contrast import order_shown
from report.stats.intervals import Interval
from tests.helpers.records_builder import LM, changed, machine, out_of_memory, series_of
from tests.helpers.trial_tables import trials_of


def runs(step_seconds: float, place: int = 0, precision: str = "fp32-ieee", **changes):
    """Repeats of one work on one of several machines, a session each."""
    on = machine(f"Constructed Card {place}", label=f"host-{place}", digits=f"{place + 1:012x}")
    values = {
        "on": on,
        "card": f"Constructed Card {place}",
        "session": f"20260131-{place:06x}",
        "spread": 0.002,
    }
    return series_of(LM, precision, step_seconds, **(values | changes))


def compared(records, factor: str = "machine", **options) -> Comparison:
    """The first record's machine is asked about, the others join."""
    trials = trials_of(records)
    first, cells = trials[0].machine, cells_of(trials)
    return compare_sides(
        factor,
        [cell for cell in cells if cell.machine == first],
        [cell for cell in cells if cell.machine != first],
        failed=[trial for trial in trials if trial.failure and trial.machine == first],
        **options,
    )


@pytest.mark.parametrize(
    ("low", "high", "processes", "said"),
    [
        (1.02, 1.04, 3, "faster"),
        (0.90, 0.99, 3, "slower"),
        (1.02, 1.04, 2, "counts-only"),
        (0.96, 1.04, 3, "equal"),
        (0.96, 1.04, 2, "equal"),
        (0.96, 1.06, 3, "not-shown"),
        (0.94, 1.04, 5, "not-shown"),
    ],
)
def test_an_order_needs_three_processes_a_side_and_equal_a_whole_range_within_five_per_cent(
    low, high, processes, said
):
    assert order_shown(Interval(low, 1.0, high, 4.0), processes) == said
    assert order_shown(None, processes) == "counts-only"


def test_a_class_has_its_first_its_groups_and_a_span_of_places_for_every_machine():
    speeds = [18.7 ** (place / 19) for place in range(20)]
    speeds = [speeds[10], *speeds[:10], *speeds[11:]]
    comparison = compared([one for place, speed in enumerate(speeds) for one in runs(0.5 / speed, place)])
    spans = dict(zip(speeds, comparison.places, strict=True))
    neighbours = [(max(1, place), min(20, place + 2)) for place in range(20)]
    assert [tuple(spans[speed]) for speed in sorted(speeds, reverse=True)] == neighbours
    assert len(comparison.group_starts) == 1
    apart = compared([one for place in range(4) for one in runs(0.5 * 1.3**place, place)])
    assert (apart.places, apart.group_starts) == (((1, 1), (2, 2), (3, 3), (4, 4)), (1, 2, 3, 4))


def test_a_precision_that_a_processor_emulates_and_a_single_run_have_no_place():
    def on_cpu(records, *native: str):
        cpu = records[0].machine.cpu.model_copy(update={"native_16_bit": native})
        on = records[0].machine.model_copy(update={"cpu": cpu})
        return [changed(one, environment__device="cpu").model_copy(update={"machine": on}) for one in records]

    native = [one for place in range(2) for one in on_cpu(runs(0.5 + place / 1e3, place, "amp-bf16"), "bf16")]
    slow, once = on_cpu(runs(0.9, 2, "amp-bf16"), "fp16"), on_cpu(runs(0.4, 3, "amp-bf16", repeats=1), "bf16")
    comparison = compared([*native, *slow, *once])
    assert comparison.places == ((1, 2), (1, 2), None, None)
    assert [round(ratio.estimate, 2) for ratio in comparison.ratios] == [1.0, 0.56, 1.25]


def test_what_keeps_a_side_out_is_a_failure_no_valid_run_or_the_fields_of_its_nearest_work():
    kept = runs(0.5, precision="fp32-ieee")
    failed = runs(0.3, precision="amp-fp16", repeats=1)[0]
    failed = failed.model_copy(
        update={"status": "failed", "measurement": None, "summary": None, "failure": out_of_memory()}
    )
    bent = runs(0.4, precision="amp-bf16", verdict="invalid")
    other = runs(0.4, precision="pure-fp16", batch_size=40)
    comparison = compared([*kept, failed, *bent, *other], "precision")
    found = {dict(each.side.values)["precision"]: each for each in comparison.missing}
    assert found["amp-fp16"].reason == "failed" and found["amp-fp16"].failure == "out-of-memory"
    assert found["amp-bf16"].reason == "invalid"


def test_software_that_differs_is_a_term_whose_size_widens_the_range():
    theirs = [
        changed(one, measurement__versions={"torch": "2.12.0", "python": "3.11.7", "cuda": "13.0"})
        for one in runs(0.4, 1)
    ]
    (alone,) = compared([*runs(0.5), *theirs]).ratios
    effect = SoftwareEffect(0.0, 0.19, 12)
    (sized,) = compared([*runs(0.5), *theirs], software=effect).ratios
    assert [(term.field, term.of, term.over) for term in sized.terms] == [
        ("software", "torch 2.12.0", "torch 2.13.0")
    ]
    assert alone.estimate == sized.estimate == pytest.approx(1.25, rel=1e-3)
    assert (alone.order, sized.order) == ("faster", "not-shown") and sized.interval.low < alone.interval.low


@pytest.mark.parametrize(
    ("change", "joins"),
    [
        ({"data": "generated"}, False),
        ({"batch_size": 40}, False),
        ({"precision": "amp-fp16"}, False),
        ({"mode": "host"}, True),
        ({"profile": "tuned"}, True),
        ({"limit": {"seconds": 10}, "complete": False}, True),
    ],
)
def test_works_stay_apart_only_where_a_number_would_be_false(change, joins):
    theirs = runs(0.4, 1, **change)
    comparison = compared([*runs(0.5), *theirs])
    assert len(comparison.sides) == 1 + joins
    assert [len(ratio.terms) for ratio in comparison.ratios] == [1] * joins


def test_a_machine_of_three_blocks_in_another_work_is_assumed_to_scatter_as_it_did_there():
    def in_blocks(records):
        return [changed(one, block=1 + at) for at, one in enumerate(records)]

    many = in_blocks(runs(0.7, precision="amp-fp16", spread=0.004))
    comparison = compared([*runs(0.5), *many, *runs(0.4, 1)])
    (ratio,) = comparison.ratios
    assert sorted(round(each.size, 4) for each in ratio.assumed) == [0.0027, 0.03]
    assert [each.df for each in ratio.assumed if each.size < 0.01] == [2]
    turned = replace(ratio.inverse.inverse, assumed=ratio.assumed)
    assert turned.estimate == pytest.approx(ratio.estimate)
    assert ratio.turning_size == pytest.approx(ratio.inverse.turning_size)
