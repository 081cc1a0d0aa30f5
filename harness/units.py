"""How durations and sizes are written and read."""

from __future__ import annotations

import re

from harness.errors import PlanError


def format_duration(duration_seconds: float) -> str:
    """Return '40 s', '12 min' or '3.5 h'."""
    if duration_seconds < 90:
        return f"{duration_seconds:.0f} s"
    if duration_seconds < 5400:
        return f"{duration_seconds / 60:.0f} min"
    return f"{duration_seconds / 3600:.1f} h"


GIB = 2**30


def format_bytes(count: int) -> str:
    """Return a number of bytes for a person."""
    if count >= GIB:
        return f"{count / GIB:.1f} GiB"
    return f"{count / 2**20:.0f} MiB" if count >= 2**20 else f"{count / 1024:.0f} KiB"


def count_noun(number: int, noun: str) -> str:
    """Return '1 trial', '3 trials'"""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def parse_seconds(text: str) -> float:
    """Return '90s', '30m', '8h' or '1h30m' in seconds; raises PlanError for anything else."""
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)", text)
    if not parts or re.sub(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)", "", text).strip():
        raise PlanError(f"the budget '{text}' is no length of time", remedy="write it as 30m, 8h or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
