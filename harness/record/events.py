"""Following a trial by the events it writes: for progress bars, and for what a dead trial had measured."""

from __future__ import annotations

import json
from dataclasses import dataclass
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


class Follower:
    """Reads what has been added to an events file since the last look; a half-written last line waits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self.progress = Progress()

    def look(self) -> Progress:
        """The newest progress; unreadable lines are passed over, since a dying trial may cut one short."""
        if not self._path.is_file():
            return self.progress
        with self._path.open("rb") as file:
            file.seek(self._at)
            text = file.read()
        whole = text.rfind(b"\n") + 1
        self._at += whole
        for line in text[:whole].splitlines():
            self.progress = _after(self.progress, line)
        return self.progress


def _after(progress: Progress, line: bytes) -> Progress:
    try:
        event: Any = json.loads(line)
    except (ValueError, RecursionError):
        return progress
    if not isinstance(event, dict):
        return progress
    if event.get("event") == "stage":
        return Progress(stage=str(event.get("stage", progress.stage)))
    if event.get("event") == "progress" and isinstance(event.get("done"), int):
        total = event.get("total")
        return Progress(
            stage=progress.stage,
            done=event["done"],
            total=total if isinstance(total, int) else None,
            unit=str(event.get("unit", "step")),
        )
    return progress


def segments(path: Path) -> tuple[tuple[float, float], ...]:
    """Begin and end of each measured training segment, in the machine's monotonic seconds."""
    if not path.is_file():
        return ()
    spans = []
    for line in path.read_bytes().splitlines():
        if b'"segment"' not in line:
            continue
        try:
            event = json.loads(line)
            spans.append((float(event["begin"]), float(event["end"])))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue
    return tuple(spans)
