"""Time to a target on the page: its charts, its table and what stands in no mean, on constructed records."""

from __future__ import annotations

import pytest

from harness.record import Record
from report.sections.view import Table, WorkloadView
from tests.helpers.records_learning import emulated, learned, on_devices
from tests.report.comparisons.test_groups import view


def of(records: list[Record]) -> WorkloadView:
    (work,) = view(records).workloads
    return work


def to_targets(work: WorkloadView) -> Table:
    return next(table for table in work.tables if table.caption.startswith("Time to a target"))


@pytest.fixture(scope="module")
def devices() -> WorkloadView:
    return of(on_devices())


@pytest.fixture(scope="module")
def virtual() -> WorkloadView:
    return of(emulated())


def drawn(work: WorkloadView) -> dict[str, str]:
    return {panel.title: f"{panel.unit} | {panel.alt}" for panel in work.overview}


def test_speed_up_in_throughput_and_to_each_target_stand_in_one_chart_under_the_ideal_line(devices):
    shown = drawn(devices)["ResNet-44, fp32-ieee ddp: speed-up"]
    assert "ideal: 1.00 on 1, 12.00 on 12" in shown
    assert "throughput: 1.00 on 1" in shown
    assert all(f"to {target} %: 1.00 on 1" in shown for target in (60, 70, 75, 80))
    assert "ResNet-44: scaling" not in drawn(devices), "one chart of scaling is enough"


def test_more_devices_gain_less_to_a_target_than_in_throughput(devices):
    shown = drawn(devices)["ResNet-44, fp32-ieee ddp: speed-up"]
    throughput, target = (
        float(shown.partition(f"{name}: ")[2].partition(" on 12")[0].rpartition(" ")[2])
        for name in ("throughput", "to 75 %")
    )
    assert target < throughput < 12


def test_what_no_run_reached_has_no_point_and_is_said_in_words(devices):
    shown = drawn(devices)
    times = shown["ResNet-44, fp32-ieee ddp: time to each target"]
    assert "not reached by all runs: 80 % on 12 devices (0 of 3 had it)" in times
    assert "80 %:" in times and "on 12" not in times.rpartition("80 %: ")[2]
    rows = {row[0].partition("\n")[0]: row for row in to_targets(devices).rows}
    assert rows["ResNet-44, 12 devices, DistributedDataParallel"][-1] == "not by all: 0 of 3 runs"


def test_a_line_s_epochs_seconds_and_efficiency_stand_in_the_table(devices):
    table = to_targets(devices)
    assert table.columns == ("Work", "Trained", "to 60 %", "to 70 %", "to 75 %", "to 80 %")
    alone = next(row for row in table.rows if row[0].startswith("ResNet-44, 1 device\n"))
    assert len(alone[2].split("\n")) == 2, "one device has no speed-up"
    four = next(row for row in table.rows if row[0].startswith("ResNet-44, 4 devices"))
    epochs, seconds, gain = four[4].split("\n")
    assert "epochs (" in epochs and "s (" in seconds
    assert "× as soon, " in gain and gain.endswith(" %")


def test_accuracy_is_drawn_by_epoch_and_against_time_with_a_line_for_each_number_of_devices(devices):
    shown = drawn(devices)
    for title in ("accuracy by epoch", "accuracy against time"):
        words = shown[f"ResNet-44, fp32-ieee ddp: {title}"]
        assert [part.partition(":")[0] for part in words.partition(" | ")[2].split("; ")] == [
            "1 device",
            *(f"{n} devices" for n in (2, 4, 8, 12)),
        ]


def test_virtual_ranks_compare_by_epochs_and_never_by_seconds(virtual):
    titles = list(drawn(virtual))
    assert "ResNet-44, fp32-ieee: epochs to each target" in titles
    assert "ResNet-44, fp32-ieee: accuracy by epoch" in titles
    assert not [title for title in titles if "time" in title or "speed-up" in title or "a second" in title]
    rows = [row for row in to_targets(virtual).rows if "virtual ranks on one device" in row[0]]
    assert len(rows) == 4
    assert not [cell for row in rows for cell in row[2:] if " s (" in cell or "as soon" in cell]
    assert not [table for table in virtual.tables if "Several devices against one" in table.caption]


def test_one_run_that_missed_its_target_takes_the_mean_from_the_others():
    mixed = [*learned(1), *learned(4, best=0.88, repeats=2, order=20), *late()]
    row = next(row for row in to_targets(of(mixed)).rows if row[0].startswith("ResNet-44, 4 devices"))
    assert row[-1] == "not by all: 2 of 3 runs"


def late() -> list[Record]:
    return learned(4, best=0.75, repeats=3, order=40)[2:]


def test_a_work_without_targets_has_no_such_table():
    work = of([*learned(1, targets=()), *learned(4, targets=(), order=20)])
    assert not [table for table in work.tables if table.caption.startswith("Time to a target")]
    assert "ResNet-44: scaling" in drawn(work)
