"""Studies drawn again: what a reader sees of a row, and which picture leads the page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from harness.record import Claim, Load, Record
from harness.record.claims import ClaimSet
from harness.record.store import Results, Stored
from report.analysis import Analysis, Evidence, Question, analyse
from report.charts.intervals import Intervals
from report.charts.rows import MarkRow, MarkRows
from report.claims.studies import MOST_LINES, MOST_PICTURES
from report.page.build import look
from report.sections.published.leading import MOST_LEADING, brief, nearest_speed
from report.sections.view import PageView, StudyView
from tests.helpers import records_builder as build
from tests.report.claims.test_studies import OF_A_STUDY, RESNET, WHOLE, claim
from tests.report.comparisons.test_groups import LEAD, ON, OTHER, elsewhere, series

OTHER_STUDY = [
    claim("T4", 100.0 * n, study="y", model="lstm", batch=20, workload="word_lm", protocol="published/1")
    for n in (1, 2)
]

BESIDE = (
    "the speed of the Constructed Card A against the nearest that is published, the RTX 2080 Ti of study x"
)
JUDGED = [*OF_A_STUDY, claim("Constructed Card A", 4000.0)]


def analysed(records: Sequence[Record], claims: Sequence[Claim] = OF_A_STUDY, **question: Any) -> Analysis:
    results = Results(tuple(Stored(f"results/{n}.json", one) for n, one in enumerate(records)), (), ())
    asked = Question(datetime(2026, 2, 1, tzinfo=UTC), LEAD if records else None, **question)
    return analyse(Evidence(results, ClaimSet(tuple(claims)), ()), asked)


def view(records: Sequence[Record], claims: Sequence[Claim] = OF_A_STUDY) -> PageView:
    return look(analysed(records, claims))


def rows(drawn: StudyView | None) -> tuple[MarkRow, ...]:
    assert drawn is not None and isinstance(drawn.panel.chart, MarkRows)
    return drawn.panel.chart.rows


def drawn(shown: PageView) -> StudyView:
    """The first picture of the section."""
    return shown.claims[0].drawn[0]


def resnets(seconds: float = 1750.0, **changes: object) -> list[Record]:
    return series(seconds=seconds / WHOLE, **{**RESNET, "batch_size": 98, **changes})


def test_a_row_names_card_precision_and_batch_with_the_figure_and_how_it_scales():
    (row,) = rows(drawn(view(resnets())))
    assert row.label == "ResNet-50"
    assert [(mark.label, mark.note, mark.text) for mark in row.marks] == [
        ("RTX 2080 Ti fp16-master", "batch 164 [a]", "1,500 s · 1.00"),
        ("Constructed Card A fp32-ieee", "batch 98", "1,747 s · 1.16"),
        ("RTX 2080 Ti fp32-ieee", "batch 98 [a]", "2,000 s · 1.33"),
        ("GTX 1080 Ti fp32-ieee", "batch 98 [a]", "3,000 s · 2.00"),
    ]
    assert [mark.published for mark in row.marks] == [True, False, True, True]
    own = row.marks[1]
    assert own.value is not None and own.low is not None and own.high is not None
    assert own.low < own.value < own.high


def test_where_figures_name_their_framework_it_leads_and_the_row_says_on_which_data():
    named = {"framework": "pytorch", "data": "synthetic"}
    (row,) = rows(drawn(view(resnets(options=named), [claim("V100", 1000.0, options=named)])))
    assert row.label == "ResNet-50 on synthetic data"
    assert {mark.label for mark in row.marks} == {"pytorch"}
    assert row.marks[0].note == "V100 fp32-ieee batch 98 [a]"


def test_what_stands_behind_the_line_says_in_brackets_what_differs():
    (row,) = rows(drawn(view(resnets(mode="device"))))
    assert [mark.note for mark in row.behind] == ["batch 98 (device data)"]


def test_throughput_is_scaled_by_time_and_written_as_a_rate_with_its_interval_around_the_value():
    rate = claim("RTX 2080 Ti", 1.0, metric="throughput", unit="images/s", epochs=None)
    (row,) = rows(drawn(view(resnets(), [rate])))
    own, published = row.marks
    assert published.text.startswith("1.000 · ")
    assert own.low is not None and own.high is not None and own.low < 1.0 < own.high


def test_unlike_stacks_are_told_by_letters_that_the_notes_explain():
    claims = [claim("RTX 2080 Ti", 2000.0, stack="PyTorch 1.0"), claim("RTX 2060", 2500.0, study="x-more")]
    shown = drawn(view(resnets(), claims))
    assert [mark.note[-3:] for mark in rows(shown)[0].marks if mark.published] == ["[a]", "[b]"]
    assert shown.notes[0] == "[a] hollow marks: published by study x on PyTorch 1.0"
    assert shown.notes[1] == "[b] hollow marks: published by study x-more on a stack that it does not name"
    assert shown.notes[2].startswith("Filled marks: measured on ")


def test_an_earlier_session_of_this_machine_is_drawn_with_its_day():
    records = [*series(), *resnets(session=OTHER)]
    (row,) = rows(drawn(view(records)))
    (own,) = [mark for mark in row.marks if not mark.published]
    assert own.note == "batch 98 2026-01-31"


def test_another_machine_beside_this_one_stands_in_the_row_under_its_label():
    records = [*resnets(), *elsewhere(seconds=1000.0 / WHOLE, **RESNET, batch_size=98)]
    (row,) = rows(view(records).claims[0].drawn[0])
    first = row.marks[0]
    assert (first.label, first.note) == ("Constructed Card B fp32-ieee", "batch 98 constructed-card-b")


def test_page_one_has_the_rows_of_this_machine_and_each_study_is_whole_in_its_section():
    claims = [*OTHER_STUDY, *OF_A_STUDY]
    shown, first = view(resnets(), claims), brief(analysed(resnets(), claims))
    assert first is not None and first.study == "x"
    assert {each.heading: [drawn.study for drawn in each.drawn] for each in shown.claims} == {
        "Study y": ["y"],
        "Study x": ["x"],
    }


def test_a_page_that_no_study_speaks_of_is_led_by_none():
    shown = view(series(batch_size=999), OF_A_STUDY)
    assert shown.study is None
    assert [drawn.study for each in shown.claims for drawn in each.drawn] == ["x"]


def test_where_there_are_no_prices_the_verdicts_lead_with_the_speed_beside_the_nearest_published_card():
    beside = elsewhere(seconds=1000.0 / WHOLE, **RESNET, batch_size=98)
    shown = view([*resnets(), *beside], JUDGED)
    assert shown.answer.startswith("Of 4 published claims 1 can be checked on this machine: ")
    assert [(fact.value, fact.label) for fact in shown.facts[:2]] == [
        ("0 of 1", "published claims that these runs judge hold; 1 does not"),
        ("1.15 ×", f"{BESIDE}: ResNet-50 in fp32-ieee"),
    ]
    asked = {question.heading: question.sentences for question in shown.questions}
    assert "published claims" not in asked["Do the published numbers hold here?"][0]


def test_the_speed_beside_a_published_card_says_where_it_was_measured_on_other_terms():
    fact = nearest_speed(analysed(resnets(mode="device")))
    assert fact is not None
    assert fact.label == f"{BESIDE}: ResNet-50 in fp32-ieee; other terms, so no verdict"


@pytest.mark.parametrize("changes", [{"verdict": "unproven"}, {"data": "generated"}])
def test_what_may_not_be_ranked_stands_beside_no_published_speed(changes: dict[str, str]):
    assert nearest_speed(analysed(resnets(**changes))) is None


def test_a_quiet_machine_is_counted_where_its_load_was_read():
    quiet = [one.model_copy(update={"load": Load(busy_cpus=0.1)}) for one in resnets()]
    facts = [(fact.value, fact.label) for fact in view(quiet, JUDGED).facts]
    assert ("3 of 3", "trials that began on a quiet machine") in facts


def test_where_all_trials_failed_page_one_draws_what_was_published_of_their_work():
    asked = resnets()[0].trial
    failed = build.record(asked, None, on=ON, session=LEAD, failure=build.out_of_memory())
    (row,) = rows(view([failed], [*OTHER_STUDY, *OF_A_STUDY]).study)
    assert row.label == "ResNet-50" and all(mark.published for mark in row.marks)


def test_without_a_record_the_published_cards_stand_alone():
    shown = view([])
    assert shown.study is not None and not shown.study.measured
    assert all(mark.published for row in rows(shown.study) for mark in row.marks)


def test_what_one_picture_has_no_room_for_stands_in_further_ones_and_no_figure_is_lost():
    claims = [claim("RTX 3090", 1000.0 + n, model=f"model-{n}") for n in range(40)]
    every = [*claims, *OF_A_STUDY]
    found = view(resnets(), every)
    assert [row.label for row in rows(brief(analysed(resnets(), every)))] == ["ResNet-50"]
    shown = [drawn for each in found.claims for drawn in each.drawn]
    assert [each.panel.title[-8:] for each in shown] == [f"({n} of {len(shown)})" for n in range(1, 6)]
    assert len({each.panel.name for each in shown}) == 5 and not any(each.folded for each in shown)
    drawn = [row.label for each in shown for row in rows(each)]
    assert sorted(drawn) == sorted([*(f"model-{n}" for n in range(40)), "ResNet-50"])


def test_what_all_pictures_have_no_room_for_is_a_table_that_counts_every_figure():
    room = MOST_PICTURES * (MOST_LINES // 2)
    claims = [claim("RTX 3090", 1000.0 + n, model=f"model-{n}") for n in range(room + 9)]
    found = view([], claims)
    assert found.study is not None and isinstance(found.study.panel.chart, MarkRows)
    assert len(found.study.panel.chart.rows) == MOST_LEADING
    shown = [drawn for each in found.claims for drawn in each.drawn]
    assert len(shown) == MOST_PICTURES and shown[0].panel.title.endswith(f"(1 of {MOST_PICTURES})")
    assert shown[-1].folded is not None
    assert shown[-1].folded.caption == "9 figures for which the picture has no room."


def scaled(records: Sequence[Record], **question: str) -> tuple[str, list[tuple[str, str]]]:
    """The unit of the first group's time-scaled chart, and its marks."""
    shown = look(analysed(records, **question))
    (panel,) = [each for each in shown.workloads[0].groups[0].panels if each.title == "Time-scaled"]
    assert isinstance(panel.chart, Intervals)
    return panel.unit, [(mark.label, mark.text) for mark in panel.chart.marks]


def test_a_published_duration_that_is_faster_is_one_in_a_group_s_chart_too():
    unit, marks = scaled(resnets(4000.0))
    assert unit == "RTX 2080 Ti fp32-ieee, published = 1.00; less is better"
    assert marks == [
        ("Constructed Card A fp32-ieee", "2.00"),
        ("RTX 2080 Ti fp32-ieee", "1.00"),
        ("GTX 1080 Ti fp32-ieee", "1.50"),
    ]


def test_the_fastest_measured_line_is_one_where_it_is_faster_or_was_asked_for():
    for unit, marks in (scaled(resnets(1000.0)), scaled(resnets(4000.0), baseline="Card A")):
        assert unit.startswith("Constructed Card A fp32-ieee = 1.00")
        assert marks[0] == ("Constructed Card A fp32-ieee", "1.00")
