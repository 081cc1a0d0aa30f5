"""An analysis as plain data, and where the figures and words of a bundle differ from the ones made again."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import zip_longest
from os.path import commonprefix
from pathlib import Path
from typing import Any

from harness.record import Claim
from report.analysis import Analysis
from report.compare.cells import Cell
from report.trials.trial import TrialResult

CLOSE = 1e-9
"""Relative: two builds of one library may add up in another order."""

_DRAWING = re.compile(r"<svg.*?</svg>", re.S)
_DESCRIBED = re.compile(r"<(?:title|desc)[^>]*>(.*?)</", re.S)
_FIGURES = (
    *("lead", "groups", "left_over", "speedups", "parities", "early_gates", "expectations"),
    *("verdicts", "costs", "clause", "accounts"),
)


def figures(analysis: Analysis) -> dict[str, Any]:
    """All that an analysis says, as JSON has it: trials by path, claims by id, each cell once by a name."""
    cells: dict[str, Any] = {}
    parts = {name: _plain(getattr(analysis, name), cells) for name in _FIGURES}
    return {**parts, "cells": cells}


def _plain(value: Any, cells: dict[str, Any]) -> Any:
    if isinstance(value, TrialResult):
        return value.path
    if isinstance(value, Claim):
        return value.id
    if isinstance(value, Cell):
        name = f"{value.trials[0].path} and {len(value.trials) - 1} more"
        if name not in cells:
            cells[name] = None
            cells[name] = _fields(value, cells)
        return name
    if is_dataclass(value):
        return _fields(value, cells)
    if isinstance(value, Mapping):
        return {str(key): _plain(item, cells) for key, item in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [_plain(item, cells) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | None) else str(value)


def _fields(value: Any, cells: dict[str, Any]) -> dict[str, Any]:
    return {field.name: _plain(getattr(value, field.name), cells) for field in fields(value)}


def count(value: Any) -> int:
    """How many numbers plain data holds."""
    if isinstance(value, dict | list):
        return sum(map(count, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def differences(packed: Any, fresh: Any, place: str = "") -> Iterator[str]:
    """Yield each place where two plain values differ, as `place: it says this, and the records give that`."""
    if isinstance(packed, dict) and isinstance(fresh, dict):
        for name in dict.fromkeys((*packed, *fresh)):
            below = f"{place}.{name}" if place else str(name)
            yield from differences(packed.get(name, _NOTHING), fresh.get(name, _NOTHING), below)
    elif isinstance(packed, list) and isinstance(fresh, list):
        for number, (before, after) in enumerate(zip_longest(packed, fresh, fillvalue=_NOTHING)):
            yield from differences(before, after, f"{place}[{number}]")
    elif not _same(packed, fresh):
        yield f"{place}: it says {_shown(packed)}, and the records give {_shown(fresh)}"


def other_words(packed: Path, fresh: Path) -> Iterator[str]:
    """Yield each place where the words of two files of a page differ; drawings are left out.

    Where one file is longer than the other, only the first such place.
    """
    if not packed.is_file():
        yield "is missing"
        return
    given, made = (_pieces(path.read_text(encoding="utf-8", errors="replace")) for path in (packed, fresh))
    for theirs, ours in zip_longest(given, made, fillvalue=""):
        if theirs != ours:
            parted = len(commonprefix((theirs, ours)))  # noqa: RUF071
            cut = slice(max(parted - 24, 0), parted + 96)
            yield f"it says '{theirs[cut]}', and the records give '{ours[cut]}'"
            if len(given) != len(made):
                return


def _pieces(page: str) -> list[str]:
    """Tags and the texts between them, or lines; of a drawing its title and description alone."""
    words = _DRAWING.sub(lambda drawing: "\n".join(_DESCRIBED.findall(drawing[0])), page)
    return [piece.strip() for piece in re.split(r"[<>\n]+", words) if piece.strip()]


_NOTHING = object()


def _same(packed: Any, fresh: Any) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (packed, fresh))
    return math.isclose(packed, fresh, rel_tol=CLOSE, abs_tol=1e-12) if numbers else bool(packed == fresh)


def _shown(value: Any) -> str:
    return "nothing" if value is _NOTHING else repr(value)[:120]
