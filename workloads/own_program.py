"""A program of the user's own, run as it lies in its folder, and timed by the progress that it prints.

`program.json` beside the trial says how it is started and how its lines are read; its folder is among the
data. Each trial copies the folder, runs the program there as a child of this process, reads its lines as they
come, and stops it once its steps were timed for long enough.

Standard library and Python 3.7 syntax only: the program's framework is its own.
"""

from __future__ import annotations

from parts.trial import Failed, TrialProcess, main  # isort: skip  (its clock starts here)

import math
import os
import re
import sys
import time
from typing import Any

from parts.program import child
from parts.program.progress import (
    LEAST_ROWS,
    Progress,
    ProgressReader,
    held_samples,
    progress_of,
    share_seconds,
)
from parts.program.turns import SETTLE_SECONDS, SLICE_SECONDS, WHOLE_LINES, Turns, read_turns

TITLE = "A program of one's own"
ABOUT = "A program of the user's own as it lay in its folder; what it trains is as it says."
SILENT_SECONDS = 40.0
"""A program that is silent for so long before it has counted anything is started again, in a terminal."""
RATE_AGREES = 0.1
"""By how much the samples of a step that rates say may differ: a mean across a pause is far more off."""
MISSING_MODULE = re.compile(r"No module named '([\w.]+)'")


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run the program, until its steps were timed for long enough, or it ended."""
    return child.run_in_place(trial, _run_copy)


def _run_copy(trial: TrialProcess, given: dict, place: str) -> dict[str, Any]:
    with trial.phase("data"):
        copy, environ, at_own_path = _copied(trial, given, place)
    first, *words = given["command"]
    command = [sys.executable if first == "python" else first]
    command += [_moved(word, at_own_path) for word in words]
    trial.stage("train")
    listener, ended, terminal = _heard_program(trial, given, command, copy, environ)
    trial.stage("collect")
    return _measured(trial, given, listener, ended, terminal)


def _copied(trial: TrialProcess, given: dict, place: str) -> tuple:
    """Copy the folder, and show in it and in the program's home what is kept.

    Return the copy's path, the program's variables, and where it finds what lies elsewhere, by the old path.
    """
    copy = child.copy_program(trial, given["folder"], place)
    environ = child.own_environment(place)
    environ.update(given["environ"])
    environ.setdefault("COLUMNS", str(child.TERMINAL_COLUMNS))
    roots = {"folder": copy, "home": environ["HOME"]}
    at_own_path = {}
    for kept in given["keep"]:
        if kept["root"] not in roots:
            at_own_path[kept["path"]] = os.path.join(trial.data_folder, kept["name"])
            continue
        at = os.path.join(roots[kept["root"]], kept["path"])
        os.makedirs(os.path.dirname(at), exist_ok=True)
        if not os.path.lexists(at):
            os.symlink(os.path.realpath(os.path.join(trial.data_folder, kept["name"])), at)
    return copy, environ, at_own_path


def _moved(word: str, at_own_path: dict) -> str:
    """Return a word with the folders that lie elsewhere for the program."""
    for path, here in at_own_path.items():
        word = word.replace(path, here)
    return word


def _heard_program(trial: TrialProcess, given: dict, command: list, copy: str, environ: dict) -> tuple:
    """Run the program, in a terminal where it shows no progress in a pipe; return what was heard of it."""
    cache = os.environ.get("GPUDYNO_CACHE")
    marker = os.path.join(cache, "terminal") if cache else ""
    turns = read_turns(trial)
    for terminal in (True,) if marker and os.path.exists(marker) else (False, True):
        listener = TurnListener(trial, given, turns) if turns else Listener(trial, given)
        ended = child.run(
            command,
            os.path.join(copy, given["at"]),
            environ,
            child.seconds_left(trial),
            listener.hear,
            terminal=terminal,
            patience=(lambda: math.inf) if terminal else listener.patience,
            turns=listener if turns else None,
        )
        missing = MISSING_MODULE.search(listener.last)
        if ended.code and missing:
            where = f"image {trial.asked['environment']}"
            raise Failed("error", f"{where} has no {missing.group(1)}; name yours with --python")
        listener.end(ended, copy)
        if listener.reader.candidates:
            if terminal and marker:
                open(marker, "w").close()
            return listener, ended, terminal
    lines = " | ".join(child.without_folders(line, trial, copy)[:80] for line in listener.reader.last_lines)
    raise Failed(
        "error",
        "none of its lines counts steps; print one such as 'step 100', or name the count with "
        f"--match '(?P<step>\\d+)'; its last lines: {lines or 'none'}",
    )


class Listener(child.ProgramLog):
    """The program's lines: to the log, and to the reader, until they are enough."""

    def __init__(self, trial: TrialProcess, given: dict) -> None:
        super().__init__(trial)
        self.given = given
        self.reader = ProgressReader(given.get("match"), given.get("metric"))
        self._ends_at = None

    def patience(self) -> float:
        """Return for how long the program may be silent: for ever, once a line of it has counted."""
        return math.inf if self.reader.counters else SILENT_SECONDS

    def hear(self, line: str, at: float) -> bool:
        """Take a line; return whether the program may go on."""
        self.write(line)
        self.reader.hear(line, at)
        training = next(iter(self.reader.candidates), None)
        if training is None:
            return True
        if self._ends_at is None:
            self._ends_at = at + self.given["seconds"]
        done = sum(row.steps for row in training.rows)
        self.report(at, int(done), unit="step", line=training.example[:100])
        steps = self.given.get("steps")
        return at < self._ends_at if steps is None else done < steps

    def progress(self) -> Progress:
        """Return the steps' times; raises Failed where two counts could be training, or too few were read."""
        if self.reader.alike:
            lines = "' and '".join(each.example[:80] for each in self.reader.alike)
            raise Failed("error", f"'{lines}' count alike; name the one of training with --match")
        training = self.reader.training
        found = progress_of(training) if training.rows else None
        if found is None or not found.blocks:
            raise Failed(
                "error", f"too few of its steps could be timed; it counts by '{training.example[:80]}'"
            )
        return found


class TurnListener(Listener):
    """The lines of a program that takes turns on its device: those of its slices alone are timed."""

    def __init__(self, trial: TrialProcess, given: dict, turns: Turns) -> None:
        super().__init__(trial, given)
        self.slices = 0
        self._turns = turns
        self._began = None
        """When its slice began; null before its first."""
        self._rows_before = 0
        self.over = self._done = False
        self._held = None
        """The samples of a step by the lines before the first pause."""

    def hear(self, line: str, at: float) -> bool:
        """Take a line, and see whether the slice is over with it."""
        super().hear(line, at)
        training = next(iter(self.reader.candidates), None)
        rows = training.rows if training else []
        if self._began is None:
            settled = len(rows) >= LEAST_ROWS and at - rows[0].begin >= SETTLE_SECONDS
            self.over = self.over or settled
        elif at - self._began >= SLICE_SECONDS and len(rows) - self._rows_before >= WHOLE_LINES:
            self.over = True
        return True

    def pause(self) -> bool:
        """Tell the partner, and wait for the next turn; return whether there is one."""
        training = self.reader.candidates[0]
        if self._began is None:
            self._held = held_samples(training.rows)
            self._turns.end_slice(0.0)
            # Until now both ran at once.
            for counter in self.reader.counters.values():
                del counter.rows[:]
        else:
            self.slices += 1
            self._turns.end_slice(time.perf_counter() - self._began)
        self._done = not self._turns.wait()
        self.reader.interrupt()
        self._began, self._rows_before, self.over = time.perf_counter(), len(training.rows), False
        return not self._done

    def progress(self) -> Progress:
        """Return the steps' times in all slices.

        A printed rate holds what a pause took where it is a mean over more than its row. It is read for the
        samples of a step alone, and only where these are as many as before any pause.
        """
        if not self._done:
            raise Failed("error", "it ended before its slices were done")
        found = super().progress()
        now, before = held_samples(self.reader.training.rows), self._held
        if self.given.get("per_step") or now is None or before is None:
            return found._replace(printed=None)
        if abs(now.value / before.value - 1) > RATE_AGREES:
            raise Failed(
                "error", "the rate that it prints is no row's own, and cannot be read across a pause"
            )
        seconds = sum(found.blocks) / (len(found.blocks) * found.together)
        return found._replace(printed=now._replace(value=now.value / seconds))


def _measured(
    trial: TrialProcess, given: dict, listener: Listener, ended: child.Ended, terminal: bool
) -> dict[str, Any]:
    found = listener.progress()
    complete = ended.code == 0
    return child.make_program_measurement(
        trial,
        ended,
        [us for seconds in found.blocks for us in share_seconds(seconds, found.together)],
        max(1, round(given.get("per_step") or 1)),
        found.stretches,
        data={"name": "own"},
        protocol={
            "steps_per_epoch": max(1, found.steps),
            "epochs": 1,
            "stopped_by": "protocol" if complete else "steps" if given.get("steps") else "seconds",
        },
        sample_unit="sample" if given.get("per_step") else "step",
        steps_together=found.together,
        epochs=[
            {
                "index": 1,
                "steps": found.steps,
                "train_seconds": sum(end - begin for begin, end in found.stretches),
                "complete": complete,
            }
        ],
        own={
            "printed_rate": found.printed and found.printed.value,
            "printed_unit": found.printed and found.printed.unit,
            "terminal": terminal,
            "metric": listener.reader.metric,
            **({"slices": listener.slices} if isinstance(listener, TurnListener) else {}),
        },
    )


if __name__ == "__main__":
    main(run)
