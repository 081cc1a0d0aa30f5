"""Fitting a plan into a length of time: what is dropped, in which order, and the list of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from harness.plan import Planned
from harness.record import LeftOut

Estimate = Callable[[Planned], float]
"""Seconds that a trial will take, its setup included."""

Some = tuple[Planned, ...]

REPEATS_FIRST, REPEATS_LAST = 5, 3


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is left of a plan, how long that is estimated to take, and what was left out, in order."""

    planned: tuple[Planned, ...]
    seconds: float
    left_out: tuple[LeftOut, ...]


def one_full_each(planned: Iterable[Planned]) -> tuple[Planned, ...]:
    """Of a row's full-length trials in several data modes, the one in `host`: the published way."""
    items = list(planned)
    hosts = {_row(item) for item in items if _is_full(item, "host")}
    return tuple(item for item in items if not (_is_full(item, "device") and _row(item) in hosts))


def fit(planned: Sequence[Planned], estimate: Estimate, budget_seconds: float) -> Fitted:
    """Drops in the stated order until the rest fits: repeats beyond five, the middle depths, repeats beyond
    three, `host` mode, and at the end the longest full-length trials.
    """
    kept = one_full_each(planned)
    left: list[LeftOut] = []
    for what, without in _drops(planned, kept, estimate):
        if sum(map(estimate, kept)) <= budget_seconds:
            break
        smaller = without(kept)
        gone = set(item.trial.id for item in kept) - set(item.trial.id for item in smaller)
        if gone:
            reason = f"the budget of {budget_seconds / 3600:.1f} h"
            left.append(LeftOut(what=what, trials=len(gone), reason=reason))
        kept = smaller
    return Fitted(kept, sum(map(estimate, kept)), tuple(left))


def _drops(
    planned: Sequence[Planned], first: Some, estimate: Estimate
) -> Iterator[tuple[str, Callable[[Some], Some]]]:
    """What may be dropped, in order, each as a name and the function that drops it."""
    yield f"repeats beyond {REPEATS_FIRST}", _but(lambda item: item.trial.repeat > REPEATS_FIRST)
    for model in middle_depths(first):
        yield f"the middle depth {model}", _but(partial(_of_model, model))
    yield f"repeats beyond {REPEATS_LAST}", _but(lambda item: item.trial.repeat > REPEATS_LAST)
    host = "host mode (no published duration or ratio can be judged)"
    yield host, partial(_without_host, planned)
    fulls = {item.trial.id: item for item in planned if item.role == "full"}
    for item in sorted(fulls.values(), key=estimate, reverse=True):
        variant = item.trial.asked.variant
        what = f"the full-length trial of {variant.model} {variant.precision} ({variant.data_mode})"
        yield what, _but(partial(_is, item.trial.id))


def _but(doomed: Callable[[Planned], bool]) -> Callable[[Some], Some]:
    return lambda kept: tuple(item for item in kept if not doomed(item))


def _of_model(model: str, item: Planned) -> bool:
    return item.model == model


def _is(trial_id: str, item: Planned) -> bool:
    return item.trial.id == trial_id


def _without_host(planned: Sequence[Planned], kept: Some) -> Some:
    """Host mode out; the full-length trials that it stood for come back in `device` mode."""
    models = {item.model for item in kept}
    chosen = {item.trial.id for item in kept}
    back = (
        item
        for item in planned
        if _is_full(item, "device") and item.model in models and item.trial.id not in chosen
    )
    return (*(item for item in kept if not _in_host_mode(item)), *back)


def _in_host_mode(item: Planned) -> bool:
    return item.trial.asked.variant.data_mode == "host"


def _is_full(item: Planned, mode: str) -> bool:
    return item.role == "full" and item.trial.asked.variant.data_mode == mode


def _row(item: Planned) -> tuple[object, ...]:
    asked = item.trial.asked
    return asked.workload, asked.protocol, asked.variant.model, asked.variant.precision, item.trial.repeat


def middle_depths(planned: Iterable[Planned]) -> tuple[str, ...]:
    """Models of the deepest family between its shallowest and deepest, the innermost kept longest."""
    depths: dict[str, int] = {}
    for item in planned:
        digits = "".join(letter for letter in item.model if letter.isdigit())
        if digits:
            depths[item.model] = int(digits)
    ordered = sorted(depths, key=lambda model: depths[model])
    between = ordered[1:-1]
    centre = (len(between) - 1) / 2
    return tuple(sorted(between, key=lambda model: -abs(between.index(model) - centre)))
