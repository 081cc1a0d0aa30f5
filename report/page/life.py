"""The share of its acceptance that each later session of a machine reached, with what happened between."""

from __future__ import annotations

from report import text
from report.buying.delivery import DemandResult
from report.buying.life import Life
from report.charts.curves import Curves, Line
from report.charts.panels import Panels
from report.page.values import Picture

NAME = "life"
MOST_EVENTS = 6
"""Between two sessions; the terminal has all of the last one's."""
ASIDE = 0.012
"""From one work to the next at one session, as a part of the picture's width."""


def picture(view: Life) -> Picture:
    """One line for each work over the sessions, and what must be kept."""
    last = len(view.visits) - 1
    lines = [_line(view, place, ASIDE * last * place) for place in range(len(view.rule.demands))]
    kept = 1 - view.rule.margin
    least = Line(f"{kept * 100:.0f} %, to be kept", ((0.0, kept), (float(last), kept)), published=True)
    ticks = tuple(
        (float(place), f"{text.day(visit.started_at)}, {visit.session[-6:]}")
        for place, visit in enumerate(view.visits)
    )
    events = tuple(
        (*_words(view, place)[:MOST_EVENTS], *(["…"] if len(view.events[place]) > MOST_EVENTS else []))
        for place in range(last)
    )
    curves = Curves("", "", (*lines, least), "percent", zero=False, ticks=ticks, between=events)
    return Picture(NAME, Panels((curves,)), _described(view))


def _words(view: Life, place: int) -> list[str]:
    """What differs between a session and the next."""
    return [text.clean(f"{each.what} {each.before} → {each.now}", 120) for each in view.events[place]]


def _line(view: Life, work: int, aside: float) -> Line:
    demand = view.rule.demands[work]
    figure = demand.figure
    found: list[tuple[int, DemandResult]] = [
        (visit, of[work]) for visit, of in enumerate(view.results, 1) if of[work].ratio is not None
    ]
    points = [(aside, 1.0), *((visit + aside, result.ratio or 0.0) for visit, result in found)]
    ranges = [(figure.low / figure.estimate, figure.high / figure.estimate)]
    ends = [
        None if result.low is None or result.high is None else (result.low, result.high)
        for _, result in found
    ]
    return Line(demand.what, tuple(points), slot=work, marked=True, ranges=(*ranges, *ends))


def _described(view: Life) -> str:
    works = [
        ", ".join(f"{of[work].ratio:.3f}" for of in view.results if of[work].ratio is not None)
        for work in range(len(view.rule.demands))
    ]
    return "; ".join(
        f"{demand.what}: {reached}" for demand, reached in zip(view.rule.demands, works, strict=True)
    )
