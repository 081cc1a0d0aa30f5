"""What was found, in one sentence, and the table of every pair of systems."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from report import text
from report.comparisons.cells import Cell
from report.comparisons.expectation import Benchmark, Expectation, SpeedRange
from report.comparisons.groups import ComparisonGroup
from report.comparisons.speedups import FULL_PRECISION, Speedup, best_supported
from report.sections import names
from report.sections.view import Table
from report.stats.intervals import Ranking
from report.trials.key import Key
from report.trials.pairs import grouped_by
from report.trials.trial import Trial

MOST_NAMED_GAINS = 2
MOST_BESIDE = 3
MOST_CLAUSES = 2
"""Works that a headline names."""


def answer(groups: Sequence[ComparisonGroup], gains: Sequence[Speedup], claims: int) -> str:
    """What was found, in one sentence; where nothing was measured, that."""
    if not groups:
        if claims:
            return (
                f"Nothing has been measured here yet: below stand {text.count(claims, 'published figure')} "
                "and claims, none of them judged."
            )
        return "Nothing has been measured here yet, and no published figures are at hand."
    measured = {id(entry.cell) for group in groups for entry in group.entries if entry.own}
    own = [gain for gain in gains if id(gain.of) in measured]
    clauses = _gain_clauses(own)
    if clauses:
        card = text.short_card(own[0].of.trials[0].device_name)
        if all(gain.of.ranked and gain.over.ranked for gain in own):
            more = [f"{text.count(len(clauses) - MOST_CLAUSES, 'more work')} below"] * (
                len(clauses) > MOST_CLAUSES
            )
            return f"On this {card}, {'; '.join((*clauses[:MOST_CLAUSES], *more))}."
        return f"A first look, and no ranking, at this {card}: {_glance(own)}."
    return f"{_plain_clause(groups)}."


def _glance(gains: Sequence[Speedup]) -> str:
    """One gain, with the digits that its range bears."""
    gain = best_supported(_plainest(mixed(gains)))[0]
    of, interval, best = gain.of.key, gain.ratio.interval, gain.ratio.estimate
    speed = text.about_times(best, interval.low, interval.high) if interval else text.times(best)
    generated = " on GENERATED data" if of.data_source == "generated" else ""
    part = not generated and any(other.of.key.data_source == "generated" for other in gains)
    under = names.apart(of, (other.of.key for other in gains), said=("batch_size", "data_source"))
    what = f"{_plainly(of.precision)} {text.model_name(of.model)}{under}{generated} trained"
    other = "; other works ran on GENERATED data" if part else ""
    return f"{what} about {speed} times as fast as {_plainly(gain.over.key.precision)}{other}"


def _plainly(precision: str) -> str:
    """'in mixed precision (amp-bf16)', 'in 32 bits (fp32-ieee)'"""
    kind = "32 bits" if precision in FULL_PRECISION else "mixed precision"
    return f"in {'16 bits' if precision.startswith('pure-') else kind} ({precision})"


def _gain_clauses(gains: Sequence[Speedup]) -> list[str]:
    """A clause for each workload: its gains one by one, or their range where they are many."""
    by_workload = grouped_by(mixed(gains), lambda gain: gain.of.key.workload).values()
    return [_workload_clause(best_supported(_plainest(members))) for members in by_workload]


def mixed(gains: Sequence[Speedup]) -> list[Speedup]:
    """Of 16-bit precisions over the strict baseline, where there are any."""
    strict = [gain for gain in gains if gain.over.key.precision == "fp32-ieee"] or list(gains)
    return [gain for gain in strict if gain.of.key.precision not in FULL_PRECISION] or strict


def _plainest(gains: Sequence[Speedup]) -> list[Speedup]:
    """Those of one device in the default profile, where there are any: a sentence mixes no settings."""
    settings = [(gain.of.key.gpus, gain.of.key.nodes, gain.of.key.profile != "default") for gain in gains]
    return [gain for gain, setting in zip(gains, settings, strict=True) if setting == min(settings)]


def _workload_clause(gains: Sequence[Speedup]) -> str:
    if len(gains) <= MOST_NAMED_GAINS:
        several = len({gain.of.key.protocol for gain in gains}) > 1
        return text.joined([_gain_words(gain, several) for gain in gains])
    least, most = (pick(gains, key=lambda gain: gain.ratio.estimate) for pick in (min, max))
    over = " or ".join(dict.fromkeys(gain.over.key.precision for gain in gains))
    intervals = [gain.ratio.interval for gain in gains if gain.ratio.interval]
    span = ""
    if intervals:
        low, high = min(interval.low for interval in intervals), max(interval.high for interval in intervals)
        span = f"; all 95 % intervals within {text.times(low)} to {text.times(high)}"
    several = len({gain.of.key.model for gain in gains}) > 1
    speed = f"{_end_words(least, several)} to {_end_words(most, several)} times as fast as {over}"
    tied = sum(gain.ranking is Ranking.TIED for gain in gains)
    alike = f"; {tied} of these {len(gains)} gains show no difference" if tied else ""
    return f"mixed precision trained {_models(gains)} {speed}{span}{alike}"


def _models(gains: Sequence[Speedup]) -> str:
    models = list(dict.fromkeys(text.model_name(gain.of.key.model) for gain in gains))
    return text.joined(models) if len(models) <= 2 else f"{len(models)} models, {models[0]} to {models[-1]},"


def _end_words(gain: Speedup, several: bool) -> str:
    of = gain.of.key
    which = f"{text.model_name(of.model)}, {of.precision}" if several else of.precision
    return f"{text.times(gain.ratio.estimate)} ({which})"


def _gain_words(gain: Speedup, several_protocols: bool) -> str:
    of, over = gain.of.key, gain.over.key.precision
    protocol = f", {text.clean(of.protocol, 30)}" if several_protocols else ""
    generated = ", GENERATED data" if of.data_source == "generated" else ""
    start = f"{of.precision} trained {text.model_name(of.model)} (batch {of.batch_size}{protocol}{generated})"
    interval, best = gain.ratio.interval, gain.ratio.estimate
    if interval is None:
        return f"{start} {text.times(best)} times as fast as {over} (single runs, no interval)"
    speed = f"{text.about_times(best, interval.low, interval.high)} times as fast as {over}"
    spread = f"95 % interval {text.times(interval.low)} to {text.times(interval.high)}"
    if gain.ranking is Ranking.TIED:
        return f"{start} no measurably faster or slower than {over} ({spread}: no difference shown)"
    return f"{start} {speed} ({spread})"


def _plain_clause(groups: Sequence[ComparisonGroup]) -> str:
    entry = groups[0].entries[0]
    key, seconds = entry.cell.key, entry.cell.seconds
    under = names.apart(key, (group.base for group in groups), said=("batch_size",))
    what = f"{text.model_name(key.model)} in {key.precision} at batch {key.batch_size}{under}"
    card = text.short_card(entry.cell.card)
    on = f"{'on' if key.gpus > 1 else 'on this'} {card}"
    opening = text.sentence(on) if entry.cell.ranked else f"A first look: {on}"
    others = f"; {text.count(len(groups) - 1, 'more work')} below" if len(groups) > 1 else ""
    if seconds.mean is None:
        return f"{opening}, {what} {_rate_clause(entry.cell)}{others}"
    how = "would, by projection, take" if entry.cell.length.projected else "took"
    epochs = text.count(groups[0].length.epochs, "epoch")
    spread = f" (95 % interval {text.between(seconds.interval)} s)" if seconds.interval else " (a single run)"
    return f"{opening}, {epochs} of {what} {how} {text.duration(seconds.mean)}{spread}{others}"


def _rate_clause(cell: Cell) -> str:
    """Where the whole protocol's time is not known: samples a second."""
    rate = cell.throughput
    if rate.mean is None:
        return "gave no valid run"
    spread = f"95 % interval {text.between(rate.interval)}" if rate.interval else "a single run"
    unit = text.clean(cell.trials[0].sample_unit, 20)
    return f"trained {text.number(rate.mean)} {unit}s a second ({spread})"


def measured(
    trials: Sequence[Trial],
    started: datetime | None,
    expectations: Sequence[Expectation] = (),
    reader: str | None = None,
) -> str:
    """What was measured, on what, when, and which systems it is compared with.

    `reader` is the machine at which the page is made, where that is known: "this machine" may be another one.
    """
    if not trials or started is None:
        return ""
    failed = sum(trial.failure is not None for trial in trials)
    machine = text.clean(trials[0].machine_label, 40)
    cards = text.joined(_devices(trials)[:3])
    words = f"{text.count(len(trials), 'trial')}, {f'{failed:,} failed' if failed else 'none failed'}"
    own = {trial.machine for trial in trials}
    if reader is not None and reader not in own:
        machine += ", which is “this machine” below and not the one that you sit at"
    where = f"{text.day(started)} · {machine} · {cards}"
    pairs = (system for each in expectations for system in (each.fast, each.slow))
    beside = list(dict.fromkeys(text.the(system.name) for system in pairs if system.machine not in own))
    more = len(beside) - MOST_BESIDE
    shown = [*beside[:MOST_BESIDE], *([f"{more} more"] if more > 0 else [])]
    compared = f" · compared with {text.joined(shown)}" if shown else ""
    return f"{where} · session {trials[0].session} · {words}{compared}"


def _devices(trials: Sequence[Trial]) -> list[str]:
    """Each device once, with how many of it at a time where that was not one: 'Card A, 1 and 2 at a time'."""
    used: dict[str, set[int]] = {}
    for trial in trials:
        used.setdefault(text.clean(trial.device_name, 60), set()).add(trial.key.gpus)
    return [
        name if counts == {1} else f"{name}, {text.joined([str(n) for n in sorted(counts)])} at a time"
        for name, counts in used.items()
    ]


def headline(expectation: Expectation) -> str:
    """The sentence of two systems: how many times as fast, as these two are and as any two of their types.

    Both must have a range, which single runs do not give.
    """
    assert expectation.units is not None and expectation.model is not None
    mix = "your work" if expectation.own_mix else "this work"
    fast, slow = text.the(expectation.fast.name), text.the(expectation.slow.name)
    model = _roughly(expectation.model)
    if expectation.ranking is Ranking.TIED:
        opening = "No" if expectation.ranked else "A first look: no"
        return (
            f"{opening} difference is shown between {fast} and {slow} for {mix}; "
            f"among {other_units(expectation)} the first may be {model} times as fast."
        )
    if expectation.ranking is Ranking.FIRST_LOOK and expectation.vague:
        return f"A first look, and no ranking: runs of {fast} and {slow} lie too far apart to compare them."
    if expectation.ranking is Ranking.FIRST_LOOK:
        return (
            f"A first look, and no ranking: in these tests {fast} did {mix} {_roughly(expectation.units)} "
            f"times as fast as {slow}."
        )
    about = text.about(expectation.best, expectation.units.low, expectation.units.high)
    opening = f"{text.sentence(fast)} does {mix} about {about} times as fast as {slow}"
    return f"{opening}; from {other_units(expectation)}, expect {model} times."


def other_units(expectation: Expectation) -> str:
    """Which units a range is of that is not of the measured ones: two cards of one model have one type."""
    alike = expectation.fast.card == expectation.slow.card
    return "other machines like these" if alike else "the units that you would get"


def between(ends: SpeedRange) -> str:
    """'1.49 to 1.91'"""
    return f"{text.times(ends.low)} to {text.times(ends.high)}"


def _roughly(ends: SpeedRange) -> str:
    """Ends with two digits, as a headline says them."""
    return f"{text.number(ends.low, 2)} to {text.number(ends.high, 2)}"


def table(expectations: Sequence[Expectation]) -> Table | None:
    """Every pair, and beneath the first the works of its mix, each with its own interval."""
    if not expectations:
        return None
    first = expectations[0]
    several = f" The level holds for all {first.comparisons} pairs together." if first.comparisons > 1 else ""
    mixed = (
        "your own hours of each work that both have done"
        if first.own_mix
        else "every work that both have done, with an equal share of the slower one's time"
    )
    caption = (
        f"Times as fast, with 95 % intervals. The work: {mixed}. Expected holds for any two units of the "
        f"models ({first.band.label}); it is the one to buy by.{several}"
    )
    columns = ("Of, over", "Best estimate", "These two units", "Expected", "Stands on")
    return Table(caption, columns, tuple(_row(pair) for pair in expectations))


def mix(expectations: Sequence[Expectation]) -> Table | None:
    """The works that the first expectation stands on, each with its own interval; null for a single one."""
    if not expectations or len(expectations[0].benchmarks) < 2:
        return None
    first = expectations[0]
    columns = ("Work", "Best estimate", "These two units", "Expected", "Stands on")
    caption = f"What the work is made of: {first.fast.name} over {first.slow.name}, times as fast."
    among = [work.of.key for work in first.benchmarks]
    return Table(caption, columns, tuple(_work(work, first, among) for work in first.benchmarks))


def _row(expectation: Expectation) -> tuple[str, ...]:
    units = between(expectation.units) if expectation.units else "no interval"
    model = between(expectation.model) if expectation.model else "no interval"
    model += "\nno difference shown" if expectation.ranking is Ranking.TIED else ""
    model += "" if expectation.ranked else "\nnot ranked"
    return (
        f"{expectation.fast.name} over {expectation.slow.name}",
        text.times(expectation.best),
        units,
        model,
        text.count(len(expectation.benchmarks), "work"),
    )


def _work(work: Benchmark, expectation: Expectation, among: Sequence[Key]) -> tuple[str, ...]:
    interval, key = work.ratio.interval, work.of.key
    spread = text.between(interval, "times") if interval else "no interval"
    wide = "no interval"
    if interval:
        low, high = expectation.band.around(interval.low, work.ratio.estimate, interval.high)
        wide = f"{text.times(low)} to {text.times(high)}"
    under = names.setting(key) + names.apart(key, among, said=("batch_size", "data_mode"))
    return (
        f"{text.model_name(key.model)}, {key.precision}{under}\nbatch {key.batch_size}, {key.data_mode} data",
        text.times(work.ratio.estimate),
        spread,
        wide,
        f"n = {work.ratio.n[0]} + {work.ratio.n[1]}",
    )
