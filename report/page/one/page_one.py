"""Page one: what it is about, and its headline, chips, picture, table and notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from harness.record.result import Stage
from report import text
from report.analysis import Analysis
from report.charts.marks import KeyEntry
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.compare.cells import Cell
from report.page.filters import setting
from report.page.one import check, offers, programs, stacks
from report.page.one.comparison import comparison
from report.page.one.headlines import (
    FIRST,
    again,
    chips,
    finding,
    how_sure,
    judge_more,
    of_pair,
    trials_of,
    what_limits,
)
from report.page.one.measured import leading, machines, measured, of_machines
from report.page.parts import frameworks
from report.page.parts.published import claims, published_studies
from report.page.parts.verdicts import counts
from report.page.pictures import time_picture
from report.page.values import Chip, Headline, PageOne, Picture, Source, Systems
from report.trials.key import grouped_by
from report.trials.trial import TrialResult

CONSTRUCTED = "Constructed"
"""How the names of devices begin that no one measured."""
FRAMEWORKS = ("torch", "tensorflow", "mxnet", "chainer")
MOST_CAUSES = 8
CHANGE_THE_PLAN = ("out-of-memory", "timeout")
"""Reasons to fail for which the plan has to change before it runs again."""
REACHED = tuple(stage for stage in get_args(Stage) if stage in ("start", "setup", "data", "train", "valid"))
"""The stages of a trial that the picture shows; what comes after the last counts as it."""


def page_one(analysis: Analysis, systems: Systems) -> PageOne:
    """Page one of an analysis, by what it is about."""
    return _PAGES[analysis.subject](analysis, systems)


def _assembled(
    analysis: Analysis,
    headline: Headline,
    cells: Sequence[Cell],
    three: Sequence[Headline],
    template: str,
    view: Any,
    *,
    about: dict[str, Any] | None = None,
    more: Sequence[Chip] = (),
    next_first: Headline | None = None,
) -> PageOne:
    own = analysis.own or tuple(check.longest for check in analysis.checks)
    counted = trials_of(analysis, cells)
    source = Source(
        written=analysis.request.now,
        started=min((trial.started_at for trial in own), default=None),
        plan=own[0].record.plan if own else "",
        software=_framework(own),
        trials=len(counted),
        failed=sum(trial.failure is not None for trial in counted),
    )
    card = text.short_card(own[0].card) if own else ""
    return PageOne(
        subject=Headline(analysis.subject, {"own": card, **(about or {})}),
        source=source,
        headline=headline,
        chips=chips(analysis, cells, more),
        notes=tuple(three),
        template=template,
        view=view,
        next_first=next_first,
        constructed=any(
            trial.device_name.startswith(CONSTRUCTED) or trial.record.simulated for trial in analysis.shown
        ),
    )


def _framework(own: Sequence[TrialResult]) -> str:
    """'torch 2.13.0', where the session ran one; the libraries beneath it have no room."""
    used = [dict(trial.stack.versions) for trial in own]
    found = {f"{name} {stack[name]}" for stack in used for name in FRAMEWORKS if stack.get(name)}
    return text.clean(found.pop(), 30) if len(found) == 1 else ""


def _offers(analysis: Analysis, systems: Systems) -> PageOne:
    """A row for each offer, measured or not."""
    view = offers.offers(analysis, systems)
    cells = [cell for line in view.costs.lines for cell in line.cells if cell]
    count = sum(row.offered is not None for row in view.rows)
    return _assembled(
        analysis,
        offers.headline(view),
        cells,
        offers.notes(view),
        "offers",
        view,
        about={"offers": count},
        more=[*offers.chips(view)],
    )


def _pair(analysis: Analysis, systems: Systems) -> PageOne:
    view = comparison(analysis, systems)
    expectation = analysis.expectations[0]
    cells = expectation.cells
    return _assembled(
        analysis,
        of_pair(expectation, systems),
        cells,
        (how_sure(analysis, cells), what_limits(cells), again(analysis, each=True)),
        "comparison",
        view,
        about={"first": view.pair[0].name, "second": view.pair[1].name},
    )


def _class(analysis: Analysis, systems: Systems) -> PageOne:
    view = machines(analysis, systems)
    cells = [cell for row in view.all.rows for cell in row.cells if cell]
    cards = {row.card for row in view.all.rows}
    return _assembled(
        analysis,
        of_machines(view, systems),
        cells,
        (how_sure(analysis, cells), what_limits(leading(analysis)), again(analysis, each=True)),
        "machines",
        view,
        about={
            "machines": len(view.all.rows),
            "card": text.short_card(cards.pop()) if len(cards) == 1 else "",
        },
    )


def _frameworks(analysis: Analysis, systems: Systems) -> PageOne:
    work = analysis.leading_frameworks
    assert work is not None
    cells = [line.cell for line in work.compared]
    alike = {id(line.cell) for line in work.alike}
    groups = [group for group in analysis.groups if any(id(e.cell) in alike for e in group.entries)]
    timed = time_picture(groups, systems)
    return _assembled(
        analysis,
        frameworks.headline(work, systems),
        cells,
        (how_sure(analysis, [line.cell for line in work.lines]), Headline("what-differs"), again(analysis)),
        "frameworks",
        frameworks.framework_work(work, analysis.speedups, timed),
        about={"model": cells[0].key.model, "count": len({line.name for line in work.lines})},
        more=frameworks.chips(work),
    )


def _machine(analysis: Analysis, systems: Systems) -> PageOne:
    """Return the page of one machine by itself; after a first look the next step comes before the picture."""
    cells, first = leading(analysis), analysis.subject == "first-look"
    last = Headline("claims", {"counts": counts(analysis)}) if first else again(analysis)
    return _assembled(
        analysis,
        finding(analysis, systems, ranked=not first),
        cells,
        (how_sure(analysis, cells), what_limits(cells), last),
        "measured",
        measured(analysis, systems),
        next_first=again(analysis) if first else None,
    )


def _verdicts(analysis: Analysis, systems: Systems) -> PageOne:
    view = claims(analysis, systems)
    taken = {id(cell) for judged in analysis.verdicts for cell in judged.cells}
    cells = [cell for cell in analysis.measured_here if id(cell) in taken or cell.session == analysis.lead]
    return _assembled(
        analysis,
        Headline("verdicts", {"counts": view.counts, "own": systems.own[0]}),
        cells,
        (how_sure(analysis, cells), what_limits(cells), judge_more(analysis)),
        "claims",
        view,
        more=[Chip("care", "study-software", "published")] if view.other_software else [],
    )


def _programs(analysis: Analysis, systems: Systems) -> PageOne:
    view, cells = programs.programs(analysis), leading(analysis)
    return _assembled(
        analysis,
        programs.headline(view, systems),
        cells,
        (how_sure(analysis, cells), what_limits(cells), again(analysis)),
        "programs",
        view,
        about={"names": [row.ran.name for row in view.rows]},
    )


def _check(analysis: Analysis, systems: Systems) -> PageOne:
    view = check.checked(analysis)
    answer, three = check.headline(view, systems), check.notes(view)
    page = _assembled(analysis, answer, (), three, "check", view, more=[*check.chips(view)])
    own = [trial for trial in analysis.on_record if trial.session == analysis.lead]
    shown = tuple(chip for chip in page.chips if chip.name != "all-finished")
    return replace(page, source=replace(page.source, trials=len(own)), chips=shown)


def _stacks(analysis: Analysis, systems: Systems) -> PageOne:
    view = stacks.viewed(analysis)
    three, more = stacks.notes(analysis, view), [*stacks.chips(view)]
    about = dict(zip(("first", "second"), view.names, strict=True))
    answer = stacks.headline(view)
    return _assembled(analysis, answer, analysis.own_cells, three, "stacks", view, about=about, more=more)


def _failed(analysis: Analysis, systems: Systems) -> PageOne:
    view, plan = failures(analysis), analysis.own[0].record.plan
    reason = view.causes[0][0].failure.reason if view.causes and view.causes[0][0].failure else ""
    following: dict[str, Any] = {"reason": reason, "changes": reason in CHANGE_THE_PLAN}
    commands = () if following["changes"] else (f"invoke doctor --plan {plan}",)
    following["commands"] = (*commands, f"invoke build --plan {plan} run report")
    failed = sum(trial.failure is not None for trial in analysis.own)
    return _assembled(
        analysis,
        Headline("failed", {"count": failed, "of": view.of, "causes": view.causes}),
        (),
        (Headline("at-fault"), Headline("what-is-lost"), Headline("fails-again")),
        "failures",
        view,
        more=[Chip("stop", "nothing-measured", "ran")],
        next_first=Headline("next-failed", following),
    )


def _nothing(analysis: Analysis, systems: Systems) -> PageOne:
    view = published_studies(analysis, systems)
    return _assembled(
        analysis,
        Headline("nothing", {"rows": view.rows}),
        (),
        (Headline("published-sure"), Headline("what-can-be-judged"), Headline("other-records")),
        "studies",
        view,
        more=[Chip("stop", "no-records"), Chip("care", "published-once", "published")],
        next_first=Headline("next-first", {"commands": (FIRST,)}),
    )


_PAGES: dict[str, Callable[[Analysis, Systems], PageOne]] = {
    "costs": _offers,
    "pair": _pair,
    "class": _class,
    "frameworks": _frameworks,
    "programs": _programs,
    "verdicts": _verdicts,
    "self": _machine,
    "check": _check,
    "stacks": _stacks,
    "first-look": _machine,
    "failed": _failed,
    "nothing": _nothing,
}


@dataclass(frozen=True, slots=True)
class Failures:
    """How far the trials got, and why they ended."""

    picture: Picture
    causes: tuple[tuple[TrialResult, ...], ...]
    """Trials that failed for one reason at one stage."""
    of: int


def failures(analysis: Analysis) -> Failures:
    """Return how far the leading session's trials got, none of which gave a figure."""
    failed = [trial for trial in analysis.own if trial.failure is not None]
    causes = grouped_by(failed, lambda trial: trial.failure and (trial.failure.reason, trial.failure.stage))
    alike = sorted(map(tuple, causes.values()), key=len, reverse=True)
    return Failures(_picture(failed), tuple(alike[:MOST_CAUSES]), len(analysis.own))


def _picture(failed: list[TrialResult]) -> Picture:
    works = grouped_by(failed, lambda trial: (trial.key.model, trial.key.precision, setting(trial.key)))
    rows = []
    for (model, precision, under), trials in works.items():
        stages = [trial.failure.stage for trial in trials if trial.failure]
        reached = max(REACHED.index(stage) if stage in REACHED else len(REACHED) - 1 for stage in stages)
        reasons = dict.fromkeys(trial.failure.reason.replace("-", " ") for trial in trials if trial.failure)
        rows.append(
            ScaleRow(
                text.model_name(model),
                (Mark(reached + 1.0, look="failed"),),
                f"{precision}{under}",
                ", ".join(reasons),
                f"{len(trials)} of {len(trials)}",
            )
        )
    alt = "; ".join(f"{row.label} {row.note}: {row.text}" for row in rows)
    key = (KeyEntry("this machine, stopped there", "failed"),)
    ticks = tuple((float(n), name) for n, name in enumerate(REACHED, 1))
    chart = ScaleRows((RowGroup("", tuple(rows)),), "reached", key, reference=None, ticks=ticks)
    return Picture("stages", chart, alt)
