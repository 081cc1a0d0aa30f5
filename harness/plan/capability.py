"""What a device can compute in hardware: the trials that it is able to do, and why not the others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from harness.plan.order import Planned
from harness.record import Cpu, Gpu, LeftOut, Precision, Variant


def hardware_refusal(precision: Precision, kind: str, card: Gpu | None) -> str | None:
    """Return why a device cannot do a precision in hardware; null where it can, or nothing is known.

    By the table that the workloads refuse by, so that nothing is planned which they would refuse.
    """
    architecture = card.architecture if card else None
    for rule in _rules():
        if precision in rule["precisions"] and kind == rule["device"] and _holds(rule, architecture):
            return str(rule["because"]).format(card=card.name if card else "the card")
    return None


def emulation_refusal(precision: Precision, cpu: Cpu) -> str | None:
    """Return that a processor only emulates a precision; null where it does not, or nothing is known."""
    sixteen_bit = next((name for name in ("bf16", "fp16") if name in precision), None)
    if sixteen_bit is None or cpu.native_16_bit is None or sixteen_bit in cpu.native_16_bit:
        return None
    return f"this CPU only emulates {sixteen_bit} (`--precision {precision}` runs it)"


@cache
def _rules() -> list[dict[str, Any]]:
    path = Path(__file__).resolve().parents[2] / "workloads" / "precisions.json"
    rules: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return rules


def _holds(rule: Mapping[str, Any], architecture: str | None) -> bool:
    """Return whether a rule holds for an architecture; with a condition it holds for no unknown one."""
    if "below" in rule:
        match = re.fullmatch(r"(?:sm_)?(\d+)\.?(\d)", architecture or "")
        return match is not None and [int(match[1]), int(match[2])] < rule["below"]
    return "targets" not in rule or (architecture or "").split(":")[0] in rule["targets"]


def _cannot_compile(variant: Variant, kind: str, card: Gpu | None) -> bool:
    """Return whether a variant is compiled, on an NVIDIA card from before what Triton has code for."""
    if kind != "cuda" or card is None or not variant.options.get("compile", variant.profile == "tuned"):
        return False
    return _holds({"below": [7, 0]}, card.architecture)


def split_supported(
    planned: Iterable[Planned],
    kind: str,
    card: Gpu | None,
    cards: int | None = None,
    *,
    cpu: Cpu | None = None,
    by_name: Sequence[Precision] = (),
) -> tuple[tuple[Planned, ...], tuple[LeftOut, ...]]:
    """Return the trials that `cards` such devices can do, and a line for each reason why others cannot be.

    On a CPU a trial's devices are processes, of which there may be any number. What `cpu` only emulates is
    left out unless its precision was asked for `by_name`.
    """
    able: list[Planned] = []
    counts: dict[tuple[str, str], int] = {}
    for item in planned:
        variant = item.trial.asked.variant
        what: str = variant.precision
        reason = hardware_refusal(variant.precision, kind, card)
        if reason is None and kind == "cpu" and cpu is not None and what not in by_name:
            reason = emulation_refusal(variant.precision, cpu)
        if reason is None and _cannot_compile(variant, kind, card):
            what = "compiled"
            reason = "torch.compile has no code for cards before compute capability 7.0"
        if reason is None and kind != "cpu" and cards is not None and variant.gpus > cards:
            what, reason = f"{variant.gpus} GPUs", f"the session measures on {cards}"
        if reason is None:
            able.append(item)
        else:
            counts[what, reason] = counts.get((what, reason), 0) + 1
    left_out = (LeftOut(what=what, trials=count, reason=reason) for (what, reason), count in counts.items())
    return tuple(able), tuple(left_out)
