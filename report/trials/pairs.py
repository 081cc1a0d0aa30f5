"""Alike in all but a few fields: how the report groups cells, and which it sets against each other.

Whatever is compared has a comparability key: cells, single trials, lines of a purchase. Its place is what a
group shares: the key less the fields that the comparison is about, and what else is asked for, such as the
length of the protocol, the stack, the session, the machine and the card.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol, TypeVar

from report.trials.key import PARALLEL, Key, Pairs, ProtocolLength

LOSS_SCALE = "options.loss_scale*"

GOES_ALONG: Mapping[str, tuple[str, ...]] = {
    "precision": (LOSS_SCALE,),
    "batch_size": ("steps_per_epoch", "valid_batches"),
    "data_mode": ("data_sha256",),
    "profile": ("options.compile",),
    "gpus": ("nodes", f"options.{PARALLEL}"),
}
"""What is left out together with a field: other fields, and options by a pattern of their names.

A loss scale says how a precision is done, `compile` how a profile is tuned, `parallel` how devices share a
step, which may need more nodes. Steps follow from the batch size, and a data mode may have data of its own.
"""

MEASURED_FIELDS = ("data_sha256", "weights", "weights_sha256")
"""What a trial that failed does not know of its key, or knows only as it was asked."""

DATA_MODES = ("cached", "device", "host")
"""From what shows the card alone to what shows the whole machine."""

T = TypeVar("T")
R = TypeVar("R")
P = TypeVar("P", bound=Hashable)
Whole = TypeVar("Whole", Key, ProtocolLength)


def _empty(field: Field[Any]) -> Any:
    typed = {"str": "", "int": 0, "bool": False}
    return typed.get(str(field.type)) if field.default is MISSING else field.default


_EMPTY = {whole: {field.name: _empty(field) for field in fields(whole)} for whole in (Key, ProtocolLength)}


class Keyed(Protocol):
    """Anything with a comparability key."""

    @property
    def key(self) -> Key: ...


K = TypeVar("K", bound=Keyed)


class Place(NamedTuple):
    """What the members of a group share."""

    key: Key
    within: tuple[Hashable, ...] = ()


def without(whole: Whole, *names: str) -> Whole:
    """A key or length less these fields and what goes along with them, each at its default or empty."""
    left = [*names, *(more for name in names for more in GOES_ALONG.get(name, ()))]
    empty = _EMPTY[type(whole)]
    changes = {name: empty[name] for name in left if name in empty and getattr(whole, name) != empty[name]}
    if isinstance(whole, Key):
        dropped = [option for name in left for option in _options(whole, name)]
        if dropped:
            changes.setdefault("options", tuple(option for option in whole.options if option not in dropped))
    return replace(whole, **changes) if changes else whole


def _options(key: Key, pattern: str) -> Pairs:
    return tuple(option for option in key.options if fnmatchcase(f"options.{option[0]}", pattern))


def same_but(*names: str, within: Sequence[str | Callable[[Any], Hashable]] = ()) -> Callable[[Keyed], Place]:
    """A function from an item to its place: equal where keys differ in `names` alone, and `within` is equal.

    `within` holds attributes of the item (`length` is its length less `names`), fields of its length, or
    functions of it; and what stays though it goes along: a field of its key, or a pattern of options.
    Raises ValueError where a name is no field of a key or length.
    """
    unknown = [name for name in names if name not in _EMPTY[Key] and name not in _EMPTY[ProtocolLength]]
    if unknown:
        raise ValueError(f"no field of a key or length: {', '.join(unknown)}")

    def place(item: Keyed) -> Place:
        return Place(without(item.key, *names), tuple(_value(item, part, names) for part in within))

    return place


def _value(item: Any, part: str | Callable[[Any], Hashable], names: Sequence[str]) -> Hashable:
    if not isinstance(part, str):
        return part(item)
    if part.startswith("options."):
        return _options(item.key, part)
    holder = item.key if part in _EMPTY[Key] else item.length if part in _EMPTY[ProtocolLength] else item
    value: Hashable = getattr(holder, part)
    return without(value, *names) if isinstance(value, ProtocolLength) else value


def grouped_by(items: Iterable[T], place: Callable[[T], P]) -> dict[P, list[T]]:
    """Items by their place: each in one group, groups by their first member, members in the order given."""
    groups: dict[P, list[T]] = {}
    for item in items:
        groups.setdefault(place(item), []).append(item)
    return groups


def matched(
    items: Iterable[T], references: Iterable[R], place: Callable[[T | R], Hashable]
) -> Iterator[tuple[T, Sequence[R]]]:
    """Each item with the references in its place, both in the order given; with none where there is none."""
    placed = grouped_by(references, place)
    return ((item, placed.get(place(item), ())) for item in items)


def at_same_batch(of: Keyed, references: Iterable[K]) -> K | None:
    """The first reference of the same batch size, else the first of another."""
    return min(references, key=lambda cell: cell.key.batch_size != of.key.batch_size, default=None)


def batch_follows_precision(members: Iterable[Keyed]) -> bool:
    """Whether a published protocol fixes a batch size for each precision: then both are left out together."""
    keys = [member.key for member in members]
    batches = {(key.precision, key.batch_size) for key in keys}
    published = all(key.protocol.startswith("published") for key in keys)
    return published and len(batches) == len({key.precision for key in keys})


def nearest_the_card(items: Iterable[T], key: Callable[[T], Key]) -> list[T]:
    """Those in the data mode that shows the card best, of the modes there are."""
    modes = grouped_by(items, lambda item: DATA_MODES.index(key(item).data_mode))
    return modes[min(modes)] if modes else []


def each_nearest_the_card(items: Iterable[T], key: Callable[[T], Key]) -> list[list[T]]:
    """The same of each group of items that differ in their data mode alone."""
    modes = grouped_by(items, lambda item: without(key(item), "data_mode"))
    return [nearest_the_card(alike, key) for alike in modes.values()]
