"""What each committed session, and sessions named together, say first: the finding that they bear."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise

import pytest

from harness.errors import UserError
from harness.plan.plan_file import plan_questions
from report.analysis import Analysis, AnalysisRequest, analyse
from report.charts.curves import Curves
from report.charts.rows import ScaleRows
from report.page.one.faster import Clause
from report.page.pictures import look_of
from report.page.render import answer_text, render
from report.page.values import Page
from report.page.whole_page import page_of
from report.stats.contrast import EQUAL, LEAST_PROCESSES
from tests.helpers import ROOT, cases
from tests.helpers import records_builder as build
from tests.helpers.cases import BY_MACHINE, Case
from tests.helpers.here import evidence_here, results_here
from tests.helpers.records_fleet import fleet

NOW = datetime(2026, 12, 1, tzinfo=UTC)
H100, H200, CARD = "20261126-cb0794", "20261127-63ddd7", "20261127-aee4d4"
LAPTOP, SCALING, MNIST = "20261121-38cb4c", "20261125-08b1ee", "20261126-28f1ee"
MXNET, PYTORCH = "20261123-cccefa", "20261123-f41240"
MOST_WORDS = 30


@cache
def asked(*sessions: str) -> tuple[Analysis, Page]:
    named = sessions if len(sessions) > 1 else ()
    request = AnalysisRequest(NOW, session=sessions[0], named=named, questions=plan_questions(ROOT))
    analysis = analyse(evidence_here(), request)
    return analysis, page_of(analysis)


def clauses(page: Page) -> list[Clause]:
    said = page.one.answer.headline
    names = {"pair": ("decided", "open"), "many": ("decided", "open"), "same": ("clauses",)}
    return [each for name in names.get(said.state, ()) for each in said.data[name]]


Found = tuple[str, str, str, float, tuple[float, float] | None, tuple[int, int], str]


def told(found: Iterable[Clause]) -> list[Found]:
    """Of each clause its work, its sides, the ratio with its range, the processes, and what is shown."""
    rows = []
    for each in found:
        ends = each.ratio.interval
        span = (round(ends.low, 3), round(ends.high, 3)) if ends else None
        rows.append(
            (
                each.work.name.model,
                each.of.name,
                each.over.name,
                round(each.ratio.estimate, 3),
                span,
                each.ratio.n,
                each.ratio.order,
            )
        )
    return rows


FP16, FP32, BF16 = "fp16-master", "fp32-ieee", "amp-bf16"
DENSE = "DenseNet-121"
HELD: dict[tuple[str, ...], list[Found]] = {
    (H100, H200): [
        ("ResNet-18", "H200", "H100 80GB HBM3", 1.095, None, (1, 1), "counts-only"),
        ("ResNet-18", "H200", "H100 80GB HBM3", 1.061, None, (1, 2), "counts-only"),
    ],
    (H100,): [
        ("ResNet-18", FP16, FP32, 2.035, None, (2, 1), "counts-only"),
        ("LSTM", FP16, FP32, 1.02, (0.867, 1.2), (2, 2), "not-shown"),
    ],
    (H200,): [("ResNet-18", FP16, FP32, 1.971, None, (1, 1), "counts-only")],
    (LAPTOP,): [
        ("LSTM", BF16, FP32, 1.623, (1.506, 1.749), (3, 3), "faster"),
        ("ResNet-18", BF16, FP32, 1.427, (1.302, 1.563), (3, 3), "faster"),
    ],
    (SCALING,): [
        ("EfficientNet-B0", "4 processes (ddp)", "1 process", 1.124, (0.774, 1.632), (3, 3), "not-shown")
    ],
    ("20261123-7d4985",): [(DENSE, "TensorFlow", "Keras", 1.158, (0.898, 1.494), (3, 3), "not-shown")],
    (MXNET, PYTORCH): [(DENSE, "PyTorch", "MXNet, Gluon", 1.308, (1.116, 1.532), (5, 5), "faster")],
    ("20261125-53f079",): [
        ("CNN", BF16, FP32, 2.115, (1.954, 2.289), (3, 3), "faster"),
        ("CNN", BF16, FP32, 1.649, (1.33, 2.044), (3, 3), "faster"),
        ("MLP", BF16, FP32, 1.162, (0.62, 2.176), (3, 3), "not-shown"),
        ("MLP", BF16, FP32, 1.086, (0.955, 1.236), (3, 3), "not-shown"),
    ],
    ("20261123-f8ab7f",): [
        (DENSE, "6 processes", "1 process", 1.807, (1.638, 1.994), (3, 3), "faster"),
        (DENSE, "6 processes", "6 threads", 1.308, (1.114, 1.535), (3, 3), "faster"),
        (DENSE, "6 processes", "24 processes", 1.023, (0.922, 1.134), (3, 3), "not-shown"),
    ],
    ("20261124-555dca",): [
        (DENSE, "6 processes", "6 threads", 1.304, (1.104, 1.541), (3, 3), "faster"),
        (DENSE, "6 processes", "1 process", 1.782, (1.393, 2.278), (3, 2), "counts-only"),
        (DENSE, "6 processes", "24 processes", 1.039, (0.901, 1.197), (3, 3), "not-shown"),
    ],
    (MNIST,): [("CNN", "data on the device", "data from the host", 1.064, None, (1, 1), "counts-only")],
    ("20261121-cb7a72",): [("LSTM", "A", "B", 1.01, (0.968, 1.055), (5, 5), "not-shown")],
    ("20261121-e09923",): [("LSTM", "A", "B", 1.024, (0.979, 1.07), (5, 5), "not-shown")],
}


@pytest.mark.parametrize("sessions", HELD, ids="+".join)
def test_the_headline_has_the_ratio_of_each_work_with_its_range_and_what_it_shows(sessions: tuple[str, ...]):
    _, page = asked(*sessions)
    assert told(clauses(page)) == HELD[sessions]


@pytest.mark.parametrize("sessions", [(H100, H200), (H200, H100), (LAPTOP, H100), (H100, LAPTOP)])
def test_each_bundle_has_its_bar_or_its_reason_in_either_order(sessions: tuple[str, str]):
    analysis, page = asked(*sessions)
    comparison = analysis.comparison
    assert comparison is not None and {side.machine for side in comparison.sides} == {
        trial.machine for trial in analysis.trials if trial.session in sessions
    }
    assert page.one.answer.picture is not None and isinstance(page.one.answer.picture.chart, ScaleRows)
    rows = [row for group in page.one.answer.picture.chart.groups for row in group.rows]
    for side in page.one.answer.table.sides:
        drawn = [row for row in rows if row.label == side.name]
        assert any(row.marks for row in drawn) and all(row.marks or row.text for row in drawn)


def test_copies_whose_speed_is_that_of_one_are_named_so_and_have_no_line_of_speed_up():
    _, page = asked(SCALING)
    assert "2 processes (speed of each copy)" in [side.name for side in page.one.answer.table.sides]
    chart = page.one.answer.picture.chart
    assert isinstance(chart, Curves)
    assert [[x for x, _ in line.points] for line in chart.panels[0].lines] == [[1.0, 2.0, 4.0]]


@pytest.mark.parametrize(("session", "none"), [(LAPTOP, True), (H200, False)])
def test_windows_of_which_none_settled_are_named(session: str, none: bool):
    _, page = asked(session)
    assert ("none-settled" in [chip.name for chip in page.one.chips]) == none


def test_where_a_gain_is_not_shown_the_idle_card_is_named():
    _, page = asked(H100)
    (idle,) = [each.idle for each in clauses(page) if each.idle]
    assert idle[0] == "cuda" and idle[1] == pytest.approx(0.73, abs=0.005)


def test_windows_of_other_lengths_are_named_and_the_published_card_stands_below():
    _, page = asked(H100, H200)
    (windows,) = [chip.data for chip in page.one.chips if chip.name == "windows"]
    assert (round(windows["least"]), round(windows["most"])) == (3, 120)
    _, alone = asked(H200)
    assert alone.one.answer.picture is not None and isinstance(alone.one.answer.picture.chart, ScaleRows)
    rows = [row for group in alone.one.answer.picture.chart.groups for row in group.rows]
    published = [row for row in rows if row.marks[0].look == "published"]
    assert len(published) == 4 and all("other loader" in row.note for row in published)


@pytest.mark.parametrize(("session", "expected"), [("20261125-53f079", 1.505), (MNIST, 0.665)])
def test_a_machine_beside_is_held_against_the_work_that_is_nearest(session: str, expected: float):
    analysis, _ = asked(session)
    (machines,) = [each for each in analysis.beside if each.factor == "machine"]
    found = [ratio for ratio in machines.ratios if ratio.of.key.data_mode == "host"]
    assert [ratio.over.key.data_mode for ratio in found] == ["host"]
    assert found[0].estimate == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    ("session", "looks"),
    [
        (H200, [{"projected"}]),
        ("20261123-b48b1e", [{"measured"}]),
        ("20261125-53f079", [{"measured"}, *[{"projected"}] * 3]),
        ("20261121-e09923", [{"measured"}]),
        ("20261128-2ec903", [{"measured"}]),
    ],
)
def test_hollow_is_a_time_that_was_projected_and_no_other(session: str, looks: list[set[str]]):
    _, page = asked(session)
    assert page.one.answer.picture is not None and isinstance(page.one.answer.picture.chart, ScaleRows)
    groups = page.one.answer.picture.chart.groups
    drawn = [{mark.look for row in group.rows for mark in row.marks} - {"published"} for group in groups]
    assert drawn == looks


def test_a_sound_card_has_the_smallest_loss_that_would_have_been_seen_and_what_held_it():
    _, page = asked(CARD)
    loss, thing = page.one.answer.headline.data["losses"][0]
    assert (page.one.answer.headline.state, thing, round(loss, 2)) == ("check-sound", "bf16 products", 0.17)
    assert [chip.data["share"] for chip in page.one.chips if chip.name == "power-cap"] == [1.0]
    assert page.one.answer.notes[0].data["runs"] == (1, 2)


def test_a_sound_card_s_records_are_to_be_shared_on_its_own_machine_alone():
    found, page = asked(CARD)
    own = replace(found, request=replace(found.request, machine=found.own[0].machine))
    steps = [each.one.answer.following.data["commands"][0] for each in (page, page_of(own))]
    assert steps == ["invoke build --plan card run report", "invoke gate --mine"]


def test_the_time_to_a_target_is_of_the_slowest_batch_over_the_fastest():
    _, page = asked("20261126-6f810e")
    said = page.one.answer.headline.data
    assert page.one.answer.headline.state == "reach"
    assert (round(said["times"].value, 2), said["target"].value) == (3.77, 0.6)
    assert [round(each.seconds.mean) for each in (said["late"], said["soon"])] == [746, 198]
    assert [each.epochs.mean for each in (said["late"], said["soon"])] == [5, 1]
    (epochs,) = [chip.data for chip in page.one.chips if chip.name == "epochs-differ"]
    assert epochs["most"] > 3 * epochs["least"]


def test_a_program_holds_and_ours_stands_beside_the_original_with_its_range():
    _, page = asked("20261126-7ac9ad")
    said = page.one.answer.headline.data
    (row,) = said["rows"]
    assert (row.state, round(row.here.value, 2), row.published.value) == ("holds", 1.89, 1.88)
    beside = said["beside"]["ratio"]
    assert beside.over.key.model == "LSTM" and beside.interval.low < beside.estimate < beside.interval.high
    assert beside.order == "not-shown" and "No difference is shown" in answer_text(page.one.answer.headline)


def test_two_runs_whose_range_reaches_zero_are_said_with_their_mean():
    _, page = asked("20261128-492159")
    runs = page.one.answer.headline.data["runs"]
    assert (round(runs.low, 1), round(runs.value, 1), round(runs.high, 1)) == (40.6, 54.3, 68.0)
    _, other = asked(PYTORCH)
    assert other.one.answer.headline.data["runs"] is None


@pytest.mark.parametrize("session", [MXNET, PYTORCH])
def test_one_framework_alone_has_its_own_figure(session: str):
    _, page = asked(session)
    said = page.one.answer.headline
    assert (said.state, said.data["factor"], said.data["cell"].session) == ("alone", "framework", session)
    (line,) = page.one.answer.following.data["commands"]
    other = MXNET if session == PYTORCH else PYTORCH
    assert line.startswith(f"invoke report --session {session} --session {other}")


@pytest.mark.parametrize(
    ("session", "figures"),
    [("20261125-b828f4", [0.181, 0.414, 29.5]), ("20261126-86cd6f", [3010.0])],
)
def test_ceilings_say_what_the_device_reaches(session: str, figures: list[float]):
    _, page = asked(session)
    rows = page.one.answer.headline.data["rows"]
    assert page.one.answer.headline.state == "limits-reached"
    assert [row.measured for row in rows] == pytest.approx(figures, rel=0.01)


def _class() -> list[build.Record]:
    """Twenty machines, 1 to 18.7 times as slow, of three runs each; the one that leads is the eleventh."""
    factors = [1.0, *(1.3 * (18.7 / 1.3) ** (place / 18) for place in range(19))]
    own = factors.pop(10)
    slow = {unit: 1 - 1 / factor for unit, factor in enumerate([own, *factors])}
    return fleet(20, cards_per_machine=1, spread=0.0, slow=slow)


def test_a_class_has_a_first_groups_that_do_not_overlap_and_the_places_of_mine():
    case = Case("class", cases.of(_class), "20260131-aaaaaa", question=BY_MACHINE)
    page = page_of(cases.analysis_of(case))
    said, rows = page.one.answer.headline.data, page.one.answer.table.standings
    assert (page.one.answer.headline.state, said["count"], said["sure"]) == ("class", 20, True)
    low, high = said["places"]
    assert low <= 11 <= high and 1 < said["group"] <= said["groups"]
    assert said["next"].time.value == pytest.approx(1.3, rel=0.01)
    times = [row.time.value for row in rows]
    assert times[0] == 1 and times[-1] == pytest.approx(18.7, rel=0.02)
    assert all(after > before for before, after in pairwise(times))
    assert all(row.places for row in rows)


@pytest.mark.parametrize(
    ("sessions", "plans", "versions", "trials", "missing"),
    [
        ((CARD,), ("card",), ("torch 2.11.0+cu130",), 5, 1),
        ((H100,), ("quick",), ("torch 2.11.0+cu130",), 7, 5),
        (("20261121-8a1add", H100), ("desk", "quick"), ("torch 2.13.0+cpu", "torch 2.11.0+cu130"), 17, 5),
        (("20261126-86cd6f",), ("ceilings",), ("torch 2.11.0+cu130",), 1, 14),
    ],
)
def test_the_header_is_of_the_sessions_that_it_counts_and_of_what_they_planned(
    sessions: tuple[str, ...], plans: tuple[str, ...], versions: tuple[str, ...], trials: int, missing: int
):
    source = asked(*sessions)[1].one.source
    assert (source.sessions, source.plans, source.software) == (sessions, plans, versions)
    assert (source.trials, source.missing) == (trials, missing)


def test_what_is_cited_is_what_page_one_shows_with_the_shortest_and_the_longest_window():
    (ran,) = asked(H100)[1].one.ran
    assert (ran.name, round(ran.windows.low or 0, 2), round(ran.windows.high or 0, 2)) == (
        "H100 80GB HBM3",
        3.0,
        3.08,
    )


def test_the_table_of_page_one_tells_the_ratios_of_the_headline_and_no_part_repeats_it():
    for session in (MNIST, "20261121-cb7a72", "20261122-ac0b1c", "20261123-edd759", "20261125-4a4da8"):
        _, page = asked(session)
        shown = page.one.answer.table
        rows = [shown.headline_ratio(work, at) for work in shown.works for at in range(len(shown.sides))]
        assert {each.ratio.estimate for each in clauses(page)} <= {ratio.estimate for ratio in rows if ratio}
        others = [view for part in page.parts if part.name == "compared" for view in part.view]
        assert shown.comparison.factor not in [view.comparison.factor for view in others]


@pytest.mark.parametrize(
    ("session", "commands"), [("20261125-f3b441", ("invoke build run report",)), ("20261128-2ec903", ())]
)
def test_where_nothing_was_done_alike_the_next_line_is_no_repeat(session: str, commands: tuple[str, ...]):
    assert asked(session)[1].one.answer.following.data["commands"] == commands


@pytest.mark.parametrize(
    ("sessions", "lines", "counts"),
    [
        ((H100, H200), ["resnet18 --image cuda --new-session --blocks 3"], (2, 10)),
        ((LAPTOP, H100), ["quick --new-session"], (12, 12)),
        (
            (MXNET, PYTORCH),
            [f"chexnet-rank --image {i} --new-session --blocks 3" for i in ("mxnet", "cpu")],
            (10, 10),
        ),
        (("20261126-6f810e",), ["iris-60 --image cpu --new-session"], (3, 3)),
        (("20261125-b828f4",), ["ceilings --image cpu --new-session"], (12, 12)),
    ],
)
def test_the_next_lines_repeat_each_session_in_blocks_where_its_plan_repeats_enough(
    sessions: tuple[str, ...], lines: list[str], counts: tuple[int, int]
):
    said = asked(*sessions)[1].one.answer.following.data
    assert said["commands"] == tuple(f"invoke run --plan {line}" for line in lines)
    assert (said["trials"], said["planned"]) == counts


def test_ratios_within_what_is_assumed_alone_lead_with_that_and_others_with_no_order():
    assert asked(H100, H200)[1].one.answer.headline.data["unseen"] == pytest.approx(0.12, abs=0.005)
    assert asked(H200)[1].one.answer.headline.data["unseen"] is None


def test_each_batch_of_a_sweep_of_single_runs_has_its_time_over_the_fastest():
    (view,) = [part.view for part in asked(SCALING)[1].parts if part.name == "compared"]
    (batches,) = [one for one in view if one.comparison.factor == "batch"]
    assert [round(row.time.value, 2) for row in batches.standings] == [1, 1.34, 2.31, 2.72, 5.51]


def test_headline_table_and_part_count_the_same_claims_and_a_projected_time_is_hollow():
    _, page = asked("20261123-bba217")
    shown = page.one.answer.table
    (part,) = [part.view for part in page.parts if part.name == "published"]
    counts = page.one.answer.headline.data["counts"]
    assert counts == part.counts and (counts["holds"], counts["fails"], counts["open"]) == (3, 1, 0)
    assert [row.claim.id for row in shown.rows] == [row.claim.id for row in part.rows]
    assert counts["met"] == len(shown.rows)
    looks = {
        row.claim.metric: look_of(row.answer.cell, row.claim.metric)
        for row in part.answers
        if row.answer.cell.length.projected
    }
    assert looks == {"protocol_seconds": "projected", "peak_bytes": "measured"}


EMPTY = "20261126-2aa796"
COUNTED = re.compile(r"^\d+ × |\d-cores?")
"""No record here is of several cards: processes on one processor are processes."""


def test_a_session_without_a_record_is_refused_alone_and_named_on_the_page_of_a_pair(undrawn):
    with pytest.raises(UserError, match=rf"^session '{EMPTY}' holds no record"):
        asked(EMPTY)
    for pair in ((EMPTY, H100), (H100, EMPTY)):
        analysis, page = asked(*pair)
        assert (analysis.lead, analysis.unrecorded) == (H100, (EMPTY,))
        assert told(clauses(page)) == HELD[(H100,)]
        rendered = render(page)
        assert all(text.count(EMPTY) == 1 for text in (rendered.markdown, rendered.html))
    with pytest.raises(UserError, match=r"^there is no session '20261126-000000'"):
        asked(H100, "20261126-000000")


def test_steps_of_two_commands_are_no_work_alike_and_each_keeps_its_speed():
    _, page = asked("20261128-2ec903")
    said = page.one.answer.headline
    assert (said.state, [cell.throughput.n or cell.all_runs.n for _, cell in said.data["sides"]]) == (
        "apart",
        [2, 3],
    )


def test_a_first_of_two_runs_has_no_order_and_only_machines_that_did_the_work_are_counted():
    _, page = asked("20261121-8a1add")
    said, rows = page.one.answer.headline.data, page.one.answer.table.standings
    assert (page.one.answer.headline.state, said["count"], said["sure"]) == ("class", 3, False)
    assert [row.places for row in rows] == [(1, 3), (1, 2), (2, 3), None]
    assert said["next"].runs == (2, 5) and "no order yet" in answer_text(page.one.answer.headline)


def test_a_speed_that_judges_no_published_figure_says_so_where_that_was_asked():
    analysis, page = asked("20261128-1d4d85")
    said = page.one.answer.headline
    assert (analysis.question.kind, said.state, said.data["unjudged"]) == ("holds", "alone", True)
    _, other = asked("20261123-cccefa")
    assert not other.one.answer.headline.data["unjudged"]


def sessions_here() -> list[str]:
    measured = {stored.record.session for stored in results_here().records}
    return sorted(measured)


@pytest.mark.parametrize("session", sessions_here())
def test_no_headline_says_less_or_more_than_its_records_bear(session: str):
    analysis, page = asked(session)
    said = page.one.answer.headline
    varied = [each for each in (analysis.comparison, *analysis.beside) if each and each.ratios]
    if any(each.factor != "machine" for each in varied):
        assert said.state not in ("alone", "all-invalid"), "something was varied, and no ratio is said"
    for each in clauses(page):
        assert each.of.name != each.over.name
        assert {cell.session for cell in (each.ratio.of, each.ratio.over)} <= {
            session,
            *(cell.session for work in page.one.answer.table.works for cell in work.of.cells if cell),
        }
        if each.ratio.order == "equal":
            assert each.ratio.interval is not None
            assert abs(math.log(each.ratio.interval.low)) <= math.log(EQUAL) + 1e-9
            assert abs(math.log(each.ratio.interval.high)) <= math.log(EQUAL) + 1e-9
    if said.state == "class" and said.data["sure"]:
        assert said.data["next"].time.low > 1 and min(said.data["next"].runs) >= LEAST_PROCESSES
    met = (
        {row.claim.metric for row in page.one.answer.table.rows} if said.state.startswith("holds") else set()
    )
    for row in said.data.get("rows", ()) if met else ():
        (judged,) = [one for one in analysis.verdicts if one.claim.id == row.claim.id]
        assert session in {cell.session for cell in judged.cells}
        assert row.claim.metric != "parameters" or met == {"parameters"}
    assert len(answer_text(said).split()) <= MOST_WORDS
    assert 0 < len(page.one.chips) <= 4
    assert not [system.name for system in page.systems.all if COUNTED.search(system.name)]


def test_a_chip_of_some_works_names_their_models():
    chips = {chip.name: chip.data for chip in asked("20261125-53f079")[1].one.chips}
    assert (chips["synthetic-data"], chips["scaled-down"]) == ({"models": ["MLP"]}, {"models": ["MLP"]})


def test_what_limits_is_said_of_a_work_whose_steps_did_not_stall():
    notes = {note.state: note.data for note in asked("20261126-6f810e")[1].one.answer.notes}
    assert "12 devices" in notes["limits"]["work"]
