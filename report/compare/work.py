"""The fields in which two figures differ: each is named beside them, with its size where that is known."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from statistics import median

from report.compare.cells import Cell
from report.expected.sizes import DifferenceSize, SystemDifference
from report.trials.key import NAMES, Key, Value, stack_differences

SOFTWARE, WINDOW = "software", "window_seconds"
_BUILD = ("image", "lock", "base", "device")
"""Parts of a stack that say how it was built: its versions say what it is."""


@dataclass(frozen=True, slots=True)
class Term:
    """A field or option that is not the same on both sides; null where a side does not have it."""

    field: str
    of: Value
    over: Value
    size: float | None = None
    """The most that nine in ten such differences change a speed by, as a logarithm; null is unknown."""

    @property
    def name(self) -> str:
        """What the page calls the field."""
        return NAMES.get(self.field, self.field.replace("_", " "))


def terms_between(
    of: Cell, over: Cell, free: Collection[str], sizes: Mapping[SystemDifference, DifferenceSize]
) -> tuple[Term, ...]:
    """Return in what two cells differ besides what is `free`: work, window, software and settings."""
    found = (*_of_keys(of.key, over.key), *_of_windows(of, over), *_of_stacks(of, over, sizes))
    return tuple(term for term in found if term.field not in free)


def _of_keys(of: Key, over: Key) -> Iterator[Term]:
    for name in (field.name for field in fields(Key) if field.name != "options"):
        here, there = getattr(of, name), getattr(over, name)
        if here != there:
            yield Term(name, here, there)
    options, others = dict(of.options), dict(over.options)
    for name in sorted(options.keys() | others.keys()):
        if options.get(name) != others.get(name):
            yield Term(name, options.get(name), others.get(name))


def _of_windows(of: Cell, over: Cell) -> Iterator[Term]:
    lengths = [(cell.length.projected, cell.length.limit) for cell in (of, over)]
    if lengths[0] != lengths[1]:
        yield Term(WINDOW, *map(window_seconds, (of, over)))


def window_seconds(cell: Cell) -> float | None:
    """Return the median length of its runs' measured windows."""
    measured = (trial.record.measurement for trial in cell.trials)
    seconds = [measurement.window.seconds for measurement in measured if measurement]
    return median(seconds) if seconds else None


def _of_stacks(of: Cell, over: Cell, sizes: Mapping[SystemDifference, DifferenceSize]) -> Iterator[Term]:
    """Yield all other versions as one term, since their size is known together."""
    versions = {name for cell in (of, over) for name, _ in cell.stack.versions}
    found = [each for each in stack_differences((of.stack, over.stack)) if each[0] not in _BUILD]
    moved = [each for each in found if each[0] in versions]
    if moved:
        here, there = (", ".join(f"{name} {sides[at]}" for name, sides in moved) for at in (0, 1))
        size = sizes.get("software")
        yield Term(SOFTWARE, here, there, math.log1p(size.high) if size else None)
    for name, (here, there) in (each for each in found if each not in moved):
        yield Term(name, here, there)
