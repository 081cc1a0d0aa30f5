from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from harness.record import Limit, Record
from harness.record.claims import ClaimSet
from harness.record.store import Results, Stored
from report.charts.intervals import Intervals
from report.comparisons import cells, groups, speedups
from report.comparisons.groups import ComparisonGroup
from report.sections import names
from report.sections.view import PageView
from report.trials.table import trials_of
from tests.helpers import records_builder as build
from tests.helpers.trial_tables import table
from tests.helpers.views import view_of

LEAD = "20260131-aaaaaa"
OTHER = "20260130-bbbbbb"
CARD = "Constructed Card A"
ON = build.machine(CARD, label="card-a", digits="a")


def series(precision: str = "fp32-ieee", seconds: float = 0.1, **changes: Any) -> list[Record]:
    kind = changes.pop("kind", build.LM)
    values: dict[str, Any] = {"on": ON, "card": CARD, "session": LEAD, "batch_size": 20}
    return build.series_of(kind, precision, seconds, **{**values, **changes})


def elsewhere(precision: str = "fp32-ieee", seconds: float = 0.08, **changes: Any) -> list[Record]:
    card = "Constructed Card B"
    on = build.machine(card, label="card-b", digits="b")
    return series(precision, seconds, **{"on": on, "card": card, "session": OTHER, **changes})


def found(
    records: Sequence[Record], *, lead: str = LEAD, baseline: str | None = None, earlier: Sequence[str] = ()
) -> tuple[ComparisonGroup, ...]:
    return groups.comparison_groups(cells.cells_of(table(records)), lead, baseline=baseline, earlier=earlier)


def view(records: Sequence[Record]) -> PageView:
    results = Results(tuple(Stored(f"results/{n}.json", one) for n, one in enumerate(records)), (), ())
    return view_of(results, ClaimSet(), (), session=LEAD, now=datetime(2026, 2, 1, tzinfo=UTC))


def cards_of(group: ComparisonGroup) -> list[str]:
    return [entry.cell.card for entry in group.entries]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"batch_size": 40}, "batch size"),
        ({"mode": "device"}, "data mode"),
        ({"layout": "channels_last"}, "memory layout"),
        ({"profile": "tuned"}, "profile"),
        ({"gpus": 2}, "number of devices"),
        ({"options": {"tied": True}}, "options"),
        ({"model": "gru"}, "model"),
        ({"data": "synthetic"}, "data source"),
        ({"weights": "random"}, "starting weights"),
        ({"kind": {**build.LM, "protocol": "fair/1"}}, "protocol"),
        ({"kind": {**build.LM, "sequence_length": 70}}, "sequence length"),
        ({"kind": {**build.LM, "epochs": 6}}, "epochs"),
    ],
)
def test_records_that_differ_in_one_field_share_no_chart_and_the_page_names_it(change, field):
    fair = {"kind": {**build.LM, "protocol": "fair/2"}}
    records = [*series(**fair), *elsewhere(**{**fair, **change})]
    (group,) = found(records)
    assert cards_of(group) == [CARD]
    said = view(records).left_over
    assert said is not None and field in said.rows[0][-1]


def test_another_data_hash_keeps_records_apart():
    records = elsewhere()
    assert records[0].measurement
    for place, record in enumerate(records):
        data = record.measurement.data.model_copy(update={"sha256": "0" * 64})
        measured = record.measurement.model_copy(update={"data": data})
        records[place] = record.model_copy(update={"measurement": measured})
    (group,) = found([*series(), *records])
    assert cards_of(group) == [CARD]


def test_a_workload_is_headed_by_what_its_own_file_says_of_it():
    named = [
        record.model_copy(
            update={
                "measurement": record.measurement.model_copy(update={"title": "Mine", "about": "My net."})
            }
        )
        for record in series(kind={**build.LM, "workload": "mine"})
    ]
    (work,) = view(named).workloads
    assert work.heading == "Mine" and work.about.startswith("My net.")


def test_comparison_groups_of_one_session_that_differ_say_in_what():
    shown = view([*series(batch_size=20), *series(batch_size=40, first_order=10)])
    (work,) = shown.workloads
    assert len(work.groups) == 2
    assert work.apart is not None and work.apart.columns == ("Kept apart", "batch size")
    assert [row[1] for row in work.apart.rows] == ["20", "40"]


def test_a_published_batch_for_each_precision_shares_one_chart():
    (group,) = found([*series(batch_size=20), *series("fp16-master", batch_size=40, first_order=10)])
    assert [entry.cell.key.batch_size for entry in group.entries] == [20, 40]


def test_any_other_protocol_keeps_batches_apart():
    kind = {**build.LM, "protocol": "fair/1"}
    shown = found([*series(kind=kind), *series("fp16-master", kind=kind, batch_size=40, first_order=10)])
    assert len(shown) == 2


def test_two_builds_of_one_lock_are_comparable():
    again = build.environment(image_id="sha256:" + "2" * 64, tag="gpudyno/cuda:other")
    (group,) = found([*series(), *elsewhere(within=again)])
    assert cards_of(group) == [CARD, "Constructed Card B"]
    assert group.stacks == ()


def test_another_stack_is_named_in_the_title():
    other = build.environment(image="rocm", lock_sha256="c" * 64)
    records = [*series(), *elsewhere(within=other)]
    (group,) = found(records)
    assert dict(group.stacks)["image"] == ("cuda", "rocm")
    shown = view(records).workloads[0].groups[0]
    assert "on different stacks" in shown.heading
    assert "image differs: cuda | rocm" in shown.notes


def test_the_fastest_is_one_and_the_others_are_scaled_to_it():
    (group,) = found([*series(seconds=0.1), *elsewhere(seconds=0.08)])
    slow, fast = group.entries
    assert fast.reference and not slow.reference
    assert fast.scaled and fast.scaled.estimate == 1.0 and fast.scaled.interval
    assert slow.scaled and slow.scaled.estimate == pytest.approx(1.25, rel=0.01)


def test_what_the_interval_cannot_tell_from_one_is_tied():
    (group,) = found([*series(seconds=0.1000), *elsewhere(seconds=0.0999)])
    assert group.entries[0].scaled and group.entries[0].scaled.tied


def test_a_baseline_is_one_even_where_it_is_slower():
    (group,) = found([*series(seconds=0.1), *elsewhere(seconds=0.08)], baseline="card a")
    assert group.entries[0].reference
    assert group.entries[1].scaled and group.entries[1].scaled.estimate < 1


def test_an_unproven_line_is_no_reference_beside_a_proven_one():
    (group,) = found([*series(seconds=0.1), *elsewhere(seconds=0.05, verdict="unproven")])
    assert group.reference and group.reference.cell.card == CARD
    assert not group.ranked


def test_an_invalid_run_is_kept_and_takes_no_part_in_the_mean():
    records = series()
    bad = series(seconds=0.5, verdict="invalid")[2]
    (group,) = found([*records[:2], bad])
    cell = group.entries[0].cell
    assert len(cell.seconds.values) == 2 and len(cell.seconds.apart) == 1
    assert cell.seconds.mean == pytest.approx(0.1 * 1.1 * 2983 * 30, rel=0.02)


@pytest.mark.parametrize(
    ("proven", "unproven", "word", "counted"),
    [(4, 1, "valid", 4), (3, 2, "valid", 3), (3, 3, "unproven", 6), (2, 1, "unproven", 3)],
)
def test_unproven_runs_stand_apart_where_most_of_their_line_are_proven(proven, unproven, word, counted):
    repeats = proven + unproven
    short = series(repeats=repeats, verdict="unproven")[proven:]
    (group,) = found([*series(repeats=repeats)[:proven], *short])
    cell = group.entries[0].cell
    assert (cell.verdict, cell.seconds.n) == (word, counted)
    assert cell.seconds.n + len(cell.seconds.apart) == repeats
    assert group.ranked == (word == "valid")


def test_unproven_runs_of_another_speed_count_and_the_line_carries_a_warning():
    short = series(repeats=5, seconds=0.12, verdict="unproven")[4:]
    (group,) = found([*series(repeats=5)[:4], *short])
    cell = group.entries[0].cell
    assert (cell.verdict, cell.seconds.n, cell.takes_unproven) == ("warn", 5, True)
    badges = view([*series(repeats=5)[:4], *short]).badges
    assert "unproven runs counted" in [badge.word for badge in badges]


def test_a_run_ten_times_off_its_repeats_is_flagged_and_no_result():
    records = [*series()[:2], series(seconds=2.0)[2]]
    trials = trials_of(table(records))
    assert [trial.verdict for trial in trials] == ["valid", "valid", "invalid"]
    (found,) = trials[2].causes
    assert found.name == "jump" and found.data["divisor"] == pytest.approx(20.3, rel=0.01)


def test_a_run_that_stands_apart_is_in_doubt():
    records = [*series(repeats=4), series(seconds=0.13, repeats=5)[4]]
    assert any("cached, fp32-ieee: one run lies +" in doubt for doubt in view(records).caveats)


def test_every_speed_up_names_both_full_precisions_as_denominators():
    records = [
        *series(),
        *series("fp32-tf32", 0.07, first_order=10),
        *series("amp-bf16", 0.05, first_order=20),
    ]
    (group,) = found(records)
    pairs = speedups.speedups([entry.cell for entry in group.entries])
    said = {(pair.of.key.precision, pair.over.key.precision): pair.ratio.estimate for pair in pairs}
    assert said == {
        ("fp32-tf32", "fp32-ieee"): pytest.approx(1.43, abs=0.01),
        ("amp-bf16", "fp32-ieee"): pytest.approx(2.0, abs=0.01),
        ("amp-bf16", "fp32-tf32"): pytest.approx(1.4, abs=0.01),
    }


def test_a_speed_up_at_another_batch_says_so():
    kind = {**build.LM, "protocol": "fair/1"}
    shown = found([*series(kind=kind), *series("amp-bf16", kind=kind, batch_size=40, first_order=10)])
    (pair,) = speedups.speedups([entry.cell for group in shown for entry in group.entries])
    assert pair.differs == (("batch size", 40, 20),)


def test_a_projection_stands_apart_from_the_whole_run_and_is_held_against_it():
    short = {"complete": False, "limit": Limit(seconds=40.0)}
    records = [*series(**short), *series(seconds=0.103, repeats=1, first_order=10)]
    (group,) = found(records)
    assert [entry.cell.length.projected for entry in group.entries] == [False, True]
    notes = view(records).workloads[0].groups[0].notes
    assert re.search(
        r"projected ÷ whole run = 0\.9[67]\d \(more than 1 % off: the projection judges no claim\)", notes[0]
    )


def test_projections_from_other_limits_are_not_drawn_together():
    short = {"complete": False}
    records = [
        *series(limit=Limit(seconds=40.0), **short),
        *series(limit=Limit(seconds=10.0), first_order=10, **short),
    ]
    assert len(found(records)) == 2


def test_of_other_sessions_of_one_machine_the_newest_stands_beside():
    older = [one.model_copy(update={"session": "20260129-cccccc"}) for one in elsewhere(seconds=0.2)]
    older = [one.model_copy(update={"started_at": one.started_at.replace(day=29)}) for one in older]
    (group,) = found([*series(), *elsewhere(), *older])
    assert [entry.cell.session for entry in group.entries] == [LEAD, OTHER]


def test_records_of_other_sessions_alone_make_no_chart():
    assert found(elsewhere()) == ()


EARLIER = ("20260128-dddddd", "20260129-eeeeee")


def before(session: str, **changes: Any) -> list[Record]:
    day = int(session[6:8])
    return [
        one.model_copy(update={"started_at": one.started_at.replace(day=day)})
        for one in series(session=session, **changes)
    ]


def test_what_only_an_earlier_session_of_this_machine_measured_is_its_own_and_says_when():
    both = [*series(), *before(EARLIER[0], model="gru"), *before(EARLIER[1], model="gru", seconds=0.2)]
    lstm, gru = found(both, earlier=EARLIER)
    assert [(entry.cell.session, entry.own) for entry in lstm.entries] == [(LEAD, True)]
    assert [(entry.cell.session, entry.own) for entry in gru.entries] == [(EARLIER[1], True)]
    assert names.note(gru.entries[0], gru).endswith("measured 2026-01-29")
    assert "measured" not in names.note(lstm.entries[0], lstm)


def test_of_the_same_work_the_leading_session_speaks_and_the_earlier_one_stands_beside():
    (group,) = found([*series(), *before(EARLIER[0], seconds=0.2)], earlier=EARLIER)
    assert [(entry.cell.session, entry.own) for entry in group.entries] == [(LEAD, True), (EARLIER[0], False)]


def test_a_short_look_of_an_earlier_session_does_not_stand_beside_a_long_one_of_the_same_work():
    short = before(EARLIER[0], verdict="unproven", complete=False, limit=Limit(steps=40))
    (group,) = found([*series(complete=False, limit=Limit(seconds=60)), *short], earlier=EARLIER)
    assert {entry.cell.session for entry in group.entries} == {LEAD}


def test_a_failure_stands_in_the_comparison_group_of_its_key():
    asked = build.trial(build.LM, "pure-fp16", 1, batch_size=20)
    failed = build.record(asked, None, on=ON, session=LEAD, failure=build.out_of_memory())
    seconds = view([*series(), failed]).workloads[0].groups[0].panels[0].chart
    assert isinstance(seconds, Intervals)
    assert [(mark.precision, mark.text) for mark in seconds.marks][-1] == ("pure-fp16", "does not fit")


def test_a_mission_of_many_models_opens_with_their_gains():
    records = []
    for place, model in enumerate(("lstm", "gru", "rnn_tanh")):
        for step, precision in enumerate(("fp32-ieee", "amp-bf16")):
            order = 20 * place + 10 * step
            records += series(precision, 0.1 - 0.03 * step, model=model, first_order=order)
    (work,) = view(records).workloads
    (overview,) = work.overview
    assert "LSTM amp-bf16" in overview.alt and "RNN (tanh) amp-bf16" in overview.alt


def test_a_chart_with_a_published_batch_for_each_precision_is_not_kept_apart_by_a_batch_of_zero():
    fair = {**build.LM, "protocol": "fair/1"}
    records = [
        *series(batch_size=20),
        *series("fp16-master", batch_size=40, first_order=10),
        *series(kind=fair, first_order=20),
    ]
    (work,) = view(records).workloads
    assert work.apart is not None and "0" not in {cell for row in work.apart.rows for cell in row}
    assert "as published" in {cell for row in work.apart.rows for cell in row}
