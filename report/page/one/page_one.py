"""Page one: what it is about, and its headline, chips, picture, table and notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from report import text
from report.analysis import Analysis
from report.compare.cells import Cell
from report.page.one import claims, headlines, machines, notes
from report.page.one.chips import chips
from report.page.one.comparison import comparison
from report.page.one.failures import failures
from report.page.one.frameworks import framework_page
from report.page.one.measured import leading, measured
from report.page.one.studies import published_studies
from report.page.page import PageOne, Source
from report.page.published.verdicts import counts
from report.page.systems import Systems
from report.page.values import Chip, Headline

CONSTRUCTED = "Constructed"
"""How the names of devices begin that no one measured."""


def page_one(analysis: Analysis, systems: Systems) -> PageOne:
    """Page one of an analysis, by what it is about."""
    return _PAGES[analysis.subject](analysis, systems)


def _assembled(
    analysis: Analysis,
    about: Headline,
    headline: Headline,
    cells: Sequence[Cell],
    three: Sequence[Headline],
    template: str,
    view: Any,
    more: Sequence[Chip] = (),
    *,
    next_first: Headline | None = None,
) -> PageOne:
    own = analysis.own
    source = Source(
        written=analysis.question.now,
        started=min((trial.started_at for trial in own), default=None),
        plan=own[0].record.plan if own else "",
        trials=len(own),
        failed=sum(trial.failure is not None for trial in own),
    )
    return PageOne(
        subject=about,
        source=source,
        headline=headline,
        chips=chips(analysis, cells, more),
        notes=tuple(three),
        template=template,
        view=view,
        next=next_first,
        next_first=next_first is not None,
        constructed=any(trial.device_name.startswith(CONSTRUCTED) for trial in analysis.shown),
    )


def _own_name(systems: Systems) -> str:
    return text.short_card(systems.own[0].card) if systems.own else ""


def _costs(analysis: Analysis, systems: Systems) -> PageOne:
    costs, view = analysis.costs, comparison(analysis, systems)
    assert costs is not None and view is not None
    expectation = analysis.expectations[0]
    cells = list(expectation.cells)
    more = []
    if costs.idle_turns:
        cheaper = costs.pair[costs.cheaper_idle or 0] if costs.pair else 0
        offer = costs.inputs.offers[cheaper]
        name = systems.of(offer).name
        more.append(Chip("care", "alone-turns", "costs", {"name": name}))
    for offer in costs.inputs.offers:
        if offer.quote and (analysis.question.now.date() - offer.quote.date).days > 365:
            more.append(Chip("care", "old-offer", "costs", {"name": systems.of(offer).name}))
    return _assembled(
        analysis,
        Headline("costs", {"offers": len(costs.inputs.offers)}),
        headlines.of_costs(costs, expectation, systems),
        cells,
        (notes.how_sure(analysis, cells), notes.on_delivery(analysis), notes.again(analysis, each=True)),
        "comparison",
        view,
        more,
    )


def _pair(analysis: Analysis, systems: Systems) -> PageOne:
    view = comparison(analysis, systems)
    assert view is not None
    expectation = analysis.expectations[0]
    cells = list(expectation.cells)
    return _assembled(
        analysis,
        Headline("pair", {"first": view.pair[0].name, "second": view.pair[1].name}),
        headlines.of_pair(expectation, systems),
        cells,
        (notes.how_sure(analysis, cells), notes.what_limits(cells), notes.again(analysis, each=True)),
        "comparison",
        view,
    )


def _class(analysis: Analysis, systems: Systems) -> PageOne:
    view = machines.machines(analysis, systems)
    assert view is not None
    cells = leading(analysis)
    return _assembled(
        analysis,
        Headline("class", {"machines": len(view.all.rows)}),
        machines.headline(view),
        cells,
        (notes.how_sure(analysis, cells), notes.what_limits(cells), notes.again(analysis, each=True)),
        "machines",
        view,
    )


def _frameworks(analysis: Analysis, systems: Systems) -> PageOne:
    view = framework_page(analysis, systems)
    assert view is not None
    names = {row.name for row in view.work.rows}
    return _assembled(
        analysis,
        Headline(
            "frameworks",
            {"model": text.model_name(view.work.model), "count": len(names), "own": _own_name(systems)},
        ),
        view.headline,
        view.cells,
        (notes.how_sure(analysis, view.cells), Headline("what-differs"), notes.again(analysis)),
        "frameworks",
        view,
        view.chips,
    )


def _self(analysis: Analysis, systems: Systems) -> PageOne:
    cells, view = leading(analysis), measured(analysis, systems)
    headline = headlines.of_gain(analysis, systems) or headlines.of_speeds(analysis, systems, ranked=True)
    return _assembled(
        analysis,
        Headline("own", {"own": _own_name(systems)}),
        headline,
        cells,
        (notes.how_sure(analysis, cells), notes.what_limits(cells), notes.again(analysis)),
        "measured",
        view,
    )


def _first_look(analysis: Analysis, systems: Systems) -> PageOne:
    cells, view = leading(analysis), measured(analysis, systems)
    return _assembled(
        analysis,
        Headline("first-look", {"own": _own_name(systems)}),
        headlines.of_speeds(analysis, systems, ranked=False),
        cells,
        (
            notes.how_sure(analysis, cells),
            notes.what_limits(cells),
            Headline("claims", {"counts": counts(analysis)}),
        ),
        "measured",
        view,
        next_first=notes.again(analysis),
    )


def _verdicts(analysis: Analysis, systems: Systems) -> PageOne:
    view = claims.claims(analysis, systems)
    taken = {id(cell) for judged in analysis.verdicts for cell in judged.cells}
    cells = [cell for cell in analysis.measured_here if id(cell) in taken or cell.session == analysis.lead]
    more = [Chip("care", "study-software", "published")] if view.other_software else []
    return _assembled(
        analysis,
        Headline("verdicts", {"own": _own_name(systems)}),
        claims.headline(view, systems),
        cells,
        (notes.how_sure(analysis, cells), notes.what_limits(cells), notes.judge_more(analysis)),
        "claims",
        view,
        more,
    )


def _failed(analysis: Analysis, systems: Systems) -> PageOne:
    view = failures(analysis)
    first = view.causes[0] if view.causes else None
    plan = analysis.own[0].record.plan
    commands = (f"invoke doctor --plan {plan}", f"invoke build --plan {plan} run report")
    failed = sum(trial.failure is not None for trial in analysis.own)
    return _assembled(
        analysis,
        Headline("failed", {"own": text.short_card(analysis.own[0].device_name)}),
        Headline("failed", {"count": failed, "of": view.of, "reason": first.reason if first else ""}),
        (),
        (Headline("at-fault"), Headline("what-is-lost"), Headline("fails-again")),
        "failures",
        view,
        (Chip("stop", "nothing-measured", "ran"),),
        next_first=Headline("next-failed", {"commands": commands}),
    )


def _nothing(analysis: Analysis, systems: Systems) -> PageOne:
    view = published_studies(analysis, systems)
    return _assembled(
        analysis,
        Headline("nothing"),
        Headline("nothing", {"studies": len(view.rows), "figures": view.figures, "judged": view.judged}),
        (),
        (Headline("published-sure"), Headline("what-can-be-judged"), Headline("other-records")),
        "studies",
        view,
        (Chip("stop", "no-records"), Chip("care", "published-once", "published")),
        next_first=Headline("next-first", {"commands": (notes.FIRST,)}),
    )


_PAGES: dict[str, Callable[[Analysis, Systems], PageOne]] = {
    "costs": _costs,
    "pair": _pair,
    "class": _class,
    "frameworks": _frameworks,
    "verdicts": _verdicts,
    "self": _self,
    "first-look": _first_look,
    "failed": _failed,
    "nothing": _nothing,
}
