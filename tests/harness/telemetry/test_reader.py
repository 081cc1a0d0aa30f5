"""What is read of a telemetry, and how its traces are kept."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import RecordError
from harness.record import Trace
from harness.record.events import read_segments
from harness.telemetry.reader import read_telemetry
from tests.helpers.card_traces import TRACES
from tests.helpers.fake_clock import replay


def test_a_telemetry_that_was_killed_is_read_as_far_as_it_goes(tmp_path):
    path = tmp_path / "telemetry.jsonl"
    replay(TRACES["clean"], path)
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    found = read_telemetry(path)
    assert found.ended == "cut short"
    assert 30 < found.samples < 60
    assert read_telemetry(tmp_path / "none") is None


def test_lines_that_the_telemetry_would_not_write_are_refused_by_name(tmp_path):
    path = tmp_path / "telemetry.jsonl"
    path.write_text('{"telemetry": 1}\n{"t": 1}\n')
    with pytest.raises(RecordError, match=r"telemetry.jsonl is not what the telemetry writes"):
        read_telemetry(path)


def test_above_an_hour_each_minute_keeps_its_mean_least_and_most(tmp_path):
    path = tmp_path / "telemetry.jsonl"
    head = {"telemetry": 1, "source": "nvml", "interval_seconds": 1.0, "began": 0.0, "cards": [{"index": 0}]}
    lines = [{"t": float(t), "cards": [{"utilization_percent": float(t % 60)}]} for t in range(7200)]
    path.write_text("\n".join(map(json.dumps, [head, *lines])))
    found = read_telemetry(path)
    busy = found.cards[0].utilization_percent
    assert busy.mean.count == 120
    assert (busy.mean.values()[5], busy.least.values()[5], busy.most.values()[5]) == (29.5, 0.0, 59.0)
    assert found.times.values()[1] == pytest.approx(89.5)
    assert len(found.model_dump_json()) < 5000


def test_what_held_a_card_just_after_its_window_is_nothing_of_the_window(tmp_path):
    path = tmp_path / "telemetry.jsonl"
    head = {"telemetry": 1, "source": "nvml", "interval_seconds": 1.0, "began": 0.0, "cards": [{"index": 0}]}

    def card(t: int) -> dict[str, object]:
        reasons = ["sw_power_cap"] if t == 13 else []
        held = {"power": 0.5 if t >= 13 else 0.0}
        return {"limited_seconds": held, "reasons": reasons, "temperature_c": 46.0 + t}

    lines = [{"t": float(t), "cards": [card(t)]} for t in range(16)]
    path.write_text("\n".join(map(json.dumps, [head, *lines])))
    (found,) = read_telemetry(path, ((9.01, 12.01),)).cards
    assert found.limited_share == {"power": pytest.approx(0.5 * 0.01 / 3, abs=1e-5)}
    assert (found.reasons_share, found.start_temperature_c) == ({}, 46.0)
    (longer,) = read_telemetry(path, ((9.01, 13.01),)).cards
    assert longer.reasons_share == {"sw_power_cap": 0.25}


def test_segments_are_read_from_the_events_of_a_trial(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text(
        '{"event": "segment", "begin": 1.5, "end": 2.5}\n{"event": "steps"}\n{"event": "segment", "be'
    )
    assert read_segments(path) == ((1.5, 2.5),)
    assert read_segments(tmp_path / "none") == ()


@given(st.lists(st.none() | st.floats(-1e6, 1e6), max_size=200), st.sampled_from([1.0, 0.1, 0.01]))
def test_a_trace_keeps_values_to_half_of_its_scale_and_nulls_as_nulls(values, scale):
    kept = Trace.from_values(values, scale).values()
    assert [value is None for value in kept] == [value is None for value in values]
    for before, after in zip(values, kept, strict=True):
        if before is not None:
            assert after == pytest.approx(before, abs=scale / 2 + 1e-9)


@given(st.binary(max_size=60), st.integers(0, 50))
def test_a_trace_that_cannot_be_unpacked_is_refused(raw, count):
    import base64

    text = base64.b64encode(raw).decode()
    try:
        assert len(Trace(count=count, scale=1.0, packed=text).values()) == count
    except ValueError as error:
        assert "trace" in str(error)
