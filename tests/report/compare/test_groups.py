from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from harness.record import Limit, Record
from report.compare import cells, groups
from report.compare import precisions as speedups
from report.compare.groups import ComparisonGroup
from report.page.parts import workloads
from report.page.values import systems_of
from tests.helpers import record_sets as sets
from tests.helpers import records_builder as build
from tests.helpers.record_sets import LEAD, OTHER
from tests.helpers.record_sets import A as CARD
from tests.helpers.trial_tables import analysed, trials_of

series = partial(sets.series, repeats=3)
elsewhere = partial(sets.elsewhere, repeats=3)


def found(
    records: Sequence[Record], *, lead: str = LEAD, baseline: str | None = None, earlier: Sequence[str] = ()
) -> tuple[ComparisonGroup, ...]:
    return groups.comparison_groups(
        cells.cells_of(trials_of(records)), lead, baseline=baseline, earlier=earlier
    )


def cards_of(group: ComparisonGroup) -> list[str]:
    return [entry.cell.card for entry in group.entries]


@pytest.mark.parametrize(
    "change",
    [
        {"batch_size": 40},
        {"mode": "device"},
        {"layout": "channels_last"},
        {"profile": "tuned"},
        {"gpus": 2},
        {"options": {"tied": True}},
        {"model": "gru"},
        {"data": "synthetic"},
        {"weights": "random"},
        {"kind": {**build.LM, "protocol": "fair/1"}},
        {"kind": {**build.LM, "sequence_length": 70}},
        {"kind": {**build.LM, "epochs": 6}},
    ],
)
def test_records_that_differ_in_one_field_share_no_group(change):
    fair = {"kind": {**build.LM, "protocol": "fair/2"}}
    records = [*series(**fair), *elsewhere(**{**fair, **change})]
    (group,) = found(records)
    assert cards_of(group) == [CARD]
    assert len(analysed(records).left_over) == 1


def test_another_data_hash_keeps_records_apart():
    records = [build.changed(record, measurement__data__sha256="0" * 64) for record in elsewhere()]
    (group,) = found([*series(), *records])
    assert cards_of(group) == [CARD]


def test_a_workload_is_headed_by_what_its_own_file_says_of_it():
    named = [
        build.changed(record, measurement__title="Mine", measurement__about="My net.")
        for record in series(kind={**build.LM, "workload": "mine"})
    ]
    found = analysed(named)
    view = workloads.view(found, systems_of(found))
    assert view is not None
    assert (view[0].title, view[0].about) == ("Mine", "My net.")


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
    assert [entry.cell.card for entry in group.entries if entry.reference] == [CARD]


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


def test_unproven_runs_of_another_speed_count_and_the_line_carries_a_warning():
    short = series(repeats=5, seconds=0.12, verdict="unproven")[4:]
    (group,) = found([*series(repeats=5)[:4], *short])
    cell = group.entries[0].cell
    assert (cell.verdict, cell.seconds.n, cell.takes_unproven) == ("warn", 5, True)


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


def test_a_projection_stands_beside_the_whole_run():
    short = {"complete": False, "limit": Limit(seconds=40.0)}
    records = [*series(**short), *series(seconds=0.103, repeats=1, first_order=10)]
    (group,) = found(records)
    assert [entry.cell.length.projected for entry in group.entries] == [False, True]


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


def test_what_only_an_earlier_session_of_this_machine_measured_is_its_own():
    both = [*series(), *before(EARLIER[0], model="gru"), *before(EARLIER[1], model="gru", seconds=0.2)]
    lstm, gru = found(both, earlier=EARLIER)
    assert [(entry.cell.session, entry.own) for entry in lstm.entries] == [(LEAD, True)]
    assert [(entry.cell.session, entry.own) for entry in gru.entries] == [(EARLIER[1], True)]


def test_of_the_same_work_the_leading_session_speaks_and_the_earlier_one_stands_beside():
    (group,) = found([*series(), *before(EARLIER[0], seconds=0.2)], earlier=EARLIER)
    assert [(entry.cell.session, entry.own) for entry in group.entries] == [(LEAD, True), (EARLIER[0], False)]
