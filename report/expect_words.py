"""What is to be expected of one card against another, in sentences and a table."""

from __future__ import annotations

from collections.abc import Sequence

from report import names, words
from report.expect import Expectation, Range, Work
from report.intervals import HEADLINE_RUNS, runs_needed
from report.stats import Cell
from report.view import Table


def headline(found: Expectation) -> str:
    """The sentence that a buyer reads first."""
    fast, slow, best = found.fast.name, found.slow.name, words.times(found.best)
    if found.units is None or found.model is None:
        return (
            f"A first look, and no ranking: {fast} trained {_whose(found)} {best} times as fast as {slow} "
            "in single runs, which give no interval."
        )
    units, model = _between(found.units), _between(found.model)
    if not found.ranked:
        return (
            f"A first look, and no ranking: {fast} trained {_whose(found)} {best} times as fast as {slow} "
            f"(these two units: {units}; any two of their models: {model})."
        )
    if found.tied:
        return (
            f"No difference shown: expect {fast} to train {_whose(found)} {model} times as fast as {slow} "
            f"(best estimate {best}; these two units: {units})."
        )
    return (
        f"Expect {fast} to train {_whose(found)} {model} times as fast as {slow} "
        f"(best estimate {best}; these two units: {units})."
    )


def _whose(found: Expectation) -> str:
    return "your mix" if found.own_mix else "this mix"


def _between(found: Range) -> str:
    return f"{words.times(found.low)} to {words.times(found.high)}"


def table(found: Sequence[Expectation]) -> Table | None:
    """Every pair, and beneath the first the works of its mix, each with its own interval."""
    if not found:
        return None
    first = found[0]
    several = f" The level holds for all {first.comparisons} pairs together." if first.comparisons > 1 else ""
    mixed = (
        "your own hours of each work that both have done"
        if first.own_mix
        else "every work that both have done, with an equal share of the slower one's time"
    )
    caption = (
        f"Times as fast, with 95 % intervals. This mix: {mixed}. Expected holds for any two units of the "
        f"models ({first.band.label}); it is the one to buy by.{several}"
    )
    columns = ("Of, over", "Best estimate", "These two units", "Expected", "Stands on")
    return Table(caption, columns, tuple(_row(one) for one in found))


def mix(found: Sequence[Expectation]) -> Table | None:
    """The works that the first expectation stands on, each with its own interval; null for a single one."""
    if not found or len(found[0].works) < 2:
        return None
    first = found[0]
    columns = ("Work", "Best estimate", "These two units", "Expected", "Stands on")
    caption = f"What the mix is made of: {first.fast.name} over {first.slow.name}, times as fast."
    return Table(caption, columns, tuple(_work(work, first) for work in first.works))


def _row(found: Expectation) -> tuple[str, ...]:
    units = _between(found.units) if found.units else "no interval"
    model = _between(found.model) if found.model else "no interval"
    model += "\nno difference shown" if found.tied else ""
    model += "" if found.ranked else "\nnot ranked"
    return (
        f"{found.fast.name} over {found.slow.name}",
        words.times(found.best),
        units,
        model,
        words.count(len(found.works), "work"),
    )


def _work(work: Work, found: Expectation) -> tuple[str, ...]:
    interval, key = work.ratio.interval, work.of.key
    spread = words.between(interval, "times") if interval else "no interval"
    low, high = found.band.low / found.best, found.band.high / found.best
    wide = (
        f"{words.times(interval.low * low)} to {words.times(interval.high * high)}"
        if interval
        else "no interval"
    )
    return (
        f"{names.model(key.model)}, {key.precision}\nbatch {key.batch_size}, {key.data_mode} data",
        words.times(work.ratio.estimate),
        spread,
        wide,
        f"n = {work.ratio.n[0]} + {work.ratio.n[1]}",
    )


def would_change(found: Sequence[Expectation]) -> tuple[str, ...]:
    """What would change the answer: other units, another mix, more runs, a loader that keeps up."""
    if not found or found[0].units is None or found[0].model is None:
        return ()
    first = found[0]
    said = [_units(first), _mix(first), _runs(first), _waiting(first)]
    return tuple(one for one in said if one)


def _units(found: Expectation) -> str:
    assert found.units is not None and found.model is not None
    if not found.model.includes(1.0):
        return (
            f"No two units within {found.band.label} would turn it: at worst {found.fast.name} is still "
            f"{words.times(found.model.low)} times as fast."
        )
    if found.units.includes(1.0):
        return "These two units cannot be told apart, so other units may turn it either way."
    return (
        f"Other units may turn it: these two differ, but two others of their models need not "
        f"({found.band.label})."
    )


def _mix(found: Expectation) -> str:
    """Where works disagree: the share of the slower side's time from which on the answer turns."""
    gains = [(1 / work.ratio.estimate, work) for work in found.works]
    worst, best = max(gains, key=lambda pair: pair[0]), min(gains, key=lambda pair: pair[0])
    if len(gains) < 2:
        return "Another work may answer differently: this mix is one work alone."
    if worst[0] <= 1:
        least = words.times(worst[1].ratio.estimate)
        fast = f"{found.fast.name} is at least {least} times as fast in each"
        return f"By the best estimates no mix of these works turns it: {fast}."
    if best[0] >= 1:
        return ""
    share = (1 - best[0]) / (worst[0] - best[0])
    of, over = (f"{names.model(w.of.key.model)} in {w.of.key.precision}" for w in (worst[1], best[1]))
    return f"A mix with more than {share:.0%} of {of} beside {over} turns it."


def _runs(found: Expectation) -> str:
    """How many runs would make these two units' interval leave 1; their spread is what the runs showed."""
    assert found.units is not None
    blocks = min(min(work.of.blocks, work.over.blocks) for work in found.works)
    fewest = min(min(work.ratio.n) for work in found.works)
    if not found.units.includes(1.0):
        if blocks < 3:
            return "A machine's hours and days differ: three blocks an hour apart would show by how much."
        return ""
    width = abs(found.best - 1)
    spread = max(_cv(cell) for work in found.works for cell in (work.of, work.over))
    if width < 0.002 or not spread:
        return f"More than {fewest} runs a side would narrow the interval."
    needed = min(runs_needed(spread, width), 1000)
    if needed <= HEADLINE_RUNS:
        return f"About {max(needed, fewest + 1)} runs a side would tell a difference of this size."
    return f"A difference of this size needs about {needed} runs a side to be told."


def _cv(cell: Cell) -> float:
    values = cell.seconds.values or cell.throughput.values
    if len(values) < 2:
        return 0.0
    mean = sum(values) / len(values)
    return float((sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5 / mean)


def _waiting(found: Expectation) -> str:
    waits = [(work.of.input_share.mean or 0.0, work) for work in found.works]
    share, work = max(waits, key=lambda pair: pair[0], default=(0.0, None))
    if work is None or share <= 0.1:
        return ""
    what = f"{names.model(work.of.key.model)} in {work.of.key.precision}"
    return f"A loader that keeps up: {found.fast.name} waited for input {share:.0%} of the time on {what}."
