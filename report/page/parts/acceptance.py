"""What a delivered machine must reach, how many of sound ones do not, and what it keeps in later years."""

from __future__ import annotations

from dataclasses import dataclass

from report import text
from report.analysis import Analysis
from report.buying.clause import Clause
from report.buying.life import Life
from report.charts.panels import CurveLine, CurvePanel, Panels
from report.compare.spread import UnitSpread, missing_share
from report.page.values import Picture

MOST_EVENTS = 6
"""Between two sessions."""
ASIDE = 0.012
"""From one work to the next at one session, as a part of the picture's width."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The clause, and how far units of the ordered card lie apart."""

    rule: Clause
    spread: UnitSpread
    missing_share: float
    """Of sound machines, those that miss a figure by their unit alone."""


def view(analysis: Analysis) -> Acceptance | None:
    """Null where the leading session supports no clause."""
    rule = analysis.clause
    if rule is None:
        return None
    spread = analysis.spreads.of(rule.demands[0].card)
    return Acceptance(rule, spread, missing_share(spread, rule.margin))


def life_picture(view: Life) -> Picture:
    """The share of its acceptance that each later session reached, a line for each work, and what must be."""
    last = len(view.visits) - 1
    lines = [_line(view, work, ASIDE * last * work) for work in range(len(view.rule.demands))]
    kept = view.rule.kept
    least = CurveLine(f"{kept * 100:.0f} %, to be kept", ((0.0, kept), (float(last), kept)), published=True)
    ticks = tuple(
        (float(place), f"{text.day(visit.started_at)}, {visit.session[-6:]}")
        for place, visit in enumerate(view.visits)
    )
    events = tuple(
        tuple(text.clean(f"{each.what} {each.before} → {each.now}", 120) for each in between[:MOST_EVENTS])
        for between in view.events
    )
    curves = CurvePanel("", "", (*lines, least), "percent", zero=False, ticks=ticks, between=events)
    described = (f"{line.label}: {', '.join(f'{y:.3f}' for _, y in line.points)}" for line in lines)
    return Picture("life", Panels((curves,)), "; ".join(described))


def _line(view: Life, work: int, aside: float) -> CurveLine:
    demand = view.rule.demands[work]
    figure = demand.figure
    points, ranges = [(aside, 1.0)], [(figure.low / figure.estimate, figure.high / figure.estimate)]
    for place, results in enumerate(view.results, 1):
        result = results[work]
        if result.ratio is not None and result.low is not None and result.high is not None:
            points.append((place + aside, result.ratio))
            ranges.append((result.low, result.high))
    return CurveLine(demand.what, tuple(points), slot=work, marked=True, ranges=tuple(ranges))
