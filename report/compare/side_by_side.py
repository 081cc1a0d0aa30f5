"""Two cards, machines, stacks or precisions: all that may be compared, and why the rest may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.errors import UserError
from harness.record.published.cards import means_card
from report.compare.cells import Cell, Ratio, cell_ratio, cells_of, states_of
from report.compare.key import PartialKey, at_same_batch, matched, same_but
from report.stats.intervals import BLOCKS_NEEDED, Interval
from report.text import clean, failure_words, on_nodes, short_card
from report.trials.key import Key, grouped_by, stack_differences, without
from report.trials.trial import TrialResult

_place = same_but()
_one_session = same_but("precision", "batch_size", within=("session", "machine", "card", "stack"))


StackDifference = tuple[str, tuple[str, ...]]
"""A part of the stack, and what it is on each side."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One workload on both sides. `ratio` is how many times as fast the first is."""

    first: Cell
    second: Cell
    metric: str
    """What the ratio is of: `seconds` of the whole protocol, or `throughput` where the lengths differ."""
    ratio: Ratio

    @property
    def what(self) -> str:
        """The work of both in a few words."""
        return what(self.first.key)

    @property
    def runs(self) -> tuple[int, int]:
        """How many runs of the first, then of the second."""
        first, second = self.ratio.n[::-1] if self.metric == "seconds" else self.ratio.n
        return first, second

    @property
    def standing(self) -> str:
        """What an interval shows: unranked, tied, first look, faster or slower."""
        if self.ratio.interval is None or not (self.first.ranked and self.second.ranked):
            return "unranked"
        if self.ratio.tied:
            return "tied"
        if self.ratio.first_look:
            return "first look"
        return "faster" if self.ratio.interval.low > 1 else "slower"

    @property
    def states(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What a reader has to know of each side before its figures."""
        return states_of(self.first), states_of(self.second)


@dataclass(frozen=True, slots=True)
class TwoSides:
    """The comparison of two sides; `apart` is what only one side has, with the field that keeps it there."""

    first: str
    second: str
    pairs: tuple[Pair, ...]
    apart: tuple[tuple[str, str], ...]
    failed: tuple[str, ...]
    """Workloads that the second side has measured, and at which the first failed or has no valid run."""
    stacks: tuple[tuple[str, tuple[StackDifference, ...]], ...]
    """By workload, what differs between the stacks that it ran on: its first side's, then its second's."""
    machines: tuple[tuple[str, ...], tuple[str, ...]]
    """The labels of the machines that either name means."""

    @property
    def driver_or_hour(self) -> bool:
        """Return whether a driver differs in too few blocks of time to distinguish it from the hour."""
        return any(
            pair.first.machine == pair.second.machine
            and pair.first.stack.driver != pair.second.stack.driver
            and min(pair.first.blocks, pair.second.blocks) < BLOCKS_NEEDED
            for pair in self.pairs
        )


def compare(trials: Sequence[TrialResult], first: str, second: str) -> TwoSides:
    """Sets what `first` names against what `second` names, the newest session of each workload.

    A name is a part of a card's name, of a machine's label or id, of a session's id, or of the stack, as
    `torch 2.13.0`, `driver 580` or an image's name; where it is exactly one of these, parts do not count. Two
    precisions are held against each other within a session.
    Raises UserError where a name is unknown, or names what the other names too.
    """
    of_first, of_second = _named(trials, first), _named(trials, second)
    if {trial.path for trial in of_first} & {trial.path for trial in of_second}:
        shared_sessions = sorted({t.session for t in of_first} & {t.session for t in of_second})
        raise UserError(
            f"'{first}' and '{second}' both name records of session {shared_sessions[0]}",
            remedy="name two cards, labels, sessions, stacks or precisions that share none",
        )
    if {first, second} <= {trial.key.precision for trial in trials}:
        first_cells, second_cells = _of_precisions(cells_of(of_first), cells_of(of_second))
    else:
        first_cells, second_cells = _newest(cells_of(of_first)), _newest(cells_of(of_second))
    shared = [(own, second_cells[key]) for key, own in first_cells.items() if key in second_cells]
    pairs = [_pair(own, same, len(shared)) for own, same in shared]
    compared = tuple(pair for pair in pairs if pair is not None)
    return TwoSides(
        first=first,
        second=second,
        pairs=compared,
        apart=_apart(first_cells, second_cells, first, second),
        failed=_failed(of_first, first_cells, second_cells),
        stacks=_stacks(compared),
        machines=(_machines(of_first), _machines(of_second)),
    )


def _named(trials: Sequence[TrialResult], name: str) -> list[TrialResult]:
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


def _machines(trials: Sequence[TrialResult]) -> tuple[str, ...]:
    return tuple(sorted({trial.machine_label for trial in trials}))


def _names_of(trial: TrialResult) -> list[str]:
    stack = trial.stack
    parts = [trial.card, short_card(trial.card), trial.machine_label, trial.machine, trial.session]
    parts.append(trial.key.precision)
    parts.append(trial.record.machine.label)
    parts += [part for part in (stack.image, stack.lock, stack.base) if part]
    parts += [f"driver {stack.driver}"] if stack.driver else []
    return parts + [f"{name} {value}" for name, value in (*stack.versions, *stack.variables)]


def _newest(cells: Sequence[Cell]) -> dict[Key, Cell]:
    """Return the newest cell of each workload; one with repeats goes before a single run."""
    ordered = sorted(cells, key=lambda cell: (cell.throughput.n > 1, cell.turn))
    return {place.key: alike[-1] for place, alike in grouped_by(ordered, _place).items()}


def _of_precisions(first: Sequence[Cell], second: Sequence[Cell]) -> tuple[dict[Key, Cell], dict[Key, Cell]]:
    """Return the newest cells of each work that one session did in both, at one batch if possible."""
    pairs = [
        (own, other)
        for own, others in matched(sorted(first, key=lambda cell: cell.turn), second, _one_session)
        if (other := at_same_batch(own, others))
    ]
    newest = {without(own.key, "precision"): (own, other) for own, other in pairs}
    return {key: own for key, (own, _) in newest.items()}, {key: other for key, (_, other) in newest.items()}


def _pair(first: Cell, second: Cell, comparisons: int) -> Pair | None:
    if first.length == second.length:
        ratio = cell_ratio(second, first, "seconds", comparisons=comparisons)
        if ratio is not None:
            return Pair(first, second, "seconds", ratio)
    ratio = cell_ratio(first, second, "throughput", comparisons=comparisons)
    return None if ratio is None else Pair(first, second, "throughput", ratio)


def _stacks(pairs: Sequence[Pair]) -> tuple[tuple[str, tuple[StackDifference, ...]], ...]:
    """Each workload against itself: two workloads may well need other packages."""
    differ: dict[str, dict[StackDifference, None]] = {}
    for pair in pairs:
        found = stack_differences((pair.first.stack, pair.second.stack))
        differ.setdefault(pair.first.key.workload, {}).update(dict.fromkeys(found))
    return tuple((workload, tuple(found)) for workload, found in differ.items() if found)


def _apart(
    first_cells: dict[Key, Cell], second_cells: dict[Key, Cell], first: str, second: str
) -> tuple[tuple[str, str], ...]:
    reasons = []
    for cells, others, name in ((first_cells, second_cells, second), (second_cells, first_cells, first)):
        for key in (key for key in cells if key not in others):
            near = [
                PartialKey.of(key).differences(PartialKey.of(other))
                for other in others
                if other.workload == key.workload
            ]
            closest = min(near, key=len, default=())
            why = "; ".join(f"{each.name} {each.wanted}, there {each.here}" for each in closest[:3])
            reasons.append((what(key), clean(why or f"'{name}' has none of this work", 160)))
    return tuple(reasons)


def _failed(
    trials: Sequence[TrialResult], first_cells: dict[Key, Cell], second_cells: dict[Key, Cell]
) -> tuple[str, ...]:
    """A failed trial knows its key only as far as it was asked for."""
    done, expected = (
        {what(key) for key, cell in cells.items() if cell.verdict != "invalid"}
        for cells in (first_cells, second_cells)
    )
    reasons = {what(key): f"{what(key)}: no run is valid" for key in first_cells} | {
        what(trial.key): f"{what(trial.key)}: {clean(failure_words(trial.failure.reason), 60)}"
        for trial in trials
        if trial.failure is not None and trial.failure.kind == "trial"
    }
    return tuple(reason for workload, reason in reasons.items() if workload in expected - done)


def what(key: Key) -> str:
    """A key in a few words."""
    size = f" {key.image_size} px" if key.image_size else ""
    options = "".join(f", {name} {value}" for name, value in key.options)
    gpus = f", {key.gpus} devices{on_nodes(key.nodes)}" if key.gpus > 1 else ""
    return clean(
        f"{key.workload} {key.protocol} {key.model}{size}, {key.precision}, batch {key.batch_size}, "
        f"{key.data_source} data, {key.data_mode}{gpus}{options}",
        140,
    )


@dataclass(frozen=True, slots=True)
class GateReason:
    """Why a gate says no to a work, or warns of it: `slower` and `undecided` have the ratio's interval."""

    name: Literal["slower", "undecided", "failed", "nothing-judged"]
    what: str = ""
    interval: Interval | None = None


def gate(comparison: TwoSides, limit: float) -> tuple[GateReason, ...]:
    """Return why a gate at `limit` says no; `undecided` is what it lets pass whose range holds the limit.

    A workload fails where its interval's upper end is below the limit: then even the best value that the
    runs allow is too slow, and noise alone rarely closes the gate. What failed, and a gate with nothing to
    judge, fail too.
    """
    judged = [(pair.what, ends) for pair in comparison.pairs if (ends := pair.ratio.interval)]
    reasons = [
        GateReason("slower" if ends.high < limit else "undecided", what, ends)
        for what, ends in judged
        if ends.low <= limit
    ]
    failed = [GateReason("failed", each) for each in comparison.failed]
    return (*reasons, *failed, *(() if judged else (GateReason("nothing-judged"),)))
