"""Records and claims → one HTML file and its Markdown twin: trials → stats → charts → page, written last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from harness.record import Session
from harness.record.cards import Card
from harness.record.claims import ClaimSet, load_claims
from harness.record.store import Shelf, read_all
from report import text
from report.acceptance import clause
from report.acceptance.clause import MARGIN
from report.claims import judge
from report.comparisons import cells as stats
from report.comparisons import expectation, groups, parity, selfcheck, speedups
from report.comparisons.groups import Contest
from report.cost import inputs
from report.cost.purchase import Purchase, load_purchase
from report.page.render import render
from report.sections import (
    batch_sweep,
    cost,
    decision,
    environment,
    headline,
    names,
    roofline,
    tables,
    workload,
)
from report.sections import claims as studies
from report.sections.view import PageView
from report.trials.reading import cards_of, read
from report.trials.table import trials_of, write_csv
from report.trials.trial import Trial


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
    margin: float = MARGIN,
    csv: bool = False,
    now: datetime,
) -> Built:
    """Reads results/ under `root` and writes index.html, report.md and charts/*.svg into `out`.

    With `csv` also trials.csv, the table of all trials.

    The page leads with `session`, else with the newest one of `machine` (a Session's machine), else with the
    newest. `baseline` (a part of a card's name, a label or a precision) fixes what 1.00 is, `margin`
    how far below its figures a delivered machine may be.
    Raises RecordError where the claims cannot be read, UserError where the buyer's file cannot be meant;
    unreadable records become warnings.
    """
    shelf, cards = read_all(root), cards_of(root)
    view = look(
        shelf,
        load_claims(root),
        cards,
        load_purchase(root),
        baseline=baseline,
        session=session,
        machine=machine,
        margin=margin,
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
    if csv:
        write_csv(read(shelf.records, cards), out / "trials.csv")
    html, markdown = out / "index.html", out / "report.md"
    markdown.write_text(rendered.markdown, encoding="utf-8")
    html.write_text(rendered.html, encoding="utf-8")
    return Built(html, markdown, tuple(written), shelf.problems)


def look(
    shelf: Shelf,
    claims: ClaimSet,
    cards: Sequence[Card],
    purchase: Purchase | None = None,
    *,
    baseline: str | None = None,
    session: str | None = None,
    machine: str | None = None,
    margin: float = MARGIN,
    now: datetime,
) -> PageView:
    """Everything the page says, as words and drawings; reads and writes nothing.

    Raises UserError where a name in the buyer's file fits several cards or lines.
    """
    everything = read(shelf.records, cards)
    table = everything[~everything["is_ceiling"]]
    trials = trials_of(table)
    lead = leading(trials, shelf.sessions, session=session, machine=machine, now=now)
    own_table = table[table["session"] == lead]
    own = trials_of(own_table)
    cells = stats.cells(table)
    failed = [trial for trial in own if trial.failure is not None]
    standing = batch_sweep.without_rungs(cells, lead)
    found = groups.contests(standing, lead, baseline=baseline, claims=claims.claims, failed=failed)
    drawn = [line.cell for contest in found for line in contest.lines]
    gains = speedups.speedups(drawn)
    parities = parity.parities(drawn)
    buyer = inputs.buyer(found, trials, purchase)
    expected = expectation.expectations(found, buyer) or expectation.expectations(found)
    shown = _shown(trials, lead, found)
    spare = groups.left_over(standing, found)
    marks = names.of_cells([line.cell for contest in found for line in contest.lines if line.own])
    alone = headline.answer(found, gains, len(claims.claims))
    judged = judge.judge(claims.claims, found, cards)
    return PageView(
        title="gpudyno report",
        measured=headline.measured(own, min((trial.started_at for trial in own), default=None)),
        answer=headline.headline(expected[0]) if expected else alone,
        beside=alone if expected else "",
        sureness=headline.sureness(found),
        badges=marks,
        decision=decision.decision(found, gains),
        expected=headline.table(expected),
        mix=headline.mix(expected),
        changes=headline.would_change(expected),
        doubts=decision.doubts(found, gains, marks, own, parities, now=now, baseline=baseline),
        whose=environment.view(found, shown),
        filters=_filters(found),
        workloads=workload.views(
            workload.Drawn(found, cells, own, gains, parities, parity.early_gates(shown), claims)
        ),
        verdicts=studies.verdicts(judged) if found else None,
        claims=studies.views(judged, alone=not found),
        notes=tuple(text.clean(said, 240) for s in shelf.sessions if s.id == lead for said in s.notes),
        stacks=environment.stacks(shown),
        failures=environment.failures(own),
        warnings=_warnings(own),
        left_over=tables.left_over(spare, found),
        left_out=environment.left_out([one for s in shelf.sessions if s.id == lead for one in s.left_out]),
        problems=tuple(text.clean(problem, 300) for problem in shelf.problems),
        glossary=tables.glossary(),
        selfcheck=selfcheck.rate_line([stored.record for stored in shelf.records]),
        written=text.day(now),
        money=cost.view(found, trials, cards, purchase, now=now),
        acceptance=clause.on_page(trials, stats.cells(own_table), margin),
        limits=roofline.limits(_of_devices(trials_of(everything), own), cards, "limits") if own else (),
    )


def _of_devices(trials: Sequence[Trial], own: Sequence[Trial]) -> list[Trial]:
    """The leading session's trials, and the ceilings that were measured on its machine at any time."""
    machines = {trial.machine for trial in own}
    ceilings = [trial for trial in trials if trial.is_ceiling and trial.machine in machines]
    return [*own, *ceilings]


def leading(
    trials: Sequence[Trial],
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
    known = [trial for trial in trials if trial.session in mine] or list(trials)
    past = [trial for trial in known if trial.started_at <= now] or known
    return max(past, key=lambda trial: trial.started_at).session if past else None


def _shown(trials: Sequence[Trial], lead: str | None, found: Sequence[Contest]) -> list[Trial]:
    """The leading session's trials, and those that are drawn beside them."""
    drawn = {trial.path for contest in found for line in contest.lines for trial in line.cell.trials}
    return [trial for trial in trials if trial.session == lead or trial.path in drawn]


def _filters(found: Sequence[Contest]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What there is to choose among: a field of one value is no choice."""
    cells = [line.cell for contest in found for line in contest.lines]
    fields = (
        ("card", dict.fromkeys(names.unit_of(cell) for cell in cells)),
        ("workload", dict.fromkeys(workload.heading(cell.key.workload) for cell in cells)),
        ("precision", dict.fromkeys(cell.key.precision for cell in cells)),
    )
    return tuple((name, tuple(values)) for name, values in fields if len(values) > 1)


def _warnings(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Each warning and each cause of a verdict once, with how many trials have it."""
    counted: dict[str, int] = {}
    for trial in trials:
        for said in dict.fromkeys((*trial.record.warnings, *trial.causes)):
            counted[said] = counted.get(said, 0) + 1
    return tuple(
        f"{text.clean(said, 240)} ({text.count(n, 'trial')})" for said, n in list(counted.items())[:100]
    )
