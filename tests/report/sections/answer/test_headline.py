from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from harness.errors import UserError
from harness.record import LeftOut, Limit, Record, Session
from harness.record.claims import ClaimSet
from harness.record.store import Results, Stored
from report.analysis import Analysis, Evidence, Question, analyse
from report.sections.view import PageView
from report.trials.key import LOADER_ALONE
from tests.helpers import records_builder as build
from tests.helpers.views import view_of
from tests.report.comparisons.test_groups import LEAD, elsewhere, series, view

SHORT = {"complete": False, "limit": Limit(steps=40)}


def test_one_pair_of_precisions_is_answered_with_its_interval_and_denominator():
    shown = view([*series(), *series("amp-bf16", 0.05, first_order=10)])
    assert shown.answer.startswith(
        "On this Constructed Card A, amp-bf16 trained LSTM (batch 20) 2.00 times as fast as fp32-ieee "
        "(95 % interval 1.9"
    )


def test_two_protocols_of_one_model_are_told_apart_in_the_sentence():
    warmed = {**build.LM, "protocol": "warmed/1"}
    own = [*series(), *series("amp-bf16", 0.05, first_order=10)]
    own += [*series(kind=warmed, first_order=20), *series("amp-bf16", 0.06, kind=warmed, first_order=30)]
    shown = view(own)
    assert "(batch 20, published/1)" in shown.answer and "(batch 20, warmed/1)" in shown.answer
    headings = [group.heading for work in shown.workloads for group in work.groups]
    assert len({*headings}) == len(headings) == 2
    assert shown.decision is not None
    works = {row[0].partition(", protocol ")[2] for row in shown.decision.rows}
    assert works == {"published/1", "warmed/1"}


def test_an_interval_that_includes_one_says_no_difference_shown():
    shown = view([*series(), *series("amp-bf16", 0.0999, first_order=10)])
    assert "no measurably faster or slower than fp32-ieee" in shown.answer
    assert "no difference shown" in shown.answer
    assert shown.decision and any(
        "no difference shown" in cell for row in shown.decision.rows for cell in row
    )


def test_windows_too_short_make_a_first_look_and_no_ranking():
    shown = view([*series(verdict="unproven", **SHORT)])
    assert shown.answer.startswith("A first look: on this Constructed Card A, 30 epochs of LSTM in fp32-ieee")
    assert "would, by projection, take" in shown.answer
    assert "never ranked" in shown.sureness


def test_another_card_on_equal_work_leads_the_page_with_what_to_expect():
    shown = view([*series(), *elsewhere(seconds=0.08)])
    assert re.fullmatch(
        r"The Constructed Card B does this work about 1\.\d+ times as fast as the Constructed Card A; from "
        r"the units that you would get, expect 1\.\d to 1\.\d times\.",
        shown.answer,
    )
    assert shown.measured.endswith("compared with the Constructed Card B")
    (which,) = [asked for asked in shown.questions if asked.heading == "Which is faster, and by how much?"]
    assert "These two units: 1.2" in which.sentences[0] and "that you would get: 1.1" in which.sentences[0]


def test_of_two_machines_with_one_card_no_range_is_called_that_of_two_types():
    other = build.machine("Constructed Card A", label="other", digits="b")
    shown = view([*series(), *elsewhere(seconds=0.08, on=other, card="Constructed Card A")])
    assert "from other machines like these, expect 1." in shown.answer and "types" not in shown.answer
    assert "Even a slow machine like the machine constructed-other would be 1." in shown.changes[0]
    assert shown.changes[0].endswith(" times as fast as a fast one like this one.")


def test_many_gains_become_a_range_with_both_ends_named():
    records: list[Record] = []
    for place, model in enumerate(("lstm", "gru", "rnn_tanh")):
        records += series(model=model, first_order=20 * place)
        records += series("amp-bf16", 0.05 + 0.01 * place, model=model, first_order=20 * place + 10)
    answer = view(records).answer
    assert "mixed precision trained 3 models, LSTM to RNN (tanh), 1.43 (RNN (tanh), amp-bf16)" in answer
    assert "to 2.00 (LSTM, amp-bf16) times as fast as fp32-ieee; all 95 % intervals within" in answer


def test_many_lines_leave_the_table_to_the_baseline_and_the_fastest_in_the_mode_nearest_the_card():
    records: list[Record] = []
    models = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")
    for place, model in enumerate(models):
        for step, mode in enumerate(("host", "cached")):
            for turn, precision in enumerate(("fp32-ieee", "fp32-tf32", "amp-bf16")):
                order = 90 * place + 30 * step + 10 * turn
                seconds = 0.1 / (turn + 1)
                records += series(
                    precision, seconds, kind=build.CIFAR, model=model, mode=mode, first_order=order
                )
    table = view(records).decision
    assert table is not None and "10 of 30 lines" in table.caption
    assert {row[0].partition(", ")[2] for row in table.rows} == {"cached"}
    assert {row[2] for row in table.rows} == {"fp32-ieee", "amp-bf16"}


def test_a_single_whole_run_beside_projections_makes_no_quick_look():
    records = [
        *series(repeats=5, complete=False, limit=Limit(seconds=75.0)),
        *series(repeats=1, first_order=10),
    ]
    shown = view(records)
    assert not any(badge.word.startswith("weak") for badge in shown.badges)
    assert shown.decision and shown.decision.rows[1][7] == "110"


def test_accuracy_of_a_part_of_the_validation_says_so_and_stays_off_the_first_screen():
    (record,) = series(repeats=1, verdict="unproven", **SHORT)
    assert record.measurement
    epoch = record.measurement.epochs[0].model_copy(update={"quality": 900.0, "valid_batches": 2})
    part = record.model_copy(
        update={"measurement": record.measurement.model_copy(update={"epochs": (epoch,)})}
    )
    shown = view([part])
    table = shown.workloads[0].groups[0].table
    assert "900\nafter 60 steps, on 2 of 6 batches" in table.rows[0]
    assert shown.decision and "900" not in shown.decision.rows[0]


def test_where_a_whole_protocol_s_time_is_not_known_the_answer_is_a_rate():
    records = [
        record.model_copy(update={"summary": record.summary.model_copy(update={"protocol_seconds": None})})
        for record in series()
        if record.summary
    ]
    assert "trained 200 tokens a second (95 % interval 196 to 205)" in view(records).answer


def test_waiting_for_input_becomes_a_sentence_and_a_label():
    (record, *_) = records = series(causes=("input-bound: 41% of the time waited for input",))
    assert record.summary
    waiting = record.summary.model_copy(update={"input_share": 0.41})
    shown = view([record.model_copy(update={"summary": waiting}) for record in records])
    group = shown.workloads[0].groups[0]
    sentence = "41% of the time waited for input: a card twice as fast shortens this at most 1.42 times."
    assert any(sentence in cell for row in group.states.rows for cell in row)
    assert shown.bottleneck is not None and any(sentence in line for line in shown.bottleneck.sentences)
    assert any(badge.word == "waits for input" for badge in group.badges)


def with_session(records: Sequence[Record], **changes: object) -> PageView:
    session = Session(
        session=1,
        id=LEAD,
        plan="constructed",
        plan_sha256="f" * 64,
        machine="a" * 12,
        label="constructed",
        started_at=build.STARTED,
        order_seed=1,
        trials=(),
    ).model_copy(update=changes)
    stored = tuple(Stored(f"results/{n}.json", record) for n, record in enumerate(records))
    now = datetime(2026, 2, 1, tzinfo=UTC)
    return view_of(Results(stored, (session,), ()), ClaimSet(), (), machine="a" * 12, now=now)


def test_what_a_budget_left_out_is_listed_with_its_reason():
    left_out = (LeftOut(what="host mode", trials=12, reason="the budget of 8 h"),)
    table = with_session(series(), left_out=left_out).left_out
    assert table is not None and table.rows == (("host mode", "12", "the budget of 8 h"),)


def later(plan: str, **changes: Any) -> list[Record]:
    """The series once more, in a later session of another plan."""
    return [
        record.model_copy(
            update={
                "session": "20260131-dddddd",
                "plan": plan,
                "started_at": record.started_at.replace(hour=22),
            }
        )
        for record in series(**changes)
    ]


def test_a_session_that_only_took_each_path_leads_nothing_and_stands_beside_nothing():
    assert with_session([*series(), *later("deep")]).beside == with_session(series()).beside


def analysed(records: Sequence[Record], **question: Any) -> Analysis:
    stored = tuple(Stored(f"results/{n}.json", record) for n, record in enumerate(records))
    return analyse(
        Evidence(Results(stored, (), ()), ClaimSet(), ()),
        Question(build.STARTED + timedelta(days=9), **question),
    )


@pytest.mark.parametrize("plan", ["deep", "selfcheck"])
def test_a_later_session_that_measures_no_work_of_its_own_does_not_lead(plan):
    first = series()
    assert analysed([*first, *later(plan)]).lead == first[0].session
    assert analysed(later(plan)).lead == "20260131-dddddd"


def test_a_machine_without_records_is_shown_another_s_newest_session_of_mostly_proven_trials():
    first = series()
    newer = later("constructed", seconds=0.2, verdict="unproven")
    assert analysed([*first, *newer]).lead == newer[0].session
    assert analysed([*first, *newer], machine="ffffffffffff").lead == first[0].session
    assert analysed(newer, machine="ffffffffffff").lead == newer[0].session
    loading = later("loading", kind={**build.LM, "protocol": LOADER_ALONE})
    assert analysed([*first, *loading], machine="ffffffffffff").lead == first[0].session


def test_a_page_of_another_machine_than_the_reader_s_says_which_one_this_machine_is():
    stored = tuple(Stored(f"results/{n}.json", record) for n, record in enumerate(series()))
    pages = [
        view_of(Results(stored, (), ()), now=build.STARTED + timedelta(days=9), machine=machine)
        for machine in ("a" * 12, "f" * 12, None)
    ]
    assert [", which is “this machine” below" in page.measured for page in pages] == [False, True, False]


@pytest.mark.parametrize(
    ("changes", "own"),
    [
        ({}, 2),
        ({"card": "Constructed Card C"}, 1),
        ({"on": build.machine("Constructed Card A", label="renamed", digits="a")}, 1),
        ({"on": build.machine("Constructed Card A", label="card-a", digits="c")}, 1),
        ({"day": 31, "hour": 23}, 1),
    ],
)
def test_sessions_of_one_machine_and_device_are_one_dossier_up_to_the_leading_one(changes, own):
    when = {"day": changes.pop("day", 29), "hour": changes.pop("hour", 1)}
    earlier = [
        record.model_copy(update={"started_at": record.started_at.replace(**when)})
        for record in series(session="20260129-eeeeee", model="gru", **changes)
    ]
    found = analysed([*series(), *earlier], session=LEAD)
    assert sum(entry.own for group in found.groups for entry in group.entries) == own


def test_a_session_that_is_asked_for_and_not_there_is_refused_in_a_sentence():
    with pytest.raises(UserError, match="there is no record of session '20990101-ffffff'; name a session"):
        analysed(series(), session="20990101-ffffff")


def test_the_page_leads_with_this_machine_even_where_another_ran_later():
    later = [
        record.model_copy(update={"started_at": record.started_at.replace(hour=20)}) for record in elsewhere()
    ]
    assert "On this Constructed Card A" in with_session([*series(), *later]).beside
