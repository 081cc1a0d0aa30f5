"""Which precisions a card has: what it lacks is left out before anything runs, and the reason is listed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.plan import Planned
from harness.record import Gpu, LeftOut, Precision


def lacking(precision: Precision, kind: str, card: Gpu | None) -> str | None:
    """Why a device cannot do a precision in hardware; null where it can, or where nothing is known of it.

    TF32 and bf16 need compute capability 8.0 of NVIDIA's cards; AMD has TF32 from gfx942 on
    and bf16 from gfx908 on; a CPU has no TF32.
    """
    if kind == "cpu":
        return "a CPU has no TF32" if precision == "fp32-tf32" else None
    if card is None or card.architecture is None:
        return None
    if kind == "cuda":
        found = re.fullmatch(r"(?:sm_)?(\d+)\.?(\d)", card.architecture)
        old = found is not None and int(found[1]) < 8
        if old and precision == "fp32-tf32":
            return f"{card.name} has no TF32"
        if old and precision in ("amp-bf16", "pure-bf16"):
            return f"{card.name} only emulates bf16"
        return None
    target = card.architecture.split(":")[0]
    if precision == "fp32-tf32" and target not in ("gfx942",):
        return f"{card.name} has no TF32"
    if precision in ("amp-bf16", "pure-bf16") and target in ("gfx900", "gfx906"):
        return f"{card.name} has no bf16"
    return None


def supported(
    planned: Iterable[Planned], kind: str, card: Gpu | None, cards: int | None = None
) -> tuple[tuple[Planned, ...], tuple[LeftOut, ...]]:
    """The trials that `cards` such devices can do, and a line for each reason why others were left out.

    On a CPU a trial's devices are processes, of which there may be any number.
    """
    kept: list[Planned] = []
    reasons: dict[tuple[str, str], int] = {}
    for item in planned:
        variant = item.trial.asked.variant
        what: str = variant.precision
        reason = lacking(variant.precision, kind, card)
        if reason is None and kind != "cpu" and cards is not None and variant.gpus > cards:
            what, reason = f"{variant.gpus} GPUs", f"the session measures on {cards}"
        if reason is None:
            kept.append(item)
        else:
            reasons[what, reason] = reasons.get((what, reason), 0) + 1
    left = tuple(LeftOut(what=what, trials=count, reason=reason) for (what, reason), count in reasons.items())
    return tuple(kept), left
