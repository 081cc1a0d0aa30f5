"""Samples the devices once a second into a file of JSON lines, in a process of its own.

    python -m harness.telemetry.sampler OUT_FILE --kind cuda --cards GPU-… --pids 123 --parent 99

The first line says what is watched; each further line is one sample at `t` seconds after it; the last says
why it ended and what could not be read. Counters (energy, time limited, memory errors) are cumulative, so
that any window between two samples can be read. What a driver does not give is null, with the first reason.
SIGTERM ends it; so does the end of the parent, or the stop file.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any

import psutil

from harness.device_kinds import DEVICE_KINDS, DeviceKind
from harness.gpu import MAKERS

SLOW_EVERY = 10
"""Link width, limits and memory errors change seldom: read at the edges and at every tenth sample."""
SILENT_SAMPLES = 3
"""Samples without a value of any card after which its driver is taken for gone."""


class Sampler:
    """Asks one source of cards."""

    def __init__(self, cards: Any, ours: TrialProcesses) -> None:
        self.cards = cards
        self.ours = ours
        self.taken = 0
        self._silent = 0
        self.gone: str | None = None

    def sample(self, seconds: float, *, edge: bool) -> dict[str, Any]:
        """Return one line: each card's values, or null once the driver is gone."""
        cards = None
        if self.gone is None:
            cards = self._cards(edge or self.taken % SLOW_EVERY == 0)
            self._notice(cards)
        self.taken += 1
        return {"t": round(seconds, 3), "cards": cards}

    def _cards(self, slow: bool) -> list[dict[str, Any]]:
        try:
            sampled: list[dict[str, Any]] = self.cards.sample(self.ours, slow)
        except Exception as error:
            # Whatever a driver's library does, the file is still to be ended.
            self.cards.missing.setdefault("sampling", type(error).__name__)
            return [{} for _ in self.cards.described]
        return sampled

    def _notice(self, cards: list[dict[str, Any]]) -> None:
        # Silence about faults is no sign of life.
        answered = any(value is not None for card in cards for name, value in card.items() if name != "xids")
        self._silent = 0 if answered or not cards else self._silent + 1
        if self._silent >= SILENT_SAMPLES:
            self.gone = "the driver stopped answering"


class TrialProcesses:
    """The process ids of the trial: the given ones, what a file names, and all that they started."""

    def __init__(self, pids: list[int], file: Path | None = None, unknown: str | None = None) -> None:
        self._named = set(pids)
        self._file = file
        self.unknown_because = unknown

    def among(self, pids: set[int]) -> set[int]:
        """Return which of `pids` belong to the trial, by their line of parents."""
        roots = self._named | self._from_file() | {os.getpid()}
        return {pid for pid in pids if roots & _line_of_parents(pid)}

    def _from_file(self) -> set[int]:
        try:
            words = self._file.read_text(encoding="ascii").split() if self._file else []
        except OSError:
            return set()
        return {int(word) for word in words if word.isdigit()}


def _line_of_parents(pid: int) -> set[int]:
    with suppress(psutil.Error):
        return {pid, *(parent.pid for parent in psutil.Process(pid).parents())}
    return {pid}


class Ending:
    """Why it is time to end; null while it is not."""

    def __init__(self, parent: int | None = None, stop_file: Path | None = None) -> None:
        self._parent = parent
        self._file = stop_file
        self.why: str | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.why = "stopped"

    def look(self, seconds: float) -> str | None:
        """Return the reason to end at a number of seconds; null while there is none."""
        if self.why is None and self._file is not None and self._file.exists():
            self.why = "stopped"
        if self.why is None and self._parent and not _lives(self._parent):
            self.why = "the parent is gone"
        return self.why


def _lives(pid: int) -> bool:
    with suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return psutil.pid_exists(pid)


def find_cards(kind: DeviceKind, marks: list[str] | None) -> Any:
    """Return the cards of that kind that answer to `marks` (UUID, unit or index); all if `marks` is null.

    Where one of them cannot be identified, none is watched: another's figures would be taken for its own.
    """
    if kind == "cpu":
        return NoCards()
    cards = MAKERS[kind].watch(marks or [])
    if marks is None or len(cards.described) == len(marks) > 0:
        return cards
    cards.close()
    reason = f"{len(cards.described) if marks else 0} of the {len(marks)} cards asked for could be identified"
    return NoCards(cards.source, {"cards": reason, **cards.missing})


class NoCards:
    """What is watched of a trial on the processor, or on cards of `source` that cannot be identified."""

    def __init__(self, source: str = "none", missing: dict[str, str] | None = None) -> None:
        self.source = source
        self.missing = missing or {}
        self.described: list[dict[str, Any]] = []

    def sample(self, ours: TrialProcesses, slow: bool) -> list[dict[str, Any]]:
        """Return nothing: there is no card."""
        return []

    def close(self) -> None:
        """Do nothing: nothing is open."""


def sample_until_end(
    out: IO[str], sampler: Sampler, interval: float, ending: Ending, clock: Any = time
) -> None:
    """Sample on a fixed raster until it is time to end; a tick that was missed is left out."""
    began = clock.monotonic()
    _write(out, {
        "telemetry": 1,
        "source": sampler.cards.source,
        "interval_seconds": interval,
        "began": began,
        "cards": sampler.cards.described,
        "others_unknown_because": sampler.ours.unknown_because,
    })  # fmt: skip
    tick = 0
    while True:
        now = clock.monotonic() - began
        why = ending.look(now)
        _write(out, sampler.sample(now, edge=tick == 0 or why is not None))
        if why is not None:
            break
        tick = max(tick + 1, int((clock.monotonic() - began) / interval) + 1)
        _wait(began + tick * interval, ending, clock)
    missing = dict(sampler.cards.missing)
    if sampler.gone:
        missing["cards"] = sampler.gone
    _write(out, {"end": why, "samples": sampler.taken, "missing": missing})


def _wait(until: float, ending: Ending, clock: Any) -> None:
    while ending.why is None:
        left = until - clock.monotonic()
        if left <= 0:
            return
        clock.sleep(min(left, 0.25))


def _write(out: IO[str], values: dict[str, Any]) -> None:
    out.write(json.dumps(values, separators=(",", ":")) + "\n")
    out.flush()


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def options(arguments: list[str]) -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description="Sample devices into a file of JSON lines.")
    parser.add_argument("out")
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--kind", choices=tuple(DEVICE_KINDS), default="cpu")
    parser.add_argument(
        "--cards", type=_words, help="UUIDs, hashed UUIDs or indices, by commas; all if it is left out"
    )
    parser.add_argument("--pids", type=_words, default=[], help="the trial's own processes, by commas")
    parser.add_argument("--pids-file", type=Path, help="a file that names them, read again at every sample")
    parser.add_argument("--inside", action="store_true", help="in a container: other processes are not seen")
    parser.add_argument("--parent", type=int, help="end with this process")
    parser.add_argument("--stop-file", type=Path, help="end when this file is there")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Exit code 0 whatever the driver did; 1 where the file cannot be written."""
    given = options(arguments)
    ending = Ending(given.parent, given.stop_file)
    unseen = "other processes cannot be seen from inside a container" if given.inside else None
    ours = TrialProcesses([int(word) for word in given.pids], given.pids_file, unseen)
    cards = find_cards(given.kind, given.cards)
    try:
        with Path(given.out).open("w", encoding="utf-8") as out:
            sample_until_end(out, Sampler(cards, ours), given.interval, ending)
    except OSError as error:
        sys.stderr.write(f"telemetry: {error}\n")
        return 1
    finally:
        cards.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
