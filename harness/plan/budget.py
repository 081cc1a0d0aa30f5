"""Fitting a plan into a length of time: what is dropped, in which order, and the list of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from harness.plan.order import Planned
from harness.record import LeftOut, Precision
from harness.units import format_duration

TrialSeconds = Callable[[Planned], float]
"""Seconds that a trial will take, its setup included."""

PlannedTrials = tuple[Planned, ...]

REPEATS = (5, 3, 2)
"""Two show a spread, and no fewer are kept."""
STUDIED: tuple[Precision, ...] = ("fp32-ieee", "fp16-master")


def keep_wanted(
    planned: Iterable[Planned], wanted: Callable[[Planned], bool], what: str, reason: str
) -> tuple[PlannedTrials, tuple[LeftOut, ...]]:
    """Return the trials that are wanted, and a line for the others where there are any."""
    items = tuple(planned)
    kept = tuple(filter(wanted, items))
    without = len(items) - len(kept)
    return kept, (LeftOut(what=what, trials=without, reason=reason),) if without else ()


def fit_budget(
    planned: Sequence[Planned], estimate: TrialSeconds, budget_seconds: float, *, other_seconds: float = 0.0
) -> tuple[PlannedTrials, tuple[LeftOut, ...]]:
    """Return the trials that fit, with `other_seconds` for the time between them, and what was dropped.

    In this order: repeats beyond five; of each priority from the last to the second its repeats beyond three,
    its full-length trials, the longest first, and its other rows; the same of the first priority, whose rows
    stay. Rows as they were published, in `host` mode, go after these: their repeats beyond three, their later
    priorities, their repeats beyond two. Then the middle depths go.
    """
    remaining, left_out = tuple(planned), tuple[LeftOut, ...]()
    for what, stays in _drops(remaining, estimate):
        if sum(map(estimate, remaining)) + other_seconds <= budget_seconds:
            break
        reason = f"the budget of {format_duration(budget_seconds)}"
        remaining, dropped = keep_wanted(remaining, stays, what, reason)
        left_out += dropped
    return remaining, left_out


def _drops(
    remaining: PlannedTrials, estimate: TrialSeconds
) -> Iterator[tuple[str, Callable[[Planned], bool]]]:
    """Yield what may be dropped, in order, each as a name and whether a trial is none of it."""
    most, some, fewest = REPEATS
    later = sorted({item.priority for item in remaining if item.priority > 1}, reverse=True)
    yield f"repeats beyond {most}", lambda item: item.trial.repeat <= most
    for priority in (*later, 1):
        yield from _priority_drops(
            priority, tuple(item for item in remaining if item.priority == priority), estimate
        )
    yield f"repeats beyond {some}", lambda item: item.trial.repeat <= some
    for priority in later:
        yield f"rows of priority {priority} in host mode", partial(_differs, priority=priority)
    yield f"repeats beyond {fewest}", lambda item: item.trial.repeat <= fewest
    for model in middle_depths(remaining):
        yield f"the middle depth {model}", partial(_differs, model=model)


def _priority_drops(
    priority: int, items: PlannedTrials, estimate: TrialSeconds
) -> Iterator[tuple[str, Callable[[Planned], bool]]]:
    """Yield the drops of one priority: repeats, whole protocols and rows, except as studies measured."""
    of_priority = {item.trial.id for item in items if not _is_published(item)}
    some = REPEATS[1]
    yield (
        f"repeats of priority {priority} beyond {some}",
        lambda item: item.trial.id not in of_priority or item.trial.repeat <= some,
    )
    fulls = {item.twins: item for item in items if item.role == "full"}
    for item in sorted(fulls.values(), key=estimate, reverse=True):
        variant = item.trial.asked.variant
        what = f"the full-length trial of {variant.model} {variant.precision} ({variant.data_mode})"
        yield what, partial(_differs, twins=item.twins)
    if priority > 1:
        yield f"rows of priority {priority}", lambda item: item.trial.id not in of_priority


def _differs(item: Planned, **values: object) -> bool:
    return any(getattr(item, name) != value for name, value in values.items())


def _is_published(item: Planned) -> bool:
    """Return whether a trial is short and as studies measured: `host` mode, without autocast or TF32."""
    variant = item.trial.asked.variant
    return item.role != "full" and variant.data_mode == "host" and variant.precision in STUDIED


def middle_depths(planned: Iterable[Planned]) -> tuple[str, ...]:
    """Return models of the deepest family between its shallowest and deepest, the innermost kept longest."""
    depths = {item.model: int(digits) for item in planned if (digits := re.sub(r"\D", "", item.model))}
    ordered = sorted(depths, key=lambda model: depths[model])
    between = ordered[1:-1]
    centre = (len(between) - 1) / 2
    return tuple(sorted(between, key=lambda model: -abs(between.index(model) - centre)))
