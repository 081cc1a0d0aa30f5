"""Records and claims → one HTML file and its Markdown twin: frame → stats → charts → page, written last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from harness.cards import FILE as CARDS
from harness.cards import Card, load_cards
from harness.claims import ClaimSet, load_claims
from harness.record import Session
from harness.store import Shelf, read_all
from harness.summary import METHOD, judge_trial
from report import (
    answer,
    contests,
    curves,
    decision,
    figures,
    frame,
    judge,
    labels,
    matching,
    names,
    overview,
    ran,
    speedups,
    stats,
    studies,
    tables,
    words,
)
from report.contests import Contest
from report.frame import Row
from report.render import render
from report.speedups import Speedup
from report.view import ContestView, PageView, WorkloadView


@dataclass(frozen=True, slots=True)
class Built:
    """What was written, and what could not be read."""

    html: Path
    markdown: Path
    charts: tuple[Path, ...]
    warnings: tuple[str, ...]


def build(
    root: Path,
    out: Path,
    *,
    baseline: str | None = None,
    session: str | None = None,
    machine: str | None = None,
    now: datetime,
) -> Built:
    """Reads results/ under `root` and writes index.html, report.md and charts/*.svg into `out`.

    The page leads with `session`, else with the newest one of `machine` (a Session's machine), else with the
    newest. `baseline` (a part of a card's name, a machine's label or a precision) fixes what 1.00 is.
    Raises RecordError where the claims cannot be read; unreadable records become warnings.
    """
    shelf = read_all(root)
    view = look(
        shelf,
        load_claims(root),
        load_cards(root) if (root / CARDS).exists() else (),
        baseline=baseline,
        session=session,
        machine=machine,
        now=now,
    )
    rendered = render(view)
    folder = out / "charts"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    written = []
    for name, drawing in rendered.charts:
        (folder / name).write_text(drawing, encoding="utf-8")
        written.append(folder / name)
    html, markdown = out / "index.html", out / "report.md"
    markdown.write_text(rendered.markdown, encoding="utf-8")
    html.write_text(rendered.html, encoding="utf-8")
    return Built(html, markdown, tuple(written), shelf.problems)


def look(
    shelf: Shelf,
    claims: ClaimSet,
    cards: Sequence[Card],
    *,
    baseline: str | None = None,
    session: str | None = None,
    machine: str | None = None,
    now: datetime,
) -> PageView:
    """Everything the page says, as words and drawings; reads and writes nothing."""
    named = ((stored.path, stored.record) for stored in shelf.records)
    rows = stats.plausible(frame.rows(named, judged=judge_trial, method=METHOD))
    lead = leading(rows, shelf.sessions, session=session, machine=machine, now=now)
    own = [row for row in rows if row.session == lead]
    cells = stats.cells(rows)
    failed = [row for row in own if row.failure is not None]
    found = contests.contests(cells, lead, baseline=baseline, claims=claims.claims, failed=failed)
    gains = speedups.speedups([line.cell for contest in found for line in contest.lines])
    spare = contests.left_over(cells, found)
    marks = labels.of_cells([line.cell for contest in found for line in contest.lines if line.own])
    judged = judge.judge(claims.claims, found, cards)
    return PageView(
        title="gpudyno report",
        measured=answer.measured(own, min((row.started_at for row in own), default=None)),
        answer=answer.answer(found, gains, len(claims.claims)),
        beside=answer.beside(found),
        sureness=answer.sureness(found),
        badges=marks,
        decision=decision.decision(found, gains),
        doubts=decision.doubts(found, gains, marks, own, now=now, baseline=baseline),
        workloads=_workloads(found, gains, claims),
        verdicts=studies.verdicts(judged) if found else None,
        claims=studies.views(judged, alone=not found),
        notes=tuple(words.clean(said, 240) for s in shelf.sessions if s.id == lead for said in s.notes),
        stacks=ran.stacks(_shown(rows, lead, found)),
        failures=ran.failures(own),
        warnings=_warnings(own),
        left_over=tables.left_over(spare, found),
        left_out=ran.left_out([one for s in shelf.sessions if s.id == lead for one in s.left_out]),
        problems=tuple(words.clean(problem, 300) for problem in shelf.problems),
        glossary=tables.glossary(),
        written=words.day(now),
    )


def leading(
    rows: Sequence[Row],
    sessions: Sequence[Session],
    *,
    session: str | None,
    machine: str | None,
    now: datetime,
) -> str | None:
    """The session that the page leads with; one dated in the future only where there is no other."""
    if session is not None:
        return session
    mine = {one.id for one in sessions if machine is not None and one.machine == machine}
    known = [row for row in rows if row.session in mine] or list(rows)
    past = [row for row in known if row.started_at <= now] or known
    return max(past, key=lambda row: row.started_at).session if past else None


def _shown(rows: Sequence[Row], lead: str | None, found: Sequence[Contest]) -> list[Row]:
    """The leading session's rows, and those that are drawn beside them."""
    drawn = {row.path for contest in found for line in contest.lines for row in line.cell.rows}
    return [row for row in rows if row.session == lead or row.path in drawn]


def _warnings(rows: Sequence[Row]) -> tuple[str, ...]:
    """Each warning and each cause of a verdict once, with how many trials have it."""
    counted: dict[str, int] = {}
    for row in rows:
        for said in dict.fromkeys((*row.warnings, *row.causes)):
            counted[said] = counted.get(said, 0) + 1
    return tuple(
        f"{words.clean(said, 240)} ({words.count(n, 'trial')})" for said, n in list(counted.items())[:100]
    )


def _workloads(
    found: Sequence[Contest], gains: Sequence[Speedup], claims: ClaimSet
) -> tuple[WorkloadView, ...]:
    groups: dict[str, list[Contest]] = {}
    for contest in found:
        groups.setdefault(contest.base.workload, []).append(contest)
    views: list[WorkloadView] = []
    number = 0
    for workload, members in groups.items():
        drawn = []
        for contest in members:
            number += 1
            drawn.append(_contest(contest, gains, claims, number))
        views.append(
            WorkloadView(
                anchor=f"w-{len(views) + 1}",
                heading=words.WORKLOAD_WORDS.get(workload, words.clean(workload, 60)),
                about=words.WORKLOAD_ABOUT.get(workload, f"Workload {words.clean(workload, 60)}."),
                overview=overview.panels(members, gains, f"w-{len(views) + 1}"),
                gains=overview.table(members, gains),
                contests=tuple(drawn),
                apart=tables.apart_table(members, [view.heading for view in drawn]),
            )
        )
    return tuple(views)


def _contest(contest: Contest, gains: Sequence[Speedup], claims: ClaimSet, number: int) -> ContestView:
    anchor = f"f-{number}"
    cells = [line.cell for line in contest.lines]
    own = [gain for gain in gains if any(gain.of is cell for cell in cells)]
    published = [claim for claim in claims.claims if matching.published_gain(claim, own)]
    behind = [curve for curve in claims.curves_for(contest.base.workload) if matching.behind(curve, cells)]
    notes = [words.clean(f"{name} differs: {' | '.join(values)}", 300) for name, values in contest.stacks]
    stacks = dict.fromkeys(claim.stack for claim in contest.published if claim.stack)
    notes += [words.clean(f"The published figures stand on another stack: {stack}", 300) for stack in stacks]
    return ContestView(
        anchor=anchor,
        number=number,
        heading=_heading(contest),
        setting=_setting(contest),
        badges=labels.badges(contest),
        panels=(*figures.panels(contest, own, published, anchor), *curves.panels(contest, behind, anchor)),
        table=tables.contest_table(contest, own),
        notes=(
            *(words.clean(said, 300) for said in notes),
            *tables.projections(contest),
            *tables.bounds(contest),
        ),
        provenance=tables.provenance(contest),
    )


def _heading(contest: Contest) -> str:
    base = contest.base
    batch = f", batch {base.batch_size}" if base.batch_size else ""
    stacks = ", on different stacks" if contest.stacks else ""
    return f"{names.model(base.model)}{batch}, {base.data_mode} data{stacks}"


def _setting(contest: Contest) -> str:
    base, length = contest.base, contest.length
    batches = {line.cell.key.batch_size for line in contest.lines}
    steps = f" of {words.count(length.steps_per_epoch, 'step')}" if len(batches) == 1 else ""
    size = f", {base.image_size} px" if base.image_size else ""
    size += f", sequences of {base.sequence_length}" if base.sequence_length else ""
    options = "".join(f", {name} {value}" for name, value in base.options)
    batch = f", batch {min(batches)}" if len(batches) == 1 else ", the batch as published for each precision"
    return words.clean(
        f"Protocol {base.protocol}: {words.count(length.epochs, 'epoch')}{steps}{batch}{size}{options}. "
        f"Data: {base.data_source}, {base.data_mode} ({words.DATA_MODE_WORDS[base.data_mode]}).",
        400,
    )
