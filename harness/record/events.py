"""Following a trial by the events it writes: for progress bars, and for what a dead trial had measured."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

FILE = "events.jsonl"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a trial is: its stage, and steps done of those expected (null where unknown)."""

    stage: str = "start"
    done: int = 0
    total: int | None = None
    unit: str = "step"
    line: str = ""
    """The last line of a user's own program that counted its steps; no record has it."""


class Follower:
    """Reads what has been added to an events file since the last look; a half-written last line waits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self.progress = Progress()

    def look(self) -> Progress:
        """Return the newest progress; unreadable lines are skipped: a dying trial may cut one short."""
        if not self._path.is_file():
            return self.progress
        with self._path.open("rb") as file:
            file.seek(self._at)
            text = file.read()
        whole = text.rfind(b"\n") + 1
        self._at += whole
        for event in json_objects(text[:whole].splitlines()):
            self.progress = _advance(self.progress, event)
        return self.progress


def _advance(progress: Progress, event: dict[str, Any]) -> Progress:
    if event.get("event") == "stage":
        return Progress(stage=str(event.get("stage", progress.stage)))
    if event.get("event") == "progress" and isinstance(event.get("done"), int):
        total = event["total"] if isinstance(event.get("total"), int) else None
        unit, line = str(event.get("unit", "step")), str(event.get("line", ""))
        return replace(progress, done=event["done"], total=total, unit=unit, line=line)
    return progress


def read_segments(path: Path) -> tuple[tuple[float, float], ...]:
    """Begin and end of each measured training segment, in the machine's monotonic seconds."""
    segments = []
    lines = path.read_bytes().splitlines() if path.is_file() else []
    for event in json_objects(line for line in lines if b'"segment"' in line):
        # What an event that is not of the form of its kind raises.
        with suppress(ValueError, KeyError, TypeError, OverflowError):
            segments.append((float(event["begin"]), float(event["end"])))
    return tuple(segments)


def json_objects(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of lines; a line that cannot be read is passed over."""
    for line in lines:
        with suppress(ValueError, RecursionError):
            value = json.loads(line)
            if isinstance(value, dict):
                yield value
