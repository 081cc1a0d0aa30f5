"""Figures that cannot be: flagged with a sentence, and not charted as results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

JUMP = 10.0
IDLE_SHARE = 0.05
"""A device that works for less of the time than this is not what was measured."""

LINEAR_SLACK = 0.05
"""Superlinear scaling by more than this is not explained by caches and scatter."""


@dataclass(frozen=True, slots=True)
class Flag:
    """Why a figure is not believed."""

    name: Literal["above-peak", "above-linear", "jump", "idle-device"]
    sentence: str


def above_peak(share: float | None, of: str) -> Flag | None:
    """A share of a peak above 1; `of` names the peak, such as 'the fp16 tensor peak'."""
    if share is None or share <= 1:
        return None
    return Flag("above-peak", f"{share:.0%} of {of}: no device does more than its peak")


def above_linear(single: float | None, several: float | None, devices: int) -> Flag | None:
    """A throughput on several devices of more than their number times that of one, in the same unit."""
    if single is None or several is None or single <= 0 or devices < 2:
        return None
    gain = several / single
    if gain <= devices * (1 + LINEAR_SLACK):
        return None
    return Flag("above-linear", f"{devices} devices give {gain:.2f} times the throughput of one")


def jump(value: float | None, others: Sequence[float]) -> Flag | None:
    """A figure ten times above or below the median of the comparable ones."""
    if value is None or not others:
        return None
    middle = median(others)
    if not (value > 0 and middle > 0):
        return None
    factor = value / middle
    if 1 / JUMP < factor < JUMP:
        return None
    said = f"{factor:.3g} times" if factor > 1 else f"1/{1 / factor:.3g} of"
    return Flag("jump", f"{said} the median of {len(others)} comparable figures")


def idle_device(busy_share: float | None) -> Flag | None:
    """A device that hardly worked while it was said to train; the share is of the window's time, 0 to 1."""
    if busy_share is None or math.isnan(busy_share) or busy_share >= IDLE_SHARE:
        return None
    return Flag("idle-device", f"the device worked for {busy_share:.1%} of the time")


def flags(*found: Flag | None) -> tuple[Flag, ...]:
    """Those that were raised."""
    return tuple(flag for flag in found if flag is not None)
