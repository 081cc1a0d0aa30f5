from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.errors import GpudynoError, MachineError
from harness.record import Energy, LossScale, Probe, Record
from report.analysis import Question
from report.charts.intervals import Intervals
from report.charts.style import DESK
from report.charts.trial import Timelines
from report.comparisons import cells as stats
from report.comparisons import time_breakdown
from report.comparisons.parity import Gate, Parity
from report.page import build as page
from report.page import pdf
from report.sections.workloads import tables
from report.sections.workloads import trials as traces
from tests.helpers import records_builder as build
from tests.helpers import records_watched as watch
from tests.helpers.page_reader import read
from tests.report.comparisons.test_groups import elsewhere, found, series, view

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)


def watched(**changes: float) -> list[Record]:
    return [watch.watched(record, **changes) for record in series()]


@pytest.mark.whole
def test_a_comparison_of_four_cards_stays_below_three_megabytes_and_draws_every_kind_of_trace(tmp_path: Path):
    build.write(tmp_path, watch.comparison(4))
    text = page.build(tmp_path, tmp_path / "out", Question(NOW)).html.read_text()
    assert len(text.encode()) < 3_000_000
    drawn = {element.attributes.get("id", "") for element in read(text).all("svg")}
    assert sum(name.startswith("t-") for name in drawn) == traces.MOST_LINES
    for quantity in ("step time", "clock", "temperature", "power", "at work", "memory", "loss scale"):
        assert f">{quantity}</text>" in text
    assert "trials of this chart not drawn, to keep the page small" in text


def doubted(records: list[Record], place: int) -> list[Record]:
    summary = records[place].summary
    assert summary
    doubtful = summary.model_copy(update={"findings": build.named(["slowdown: x"]), "verdict": "warn"})
    return [
        record.model_copy(update={"summary": doubtful}) if number == place else record
        for number, record in enumerate(records)
    ]


def charts_of(records: list[Record], most: int = traces.MOST_LINES) -> list[Timelines]:
    """The timelines that are drawn of constructed records, each once."""
    panels = {panel.name: panel for panel in traces.panels(found(records), most).values()}
    return [panel.chart for panel in panels.values() if isinstance(panel.chart, Timelines)]


def test_the_trials_of_a_line_are_drawn_over_each_other_and_a_doubtful_line_before_any_other():
    there = doubted([watch.watched(record) for record in elsewhere()], 1)
    assert [len(chart.trials) for chart in charts_of([*watched(), *there])] == [3, 3]
    (only,) = charts_of([*watched(), *there], most=1)
    assert [trial.doubtful for trial in only.trials] == [True, False, False]


def test_a_doubtful_trial_is_dark_and_named_with_its_verdict():
    panel, *_ = traces.panels(found(doubted(watched(), 2))).values()
    assert panel.unit == "3 trials; dark: repeat 3 (warn)"
    steps = panel.chart.sheet(DESK).figure.axes[0]
    inks = [tuple(bands.get_facecolor()[0][:3]) for bands in steps.collections]
    assert len(inks) == 3 and inks[0] == inks[1] != inks[2], "the dark one lies above the others"


def test_what_was_cut_is_shaded_and_every_change_of_level_marked():
    (chart,) = charts_of(watched())
    steps = chart.sheet(DESK).figure.axes[0]
    assert [round(shade.get_width()) for shade in steps.patches] == [30, 30, 30]
    changes = [line.get_xdata()[0] for line in steps.lines if line.get_linestyle() == "--"]
    assert changes == [30]


def test_each_quantity_is_drawn_over_the_same_seconds_with_a_gap_where_nothing_is_known():
    record = watched()[0]
    assert record.telemetry
    clock = [None if 20 <= second < 50 else 1900.0 for second in range(watch.SECONDS)]
    card = record.telemetry.cards[0].model_copy(update={"sm_mhz": watch.spread(clock, 1.0)})
    telemetry = record.telemetry.model_copy(update={"cards": (card,)})
    (chart,) = charts_of([record.model_copy(update={"telemetry": telemetry})])
    sheet = chart.sheet(DESK)
    of_devices = sheet.figure.axes[1:]
    assert len({axes.get_xlim() for axes in of_devices}) == 1 and of_devices[0].get_xlim()[1] == 89
    _, line = of_devices[0].lines
    drawn = [x for x, y in line.get_xydata() if y == y]
    assert 1900.0 in line.get_ydata() and not [x for x in drawn if 21 < x < 48]


def test_a_machine_without_a_card_shows_its_processor_and_memory():
    records = watched()
    assert records[0].telemetry
    alone = records[0].telemetry.model_copy(update={"cards": ()})
    (chart,) = charts_of([records[0].model_copy(update={"telemetry": alone})])
    assert [quantity.name for quantity in chart.trials[0].quantities] == ["processor at work", "host memory"]


def test_a_time_is_split_into_wait_compute_and_other_that_add_up_to_one():
    group = found(watched(waits=0.2, host=0.35))[0]
    parts = time_breakdown.time_breakdown(group.entries[0].cell)
    assert parts is not None and parts.other is not None
    assert (parts.input_wait, parts.compute, parts.other) == pytest.approx((0.2, 0.65, 0.15))
    assert time_breakdown.in_words(parts) == "20 % input wait\n65 % compute, 15 % other"


def test_without_a_clock_of_the_device_compute_and_other_are_not_told_apart():
    parts = time_breakdown.time_breakdown(found(series())[0].entries[0].cell)
    assert parts is not None and parts.other is None
    assert "not told apart" in time_breakdown.in_words(parts)


def test_energy_stands_with_its_method_window_and_band():
    states = view(watched()).workloads[0].groups[0].states
    words = states.rows[0][states.columns.index("Energy")]
    assert re.match(r"0\.4\d+ J / token\n", words)
    assert "counter, cards, 75 s, ±5% systematic" in words


def test_energy_that_is_not_known_says_why():
    records = watched()
    lost = Energy(unknown_because="the window of 20 s is shorter than 60 s")
    blind = [record.model_copy(update={"telemetry": watch.telemetry(energy=lost)}) for record in records]
    states = view(blind).workloads[0].groups[0].states
    words = states.rows[0][states.columns.index("Energy")]
    assert words == "unknown\nthe window of 20 s is shorter than 60 s"


def test_skipped_steps_and_an_unchecked_convergence_stand_in_the_line():
    fast = series("amp-fp16", 0.05, first_order=10)
    scale = LossScale(
        kind="dynamic", first=65536, last=32768, skipped_steps=1, history=((0, 65536), (9, 32768))
    )
    scaled = []
    for record in fast:
        assert record.measurement
        precision = record.measurement.precision.model_copy(update={"loss_scale": scale})
        measured = record.measurement.model_copy(update={"precision": precision})
        scaled.append(record.model_copy(update={"measurement": measured}))
    shown = view([*series(), *scaled])
    table = shown.workloads[0].groups[0].states
    row = dict(zip(table.columns, table.rows[1], strict=True))
    assert row["Convergence"].startswith("speed only, convergence not checked")
    assert row["Loss scale"].startswith("1 step skipped")
    assert row["Loss scale"].endswith("the host looks for overflow at every step, and that wait is timed")
    assert any("speed only" in doubt for doubt in shown.caveats)


def test_first_steps_that_depart_from_fp32_s_say_why():
    (group,) = found([*series(), *series("amp-fp16", 0.05, first_order=10)])
    cell = group.entries[0].cell
    parity = Parity(cell, None, None, "speed only, convergence not checked: why not")
    gates = [
        (cell.trials[0], Gate("departs", "50 gradient norms by +100%")),
        (cell.trials[1], Gate("follows", "")),
    ]
    words = tables.convergence(cell, [parity], gates)
    assert words.endswith("the first steps follow fp32's in 1 of 2 trials: 50 gradient norms by +100%")


def test_an_invalid_trial_stands_in_its_table_with_its_cause():
    records = series()
    assert records[1].summary
    bad = records[1].summary.model_copy(
        update={"verdict": "invalid", "findings": build.named(["not-finite: the loss is nan"])}
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
    shown = view([*build.with_own_steps([*series(), *elsewhere(), *more])])
    states = shown.workloads[0].groups[0].states
    cells = [row[states.columns.index("The interval")] for row in states.rows]
    assert any(
        "95% over 3 comparisons together\none block: ±1% between blocks assumed" in words for words in cells
    )
    assert any("within one block of time" in doubt for doubt in shown.caveats)


def test_throughput_is_drawn_against_batch_up_to_the_wall_and_scaling_against_the_ideal(tmp_path: Path):
    build.write(tmp_path, watch.ladder())
    text = page.build(tmp_path, tmp_path / "out", Question(NOW)).html.read_text()
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
    charts = [panel.chart for panel in drawn if isinstance(panel.chart, Intervals)]
    assert [sum(mark.other_units is not None for mark in chart.marks) for chart in charts] == [0, 1]
    assert "unit-to-unit, standard deviation 3 % assumed" in drawn[1].unit


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

    assert unit_label(2).endswith("; pale: unit-to-unit, standard deviation 3 % assumed")
    assert unit_label(3).endswith("; pale: unit-to-unit, measured on 3 units")


def _of_unit(record: Record, unit: str) -> Record:
    device = record.measurement.device.model_copy(update={"unit": unit})
    return record.model_copy(update={"measurement": record.measurement.model_copy(update={"device": device})})


def test_a_trial_s_steps_stand_with_their_median_and_what_nine_of_ten_lie_between():
    records = series()
    summary = records[0].summary.model_copy(
        update={"step_seconds_median": 0.15, "step_seconds_p5": 0.148, "step_seconds_p95": 0.153}
    )
    trials = view([records[0].model_copy(update={"summary": summary}), *records[1:]])
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

    (table,) = [
        table for table in view([told(record) for record in series()]).stacks if "Arithmetic" in table.caption
    ]
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
