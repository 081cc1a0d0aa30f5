"""What slowed a card down while a trial ran, and how gravely: by the driver's counters, else by samples."""

from __future__ import annotations

from harness.record import CardTelemetry, finding
from harness.summary.checks import Findings

LIMITED_SHARE = 0.01
"""A trial that is slowed down for more of its window is disturbed."""

LONE_SAMPLES = 2
"""A single sample of a slowdown may be a change of the performance state."""


def throttled(card: CardTelemetry, samples: int) -> Findings:
    """Findings on one card; `samples` were taken of it. What nobody counted is none.

    Hardware's slowdowns make a trial invalid, the software's thermal one is a warning, and a card at its
    power limit is in its normal state.
    """
    yield from _by_heat(card)
    yield from _by_hardware(card, samples)
    yield from _by_power(card)


def _by_heat(card: CardTelemetry) -> Findings:
    """The counter does not tell hardware from software; the samples' reasons do, else it is grave."""
    counted = card.limited_share.get("thermal", 0.0)
    hard = card.reasons_share.get("hw_thermal_slowdown", 0.0)
    soft = card.reasons_share.get("sw_thermal_slowdown", 0.0)
    if soft and not hard:
        if max(soft, counted) > LIMITED_SHARE:
            yield finding("chassis-limited", card=card.index, share=max(soft, counted))
    elif max(hard, counted) > LIMITED_SHARE:
        yield finding("thermal-throttling", card=card.index, share=max(hard, counted))


def _by_hardware(card: CardTelemetry, samples: int) -> Findings:
    """Yield a brake on its power input, or a slowdown whose reason the driver does not give."""
    brake = card.reasons_share.get("hw_power_brake", 0.0)
    if brake > LIMITED_SHARE:
        yield finding("power-brake", card=card.index, samples_share=brake)
    slowed = card.reasons_share.get("hw_slowdown", 0.0)
    named = brake > LIMITED_SHARE or card.reasons_share.get("hw_thermal_slowdown", 0.0) > LIMITED_SHARE
    if slowed > LIMITED_SHARE and slowed * samples >= LONE_SAMPLES and not named:
        yield finding("hardware-slowdown", card=card.index, samples_share=slowed)


def _by_power(card: CardTelemetry) -> Findings:
    capped = max(card.limited_share.get("power", 0.0), card.reasons_share.get("sw_power_cap", 0.0))
    if capped > LIMITED_SHARE:
        yield finding("power-cap", card=card.index, share=capped)
    for policy in ("board_limit", "reliability", "sync_boost"):
        share = card.limited_share.get(policy, 0.0)
        if share > LIMITED_SHARE:
            yield finding("held-back", card=card.index, share=share, policy=policy)
