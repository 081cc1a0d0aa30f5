from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from harness.errors import PlanError
from harness.plan import order, plan_file
from harness.run import blocks
from tests.helpers import clone


def end_of(records):
    return max(record.ended_at for record in records)


def test_a_pause_of_an_hour_opens_the_next_block_and_a_shorter_one_does_not(finished):
    session, records = finished[0].session, finished[1]
    end = end_of(records)
    trial = session.trials[0]
    assert blocks.block_number(session, trial, records, end + timedelta(minutes=59)) == 1
    assert blocks.block_number(session, trial, records, end + timedelta(minutes=60)) == 2
    assert blocks.block_number(session, trial, [], datetime.now(UTC)) == 1


def test_an_hour_that_a_full_length_trial_fills_is_a_pause_and_the_trial_itself_opens_no_block(finished):
    session, records = finished[0].session, finished[1]
    timing, full = records[:3], records[3]
    end = end_of(timing)
    session = session.model_copy(update={"blocks": (1, 1, 1, order.NO_BLOCK)})
    long = full.model_copy(update={"started_at": end, "wall_seconds": 3600.0})
    later = end + timedelta(minutes=61)
    assert blocks.block_number(session, session.trials[0], [*timing, long], later) == 2
    assert blocks.block_number(session, session.trials[3], timing, later) == 1


def test_only_the_first_trial_of_a_later_block_waits_and_no_longer_than_the_hour_lasts(finished):
    session, records = finished[0].session, finished[1]
    session = session.model_copy(update={"blocks": (1, 1, 2, 2)})
    done = records[:2]
    end = end_of(done)

    def rest(trial, minutes):
        return blocks.rest_time(session, trial, done, end + timedelta(minutes=minutes))

    assert rest(session.trials[2], 20) == timedelta(minutes=40)
    assert rest(session.trials[2], 60) == timedelta(0)
    assert rest(session.trials[2], -30 * 24 * 60) == blocks.PAUSE, "the clock was set back by a month"
    assert rest(session.trials[1], 20) == timedelta(0), "an attempt of its own block"
    assert blocks.rest_time(session, session.trials[3], records[:3], end) == timedelta(0)


def test_repeats_are_spread_evenly_over_blocks_and_a_full_length_trial_is_in_none():
    context = plan_file.PlanContext("cuda", "cuda", None, {"wikitext-2": "real", "cifar-100": "real"}, {})
    loaded = plan_file.load_plan(clone.ROOT, "mission").model_copy(update={"blocks": 4})
    planned = plan_file.plan_trials(loaded, context, 3)
    repeats = [{item.trial.repeat for item in planned if item.block == number} for number in (1, 2, 3, 4)]
    assert [sorted(found) for found in repeats] == [[1, 2], [3], [4], [5]]
    assert {item.role for item in planned if item.block == order.NO_BLOCK} == {"full"}


def test_more_blocks_than_repeats_are_refused():
    loaded = plan_file.load_plan(clone.ROOT, "quick").model_copy(update={"blocks": 4})
    context = plan_file.PlanContext("cpu", "cpu", None, {"wikitext-2": "real", "cifar-100": "real"}, {})
    with pytest.raises(PlanError, match="3 repeats cannot be spread over 4 blocks; ask for fewer"):
        plan_file.plan_trials(loaded, context, 1)
