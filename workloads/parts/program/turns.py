"""Turns of two programs on one device: each is stopped while its partner works, slice by slice.

Each side writes what it did to a file of its own, which the other reads: 0 once it is ready, then the seconds
of each slice, line by line. Nobody else gives turns, so that they outlive the harness.

Standard library and Python 3.7 syntax only.
"""

from __future__ import annotations

import os
import time

from parts.trial import Failed, TrialProcess

FILE = "turns.txt"
SIDE = "GPUDYNO_SIDE"
"""The variable that says which of the two a trial is; unset where it has its device for itself."""
PARTNER = "partner"
"""The folder of the data in which the partner's file is."""
SLICE_SECONDS = 1.0
WHOLE_LINES = 2
"""A slice has so many lines after its first, which is dropped."""
RESTART_SECONDS = 20.0
"""After so many seconds of slices of both sides, and a whole quartet of them, both programs end."""
LONGEST_SECONDS = RESTART_SECONDS / 2
SETTLE_SECONDS = 2.0
"""How long a program counts before its first slice."""
WAIT_SECONDS = 300.0
"""A partner that takes so long for a slice, or to start, is gone."""
POLL_SECONDS = 0.02


class Turns:
    """One side's view of the turns; side 0 begins the first quartet, side 1 the next, and so on."""

    def __init__(self, trial: TrialProcess, side: int) -> None:
        self._trial = trial
        self._side = side
        self._own = os.path.join(trial.out_folder, FILE)
        self._theirs = os.path.join(trial.data_folder, PARTNER, FILE)
        open(self._own, "w").close()

    def end_slice(self, seconds: float) -> None:
        """Say that the own slice is over, or with 0 s that the side is ready for its first.

        Raises Failed where four such slices would be too long.
        """
        with open(self._own, "a") as file:
            file.write("%.3f\n" % seconds)
        if seconds > LONGEST_SECONDS:
            raise Failed("error", "a slice took %.0f s: four do not fit between two restarts" % seconds)

    def wait(self) -> bool:
        """Wait for the own turn; return whether one is left. Raises Failed where the partner is gone."""
        until = time.perf_counter() + WAIT_SECONDS
        while time.perf_counter() < until:
            began = time.perf_counter()
            own, theirs = _read(self._own), _read(self._theirs)
            done = own[1:] + theirs[1:]
            if len(done) % 4 == 0 and sum(done) >= RESTART_SECONDS:
                return False
            if theirs and _owner(len(done)) == self._side:
                return True
            time.sleep(POLL_SECONDS)
            self._trial.paused_seconds += time.perf_counter() - began
        raise Failed("error", "the program beside it took no turn for %g s" % WAIT_SECONDS)


def _owner(place: int) -> int:
    """Return whose slice it is: ABBA, then BAAB."""
    quartet, within = divmod(place, 4)
    return (quartet + (within in (1, 2))) % 2


def _read(path: str) -> list:
    """Return the seconds that a side has written, whole lines alone; none where it has not begun."""
    try:
        with open(path) as file:
            return [float(line) for line in file.read().split("\n")[:-1]]
    except OSError:
        return []


def read_turns(trial: TrialProcess) -> Turns | None:
    """Return the turns that a trial is to take; null where it has its device for itself."""
    side = os.environ.get(SIDE)
    return Turns(trial, int(side)) if side else None
