"""What a trial leaves behind: measurement, failure, events, telemetry; and the run's own notes of it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random

from harness.engine.base import Exit
from harness.record import store
from harness.record.events import Follower, segments, spans
from harness.run import assemble, in_flight
from harness.telemetry import reader
from tests.campaign.attack import Attack, Broken
from tests.campaign.mutation import Change, any_text, changed, changed_json, changed_lines
from tests.helpers.card_traces import TRACES
from tests.helpers.fake_clock import replay
from tests.helpers.fake_workload import measurement
from tests.helpers.records_builder import two_cards

FAILURE = b'{"stage": "train", "reason": "out-of-memory", "message": "it does not fit"}'
EVENTS = b"""{"event": "phase", "name": "import", "seconds": 1.5, "begin": 8.5, "end": 10.0}
{"event": "stage", "stage": "train", "at": 10.0}
{"event": "progress", "done": 1, "total": 20, "unit": "step"}
{"event": "segment", "begin": 10.5, "end": 12.75}
{"event": "stage", "stage": "valid", "at": 12.75}
{"event": "stage", "stage": "collect", "at": 13.0}
"""


@cache
def _started() -> assemble.Started:
    """Of a constructed record."""
    record = next(record for record in two_cards() if record.measurement)
    names = assemble.Started.model_fields.keys() & type(record).model_fields.keys()
    return assemble.Started(**{name: getattr(record, name) for name in names}, monotonic_seconds=1.0)


def _measurement() -> bytes:
    return json.dumps(measurement(_started().trial.asked.model_dump(mode="json"), 20)).encode()


def _followed(path: Path) -> object:
    return Follower(path).look()


@cache
def _telemetry() -> bytes:
    """As the sampler writes it beside a card."""
    with tempfile.TemporaryDirectory() as name:
        replay(TRACES["clean"], Path(name, reader.FILE))
        return Path(name, reader.FILE).read_bytes()


def _assembled(output: Path) -> None:
    code = 0 if (output / assemble.MEASUREMENT).exists() else 1
    made = assemble.assemble(_started(), Exit(code=code, log=""), output, wall_seconds=5.0, locked={})
    text = store.dump(assemble.judged(made))
    (output / "record.json").write_text(text, encoding="utf-8")
    if store.dump(store.read_record(output / "record.json", "record.json")) != text:
        raise Broken("lost records", "a record reads back otherwise than it was written")


def _of(name: str, content: Callable[[], bytes], change: Change, read: Callable[[Path], object]) -> Attack:
    def attack(rng: Random, root: Path) -> None:
        (root / name).write_bytes(changed(content(), rng, change))
        read(root)

    return attack


def _kept(root: Path) -> None:
    """A note of a started trial that cannot be read is removed, and stops no run."""
    work = store.work_folder(root, "20260131-aaaaaa", "x-r1-0", 1)
    work.mkdir(parents=True)
    (root / "started.json").rename(work / in_flight.FILE)
    for started, _ in in_flight.attempts(root, "*"):
        assert started.name


def _log(rng: Random, root: Path) -> None:
    """A log's end, whatever a process printed."""
    made = assemble.assemble(
        _started(),
        Exit(code=rng.choice((0, 1, 7, -11, 137, None)), log=any_text(rng) * 50),
        root,
        wall_seconds=rng.choice((0.0, 5.0, 1e9)),
        locked=None,
    )
    store.dump(made)


ATTACKS: Mapping[str, Attack] = {
    "measurement": _of(assemble.MEASUREMENT, _measurement, changed_json, _assembled),
    "failure": _of(assemble.FAILURE, lambda: FAILURE, changed_json, _assembled),
    "events": _of(
        "events.jsonl",
        lambda: EVENTS,
        changed_lines,
        lambda root: [ask(root / "events.jsonl") for ask in (_followed, segments, spans)],
    ),
    "telemetry": _of(
        reader.FILE,
        _telemetry,
        changed_lines,
        lambda root: reader.read(root / reader.FILE, ((1010.5, 1020.5),), 100, (("valid", 1020.5, 1023.0),)),
    ),
    "started": _of("started.json", lambda: _started().model_dump_json().encode(), changed_json, _kept),
    "log": _log,
}
