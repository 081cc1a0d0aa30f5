"""The largest batch that fits, found by halving: which batch sizes are tried next, and when no more are."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.record import Limit, Memory, Record, Session, TrialSpec
from harness.run import missing
from harness.run.missing import missing_trials
from tests.helpers import records_builder as build
from tests.helpers.bundled import session_of

ON = build.machine("Constructed Card", label="card")
LIMIT = Limit(steps=50, seconds=20.0)
MEMORY = 24 * 2**30
"""Of the device of a constructed measurement."""

Fits = Callable[[int], bool]


def sized(batch: int, repeat: int = 1, precision: str = "amp-fp16") -> TrialSpec:
    return build.trial(build.LM, precision, repeat, batch_size=batch, limit=LIMIT)


@cache
def outcome(batch: int, repeat: int, fits: bool) -> Record:
    return run(sized(batch, repeat), lambda batch: fits)


def opened(*trials: TrialSpec) -> Session:
    return session_of([run(trial, bool) for trial in trials], "f" * 64)


def doubling(repeats: int = 1) -> list[TrialSpec]:
    return [sized(2**power, repeat) for repeat in range(1, repeats + 1) for power in range(13)]


def run(trial: TrialSpec, fits: Fits, reserved: float = 0.5) -> Record:
    if not fits(trial.asked.variant.batch_size):
        return build.record(trial, None, on=ON, failure=build.out_of_memory())
    memory = Memory(allocated_peak_bytes=1, reserved_peak_bytes=round(reserved * MEMORY))
    measured = build.measurement(build.LM, trial, 0.1, card="Constructed Card", complete=False, memory=memory)
    return build.record(trial, measured, on=ON)


def climbed(session: Session, fits: Fits) -> tuple[Session, list[Record]]:
    """Runs what is asked, without the batches above one that did not fit, until no more is asked."""
    records: dict[str, Record] = {}
    while True:
        too_large = min(
            (r.trial.asked.variant.batch_size for r in records.values() if r.failure), default=math.inf
        )
        left = [t for t in session.trials if t.id not in records and t.asked.variant.batch_size < too_large]
        if left:
            batch = left[0].asked.variant.batch_size
            records[left[0].id] = outcome(batch, left[0].repeat, fits(batch))
            continue
        more = missing.grow_sweeps(session, records.values())
        if more is session:
            return session, list(records.values())
        session = more


def sizes(records: list[Record], repeat: int) -> set[int]:
    return {
        record.trial.asked.variant.batch_size
        for record in records
        if record.trial.repeat == repeat and record.measurement
    }


@pytest.fixture(scope="module")
def planned() -> Session:
    return opened(*doubling())


@given(capacity=st.integers(min_value=1, max_value=4095))
def test_the_largest_batch_that_fits_is_found_to_a_step_of_8_or_of_1_below_16(planned, capacity: int):
    session, records = climbed(planned, lambda batch: batch <= capacity)
    assert max(sizes(records, 1)) == (capacity if capacity < 16 else capacity // 8 * 8)
    assert len(session.trials) - len(planned.trials) <= 9, "a halving for each doubling of the gap"


def test_what_was_found_is_measured_in_every_repeat_and_the_tries_in_the_first_alone():
    session, records = climbed(opened(*doubling(repeats=3)), lambda batch: batch <= 100)
    assert sizes(records, 1) == {1, 2, 4, 8, 16, 32, 64, 96}
    assert sizes(records, 2) == sizes(records, 3) == sizes(records, 1)
    tried = {t.asked.variant.batch_size for t in session.trials if t.repeat > 1} - {2**n for n in range(13)}
    assert tried == {96}
    assert {t.seed for t in session.trials if t.asked.variant.batch_size == 96} == {1, 2, 3}


def test_a_batch_that_reserves_more_than_95_percent_is_searched_below():
    trials = [sized(size) for size in (16, 32, 64)]
    records = [run(trials[0], bool), run(trials[1], bool), run(trials[2], bool, reserved=0.97)]
    (more,) = missing.grow_sweeps(opened(*trials), records).trials[3:]
    assert more.asked.variant.batch_size == 48


@pytest.mark.parametrize(
    ("batches", "capacity"), [((8, 16), 8), ((8, 16, 32), 32), ((8, 16, 32), 4)], ids=str
)
def test_no_search_begins_for_fixed_batches_or_where_all_or_nothing_fits(batches, capacity):
    planned = opened(*(sized(size) for size in batches))
    session, _ = climbed(planned, lambda batch: batch <= capacity)
    assert session is planned


def test_a_search_waits_until_what_lies_below_the_out_of_memory_limit_has_been_tried():
    trials = [sized(size) for size in (8, 16, 32)]
    records = [run(trials[0], bool), run(trials[2], lambda batch: False)]
    planned = opened(*trials)
    assert missing.grow_sweeps(planned, records) is planned


def test_one_batch_that_does_not_fit_is_neither_halved_nor_tried_less_than_in_each_repeat():
    other = opened(sized(256), sized(256, repeat=2))
    session, records = climbed(other, lambda batch: batch <= 100)
    assert session is other and len(missing_trials(session, records)) == 1


def test_a_batch_size_of_a_search_is_known_by_its_sweep_and_by_nothing_else():
    planned = doubling()
    assert missing.is_between_batches(sized(96), planned)
    assert not missing.is_between_batches(sized(96, precision="fp32-ieee"), planned)
    assert not missing.is_between_batches(sized(5000), planned)
    assert not missing.is_between_batches(sized(24), [sized(16), sized(32)])
