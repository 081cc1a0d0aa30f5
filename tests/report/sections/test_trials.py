from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.errors import GpudynoError, MachineError
from harness.record import Energy, LossScale, Probe, Record
from report import strips, svg
from report.comparisons import cells as stats
from report.comparisons import time_breakdown
from report.comparisons.parity import Gate, Parity
from report.page import build as page
from report.page import pdf
from report.sections import tables
from report.sections import trials as traces
from tests.helpers import records_builder as build
from tests.helpers import records_watched as watch
from tests.helpers.page_reader import read
from tests.report.comparisons.test_groups import elsewhere, found, series, view

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)


def watched(**changes: float) -> list[Record]:
    return [watch.watched(one, **changes) for one in series()]


def test_a_comparison_of_four_cards_stays_below_three_megabytes_and_draws_every_kind_of_trace(tmp_path: Path):
    build.write(tmp_path, watch.comparison(4))
    text = page.build(tmp_path, tmp_path / "out", now=NOW).html.read_text()
    assert len(text.encode()) < 3_000_000
    drawn = set(re.findall(r'<text class="n" x="0" y="\d+" text-anchor="start">([a-z ]+)</text>', text))
    assert {"step time", "clock", "temperature", "power", "at work", "memory", "loss scale"} <= drawn
    assert {"processor at work", "host memory"} <= drawn


def test_traces_beyond_their_room_are_said_to_be_missing_and_each_line_keeps_one():
    groups = found([*watched(), *(watch.watched(one) for one in elsewhere())])
    few = traces.panels(groups, most=6000)
    assert 0 < len(few) < 6
    cards = {panel.card for panel in few.values()}
    assert len(cards) == 2


def test_a_doubtful_trial_is_drawn_before_the_others():
    records = watched()
    assert records[2].summary
    doubtful = records[2].summary.model_copy(update={"causes": ("slowdown: x",), "verdict": "warn"})
    records[2] = records[2].model_copy(update={"summary": doubtful})
    (first,) = traces.panels(found(records), most=1).values()
    assert first.title.endswith("repeat 3") and "warn" in first.unit


def test_what_was_cut_is_shaded_and_every_change_of_level_marked():
    (trial, *_) = found(watched())[0].lines[0].cell.trials
    drawing = strips.draw("t", "trial", "said", traces.trace(trial))
    assert len(read(drawing).all("rect")) > 1 and 'class="cut"' in drawing
    assert drawing.count('class="change"') == 1
    assert "30 steps cut" in drawing


def test_a_trace_of_many_points_stays_short_and_is_the_same_line():
    points = [(place * 0.5, 10.0 if place < 300 else 20.0) for place in range(600)]
    drawn = svg.trace(points, "trace")
    assert len(drawn) < 80
    assert drawn == '<path class="trace" d="M0 10h149.5l.5 10h149.5"/>'


def test_a_machine_without_a_card_shows_its_processor_and_memory():
    records = watched()
    assert records[0].telemetry
    alone = records[0].telemetry.model_copy(update={"cards": ()})
    (trial, *_) = found([records[0].model_copy(update={"telemetry": alone})])[0].lines[0].cell.trials
    assert [strip.name for strip in traces.trace(trial).strips] == ["processor at work", "host memory"]


def test_a_time_is_split_into_wait_compute_and_other_that_add_up_to_one():
    group = found(watched(waits=0.2, host=0.35))[0]
    parts = time_breakdown.time_breakdown(group.entries[0].cell)
    assert parts is not None and parts.other is not None
    assert (parts.input_wait, parts.compute, parts.other) == pytest.approx((0.2, 0.65, 0.15))
    assert time_breakdown.said(parts) == "20 % input wait\n65 % compute, 15 % other"


def test_without_a_clock_of_the_device_compute_and_other_are_not_told_apart():
    parts = time_breakdown.time_breakdown(found(series())[0].lines[0].cell)
    assert parts is not None and parts.other is None
    assert "not told apart" in time_breakdown.said(parts)


def test_energy_stands_with_its_method_window_and_band():
    states = view(watched()).workloads[0].groups[0].states
    said = states.rows[0][states.columns.index("Energy")]
    assert re.match(r"0\.4\d+ J / token\n", said)
    assert "counter, cards, 75 s, ±5% systematic" in said


def test_energy_that_is_not_known_says_why():
    records = watched()
    lost = Energy(unknown_because="the window of 20 s is shorter than 60 s")
    blind = [one.model_copy(update={"telemetry": watch.telemetry(energy=lost)}) for one in records]
    states = view(blind).workloads[0].groups[0].states
    said = states.rows[0][states.columns.index("Energy")]
    assert said == "unknown\nthe window of 20 s is shorter than 60 s"


def test_skipped_steps_and_an_unchecked_convergence_stand_in_the_line():
    fast = series("amp-fp16", 0.05, first_order=10)
    scale = LossScale(
        kind="dynamic", first=65536, last=32768, skipped_steps=1, history=((0, 65536), (9, 32768))
    )
    scaled = []
    for one in fast:
        assert one.measurement
        precision = one.measurement.precision.model_copy(update={"loss_scale": scale})
        measured = one.measurement.model_copy(update={"precision": precision})
        scaled.append(one.model_copy(update={"measurement": measured}))
    shown = view([*series(), *scaled])
    table = shown.workloads[0].groups[0].states
    said = dict(zip(table.columns, table.rows[1], strict=True))
    assert said["Convergence"].startswith("speed only, convergence not checked")
    assert said["Loss scale"].startswith("1 step skipped")
    assert said["Loss scale"].endswith("the host looks for overflow at every step, and that wait is timed")
    assert any("speed only" in doubt for doubt in shown.doubts)


def test_first_steps_that_depart_from_fp32_s_say_why():
    (group,) = found([*series(), *series("amp-fp16", 0.05, first_order=10)])
    cell = group.entries[0].cell
    parity = Parity(cell, None, None, "speed only, convergence not checked: why not")
    gates = [
        (cell.trials[0], Gate("departs", "50 gradient norms by +100%")),
        (cell.trials[1], Gate("follows", "")),
    ]
    said = tables.convergence(cell, [parity], gates)
    assert said.endswith("the first steps follow fp32's in 1 of 2 trials: 50 gradient norms by +100%")


def test_an_invalid_trial_stands_in_its_table_with_its_cause():
    records = series()
    assert records[1].summary
    bad = records[1].summary.model_copy(
        update={"verdict": "invalid", "causes": ("not-finite: the loss is nan",)}
    )
    records[1] = records[1].model_copy(update={"summary": bad})
    group = view(records).workloads[0].groups[0]
    (row,) = [row for row in group.trials.rows if row[1] == "invalid"]
    assert "the loss is nan" in row[-1] and "not ranked" not in group.table.rows[0][0]
    assert "1 invalid" in group.states.rows[0][1]


def test_what_ran_beside_a_trial_is_said_as_it_was_before_it():
    trials = view(watched()).workloads[0].groups[0].trials
    assert trials.rows[0][trials.columns.index("Before it began")] == "0.2 CPUs busy\ndevice free"


def test_intervals_name_their_method_their_comparisons_and_their_block():
    third = build.machine("Constructed Card C", label="card-c", digits="c")
    more = elsewhere(on=third, card="Constructed Card C", session="20260129-cccccc")
    shown = view([*series(), *elsewhere(), *more])
    states = shown.workloads[0].groups[0].states
    said = [row[states.columns.index("The interval")] for row in states.rows]
    assert any("95% over 2 comparisons together\nwithin one block" in one for one in said)
    assert any("within one block of time" in doubt for doubt in shown.doubts)


def test_throughput_is_drawn_against_batch_up_to_the_wall_and_scaling_against_the_ideal(tmp_path: Path):
    build.write(tmp_path, watch.ladder())
    text = page.build(tmp_path, tmp_path / "out", now=NOW).html.read_text()
    assert "LSTM: throughput against batch" in text and "256 does not fit" in text
    assert "LSTM: scaling" in text and ">ideal<" in text


def test_the_band_of_other_units_is_drawn_around_another_machine_alone():
    alone, both = (
        view([*series(), *series("amp-bf16", 0.05, first_order=10)]),
        view([*series(), *elsewhere()]),
    )
    drawn = [
        next(panel for panel in shown.workloads[0].groups[0].panels if panel.title == "Time-scaled")
        for shown in (alone, both)
    ]
    assert [panel.drawing.count('class="wide"') for panel in drawn] == [0, 1]
    assert "unit-to-unit, assumed ±8%" in drawn[1].unit


def test_the_band_of_other_units_is_measured_once_three_units_did_the_work():
    def unit(number: int) -> list[Record]:
        there = build.machine("Constructed Card B", label=f"unit-{number}", digits=f"{number}")
        seconds = 0.2 * (1 + 0.01 * number)
        session = f"20260129-{number:06x}"
        more = elsewhere(on=there, card="Constructed Card B", session=session, seconds=seconds)
        return [_of_unit(record, f"{number:016x}") for record in more]

    def unit_label(units: int) -> str:
        records = [*series(), *(record for number in range(1, units + 1) for record in unit(number))]
        panels = view(records).workloads[0].groups[0].panels
        return next(panel for panel in panels if panel.title == "Time-scaled").unit

    assert unit_label(2).endswith("; pale: unit-to-unit, assumed ±8%")
    assert unit_label(3).endswith("; pale: unit-to-unit, measured on 3 units")


def _of_unit(record: Record, unit: str) -> Record:
    device = record.measurement.device.model_copy(update={"unit": unit})
    return record.model_copy(update={"measurement": record.measurement.model_copy(update={"device": device})})


def test_a_trial_s_steps_stand_with_their_median_and_what_nine_of_ten_lie_between():
    records = series()
    found = records[0].summary.model_copy(
        update={"step_seconds_median": 0.15, "step_seconds_p5": 0.148, "step_seconds_p95": 0.153}
    )
    trials = view([records[0].model_copy(update={"summary": found}), *records[1:]])
    table = trials.workloads[0].groups[0].trials
    cells = [row[table.columns.index("Steady")] for row in table.rows]
    assert any(cell.endswith("step 150 ms, 90% 148 ms to 153 ms") for cell in cells), cells


def test_five_runs_have_an_olympic_mean_for_readers_of_mlperf():
    assert stats.olympic_mean([9.0, 2.0, 3.0, 4.0, 100.0]) == pytest.approx(16 / 3)
    assert stats.olympic_mean([9.0, 2.0, 3.0, 4.0]) is None
    table = view(series()).workloads[0].groups[0].states
    assert all("olympic" not in cell for row in table.rows for cell in row)


def test_the_setup_of_a_trial_stands_beside_it_part_by_part():
    trials = view(series()).workloads[0].groups[0].trials
    assert trials.rows[0][trials.columns.index("Setup")] == "1.5 s\nmodel 1.5"


def test_each_precision_stands_with_its_switches_its_overrides_and_what_its_error_reads_as():
    flags = {
        "cuda.matmul.fp32_precision": "ieee",
        "bf16_reduced_precision_reduction": True,
        "NVIDIA_TF32_OVERRIDE": "0",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": None,
    }
    probes = (Probe(operation="matmul", error=1.2e-5, reads_as="fp32-ieee"),)

    def told(record: Record) -> Record:
        precision = record.measurement.precision.model_copy(update={"flags": flags, "probes": probes})
        measured = record.measurement.model_copy(update={"precision": precision})
        return record.model_copy(update={"measurement": measured})

    (table,) = [one for one in view([told(one) for one in series()]).stacks if "Arithmetic" in one.caption]
    (row,) = [dict(zip(table.columns, values, strict=True)) for values in table.rows]
    assert row["Switches"] == "cuda.matmul.fp32_precision=ieee, bf16_reduced_precision_reduction=True"
    assert row["Overrides set"] == "NVIDIA_TF32_OVERRIDE=0"
    assert row["Largest error"] == "matmul 1.2e-05: fp32-ieee"


def test_accuracy_is_drawn_against_time():
    panels = view(series(kind=build.CIFAR)).workloads[0].groups[0].panels
    assert any(panel.title == "Accuracy against time" for panel in panels)


def test_a_machine_without_chromium_says_what_to_do():
    with pytest.raises(MachineError, match="install it"):
        pdf.browser(find=lambda name: None)


def test_a_browser_that_prints_nothing_is_an_error_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pdf, "browser", lambda: "false")
    with pytest.raises(GpudynoError, match="Chromium printed no PDF"):
        pdf.write(tmp_path / "index.html", tmp_path / "page.pdf")
