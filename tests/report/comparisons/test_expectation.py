from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.record import Cpu, Limit
from report.comparisons import expectation
from report.comparisons.cells import Ratio
from report.sections.answer import headline
from report.sections.ran import environment
from report.stats.intervals import Interval
from tests.helpers import records_builder as build
from tests.report.comparisons.test_groups import LEAD, ON, elsewhere, found, series, view

SHORT = {"complete": False, "limit": Limit(steps=40)}


def ratio(low: float, estimate: float, high: float) -> Ratio:
    return Ratio(estimate, Interval(low, estimate, high, (5, 5), 8.0, 0.95, "log-Welch"), (5, 5))


def test_the_sentence_to_buy_by_gives_the_range_for_any_units_and_that_of_these_two():
    (one,) = expectation.expectations(found([*series(repeats=5), *elsewhere(repeats=5)]))
    assert one.fast.name == "Constructed Card B" and one.best == pytest.approx(1.25)
    assert one.units is not None and one.model is not None
    for end, wide in ((one.units.low, one.model.low), (one.units.high, one.model.high)):
        runs, units = math.log(end / one.best), 1.96 * 2 * 0.03
        assert abs(math.log(wide / one.best)) == pytest.approx(math.hypot(runs, units), rel=1e-4)
    shown = view([*series(repeats=5), *elsewhere(repeats=5)])
    low, high = (f"{value:.1f}" for value in (one.model.low, one.model.high))
    assert shown.answer == (
        f"The Constructed Card B does this work about {one.best:.2f} times as fast as the Constructed "
        f"Card A; from the units that you would get, expect {low} to {high} times."
    )


def test_a_range_for_other_units_that_includes_one_says_no_difference_shown():
    shown = view([*series(repeats=5), *elsewhere(seconds=0.095, repeats=5)])
    assert shown.answer.startswith("No difference is shown between the Constructed Card B and the")
    assert shown.expected is not None and "no difference shown" in shown.expected.rows[0][3]
    assert any("Other units may turn it" in said for said in shown.changes)


def test_windows_too_short_are_a_first_look_that_expects_nothing():
    records = [*series(verdict="unproven", **SHORT), *elsewhere(verdict="unproven", **SHORT)]
    shown = view(records)
    assert shown.answer.startswith("A first look, and no ranking: in these tests the Constructed Card B")
    assert shown.expected is not None and "not ranked" in shown.expected.rows[0][3]


def test_single_runs_give_no_range():
    shown = view([*series(repeats=1), *elsewhere(repeats=1)])
    assert shown.expected is not None and "no interval" in shown.expected.rows[0][3]
    assert shown.changes == ()


def test_cards_of_one_name_are_told_apart_by_their_machines():
    other = build.machine(ON.gpus[0].name, label="other", digits="b")
    (one,) = expectation.expectations(found([*series(), *elsewhere(on=other, card=ON.gpus[0].name)]))
    assert {one.fast.name, one.slow.name} == {"this machine", "machine constructed-other"}


def test_unlike_work_expects_nothing():
    assert expectation.expectations(found([*series(), *elsewhere(batch_size=40)])) == ()


def test_the_card_that_beats_the_own_one_leads_and_the_level_holds_for_all_pairs():
    third = build.machine("Constructed Card C", label="card-c", digits="c")
    records = [
        *series(),
        *elsewhere(seconds=0.2),
        *elsewhere(seconds=0.08, on=third, card="Constructed Card C", session="20260129-cccccc"),
    ]
    first, second = expectation.expectations(found(records))
    assert first.fast.name == "Constructed Card C" and second.slow.name == "Constructed Card B"
    assert first.comparisons == 2
    assert all(each.ratio.interval and each.ratio.interval.comparisons == 2 for each in first.benchmarks)


def test_hours_weigh_the_benchmarks_and_leave_out_what_has_none():
    records = [*series(), *elsewhere(seconds=0.05), *series(kind=build.CIFAR), *elsewhere(kind=build.CIFAR)]
    groups = found(records)
    both = expectation.expectations(groups)[0].best
    assert both == pytest.approx(1 / (0.25 + 0.4))
    language = groups[0].entries[0].cell
    alone = expectation.Buyer({(language.key, language.length): 10.0}, (language.machine, language.card))
    (one,) = expectation.expectations(groups, alone)
    assert one.best == pytest.approx(2.0) and len(one.benchmarks) == 1
    assert one.own_mix and "does your work" in headline.headline(one)
    assert expectation.expectations(groups, expectation.Buyer({}, alone.on)) == ()


@pytest.mark.parametrize(
    ("on", "hours", "best"),
    [(0, (10.0, 30.0), 40 / (5 + 24)), (1, (10.0, 30.0), (20 + 37.5) / 40), (0, (5.0, 5.0), 10 / (2.5 + 4))],
)
def test_the_hours_may_be_given_on_either_system_and_are_the_same_benchmark(on, hours, best):
    """Language is twice as fast on B, images 1.25 times: what takes an hour on A takes 0.5 and 0.8 there."""
    records = [*series(), *elsewhere(seconds=0.05), *series(kind=build.CIFAR), *elsewhere(kind=build.CIFAR)]
    groups = found(records)
    at = groups[0].entries[on].cell
    asked = {
        (group.entries[0].cell.key, group.entries[0].cell.length): given
        for group, given in zip(groups, hours, strict=True)
    }
    (one,) = expectation.expectations(groups, expectation.Buyer(asked, (at.machine, at.card)))
    assert one.best == pytest.approx(best)
    assert one.units and one.units.low < best < one.units.high


def test_benchmarks_that_disagree_name_the_mix_that_turns_the_answer():
    records = [
        *series(),
        *elsewhere(seconds=0.05),
        *series(kind=build.CIFAR),
        *elsewhere(kind=build.CIFAR, seconds=0.125),
    ]
    assert any("With more than 67% of ResNet-50" in said for said in view(records).changes)


@given(st.lists(st.tuples(st.floats(0.2, 5), st.floats(1.01, 2)), min_size=1, max_size=6))
def test_a_mix_lies_between_its_benchmarks_and_its_range_holds_it(benchmarks: list[tuple[float, float]]):
    ratios = [ratio(value / reach, value, value * reach) for value, reach in benchmarks]
    best, span = expectation.mix(ratios, [1.0] * len(ratios))
    assert span is not None and span.low <= best <= span.high
    values = [value for value, _ in benchmarks]
    assert min(values) <= best * (1 + 1e-9) and best <= max(values) * (1 + 1e-9)


def test_a_single_benchmark_keeps_its_own_interval():
    best, span = expectation.mix([ratio(1.5, 1.6, 1.7)], [3.0])
    assert best == pytest.approx(1.6) and span is not None
    assert (span.low, span.high) == (pytest.approx(1.5), pytest.approx(1.7))


def test_three_units_of_each_model_make_the_band_a_measured_one():
    records = []
    for card, digits, seconds in (("Constructed Card A", "abc", 0.1), ("Constructed Card B", "def", 0.05)):
        for place, digit in enumerate(digits):
            on = build.machine(card, label=f"card-{digit}", digits=digit)
            session = LEAD if digit == "a" else f"20260130-{digit * 6}"
            made = series(seconds=seconds * (1 + 0.01 * place), on=on, card=card, session=session)
            for one in made:
                assert one.measurement
                device = one.measurement.device.model_copy(update={"unit": digit * 16})
                measured = one.measurement.model_copy(update={"device": device})
                records.append(one.model_copy(update={"measurement": measured}))
    first = expectation.expectations(found(records))[0]
    assert first.band.measured and first.band.units == 3
    assert first.band.label == "unit-to-unit, measured on 3 units"


def test_hosts_that_differ_are_named_by_what_differs():
    other = build.machine("Constructed Card B", label="card-b", digits="b")
    other = other.model_copy(update={"cpu": Cpu(model="Another CPU", cores=4, threads=8), "kernel": "6.12.0"})
    table = environment.apart([ON, other])
    assert table is not None and table.columns == ("Differs in", "constructed-card-a", "constructed-card-b")
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["processor"] == ("Constructed CPU", "Another CPU") and rows["kernel"] == ("6.1.0", "6.12.0")
    said = view([*series(), *elsewhere(on=other)]).bottleneck
    assert said is not None and any("processor" in one and "kernel" in one for one in said.sentences)


def test_memory_that_reads_alike_is_no_difference():
    assert ON.memory_bytes
    other = ON.model_copy(update={"memory_bytes": ON.memory_bytes + 4096})
    assert environment.apart([ON, other]) is None


def test_what_belongs_to_a_machine_is_said_once_for_it():
    guest = ON.model_copy(update={"virtual": "kvm"})
    said = view([*series(on=guest, repeats=5), *series("amp-bf16", on=guest, first_order=10)]).bottleneck
    assert said is not None and said.remarks is not None
    assert len(said.remarks.rows) == 1 and said.remarks.rows[0][1].count("guest") == 1
