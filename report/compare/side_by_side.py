"""Two cards, machines or stacks side by side: all that may be compared, and why the rest may not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.errors import UserError
from report.compare.cells import Cell, Ratio, cell_ratio, cells_of, states_of
from report.compare.key import matched, same_but
from report.stats.intervals import FLOOR_RUNS, Doubt, Interval, rare_runs_missed
from report.text import clean, count, failure_words, on_nodes, short_card, times
from report.trials.key import Key, differing, grouped_by, stack_differences
from report.trials.trial import TrialResult

MOST_APART = 30

DOUBTS = {
    "odd-run": "one run lies {change:+.0%} from the other {others}",
    "unequal-spread": "the runs of one side scatter {times:.0f} times as much as the other's",
    "rare-runs": "a slow run that is 1 in 10 is missed by {runs} runs with a chance of {missed:.0%}",
    "no-spread": "identical values: no spread was seen",
    "block-spread-assumed": "{in_blocks}: ±{spread:.0%} between blocks assumed",
    "hour-effect-assumed": "{in_blocks}: an hour is assumed to treat the sides ±{spread:.1%} differently",
    "few-blocks": "{in_blocks}: too few to tell their spread",
    "invalid-left-out": "{counted_runs} left out",
    "unproven-taken-in": "{counted_runs} taken in: without {them} the mean is {change:+.1%}",
    "unproven-left-out": "{counted_runs} left out: with {them} the mean is {change:+.1%}",
    "unproven-on-both": "unproven runs count on both sides, as they must on one",
}
"""The words for what makes a ratio doubtful, by its name."""

STATES = {
    "generated": "generated data",
    "random-weights": "random weights",
    "base-substituted": "base substituted",
}
"""The words for what a reader has to know of a line, where its name is not one."""

_place = same_but()


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


@dataclass(frozen=True, slots=True)
class Comparison:
    """All of it; `apart` holds what stands on one side alone, with the field that keeps it there."""

    first: str
    second: str
    pairs: tuple[Pair, ...]
    apart: tuple[tuple[str, str], ...]
    failed: tuple[str, ...]
    """Workloads that the second side has measured and the first has failed at."""
    stacks: tuple[tuple[str, tuple[StackDifference, ...]], ...]
    """By workload, what differs between the stacks that it ran on: its first side's, then its second's."""
    machines: tuple[tuple[str, ...], tuple[str, ...]]
    """The labels of the machines that either name stands for."""
    one_unit: bool
    """Whether each side is one card, and they are not the same."""


def compare(trials: Sequence[TrialResult], first: str, second: str) -> Comparison:
    """Sets what `first` names against what `second` names, the newest session of each workload.

    A name is a part of a card's name, of a machine's label or id, of a session's id, or of the stack, as
    `torch 2.13.0`, `driver 580` or an image's name; where it is exactly one of these, parts do not count.
    Raises UserError where a name is unknown, or names what the other names too.
    """
    of_first, of_second = _named(trials, first), _named(trials, second)
    if {trial.path for trial in of_first} & {trial.path for trial in of_second}:
        shared_sessions = sorted({t.session for t in of_first} & {t.session for t in of_second})
        raise UserError(
            f"'{first}' and '{second}' both name records of session {shared_sessions[0]}",
            remedy="name two cards, labels, sessions or stacks that share none",
        )
    first_cells, second_cells = _newest(cells_of(of_first)), _newest(cells_of(of_second))
    shared = [
        (own, same[0]) for own, same in matched(first_cells.values(), second_cells.values(), _place) if same
    ]
    pairs = [_pair(own, same, len(shared)) for own, same in shared]
    units = [{unit for cell in side.values() for unit in cell.units} for side in (first_cells, second_cells)]
    compared = tuple(pair for pair in pairs if pair is not None)
    return Comparison(
        first=first,
        second=second,
        pairs=compared,
        apart=_apart(first_cells, second_cells, first, second),
        failed=_failed(of_first, first_cells, second_cells),
        stacks=_stacks(compared),
        machines=(_machines(of_first), _machines(of_second)),
        one_unit=all(len(side) <= 1 for side in units) and units[0] != units[1],
    )


def _named(trials: Sequence[TrialResult], name: str) -> list[TrialResult]:
    query = " ".join(name.casefold().replace("=", " ").split())
    texts = [[text.casefold() for text in _names_of(trial)] for trial in trials]
    exact = [query in own for own in texts]
    named = exact if any(exact) else [any(query in text for text in own) for own in texts]
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
    parts.append(trial.record.machine.label)
    parts += [part for part in (stack.image, stack.lock, stack.base) if part]
    parts += [f"driver {stack.driver}"] if stack.driver else []
    return parts + [f"{name} {value}" for name, value in (*stack.versions, *stack.variables)]


def _newest(cells: Sequence[Cell]) -> dict[Key, Cell]:
    """Of each workload the newest cell; one with repeats goes before a single run."""
    ordered = sorted(cells, key=lambda cell: (cell.throughput.n > 1, cell.turn))
    return {place.key: alike[-1] for place, alike in grouped_by(ordered, _place).items()}


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
            near = [differing(key, other) for other in others if other.workload == key.workload]
            closest = min(near, key=len, default=())
            why = "; ".join(f"{field} {value}, there {other}" for field, value, other in closest[:3])
            reasons.append((what(key), clean(why or f"'{name}' has none of this workload", 160)))
    return tuple(reasons)


def _failed(
    trials: Sequence[TrialResult], first_cells: dict[Key, Cell], second_cells: dict[Key, Cell]
) -> tuple[str, ...]:
    """A failed trial knows its key only as far as it was asked for."""
    done, expected = {what(key) for key in first_cells}, {what(key) for key in second_cells}
    reasons = {
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


def lines(comparison: Comparison) -> tuple[str, ...]:
    """The answer as a terminal shows it."""
    page = [f"How many times as fast '{comparison.first}' is as '{comparison.second}' (above 1: faster)", ""]
    several = [
        f"'{name}' names {len(machines)} machines: {clean(', '.join(machines), 160)}. "
        "Of each work its newest session counts."
        for name, machines in zip((comparison.first, comparison.second), comparison.machines, strict=True)
        if len(machines) > 1
    ]
    page += [*several, ""] if several else []
    for pair in comparison.pairs:
        work, answer = _pair_lines(pair)
        sides = clean(f"{pair.first.machine_label} over {pair.second.machine_label}", 100)
        page += [f"{work}: {sides}" if several else work, answer]
    if not comparison.pairs:
        page.append("nothing may be compared")
    if len(comparison.pairs) > 1:
        page += ["", f"The 95 % intervals hold together, over {len(comparison.pairs)} comparisons."]
    fewest = min((min(pair.ratio.n) for pair in comparison.pairs), default=0)
    missed = rare_runs_missed(fewest)
    page += ["", f"{worded(missed)}."] if missed else []
    if comparison.one_unit:
        page.append("One unit a side: cards of one model differ by 8 % and more.")
    if comparison.failed:
        page += ["", f"'{comparison.first}' failed where '{comparison.second}' was measured:"]
        page += [f"  {failure}" for failure in comparison.failed]
    if comparison.stacks:
        page += ["", f"The stacks differ ('{comparison.first}' | '{comparison.second}'):"]
        page += [
            f"  {workload}, {name}: {clean(' | '.join(values), 160)}"
            for workload, differences in comparison.stacks
            for name, values in differences
        ]
    if comparison.apart:
        page += ["", "Not compared:"]
        page += [f"  {key}: {why}" for key, why in comparison.apart[:MOST_APART]]
        more = len(comparison.apart) - MOST_APART
        page += [f"  and {more} more"] if more > 0 else []
    return tuple(page)


def _pair_lines(pair: Pair) -> list[str]:
    counts = pair.ratio.n[::-1] if pair.metric == "seconds" else pair.ratio.n
    n = f"n = {counts[0]} and {counts[1]}"
    of = "whole protocol" if pair.metric == "seconds" else "throughput alone: the lengths differ"
    states = [_standing(cell) for cell in (pair.first, pair.second)]
    state = states[0] if states[0] == states[1] else " against ".join(states)
    return [what(pair.first.key), f"  {verdict(pair)}; {n}; {of}; {state}"]


def _standing(cell: Cell) -> str:
    words = [STATES.get(state, state) for state in states_of(cell)]
    if not cell.length.projected:
        words.insert(cell.verdict != "valid", "whole run")
    return ", ".join(words)


def verdict(pair: Pair) -> str:
    """The ratio with its interval and what it shows; nothing is ranked that may not be."""
    interval = pair.ratio.interval
    estimate = times(pair.ratio.estimate)
    if interval is None:
        return f"{estimate} (single runs, no interval)"
    spread = f"{estimate} (95 % interval {times(interval.low)} to {times(interval.high)})"
    notes = "".join(f"; {worded(note)}" for note in interval.notes)
    if not (pair.first.ranked and pair.second.ranked):
        return f"{spread}{notes}; not ranked"
    if pair.ratio.tied:
        return f"{spread}{notes}; tied: no difference shown"
    runs = min(pair.ratio.n)
    few = f", quick look (n={runs})" if runs < FLOOR_RUNS else ""
    shown = "first look" if pair.ratio.first_look else "faster" if interval.low > 1 else "slower"
    return f"{spread}{notes}; {shown}{few}"


def worded(doubt: Doubt) -> str:
    """A doubt as a terminal says it."""
    runs, blocks = int(doubt.data.get("runs", 0)), int(doubt.data.get("blocks", 0))
    named = {"counted_runs": count(runs, f"{doubt.name.partition('-')[0]} run")}
    named |= {"them": "it" if runs == 1 else "them", "in_blocks": count(blocks, "block")}
    return DOUBTS[doubt.name].format(**doubt.data, **named)


def below(comparison: Comparison, limit: float) -> tuple[str, ...]:
    """Why a gate at `limit` says no; empty where it lets pass.

    A workload fails where its interval's upper end lies below the limit: then even the best value that the
    runs allow is too slow, and noise alone rarely closes the gate. What failed, and a gate with nothing to
    judge, fail too.
    """
    judged = [pair.ratio.interval for pair in comparison.pairs if pair.ratio.interval is not None]
    reasons = _at_limit(comparison, limit, lambda interval: interval.high < limit)
    reasons += [f"{failure}, where '{comparison.second}' was measured" for failure in comparison.failed]
    if not judged:
        reasons.append("no work has two runs on both sides, so nothing could be judged")
    return tuple(reasons)


def undecided(comparison: Comparison, limit: float) -> tuple[str, ...]:
    """What a gate at `limit` lets pass, and may be slower than that: the range holds the limit."""
    return tuple(_at_limit(comparison, limit, lambda interval: interval.includes(limit)))


def _at_limit(comparison: Comparison, limit: float, where: Callable[[Interval], bool]) -> list[str]:
    """Each work whose interval is so, with its ends, and what was assumed for them."""
    found = [(pair, pair.ratio.interval) for pair in comparison.pairs]
    return [
        f"{what(pair.first.key)}: {times(ends.low)} to {times(ends.high)} times as fast, "
        + ("which is below" if ends.high < limit else "which holds")
        + f" {limit:g}{''.join(f'; {worded(note)}' for note in ends.notes if 'spread' in note.data)}"
        for pair, ends in found
        if ends is not None and where(ends)
    ]
