"""Fitting a plan into a length of time: what is dropped, in which order, and the list of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from harness.plan.order import Planned
from harness.record import Cpu, Gpu, LeftOut, Precision, Variant
from harness.units import duration

TrialSeconds = Callable[[Planned], float]
"""Seconds that a trial will take, its setup included."""

PlannedTrials = tuple[Planned, ...]

REPEATS = (5, 3, 2)
"""Two show a spread, and no fewer are kept."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is left of a plan, how long that is estimated to take, and what was left out, in order."""

    planned: tuple[Planned, ...]
    seconds: float
    left_out: tuple[LeftOut, ...]


def one_full_each(planned: Iterable[Planned]) -> tuple[Planned, ...]:
    """Keep, of a row's full-length trials in several data modes, the one in `host`, as published."""
    items = list(planned)
    hosts = {_row(item) for item in items if _is_full(item, "host")}
    return tuple(item for item in items if not (_is_full(item, "device") and _row(item) in hosts))


def only(
    planned: Iterable[Planned], wanted: Callable[[Planned], bool], what: str, reason: str
) -> tuple[PlannedTrials, tuple[LeftOut, ...]]:
    """The trials that are wanted, and a line for the others where there are any."""
    items = tuple(planned)
    kept = tuple(filter(wanted, items))
    without = len(items) - len(kept)
    return kept, (LeftOut(what=what, trials=without, reason=reason),) if without else ()


def fit(
    planned: Sequence[Planned], estimate: TrialSeconds, budget_seconds: float, *, other_seconds: float = 0.0
) -> Fitted:
    """Drops trials until the rest fits, with `other_seconds` for the time between trials.

    In this order: repeats beyond five and three, the rows of the last priority, repeats beyond two, the rows
    of other priorities but the first, `host` mode, the longest full-length trials, and the middle depths.
    """
    remaining = one_full_each(planned)
    seen = {item.trial.id for item in remaining}
    left_out: list[LeftOut] = []
    for what, without in _drops(planned, remaining, estimate):
        if sum(map(estimate, remaining)) + other_seconds <= budget_seconds:
            break
        smaller = without(remaining)
        gone = set(item.trial.id for item in remaining) - set(item.trial.id for item in smaller)
        if gone:
            reason = f"the budget of {duration(budget_seconds)}"
            left_out.append(LeftOut(what=what, trials=len(gone), reason=reason))
        remaining = smaller
        seen |= {item.trial.id for item in remaining}
    what, reason = "full-length trials in device mode", "host mode, as published, goes before it"
    _, never = only(planned, lambda item: item.trial.id in seen, what, reason)
    return Fitted(remaining, sum(map(estimate, remaining)), (*never, *left_out))


def _drops(
    planned: Sequence[Planned], remaining: PlannedTrials, estimate: TrialSeconds
) -> Iterator[tuple[str, Callable[[PlannedTrials], PlannedTrials]]]:
    """What may be dropped, in order, each as a name and the function that drops it."""
    later = sorted({item.priority for item in remaining if item.priority > 1}, reverse=True)
    rows = [(f"rows of priority {least}", _without(lambda item: item.priority, least)) for least in later]
    most, some, fewest = ((f"repeats beyond {count}", _at_most(count)) for count in REPEATS)
    yield from (most, some, *rows[:1], fewest, *rows[1:])
    host = "host mode (no published duration or ratio can be judged)"
    yield host, partial(_without_host, planned)
    fulls = {item.twins: item for item in planned if item.role == "full"}
    for item in sorted(fulls.values(), key=estimate, reverse=True):
        variant = item.trial.asked.variant
        what = f"the full-length trial of {variant.model} {variant.precision} ({variant.data_mode})"
        yield what, _without(lambda item: item.twins, item.twins)
    for model in middle_depths(remaining):
        yield f"the middle depth {model}", _without(lambda item: item.model, model)


def _at_most(repeats: int) -> Callable[[PlannedTrials], PlannedTrials]:
    return lambda planned: tuple(item for item in planned if item.trial.repeat <= repeats)


def _without(key: Callable[[Planned], object], value: object) -> Callable[[PlannedTrials], PlannedTrials]:
    return lambda planned: tuple(item for item in planned if key(item) != value)


def _without_host(planned: Sequence[Planned], remaining: PlannedTrials) -> PlannedTrials:
    """Host mode out; the full-length trials that it stood for come back in `device` mode.

    A plan that has no other mode keeps it.
    """
    models = {item.model for item in remaining}
    chosen = {item.trial.id for item in remaining}
    back = (
        item
        for item in planned
        if _is_full(item, "device") and item.model in models and item.trial.id not in chosen
    )
    others = (*(item for item in remaining if item.trial.asked.variant.data_mode != "host"), *back)
    return others or remaining


def _is_full(item: Planned, mode: str) -> bool:
    return item.role == "full" and item.trial.asked.variant.data_mode == mode


def _row(item: Planned) -> tuple[object, ...]:
    asked = item.trial.asked
    return asked.workload, asked.protocol, asked.variant.model, asked.variant.precision, item.trial.repeat


def middle_depths(planned: Iterable[Planned]) -> tuple[str, ...]:
    """Models of the deepest family between its shallowest and deepest, the innermost kept longest."""
    depths = {item.model: int(digits) for item in planned if (digits := re.sub(r"\D", "", item.model))}
    ordered = sorted(depths, key=lambda model: depths[model])
    between = ordered[1:-1]
    centre = (len(between) - 1) / 2
    return tuple(sorted(between, key=lambda model: -abs(between.index(model) - centre)))


def lacking(precision: Precision, kind: str, card: Gpu | None) -> str | None:
    """Why a device cannot do a precision in hardware; null where it can, or where nothing is known of it.

    By the table that the workloads refuse by, so that nothing is planned which they would refuse.
    """
    architecture = card.architecture if card else None
    for rule in _rules():
        if precision in rule["precisions"] and kind == rule["device"] and _holds(rule, architecture):
            return str(rule["because"]).format(card=card.name if card else "the card")
    return None


def emulated(precision: Precision, cpu: Cpu) -> str | None:
    """That a processor only emulates a precision; null where it does not, or where nothing is known of it."""
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
    """Whether a rule holds for an architecture; one with a condition holds for none that is not known."""
    if "below" in rule:
        match = re.fullmatch(r"(?:sm_)?(\d+)\.?(\d)", architecture or "")
        return match is not None and [int(match[1]), int(match[2])] < rule["below"]
    return "targets" not in rule or (architecture or "").split(":")[0] in rule["targets"]


def _cannot_compile(variant: Variant, kind: str, card: Gpu | None) -> bool:
    """Whether a variant is compiled, on an NVIDIA card from before what Triton has code for."""
    compiled = variant.profile == "tuned" and variant.options.get("compile") is not False
    return compiled and kind == "cuda" and card is not None and _holds({"below": [7, 0]}, card.architecture)


def supported(
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
        reason = lacking(variant.precision, kind, card)
        if reason is None and kind == "cpu" and cpu is not None and what not in by_name:
            reason = emulated(variant.precision, cpu)
        if reason is None and _cannot_compile(variant, kind, card):
            what = "profile tuned"
            reason = "torch.compile has no code for cards before compute capability 7.0"
        if reason is None and kind != "cpu" and cards is not None and variant.gpus > cards:
            what, reason = f"{variant.gpus} GPUs", f"the session measures on {cards}"
        if reason is None:
            able.append(item)
        else:
            counts[what, reason] = counts.get((what, reason), 0) + 1
    left_out = (LeftOut(what=what, trials=count, reason=reason) for (what, reason), count in counts.items())
    return tuple(able), tuple(left_out)
