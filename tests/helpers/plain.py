"""Values as JSON has them, and how they are laid out in a file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

DIGITS = 12
"""Of a float: what is beyond them is rounding."""

WIDTH, SHORT = 300, 100


def plain(value: Any) -> Any:
    """The value as JSON reads it back: lists, and words for what is no number. TypeError for other types."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    raise TypeError(f"{value!r} is no JSON")


def laid_out(value: Any, depth: int = 0) -> str:
    """JSON of few lines: what is short shares one, what is long is broken and indented."""
    whole = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(whole) + depth <= WIDTH or not isinstance(value, dict | list):
        return whole
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(key, ensure_ascii=False)}:{laid_out(each, depth + 1)}"
            for key, each in value.items()
        ]
    else:
        parts = [laid_out(each, depth + 1) for each in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    lines = f",\n{' ' * (depth + 1)}".join(_filled(parts))
    return f"{first}\n{' ' * (depth + 1)}{lines}\n{' ' * depth}{last}"


def _filled(parts: Sequence[str]) -> Iterator[str]:
    """The parts, short ones beside each other as far as a line goes."""
    line = ""
    for part in parts:
        if line and (len(part) > SHORT or len(line) + len(part) > WIDTH):
            yield line
            line = ""
        line = f"{line},{part}" if line else part
        if len(part) > SHORT:
            yield line
            line = ""
    if line:
        yield line


CLOSE = 1e-9
"""Relative: two builds of one library may add up in another order."""
_NOTHING = object()


def differences(held: Any, found: Any, place: str = "") -> Iterator[str]:
    """Yield each place where two plain values differ, as `place: held is this, and found is that`."""
    if isinstance(held, dict) and isinstance(found, dict):
        for name in dict.fromkeys((*held, *found)):
            below = f"{place}.{name}" if place else str(name)
            yield from differences(held.get(name, _NOTHING), found.get(name, _NOTHING), below)
    elif isinstance(held, list) and isinstance(found, list):
        for number, (before, after) in enumerate(zip_longest(held, found, fillvalue=_NOTHING)):
            yield from differences(before, after, f"{place}[{number}]")
    elif not _same(held, found):
        shown = ("nothing" if value is _NOTHING else repr(value)[:120] for value in (held, found))
        yield "{}: held is {}, and found is {}".format(place, *shown)


def _same(held: Any, found: Any) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (held, found))
    return math.isclose(held, found, rel_tol=CLOSE, abs_tol=1e-12) if numbers else bool(held == found)
