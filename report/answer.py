"""The first screen: one sentence that answers, how sure it is, the decision table, and what is in doubt."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from report import names, tables, words
from report.contests import Contest, Line
from report.doubts import FLOOR_RUNS
from report.frame import Row
from report.labels import standing
from report.speedups import Speedup
from report.stats import Cell
from report.view import Badge, Table

MOST_DECISION_ROWS = 24


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
        card = names.short_card(own[0].of.card)
        opening = f"On this {card}" if all(gain.of.ranked for gain in own) else f"A first look at this {card}"
        joint = ", " if opening.startswith("On") else ": "
        return f"{opening}{joint}{'; '.join(said)}."
    return f"{_plain_clause(contests)}."


def _is_own(cell: Cell, contests: Sequence[Contest]) -> bool:
    return any(line.own and line.cell is cell for contest in contests for line in contest.lines)


def _gain_clauses(gains: Sequence[Speedup]) -> list[str]:
    """The strict baseline's gains, at most three models, else the range over all of them."""
    strict = [gain for gain in gains if gain.over.key.precision == "fp32-ieee"] or list(gains)
    by_precision: dict[str, list[Speedup]] = {}
    for gain in strict:
        by_precision.setdefault(f"{gain.of.key.precision}|{gain.over.key.precision}", []).append(gain)
    clauses = []
    for found in by_precision.values():
        of, over = found[0].of.key.precision, found[0].over.key.precision
        clauses.append(f"{of} trained {_joined([_gain_words(gain, over) for gain in _ends(found)])}")
    return clauses[:3]


def _ends(gains: list[Speedup]) -> list[Speedup]:
    if len(gains) <= 3:
        return gains
    ordered = sorted(gains, key=lambda gain: gain.ratio.estimate)
    return [ordered[0], ordered[-1]]


def _gain_words(gain: Speedup, over: str) -> str:
    model = names.model(gain.of.key.model)
    generated = ", GENERATED data" if gain.of.key.data_source == "generated" else ""
    size = f" (batch {gain.of.key.batch_size}{generated})"
    interval = gain.ratio.interval
    if interval is None:
        speed = f"{words.times(gain.ratio.estimate)} times as fast as {over}"
        return f"{model}{size} {speed} (single runs, no interval)"
    spread = f"95 % interval {words.times(interval.low)} to {words.times(interval.high)}"
    if gain.ratio.tied:
        return f"{model}{size} no measurably faster or slower than {over} ({spread}: no difference shown)"
    return f"{model}{size} {words.times(gain.ratio.estimate)} times as fast as {over} ({spread})"


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _plain_clause(contests: Sequence[Contest]) -> str:
    line = contests[0].lines[0]
    key, seconds = line.cell.key, line.cell.seconds
    what = f"{names.model(key.model)} in {key.precision} at batch {key.batch_size}"
    if seconds.mean is None:
        return f"On this {names.short_card(line.cell.card)}, {what} gave no valid run"
    how = "would take" if line.cell.length.projected else "took"
    epochs = words.count(contests[0].length.epochs, "epoch")
    spread = f" ({words.between(seconds.interval)})" if seconds.interval else ", a single run"
    others = f"; {len(contests) - 1} more below" if len(contests) > 1 else ""
    return (
        f"On this {names.short_card(line.cell.card)}, {epochs} of {what} {how} "
        f"{words.seconds(seconds.mean)}{spread}{others}"
    )


def sureness(contests: Sequence[Contest]) -> str:
    """How far the sentence carries: runs, blocks, and that one card is not its model."""
    cells = [line.cell for contest in contests for line in contest.lines if line.own]
    if not cells:
        return ""
    fewest = min(cell.throughput.n for cell in cells)
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


def decision(contests: Sequence[Contest], gains: Sequence[Speedup]) -> Table | None:
    """One row per line of every contest, the leading session's first."""
    rows = []
    for contest in contests:
        rows += [_decision_row(contest, line, gains) for line in contest.lines]
        rows += [_failed_row(contest, row) for row in contest.failed]
    if not rows:
        return None
    caption = "The figures to decide by. Total: seconds for the whole protocol, with its 95 % interval."
    if len(rows) > MOST_DECISION_ROWS:
        caption += f" The first {MOST_DECISION_ROWS} of {len(rows)} lines; all stand below."
    columns = (
        "Work",
        "Card",
        "Precision",
        "Batch",
        "Total",
        "Time-scaled",
        "Against fp32-ieee",
        "Quality",
        "Standing",
    )
    return Table(caption, columns, tuple(rows[:MOST_DECISION_ROWS]))


def _decision_row(contest: Contest, line: Line, gains: Sequence[Speedup]) -> tuple[str, ...]:
    cell = line.cell
    strict = next((g for g in gains if g.of is cell and g.over.key.precision == "fp32-ieee"), None)
    total = words.seconds(cell.seconds.mean)
    total += f"\n{tables.beneath_total(cell)}" if cell.seconds.n else ""
    return (
        f"{names.model(contest.base.model)}, {contest.base.data_mode}",
        names.short_card(cell.card),
        cell.key.precision,
        str(cell.key.batch_size),
        total,
        names.scaled(line),
        names.gain(strict),
        words.quality(cell.rows[0].quality_name, cell.quality.mean),
        f"n = {cell.seconds.n or cell.throughput.n}\n{standing(cell)}",
    )


def _failed_row(contest: Contest, row: Row) -> tuple[str, ...]:
    assert row.failure is not None
    return (
        f"{names.model(contest.base.model)}, {contest.base.data_mode}",
        names.short_card(row.card),
        row.key.precision,
        str(row.key.batch_size),
        names.failure(row.failure.reason),
        *("–",) * 3,
        f"repeat {row.repeat}",
    )


def doubts(
    contests: Sequence[Contest],
    badges: Sequence[Badge],
    rows: Sequence[Row],
    *,
    now: datetime,
    baseline: str | None,
) -> tuple[str, ...]:
    """What a careful reader would ask, answered before it is asked."""
    found = [f"{badge.word}: {badge.because}." for badge in badges]
    failed = sum(row.failure is not None for row in rows)
    if failed:
        found.append(
            f"{words.count(failed, 'trial')} failed and {'is' if failed == 1 else 'are'} listed below."
        )
    if any(line.cell.units and len(line.cell.units) < 3 for c in contests for line in c.lines):
        found.append("One or two units of a card were measured: cards of one model differ by 8 % and more.")
    for contest in contests:
        if contest.baseline_missing and baseline is not None:
            found.append(
                f"The baseline '{words.clean(baseline, 40)}' does not stand in "
                f"{names.model(contest.base.model)}, which is scaled to its fastest line."
            )
    late = sum(row.started_at > now + timedelta(days=1) for row in rows)
    if late:
        found.append(f"{words.count(late, 'record')} dated after this page was written.")
    return tuple(dict.fromkeys(found))
