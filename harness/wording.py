"""How a quantity is put to a person."""

from __future__ import annotations


def duration(duration_seconds: float) -> str:
    """'40 s', '12 min' or '3.5 h'."""
    if duration_seconds < 90:
        return f"{duration_seconds:.0f} s"
    if duration_seconds < 5400:
        return f"{duration_seconds / 60:.0f} min"
    return f"{duration_seconds / 3600:.1f} h"
