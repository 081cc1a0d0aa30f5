"""Two cards, machines, sessions, stacks or precisions by the names that a person gives them, and a gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.errors import UserError
from harness.record.published.cards import means_card
from report.compare.cells import cells_of
from report.compare.comparison import ComparedWork, Comparison, MissingFigure, compare_sides
from report.compare.ratio import WorkRatio
from report.expected.software_effect import SoftwareEffect
from report.text import clean, short_card
from report.trials.factors import FACTORS, factor_apart
from report.trials.key import Pairs
from report.trials.trial import TrialResult


@dataclass(frozen=True, slots=True)
class NamedSides:
    """The comparison of what two names mean: the second is the side that the first is over."""

    names: tuple[str, str]
    machines: tuple[tuple[str, ...], tuple[str, ...]]
    """The labels of the machines that either name means."""
    comparison: Comparison

    def values(self, ratio: WorkRatio) -> tuple[Pairs, Pairs]:
        """Return what each side of a ratio is by the factor."""
        rule = FACTORS[self.comparison.factor]
        return rule.values(ratio.of.trials[0]), rule.values(ratio.over.trials[0])


def compare_named(
    trials: Sequence[TrialResult], first: str, second: str, software: SoftwareEffect | None = None
) -> NamedSides:
    """Compare what `first` names with what `second` names, by the newest session of each work.

    A name is a part of a card's name, of a machine's label or id, of a session's id, or of the stack, as
    `torch 2.13.0`, `driver 580` or an image's name; where it is exactly one of these, parts do not count. Two
    precisions are compared within a session, other sides by the field that tells them apart. Raises UserError
    where a name is unknown, or names what the other names too.
    """
    sides = _named_trials(trials, first), _named_trials(trials, second)
    paths = [{trial.path for trial in side} for side in sides]
    if paths[0] & paths[1]:
        shared = sorted({trial.session for trial in sides[0]} & {trial.session for trial in sides[1]})
        raise UserError(
            f"'{first}' and '{second}' both name records of session {shared[0]}",
            remedy="name two cards, labels, sessions, stacks or precisions that share none",
        )
    both = [*sides[0], *sides[1]]
    failed = [trial for trial in both if trial.failure is not None and trial.failure.kind == "trial"]
    of_precisions = {first, second} <= {trial.key.precision for trial in both}
    factor = "precision" if of_precisions else factor_apart(sides) or "machine"
    names = dict.fromkeys(paths[0], first) | dict.fromkeys(paths[1], second)
    # A name may mean several machines and sessions; precisions are compared within one.
    rule = replace(
        FACTORS[factor],
        values=lambda trial: (("name", names[trial.path]),),
        within=FACTORS[factor].within if of_precisions else (),
        order=lambda values: (values != (("name", second),),),
    )
    found = compare_sides(factor, cells_of(both), failed=failed, software=software, rule=rule)
    if of_precisions:
        works = _newest_works(found.works)
        found = replace(
            found, works=works, missing=tuple(each for each in found.missing if each.work in works)
        )
    machines = [tuple(sorted({trial.machine_label for trial in side})) for side in sides]
    return NamedSides((first, second), (machines[0], machines[1]), found)


def _newest_works(works: Sequence[ComparedWork]) -> tuple[ComparedWork, ...]:
    """Return the newest of each work that several sessions did; what both sides have goes before."""

    def newest(work: ComparedWork) -> tuple[object, ...]:
        known = [cell for cell in work.cells if cell]
        return len(known), *max(cell.turn for cell in known)

    return tuple({work.key: work for work in sorted(works, key=newest)}.values())


def _named_trials(trials: Sequence[TrialResult], name: str) -> list[TrialResult]:
    query = " ".join(name.casefold().replace("=", " ").split())
    texts = [[text.casefold() for text in _names_of(trial)] for trial in trials]
    exact = [query in own for own in texts]
    ids = [(trial.machine, trial.session, trial.stack.lock or "") for trial in trials]
    parts = (
        any(each.startswith(query) for each in of) or any(means_card(query, text) for text in own)
        for own, of in zip(texts, ids, strict=True)
    )
    named = exact if any(exact) else list(parts)
    if not any(named) or not query:
        names = sorted({name for trial in trials for name in (short_card(trial.card), trial.machine_label)})
        listed = clean(", ".join(names), 200) or "none: nothing was measured yet"
        raise UserError(f"no record is of '{name}'", remedy=f"cards and machines on record are {listed}")
    return [trial for trial, asked in zip(trials, named, strict=True) if asked]


def _names_of(trial: TrialResult) -> list[str]:
    stack = trial.stack
    parts = [trial.card, short_card(trial.card), trial.machine_label, trial.machine, trial.session]
    parts.append(trial.key.precision)
    parts.append(trial.record.machine.label)
    parts += [part for part in (stack.image, stack.lock, stack.base) if part]
    parts += [f"driver {stack.driver}"] if stack.driver else []
    return parts + [f"{name} {value}" for name, value in (*stack.versions, *stack.variables)]


@dataclass(frozen=True, slots=True)
class GateReason:
    """Why a gate says no to a work, or warns of it: `undecided` is what it lets pass, not knowing better."""

    name: Literal["slower", "undecided", "failed", "nothing-judged"]
    ratio: WorkRatio | None = None
    missing: MissingFigure | None = None


def gate_reasons(found: NamedSides, limit: float) -> tuple[GateReason, ...]:
    """Return why a gate at `limit` says no; `undecided` is what it lets pass whose range holds the limit.

    A work fails where its range's upper end is below the limit: then even the best value that the runs allow
    is too slow, and noise alone rarely closes the gate. What failed, and a gate with nothing to judge, fail
    too.
    """
    ranges = [(ratio, ratio.interval) for ratio in found.comparison.ratios if ratio.interval]
    reasons = [
        GateReason("slower" if ends.high < limit else "undecided", ratio)
        for ratio, ends in ranges
        if ends.low <= limit
    ]
    failed = [
        GateReason("failed", missing=each)
        for each in found.comparison.missing
        if each.side.values == (("name", found.names[0]),) and each.reason in ("failed", "invalid")
    ]
    return (*reasons, *failed, *(() if ranges else (GateReason("nothing-judged"),)))


def least_loss(ratio: WorkRatio, limit: float) -> float | None:
    """Return the smallest loss, as a share, that a gate at `limit` fails with a range as wide as this one."""
    ends = ratio.interval
    return None if ends is None else 1 - limit * ends.estimate / ends.high
