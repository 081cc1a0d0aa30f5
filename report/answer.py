"""The first screen: one sentence that answers, how sure it is, the decision table, and what is in doubt."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from report import names, words
from report.contests import Contest
from report.doubts import FLOOR_RUNS
from report.expect import MODES
from report.frame import Row
from report.labels import fewest_runs
from report.speedups import FULL_PRECISION, Speedup
from report.stats import Cell

MOST_NAMED_GAINS = 2


def answer(contests: Sequence[Contest], gains: Sequence[Speedup], claims: int) -> str:
    """What was found, in one sentence; where nothing was measured, that."""
    if not contests:
        if claims:
            return (
                f"Nothing has been measured here yet: below stand {words.count(claims, 'published figure')} "
                "and claims, none of them judged."
            )
        return "Nothing has been measured here yet, and no published figures are at hand."
    own = [gain for gain in gains if _is_own(gain.of, contests)]
    said = _gain_clauses(own)
    if said:
        card = names.short_card(own[0].of.rows[0].device)
        opening = (
            f"On this {card}"
            if all(gain.of.ranked for gain in own)
            else f"A first look, and no ranking, at this {card}"
        )
        joint = ", " if opening.startswith("On") else ": "
        return f"{opening}{joint}{'; '.join(said)}."
    return f"{_plain_clause(contests)}."


def _is_own(cell: Cell, contests: Sequence[Contest]) -> bool:
    return any(line.own and line.cell is cell for contest in contests for line in contest.lines)


def _gain_clauses(gains: Sequence[Speedup]) -> list[str]:
    """A clause for each workload: its gains one by one, or their range where they are many."""
    strict = [gain for gain in gains if gain.over.key.precision == "fp32-ieee"] or list(gains)
    mixed = [gain for gain in strict if gain.of.key.precision not in FULL_PRECISION] or strict
    by_workload: dict[str, list[Speedup]] = {}
    for gain in mixed:
        by_workload.setdefault(gain.of.key.workload, []).append(gain)
    return [_workload_clause(best_supported(_plainest(found))) for found in by_workload.values()]


def _plainest(gains: Sequence[Speedup]) -> list[Speedup]:
    """Those of one device in the default profile, where there are any: a sentence mixes no settings."""
    least = min((gain.of.key.gpus, gain.of.key.profile != "default") for gain in gains)
    return [gain for gain in gains if (gain.of.key.gpus, gain.of.key.profile != "default") == least]


def best_supported(gains: Sequence[Speedup]) -> list[Speedup]:
    """Of each model and pair of precisions the gain with the most runs, in the mode nearest the card."""
    modes = [mode for mode in MODES if any(gain.of.key.data_mode == mode for gain in gains)]
    found: dict[tuple[object, ...], Speedup] = {}
    for gain in gains:
        if gain.of.key.data_mode == modes[0]:
            key = gain.of.key
            place = (key.protocol, key.model, key.precision, key.batch_size, gain.over.key.precision)
            if place not in found or sum(gain.ratio.n) > sum(found[place].ratio.n):
                found[place] = gain
    return list(found.values())


def _workload_clause(gains: Sequence[Speedup]) -> str:
    if len(gains) <= MOST_NAMED_GAINS:
        return _joined([_gain_words(gain) for gain in gains])
    least, most = (pick(gains, key=lambda gain: gain.ratio.estimate) for pick in (min, max))
    over = " or ".join(dict.fromkeys(gain.over.key.precision for gain in gains))
    intervals = [gain.ratio.interval for gain in gains if gain.ratio.interval]
    span = ""
    if intervals:
        low, high = min(one.low for one in intervals), max(one.high for one in intervals)
        span = f"; all 95 % intervals within {words.times(low)} to {words.times(high)}"
    several = len({gain.of.key.model for gain in gains}) > 1
    speed = f"{_end_words(least, several)} to {_end_words(most, several)} times as fast as {over}"
    return f"mixed precision trained {_models(gains)} {speed}{span}"


def _models(gains: Sequence[Speedup]) -> str:
    found = list(dict.fromkeys(names.model(gain.of.key.model) for gain in gains))
    return _joined(found) if len(found) <= 2 else f"{len(found)} models, {found[0]} to {found[-1]},"


def _end_words(gain: Speedup, several: bool) -> str:
    of = gain.of.key
    which = f"{names.model(of.model)}, {of.precision}" if several else of.precision
    return f"{words.times(gain.ratio.estimate)} ({which})"


def _gain_words(gain: Speedup) -> str:
    of, over = gain.of.key, gain.over.key.precision
    generated = ", GENERATED data" if of.data_source == "generated" else ""
    start = f"{of.precision} trained {names.model(of.model)} (batch {of.batch_size}{generated})"
    speed = f"{words.times(gain.ratio.estimate)} times as fast as {over}"
    interval = gain.ratio.interval
    if interval is None:
        return f"{start} {speed} (single runs, no interval)"
    spread = f"95 % interval {words.times(interval.low)} to {words.times(interval.high)}"
    if gain.ratio.tied:
        return f"{start} no measurably faster or slower than {over} ({spread}: no difference shown)"
    return f"{start} {speed} ({spread})"


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _plain_clause(contests: Sequence[Contest]) -> str:
    line = contests[0].lines[0]
    key, seconds = line.cell.key, line.cell.seconds
    what = f"{names.model(key.model)} in {key.precision} at batch {key.batch_size}"
    opening = "On this" if line.cell.ranked else "A first look: on this"
    others = f"; {len(contests) - 1} more below" if len(contests) > 1 else ""
    if seconds.mean is None:
        return f"{opening} {names.short_card(line.cell.card)}, {what} {_rate_clause(line.cell)}{others}"
    how = "would, by projection, take" if line.cell.length.projected else "took"
    total = f"{words.seconds(seconds.mean)}, or {words.duration(seconds.mean)}"
    epochs = words.count(contests[0].length.epochs, "epoch")
    spread = f" (95 % interval {words.between(seconds.interval)})" if seconds.interval else " (a single run)"
    return f"{opening} {names.short_card(line.cell.card)}, {epochs} of {what} {how} {total}{spread}{others}"


def _rate_clause(cell: Cell) -> str:
    """Where the whole protocol's time is not known: samples a second."""
    rate = cell.throughput
    if rate.mean is None:
        return "gave no valid run"
    spread = f"95 % interval {words.between(rate.interval)}" if rate.interval else "a single run"
    unit = words.clean(cell.rows[0].sample_unit, 20)
    return f"trained {words.number(rate.mean)} {unit}s a second ({spread})"


def sureness(contests: Sequence[Contest]) -> str:
    """How far the sentence carries: runs, blocks, and that one card is not its model."""
    cells = [line.cell for contest in contests for line in contest.lines if line.own]
    if not cells:
        return "The line invoke build run report measures this machine and makes this page anew."
    fewest = fewest_runs(cells)
    blocks = max(cell.blocks for cell in cells)
    runs = f"Each figure stands on {fewest} or more runs, each a fresh process"
    if fewest < FLOOR_RUNS:
        runs = f"A quick look: as few as {words.count(fewest, 'run')} to a figure, each a fresh process"
    said = [f"{runs}, {'all within one block of time' if blocks == 1 else f'in {blocks} blocks of time'}."]
    if any(cell.verdict == "unproven" for cell in cells):
        said.append("Windows too short to show a settled speed are shown, never ranked.")
    if any(cell.key.data_source == "generated" for cell in cells):
        said.append("Part of it stands on GENERATED data.")
    return " ".join([*said, "It speaks of this card, not of every card of its model."])


def measured(rows: Sequence[Row], started: datetime | None) -> str:
    """What was measured, on what, when."""
    if not rows or started is None:
        return ""
    failed = sum(row.failure is not None for row in rows)
    machine = words.clean(rows[0].machine_label, 40)
    cards = _joined(list(dict.fromkeys(words.clean(row.card, 60) for row in rows))[:3])
    said = f"{words.count(len(rows) - failed, 'trial')} measured"
    said += f", {words.count(failed, 'trial')} failed" if failed else ", none failed"
    where = f"{words.day(started)} · {machine} · {cards}"
    return f"{where} · plan {rows[0].plan}, session {rows[0].session} · {said}"
