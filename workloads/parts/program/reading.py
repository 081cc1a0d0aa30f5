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

from parts.program.progress import join_rows, number, share_seconds
from parts.trial import Failed

WITNESS_SECONDS = 0.05
"""Lines closer together than this say nothing to our clock: it sees only when they were read."""
WITNESS_ROWS = 5
MOST_STEPS_TOGETHER = 1000
MOST_LOSSES = 500
MOST_ROWS = 1000000


class Reader:
    """Hears the lines of a program, and keeps what the patterns of its file find in them."""

    def __init__(self, reading: dict) -> None:
        self.reading = reading
        self._patterns = {
            key: re.compile(reading[key]) for key in ("lines", "evaluations", "done") if reading.get(key)
        }
        self.rows = []
        """What each line of steps says, when it was read, and whether an evaluation came before it."""
        self.evaluations = []
        """What each says, with the number of rows before it."""
        self.done = None
        """What the line says by which the program is known to be through."""
        self.last = ""

    def hear(self, line: str, at: float) -> None:
        """Take one line."""
        self.last = line
        for key, pattern in self._patterns.items():
            found = pattern.search(line)
            says = _figures(found.groupdict()) if found else None
            if says is not None and key == "evaluations":
                self.evaluations.append((len(self.rows), says))
            elif says is not None and key == "done":
                self.done = says
            elif says:
                self._add(says, at)

    def read_file(self, path: str) -> None:
        """Take the rows of the JSON or CSV file that the program left; raises Failed where it cannot."""
        try:
            with open(path, encoding="utf-8", newline="") as file:
                given = json.load(file) if path.endswith(".json") else list(csv.DictReader(file))
        except (OSError, ValueError, csv.Error) as error:
            raise Failed("error", f"its file of figures cannot be read ({type(error).__name__})") from None
        for each in given if isinstance(given, list) else [given]:
            fields = self.reading["fields"].items()
            self._add(_figures({name: str(each[key]) for name, key in fields if key in each}), None)

    def _add(self, says: dict, at: float | None) -> None:
        if says and len(self.rows) < MOST_ROWS:
            evaluated = bool(self.evaluations) and self.evaluations[-1][0] == len(self.rows)
            self.rows.append((says, at, evaluated))


def _figures(groups: dict) -> dict:
    """Return the groups that took part, as numbers; one that is no number is left out."""
    found = {name: number(text) for name, text in groups.items()}
    return {name: value for name, value in found.items() if value is not None}


class Value(NamedTuple):
    """One row of a program: the seconds of so many steps, by the program's own clock or else by ours."""

    says: dict
    steps: int
    seconds: float | None
    done: int
    """Steps of the whole run by then."""
    begin: float | None
    """When the row before was read; null where more than steps happened since."""
    end: float | None
    """When it was read; null in a file."""
    witness: float | None
    """Our clock's seconds over the program's own."""
    evaluated: bool


def _values(reader: Reader, samples_per_step: int) -> list:
    reading, found = reader.reading, []
    before, before_at, done_before, of_run = None, None, 0, 0
    for says, at, evaluated in reader.rows:
        done = int(says["step"]) - reading["first_step"] + 1 if "step" in says else done_before + 1
        other_epoch = before is not None and says.get("epoch") != before.get("epoch")
        if other_epoch or done <= done_before:
            before, before_at, done_before = None, None, 0
        between = max(1, done - done_before)
        of_run += between
        own, earlier = (_own_seconds(each or {}, samples_per_step) for each in (says, before))
        steps = 1 if own is not None and reading["seconds_are"] == "step" else between
        ours = at - before_at if None not in (at, before_at) and not evaluated else None
        are = reading["seconds_are"]
        seconds = ours if own is None else _new_seconds(are, own, earlier or 0.0, done, between)
        timed = bool(ours and own and seconds) and reading["seconds_are"] != "run"
        witness = ours * steps / (seconds * between) if timed else None
        found.append(Value(says, steps, seconds, of_run, before_at if ours else None, at, witness, evaluated))
        before, before_at, done_before = says, at, done
    return found


def _own_seconds(says: dict, samples_per_step: int) -> float | None:
    if "samples_per_second" in says:
        return samples_per_step / says["samples_per_second"] if says["samples_per_second"] else None
    return says.get("seconds", says["milliseconds"] / 1000 if "milliseconds" in says else None)


def _new_seconds(are: str, own: float, earlier: float, done: int, between: int) -> float:
    """Return the seconds since the row before; a row's own are the last step's, a mean or a sum."""
    means = {
        "step": own,
        "mean": own * between,
        "mean-so-far": own * done - earlier * (done - between),
        "so-far": own - earlier,
        "run": own,
    }
    return means[are]


class Figures(NamedTuple):
    """A run's steps as a measurement has them."""

    step_us: list
    steps_together: int
    samples_per_step: int
    stretches: list
    """Moments on our clock between which no value is missing."""
    losses: list
    epochs: list
    """The epochs, each up to an evaluation; what follows the last is in none. Without any, the whole run."""
    witness: float | None
    """The median of our clock's seconds over the program's own; null where lines come too fast."""
    steps: int
    """The steps of the whole run, also those in no value."""
    steps_per_epoch: int | None
    """The steps of an epoch as its lines say."""


def figures(reader: Reader, samples_per_step: int) -> Figures:
    """Return the times of equal numbers of steps; raises Failed where there are none."""
    found = _values(reader, samples_per_step)
    fit = [each for each in found if not each.evaluated and each.seconds is not None and each.seconds >= 0]
    if not any(each.seconds for each in fit):
        what = "none of its lines says how long a step took" if found else "it printed no step"
        raise Failed("error", f"{what}; its last line: {reader.last[:300] or 'none'}")
    together = Counter(each.steps for each in fit).most_common(1)[0][0]
    if together > MOST_STEPS_TOGETHER:
        raise Failed(
            "unsupported", f"a line covers {together} steps, and may cover {MOST_STEPS_TOGETHER} at most"
        )
    kept = [each for each in fit if each.steps == together][reader.reading["skip"] :]
    if not kept:
        raise Failed("error", f"its window begins after the last of its {len(fit)} lines of steps")
    samples = [each.says["samples"] for each in kept if "samples" in each.says]
    losses = [(each.done, each.says["loss"]) for each in found if "loss" in each.says]
    each_step = statistics.mean(each.seconds for each in kept) / together
    return Figures(
        step_us=[each_us for each in kept for each_us in share_seconds(each.seconds, together)],
        steps_together=together,
        samples_per_step=round(statistics.mean(samples) / together) if samples else samples_per_step,
        stretches=[
            [rows[0].begin, rows[-1].end] for rows in join_rows([each for each in kept if each.begin])
        ],
        losses=losses[:: -(-len(losses) // MOST_LOSSES) or 1],
        epochs=_epochs(reader, found, losses, each_step),
        witness=_witness(kept),
        steps=found[-1].done,
        steps_per_epoch=int(kept[-1].says["steps"]) if "steps" in kept[-1].says else None,
    )


def _witness(kept: list) -> float | None:
    seen = [(each.end - each.begin, each.witness) for each in kept if each.witness]
    if len(seen) < WITNESS_ROWS or statistics.median(apart for apart, _ in seen) < WITNESS_SECONDS:
        return None
    return statistics.median(ratio for _, ratio in seen)


def _epochs(reader: Reader, found: list, losses: list, each_step: float) -> list:
    """Their seconds are by the mean of the values, for a row that is in none has steps too."""
    ends = [(found[at - 1].done, says) for at, says in reader.evaluations if at]
    ends = ends or [(found[-1].done, {})]
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
