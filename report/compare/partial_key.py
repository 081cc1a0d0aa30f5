"""The same work except for some fields: what is grouped, what is set against each other, what meets a claim.

Whatever is compared has a comparability key: cells, single trials, lines of a purchase. Its place is what a
group shares: the key less the fields that the comparison is about, and what else is asked for, such as the
length of the protocol, the stack, the session, the machine and the card. A partial key names some fields
alone, such as the fields that a publication prints; what it does not name is free.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol, TypeVar

from report.trials.key import (
    EMPTY_LENGTH,
    NAMES,
    PARALLEL,
    Key,
    Pairs,
    ProtocolLength,
    Value,
    grouped_by,
    without_fields,
)

MEASURED_FIELDS = ("data_sha256", "weights", "weights_sha256")
"""What a trial that failed does not know of its key, or knows only as it was asked."""

FREE_OPTIONS = ("epochs", PARALLEL)
"""Options that a partial key need not name: its length says as much, or the way of sharing is its own."""

DATA_MODES = ("cached", "device", "host")
"""From what shows the card alone to what shows the whole machine."""

T = TypeVar("T")
R = TypeVar("R")


class Keyed(Protocol):
    """Anything with a comparability key."""

    @property
    def key(self) -> Key: ...


K = TypeVar("K", bound=Keyed)


class GroupPlace(NamedTuple):
    """What the members of a group share."""

    key: Key
    within: tuple[Hashable, ...] = ()


def same_but(
    *names: str, within: Sequence[str | Callable[[Any], Hashable]] = ()
) -> Callable[[Keyed], GroupPlace]:
    """A function from an item to its place: equal where keys differ in `names` alone, and `within` is equal.

    `within` holds attributes of the item (`length` is its length less `names`), fields of its length, or
    functions of it.
    """

    def place(item: Keyed) -> GroupPlace:
        return GroupPlace(
            without_fields(item.key, *names), tuple(_value(item, part, names) for part in within)
        )

    return place


def _value(item: Any, part: str | Callable[[Any], Hashable], names: Sequence[str]) -> Hashable:
    if not isinstance(part, str):
        return part(item)
    value: Hashable = getattr(item.length if hasattr(EMPTY_LENGTH, part) else item, part)
    return without_fields(value, *names) if isinstance(value, ProtocolLength) else value


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


@dataclass(frozen=True, slots=True)
class PartialKey:
    """Some fields of a key and its length, and options, each with the value that is asked."""

    fields: Pairs
    options: Pairs = ()

    @classmethod
    def of(cls, key: Key, length: ProtocolLength | None = None) -> PartialKey:
        """All of a key, and of its length the epochs; models are compared without regard to case."""
        named = {field.name: getattr(key, field.name) for field in fields(key) if field.name != "options"}
        named["model"] = key.model.casefold()
        if length is not None:
            named["epochs"] = length.epochs
        return cls(tuple(named.items()), key.options)

    def less(self, *names: str) -> PartialKey:
        """The same without some fields or options."""
        return PartialKey(
            tuple(field for field in self.fields if field[0] not in names),
            tuple(option for option in self.options if option[0] not in names),
        )

    def differences(self, other: PartialKey) -> tuple[Term, ...]:
        """Return what `other` has that is not asked here: fields that both name, and options of either.

        An option that is not asked for is a difference, except `FREE_OPTIONS`.
        """
        have, options, asked = dict(other.fields), dict(other.options), dict(self.options)
        named = [(name, have[name], value) for name, value in self.fields if name in have]
        named += [(name, options.get(name), value) for name, value in self.options]
        lacking = [Term(*each) for each in named if each[1] != each[2]]
        free = (*asked, *FREE_OPTIONS)
        return (
            *lacking,
            *(Term(name, value, None) for name, value in other.options if name not in free),
        )


def match_places(
    items: Iterable[T], references: Iterable[R], place: Callable[[T | R], Hashable]
) -> Iterator[tuple[T, Sequence[R]]]:
    """Each item with the references in its place, both in the order given; with none where there is none."""
    placed = grouped_by(references, place)
    return ((item, placed.get(place(item), ())) for item in items)


def nearest_batch(of: Keyed, references: Iterable[K]) -> K | None:
    """The first reference of the same batch size, else the first of another."""
    return min(references, key=lambda cell: cell.key.batch_size != of.key.batch_size, default=None)


def items_nearest_card(items: Iterable[T], key: Callable[[T], Key]) -> list[T]:
    """Those in the data mode that shows the card best, of the modes there are."""
    modes = grouped_by(items, lambda item: DATA_MODES.index(key(item).data_mode))
    return modes[min(modes)] if modes else []
