"""Each framework's devices over time: which phases are marked, and what the first GPU did of all."""

from __future__ import annotations

import pytest

from harness.record import Record
from report.charts.utilization import Phase, UseRow, UseRows
from report.page.render import render
from tests.helpers.records_builder import machine
from tests.helpers.records_frameworks import GIB, runs, watched
from tests.report.comparisons.test_groups import view
from tests.report.sections.workloads.frameworks.test_section import one

SYNTHETIC = "training, synthetic data"


def rows(records: list[Record]) -> tuple[UseRow, ...]:
    panel = one(records).timelines
    assert panel is not None and isinstance(panel.chart, UseRows)
    return panel.chart.rows


def on_four() -> list[Record]:
    """Two frameworks on four GPUs, of which the second is watched through an epoch's end and a test."""
    phases = (
        ("first_step", 2.0, 9.0),
        ("valid", 30.0, 34.0),
        ("checkpoint", 34.0, 35.0),
        ("test", 50.0, 58.0),
    )
    twice = ((10.0, 30.0), (36.0, 50.0))
    return [
        *watched(runs("pytorch", 0.20, gpus=4, way="dp"), 90, 66, 67, 67),
        *watched(runs("tensorflow", 0.25, gpus=4), 55, 55, 55, 55, phases=phases, windows=twice),
    ]


def test_each_framework_has_a_row_with_a_line_for_each_gpu():
    drawn = rows(on_four())
    assert [row.label for row in drawn] == ["PyTorch (DataParallel)", "TensorFlow (MirroredStrategy)"]
    for row in drawn:
        assert [device.name for device in row.devices] == ["GPU 0", "GPU 1", "GPU 2", "GPU 3"]
        assert row.devices[0].memory[0] == 0.5 and row.most_memory == 10.0, f"in GiB of {GIB} bytes"
    assert drawn[0].devices[0].busy[30] == pytest.approx(90.0)


def test_the_first_gpu_s_share_of_the_work_is_named_in_words_beside_the_chart_and_below_it():
    records = on_four()
    assert [row.note for row in rows(records)] == [
        "GPU 0 did 31 % of the work of four",
        "GPU 0 did 25 % of the work of four",
    ]
    work = one(records)
    assert work.load is not None
    assert [row[-1].split("\n") for row in work.load.rows] == [
        ["memory 1.50 ×", "GPU 0 did 31 % of the work of four"],
        ["memory 1.50 ×", "GPU 0 did 25 % of the work of four"],
    ]


def test_training_validation_checkpoint_test_and_the_compiling_step_are_marked_where_they_were():
    first, second = rows(on_four())
    assert first.phases == (
        Phase("setup", "setup", 0.0, 9.0),
        Phase("compiling", "first step: compiles, autotunes", 10.0, 19.0),
        Phase("training", SYNTHETIC, 20.0, 55.0),
    )
    assert [(phase.name, phase.begin, phase.end) for phase in second.phases] == [
        ("first step: compiles, autotunes", 2.0, 9.0),
        (SYNTHETIC, 10.0, 30.0),
        ("validation", 30.0, 34.0),
        ("checkpoint", 34.0, 35.0),
        (SYNTHETIC, 36.0, 50.0),
        ("test", 50.0, 58.0),
    ]
    panel = one(on_four()).timelines
    assert panel is not None and "validation 30 to 34 s" in panel.alt


def test_on_a_processor_the_timeline_is_the_processor_s():
    on = machine("Constructed CPU", label="cpu", digits="a")
    drawn = rows([*watched(runs("pytorch", 0.2, on=on)), *watched(runs("chainer", 0.4, on=on))])
    assert [(row.label, [device.name for device in row.devices], row.note) for row in drawn] == [
        ("PyTorch", ["processor"], ""),
        ("Chainer", ["processor"], ""),
    ]
    assert drawn[0].devices[0].busy[30] == pytest.approx(95.0)


def test_a_framework_that_was_not_watched_has_no_row_and_where_none_was_there_is_no_chart():
    alone = [*watched(runs("pytorch", 0.2), 80), *runs("chainer", 0.4)]
    assert [row.label for row in rows(alone)] == ["PyTorch"]
    assert rows(alone)[0].note == "", "one GPU shares with none"
    assert one([*runs("pytorch", 0.2), *runs("chainer", 0.4)]).timelines is None


def test_a_phase_of_another_name_keeps_it_and_a_record_without_phases_has_its_training_alone():
    told = watched(runs("pytorch", 0.2), 80, phases=(("warm_up", 1.0, 5.0),))
    untold = watched(runs("tensorflow", 0.25), 80, phases=())
    first, second = rows([*told, *untold])
    assert first.phases[0] == Phase("setup", "warm up", 1.0, 5.0)
    assert [phase.kind for phase in second.phases] == ["training"]


def test_the_chart_stands_in_both_forms_of_the_page_with_every_phase_in_its_legend():
    page = render(view(on_four()))
    drawn = dict(page.charts)["frameworks-1-use.svg"].decode()
    for name in ("validation", "checkpoint", "test", "first step: compiles, autotunes", SYNTHETIC, "GPU 0"):
        assert f">{name}<" in drawn
    assert "GPU 0 did 31 % of the work of four" in page.html and "frameworks-1-use" in page.markdown
