"""Values as JSON has them, and how they are laid out in a file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
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
