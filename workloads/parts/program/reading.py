"""What a program's own output says: rows of named figures, and from them the times of its steps.

Standard library and Python 3.7 syntax only.
"""

from __future__ import annotations

import csv
import json
import re
import statistics
from collections import Counter
from typing import NamedTuple

from parts.trial import Failed

WITNESS_SECONDS = 0.05
"""Where lines come less far apart, our clock is no witness: it sees when they were read."""
WITNESS_ROWS = 5
MOST_STEPS_TOGETHER = 1000
MOST_LOSSES = 500
MOST_ROWS = 1000000


class Row(NamedTuple):
    """What one line, or one row of a file, says; `at` is when it was read, on our clock."""

    says: dict
    at: float | None
    evaluated: bool
    """Whether the program evaluated since the row before."""


class Interval(NamedTuple):
    """From one row to the next: so many steps, the program's own seconds for them, and ours."""

    steps: int
    """That the seconds are of; those between the rows where each is timed."""
    seconds: float | None
    done: int
    """Steps of the whole run by then."""
    begin: float | None
    end: float | None
    witnessed: float | None
    """Our clock's seconds over the program's own."""
    apart: bool
    """Whether an evaluation lies in it."""
    says: dict


class Reader:
    """Hears the lines of a program, and keeps what the patterns of its file find in them."""

    def __init__(self, reading: dict) -> None:
        self.reading = reading
        self._lines, self._evaluations, self._done = (
            re.compile(reading[key]) if reading.get(key) else None for key in ("lines", "evaluations", "done")
        )
        self.rows = []
        self.evaluations = []
        """Each with the number of rows before it."""
        self.last = ""
        self.done = None
        """What the line says by which it is known to be through."""

    def hear(self, line: str, at: float) -> None:
        """Takes one line."""
        self.last = line
        found = self._lines and self._lines.search(line)
        if found and len(self.rows) < MOST_ROWS:
            self._add(_figures(found.groupdict()), at)
        found = self._evaluations and self._evaluations.search(line)
        if found:
            self.evaluations.append((len(self.rows), _figures(found.groupdict())))
        found = self._done and self._done.search(line)
        if found:
            self.done = _figures(found.groupdict())

    def read_file(self, path: str) -> None:
        """Takes the rows of the JSON or CSV file that the program left; raises Failed where it cannot."""
        try:
            with open(path, encoding="utf-8", newline="") as file:
                given = json.load(file) if path.endswith(".json") else list(csv.DictReader(file))
        except (OSError, ValueError, csv.Error) as error:
            raise Failed("error", "its file of figures cannot be read (%s)" % type(error).__name__) from None
        for each in given if isinstance(given, list) else [given]:
            names = {name: key for name, key in self.reading["fields"].items() if key in each}
            self._add(_figures({name: str(each[key]) for name, key in names.items()}), None)

    def _add(self, says: dict, at: float | None) -> None:
        evaluated = bool(self.evaluations) and self.evaluations[-1][0] == len(self.rows)
        if says:
            self.rows.append(Row(says, at, evaluated))


def _figures(groups: dict) -> dict:
    """The groups that took part, as numbers; one that is no number is left out."""
    found = {}
    for name, text in groups.items():
        try:
            found[name] = float(text.replace(",", ""))
        except (AttributeError, ValueError):
            continue
    return found


def intervals(reader: Reader, samples_per_step: int) -> list:
    """What lies between the rows of a run, in their order."""
    reading, found = reader.reading, []
    of_run, before = 0, None
    done_before = 0
    for row in reader.rows:
        done = int(row.says["step"]) - reading["first_step"] + 1 if "step" in row.says else done_before + 1
        other_epoch = before is not None and row.says.get("epoch") != before.says.get("epoch")
        anew = other_epoch or done <= done_before
        if anew:
            done_before, before = 0, None
        between = max(1, done - done_before)
        of_run += between
        steps, seconds = _seconds(reading["seconds_are"], row, before, done, between, samples_per_step)
        contiguous = before is not None and not row.evaluated and None not in (before.at, row.at)
        ours = row.at - before.at if contiguous else None
        if seconds is None and not _timed(row):
            seconds = ours
        found.append(
            Interval(
                steps,
                seconds,
                of_run,
                before.at if contiguous else None,
                row.at,
                ours / (seconds / steps * between) if ours and seconds and _timed(row) else None,
                row.evaluated,
                row.says,
            )
        )
        before, done_before = row, done
    return found


def _timed(row: Row) -> bool:
    return any(name in row.says for name in ("seconds", "milliseconds", "samples_per_second"))


def _own_seconds(row: Row, samples_per_step: int) -> float | None:
    if "seconds" in row.says:
        return row.says["seconds"]
    if "milliseconds" in row.says:
        return row.says["milliseconds"] / 1000
    rate = row.says.get("samples_per_second")
    return samples_per_step / rate if rate else None


def _seconds(are: str, row: Row, before: Row | None, done: int, between: int, samples_per_step: int) -> tuple:
    """How many steps a row's seconds are of, and the seconds; null where it says none."""
    own = _own_seconds(row, samples_per_step)
    if own is None:
        return between, None
    if are == "step":
        return 1, own
    if are == "mean":
        return between, own * between
    earlier = (_own_seconds(before, samples_per_step) or 0.0) if before else 0.0
    if are == "mean-so-far":
        return between, own * done - earlier * (done - between)
    return between, own - earlier


class Figures(NamedTuple):
    """A run's steps as a measurement has them."""

    step_us: list
    steps_together: int
    samples_per_step: int
    stretches: list
    """Moments on our clock between which values lie unbroken."""
    losses: list
    epochs: list
    """From one evaluation to the next."""
    witness: float | None
    """The median of our clock's seconds over the program's own; null where lines come too fast."""
    steps: int
    """Of the whole run, with those that are in no value."""
    steps_per_epoch: int | None
    """As its lines say."""
    left_out: int
    """Rows that are in no value."""


def figures(reader: Reader, samples_per_step: int) -> Figures:
    """The times of equal numbers of steps; raises Failed where there are none."""
    found = intervals(reader, samples_per_step)
    fit = [each for each in found if not each.apart and each.seconds is not None and each.seconds >= 0]
    if not any(each.seconds for each in fit):
        what = "none of its lines says how long a step took" if found else "it printed no step"
        raise Failed("error", "%s; its last line: %s" % (what, reader.last[:300] or "none"))
    together = Counter(each.steps for each in fit).most_common(1)[0][0]
    if together > MOST_STEPS_TOGETHER:
        why = "a line stands for %d steps, and for %d at most" % (together, MOST_STEPS_TOGETHER)
        raise Failed("unsupported", why)
    kept = [each for each in fit if each.steps == together][reader.reading["skip"] :]
    if not kept:
        raise Failed("error", "its window begins after the last of its %d lines of steps" % len(fit))
    each_step = statistics.mean(each.seconds for each in kept) / together
    samples = [each.says["samples"] for each in kept if "samples" in each.says]
    losses = [(each.done, each.says["loss"]) for each in found if "loss" in each.says]
    return Figures(
        step_us=[round(each.seconds * 1e6) for each in kept],
        steps_together=together,
        samples_per_step=round(statistics.mean(samples) / together) if samples else samples_per_step,
        stretches=_stretches(kept),
        losses=losses[:: -(-len(losses) // MOST_LOSSES) or 1],
        epochs=_epochs(reader, found, losses, each_step),
        witness=_witness(kept),
        steps=found[-1].done,
        steps_per_epoch=int(kept[-1].says["steps"]) if "steps" in kept[-1].says else None,
        left_out=len(found) - len(kept),
    )


def _witness(kept: list) -> float | None:
    seen = [(each.end - each.begin, each.witnessed) for each in kept if each.witnessed]
    if len(seen) < WITNESS_ROWS or statistics.median(apart for apart, _ in seen) < WITNESS_SECONDS:
        return None
    return statistics.median(ratio for _, ratio in seen)


def _stretches(kept: list) -> list:
    stretches = []
    for each in kept:
        if each.begin is None:
            continue
        if stretches and stretches[-1][1] == each.begin:
            stretches[-1][1] = each.end
        else:
            stretches.append([each.begin, each.end])
    return stretches


def _epochs(reader: Reader, found: list, losses: list, each_step: float) -> list:
    """Their seconds are by the mean of the values, for a row that is in none has steps too."""
    steps = found[-1].done
    ends = [(found[at - 1].done, says) for at, says in reader.evaluations if at]
    ends += [(steps, {})] if not ends or ends[-1][0] < steps else []
    made, before = [], 0
    for done, says in ends:
        of_it = [loss for at, loss in losses if before < at <= done]
        made.append(
            {
                "index": len(made) + 1,
                "steps": done - before,
                "train_seconds": (done - before) * each_step,
                "train_loss": statistics.mean(of_it) if of_it else None,
                "valid_loss": says.get("loss"),
                "quality": says.get("quality"),
                "complete": bool(says),
            }
        )
        before = done
    return made
