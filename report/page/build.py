"""An analysis → one HTML file and its Markdown twin: all sections as words and drawings, written last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from report import text
from report.analysis import Analysis, Question, analyse, evidence_in
from report.comparisons import selfcheck
from report.comparisons.cells import unit_of
from report.page.render import render
from report.sections import acceptance, names
from report.sections.answer import decision, headline
from report.sections.answer.lead import facts, lead, leading_cells, subject
from report.sections.answer.picture import picture
from report.sections.answer.questions import questions
from report.sections.costs import section as money
from report.sections.limits import bottleneck, roofline
from report.sections.published import claims, leading, studies
from report.sections.ran import environment, left_over, reruns
from report.sections.sureness import caveats, changes, fleet
from report.sections.view import PageView, Part
from report.sections.workloads import workload
from report.sections.workloads.frameworks import section as frameworks
from report.trials.table import write_csv
from report.trials.trial import Trial

MOST_PROBLEMS = 50
"""Files in doubt that a page names: a folder full of them makes no page that nobody can open."""


@dataclass(frozen=True, slots=True)
class WrittenPage:
    """What was written, and what could not be read."""

    html: Path
    markdown: Path
    charts: tuple[Path, ...]
    warnings: tuple[str, ...]


def build(root: Path, out: Path, question: Question, *, csv: bool = False, png: bool = False) -> WrittenPage:
    """The page of what lies under `root`, a clone or an unpacked bundle: see `analyse` and `write`."""
    return write(analyse(evidence_in(root), question), out, csv=csv, png=png)


def write(
    analysis: Analysis, out: Path, *, csv: bool = False, png: bool = False, drawn: bool = True
) -> WrittenPage:
    """Writes index.html, report.md and charts/*.svg into `out`, and with `csv` the table of all trials.

    With `png` each chart is written as PNG too, and report.md shows these. A page that is not `drawn` is for
    comparing: its drawings hold words alone.
    """
    rendered = render(look(analysis), png=png, drawn=drawn)
    folder = out / "charts"
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("*.svg"), *folder.glob("*.png")):
        old.unlink()
    written = []
    for name, content in rendered.charts:
        (folder / name).write_bytes(content)
        written.append(folder / name)
    if csv:
        write_csv(analysis.table, out / "trials.csv")
    html, markdown = out / "index.html", out / "report.md"
    markdown.write_text(rendered.markdown, encoding="utf-8")
    html.write_text(rendered.html, encoding="utf-8")
    return WrittenPage(html, markdown, tuple(written), analysis.evidence.results.problems)


def look(analysis: Analysis) -> PageView:
    """Everything the page says, as words and drawings."""
    groups, gains, expected = analysis.groups, analysis.speedups, analysis.expectations
    own, session = analysis.own, analysis.leading_session
    everywhere = (*names.badges(analysis.measured_here), *money.badges(analysis))
    drawn, costs = studies.views(analysis), money.view(analysis)
    offered = costs is not None and costs.offers is not None
    of_studies = subject(analysis) == "verdicts" or not analysis.groups
    study = leading.brief(analysis) if of_studies and not offered else None
    view = PageView(
        title="gpudyno report",
        measured=headline.measured(
            own, min((trial.started_at for trial in own), default=None), expected, analysis.question.machine
        ),
        answer=lead(analysis),
        beside=_beside(analysis),
        sureness=caveats.sureness(groups),
        counted=analysis.accounts[0].sentence() if analysis.accounts else "",
        badges=(*names.badges(leading_cells(analysis)), *money.badges(analysis)),
        facts=facts(analysis),
        questions=questions(analysis),
        decision=decision.decision(groups, gains),
        expected=headline.table(expected),
        mix=headline.mix(expected),
        changes=changes.would_change(expected),
        caveats=caveats.caveats(analysis, everywhere),
        bottleneck=bottleneck.bottleneck(groups, analysis.shown),
        filters=_filters(analysis),
        workloads=workload.views(analysis),
        study=study,
        picture=None if study or offered else picture(analysis),
        checked=claims.checked(analysis.verdicts, analysis.question.ways) if groups else "",
        verdicts=claims.verdicts(analysis.verdicts) if groups else None,
        unmet=claims.unmet(analysis.verdicts, analysis.question.ways) if groups else None,
        claims=claims.views(analysis.verdicts, drawn, analysis.question.ways, alone=not groups),
        notes=tuple(text.clean(note, 240) for note in session.notes) if session else (),
        stacks=environment.stacks(analysis.shown),
        accounts=environment.accounts(analysis.accounts),
        reruns=reruns.table(analysis.reruns),
        reading=reruns.WHAT_READING_SHOWS,
        failures=environment.failures(own),
        warnings=_warnings(own),
        left_over=left_over.left_over(analysis.left_over, groups),
        left_out=left_over.left_out(session.left_out if session else ()),
        problems=_problems(analysis.evidence.results.problems),
        glossary=environment.glossary(),
        selfcheck=selfcheck.rate_line([stored.record for stored in analysis.evidence.results.records]),
        written=text.day(analysis.question.now),
        costs=costs,
        frameworks=frameworks.view(analysis),
        acceptance=acceptance.sentences(analysis),
        fleets=fleet.views(analysis.fleets),
        limits=roofline.limits(analysis.with_ceilings, analysis.evidence.cards, "limits") if own else (),
    )
    return _linked(view)


def _linked(view: PageView) -> PageView:
    """The view with its parts; its questions lead to what is there, and nowhere else.

    Where trials failed and none gave a figure, what ran comes first: it has the failures.
    """
    parts = tuple(part for part, has in _parts(view) if has)
    if view.failures and not view.facts:
        parts = tuple(sorted(parts, key=lambda part: part.name != "ran"))
    present = {part.anchor for part in parts} | ({"failures"} if view.failures else set())
    asked = (
        question if question.anchor in present else replace(question, anchor="")
        for question in view.questions
    )
    return replace(view, parts=parts, questions=tuple(asked))


def _parts(view: PageView) -> tuple[tuple[Part, bool], ...]:
    """Each part of the page, and whether it has anything to say."""
    bound = view.bottleneck is not None and bool(view.bottleneck.sentences)
    doubt = view.caveats or view.changes or view.warnings or view.problems or view.fleets
    return (
        (Part("answer", "expected", "Pair by pair"), view.expected is not None),
        (Part("published", "claims", "Published numbers"), bool(view.claims)),
        (Part("workloads", "workloads", "Workloads"), bool(view.workloads or view.frameworks)),
        (Part("limits", "limits", "What limits the speed"), bool(view.limits) or bound),
        (Part("costs", "money", "Costs"), view.costs is not None),
        (Part("acceptance", "acceptance", "Acceptance"), bool(view.acceptance)),
        (Part("sureness", "doubt", "How sure is this"), bool(doubt)),
        (Part("ran", "stacks", "What ran"), True),
    )


def _beside(analysis: Analysis) -> str:
    """What this machine's own figures say, where the first sentence is of something else."""
    answer = headline.answer(analysis.groups, analysis.speedups, len(analysis.evidence.claims.claims))
    return "" if answer == lead(analysis) or not analysis.groups else answer


def _filters(analysis: Analysis) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What there is to choose among: a field of one value is no choice."""
    cells = analysis.grouped
    fields = (
        ("card", dict.fromkeys(unit_of(cell) for cell in cells)),
        ("workload", dict.fromkeys(workload.heading(cell.key.workload) for cell in cells)),
        ("precision", dict.fromkeys(cell.key.precision for cell in cells)),
    )
    return tuple((name, tuple(values)) for name, values in fields if len(values) > 1)


def _problems(problems: Sequence[str]) -> tuple[str, ...]:
    """The first of what is wrong with files, and how many more there are."""
    shown = tuple(text.clean(problem, 300) for problem in problems[:MOST_PROBLEMS])
    more = len(problems) - len(shown)
    return (*shown, f"… and {more:,} more: `invoke report` names them all in the terminal") if more else shown


def _warnings(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Each warning and each cause of a verdict once, with how many trials have it."""
    counted = Counter(
        said
        for trial in trials
        for said in dict.fromkeys(map(text.named, (*trial.record.warnings, *trial.causes)))
    )
    return tuple(
        f"{text.clean(said, 240)} ({text.count(n, 'trial')})" for said, n in list(counted.items())[:100]
    )
