"""What each offer costs a year for the buyer's work, measured or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from report.analysis import Analysis
from report.buying.cost_model import TurningPoints
from report.buying.costs import Costs
from report.buying.purchase import Offer
from report.buying.workload_mix import WorkLine
from report.charts.rows import Look, Mark, RowGroup, ScaleRow, ScaleRows
from report.compare.cells import Cell
from report.expected.expected import Refusal
from report.expected.published_speeds import WORKS
from report.page.filters import figure_text
from report.page.pictures import rows_picture
from report.page.values import (
    AnswerPage,
    Chip,
    NamedSystem,
    Picture,
    Quantity,
    Sentence,
    Systems,
    quantity,
    rate_unit,
)

OLD_DAYS = 90
"""An offer that is older is marked."""
SETTLED = 0.05
"""How well a run on the offered card would tell its time."""


@dataclass(frozen=True, slots=True)
class RecordBeside:
    """An offer's own measurement of a work, beside the sum since not every offer has it."""

    line: WorkLine
    cell: Cell
    expected: Quantity
    """The speed that published figures of this card lead to; null where they are of none."""

    @property
    def outside(self) -> bool:
        """Whether it lies outside of what is expected."""
        speed, low, high = self.cell.throughput.mean, self.expected.low, self.expected.high
        if speed is None or low is None or high is None:
            return False
        return not low <= speed <= high


@dataclass(frozen=True, slots=True)
class OfferRow:
    """One offer. What is not known of all the work is null."""

    place: int
    """Its number in the buyer's file, from 0."""
    system: NamedSystem
    offer: Offer
    days: int
    expected: bool
    """Whether its time is by what is expected of cards."""
    price: Quantity
    cost: Quantity
    ratio: Quantity
    """Its cost over the first one's."""
    power: Quantity
    hours: Quantity
    cards: tuple[int, int, int] | None
    use: Quantity
    memory: Quantity
    fits: bool | None
    speeds: tuple[Quantity, ...]
    """Times as fast as the card of the hours, in each work."""
    beside: tuple[RecordBeside, ...]
    missing: Sentence | None
    """Why it has no cost."""

    @property
    def tied(self) -> bool:
        """Whether its cost may be less than the first one's."""
        return self.ratio.low is not None and self.ratio.low <= 1


@dataclass(frozen=True, slots=True)
class OffersView:
    """Every offer, the cheapest that the work fits first."""

    rows: tuple[OfferRow, ...]
    ranked: int
    """So many of the rows have a cost, and are not known to be too small."""
    turning: TurningPoints | None
    overtaking: OfferRow | None
    """The offer that is best where there is more work."""
    most: float
    """The highest end of a cost, to draw them by."""
    costs: Costs

    @property
    def currency(self) -> str:
        return self.costs.purchase.currency

    @property
    def tied(self) -> tuple[OfferRow, ...]:
        """Those of which it is open which costs least; the first alone where that is not."""
        return (*self.rows[:1], *(row for row in self.rows[1 : self.ranked] if row.tied))


def viewed(analysis: Analysis, systems: Systems) -> OffersView:
    """Return the offers of the buyer's file, with what each costs or why that is not known."""
    costs = analysis.costs
    assert costs is not None
    others = [i for i in range(len(costs.offers)) if i not in costs.order]
    rows = tuple(_row(costs, place, analysis, systems) for place in (*costs.order, *others))
    turning = costs.model.turning(costs.order[0], costs.order[1:]) if costs.order else None
    best = turning and turning.other_best
    overtaking = rows[costs.order.index(best[1])] if best else None
    most = max((row.cost.high or row.cost.value or 0.0 for row in rows), default=0.0)
    return OffersView(rows, len(costs.order), turning, overtaking, most, costs)


def _row(costs: Costs, place: int, analysis: Analysis, systems: Systems) -> OfferRow:
    one, currency = costs.offers[place], costs.purchase.currency
    offer = costs.purchase.offer[place]
    known = costs.model.offers.get(place)
    found = costs.model.cost(place) if known else None
    ratio = costs.model.ratio(place, costs.order[0]) if place in costs.order[1:] else None
    expected = place != costs.base and not all(line.measured for line in costs.lines)
    times = costs.speeds[place]
    unknown = [line for line, time in zip(costs.lines, times, strict=True) if not time]
    blank = [*unknown, *costs.left_out] if known is None and costs.purchase.work else []
    return OfferRow(
        place=place,
        system=systems.of(one),
        offer=offer,
        days=(analysis.request.now.date() - offer.date).days if offer.date else 0,
        expected=expected,
        price=quantity(offer.cost, f"{currency}/h" if offer.rented else currency),
        cost=quantity(found.cost if found else None, currency),
        ratio=quantity(ratio),
        power=Quantity(found.power if found and costs.powered and not offer.rented else None, currency),
        hours=quantity(known.hours if known else None, "h"),
        cards=found.cards if found else None,
        use=Quantity(found.use if found else None, "share"),
        memory=Quantity(costs.memory[place], "bytes"),
        fits=costs.fits[place],
        speeds=tuple(quantity(time and (1 / time[2], 1 / time[1], 1 / time[0])) for time in times),
        beside=tuple(_beside(costs, place, analysis)),
        missing=_unknown(costs, place, blank[0]) if blank else None,
    )


def _beside(costs: Costs, place: int, analysis: Analysis) -> Iterator[RecordBeside]:
    specs = costs.paper.specs.get(costs.offers[place].card)
    rows = [row for one in analysis.request.asked if specs and one.card == specs.name for row in one.rows]
    for line in (*costs.lines, *costs.left_out):
        cell = line.cells[place]
        if cell is None or line.measured:
            continue
        called = WORKS.get(f"{cell.key.model}:{cell.key.precision}")
        said = [
            row
            for row in rows
            if called
            and called.fullmatch(row.task.work)
            and row.task.unit == rate_unit(cell)
            and row.task.precision == cell.key.precision
        ]
        span = (min(one.low for one in said), said[0].value, max(one.high for one in said)) if said else None
        yield RecordBeside(line, cell, quantity(span, rate_unit(cell)))


def _unknown(costs: Costs, place: int, line: WorkLine) -> Sentence:
    """Return why nothing is expected of a card in a line of work."""
    paper, one, base = costs.paper, costs.cards[place], costs.cards[costs.base]
    for card in (one, base):
        if card.card not in paper.specs:
            return Sentence("unknown-card", {"card": card.name, "use": paper.unknown.get(card.card, "")})
    if line.precision is None:
        return Sentence("no-precision", {"work": line.name})
    said = paper.times.get((one.card, base.card, line.name))
    if isinstance(said, Refusal):
        return Sentence("refused", {"refusal": said})
    return Sentence("no-figure", {"work": line.name})


def page(analysis: Analysis, systems: Systems) -> AnswerPage:
    """Return the page of a buyer's offers."""
    view = viewed(analysis, systems)
    costs = view.costs
    guessed = [row for row in view.rows[: view.ranked] if row.expected]
    widest = max(guessed, key=lambda row: (row.hours.high or 1) / (row.hours.low or 1), default=None)
    guesses = any(row.expected and not row.missing for row in view.rows)
    sure = {"paper": costs.paper if guesses else None, "widest": widest}
    notes = [Sentence("offers-sure", sure)]
    notes += [Sentence("in-the-sum", {"costs": costs})] if costs.purchase.work else []
    return AnswerPage(
        headline=_headline(view),
        picture=_picture(view),
        template="cost",
        table=view,
        notes=tuple(notes),
        following=_following(view),
        cells=[cell for line in costs.lines if line.measured for cell in line.cells if cell],
        chips=tuple(_chips(view)),
        about={"offers": len(view.rows)},
    )


def _picture(view: OffersView) -> Picture | None:
    """Return what each offer costs a year, from zero; null where none has a cost."""
    rows = []
    for row in view.rows:
        if row.cost.value is not None:
            look: Look = "projected" if row.expected else "measured"
            mark = Mark(row.cost.value, row.cost.low, row.cost.high, look, row.system.slot)
            said = figure_text(row.cost.value, view.currency)
            rows.append(ScaleRow(row.system.name, (mark,), "expected" if row.expected else "", said))
    if not rows:
        return None
    chart = ScaleRows((RowGroup("", tuple(rows)),), f"{view.currency} a year", reference=None)
    return rows_picture(chart, "costs")


def _headline(view: OffersView) -> Sentence:
    """Return which offer to take and what it costs, with the others over it; or what is open."""
    if not view.costs.purchase.work:
        return Sentence("offers-no-hours")
    if not view.ranked:
        state = "offers-too-small" if view.costs.model.offers else "offers-unknown"
        why = next((row.missing for row in view.rows if row.missing), None)
        return Sentence(state, {"count": len(view.rows), "why": why})
    if len(view.tied) > 1:
        return Sentence("offers-tied", {"rows": view.tied})
    return Sentence("offers", {"first": view.rows[0], "others": view.rows[1 : view.ranked], "view": view})


def _chips(view: OffersView) -> Iterator[Chip]:
    """Yield a record outside of what is expected, too few cards, and what was not measured or given."""
    rows, costs = view.rows, view.costs
    outside = [row for row in rows if any(one.outside for one in row.beside)]
    if outside:
        yield Chip("care", "outside-expected", data={"names": [row.system.name for row in outside]})
    few = [row for row in rows if row.cards and (row.offer.number or row.cards[1]) < row.cards[1]]
    for row in few:
        yield Chip("care", "too-few", data={"row": row})
    if guessed := [row for row in rows if row.expected]:
        yield Chip("care", "not-measured", data={"count": len(guessed), "of": len(rows)})
    if missing := [row.system.name for row in rows if row.missing]:
        yield Chip("care", "no-cost", data={"names": missing})
    if costs.left_out:
        yield Chip("care", "work-left-out", data={"hours": sum(line.hours for line in costs.left_out)})
    if not costs.purchase.hours_on and costs.purchase.work:
        yield Chip("care", "hours-assumed", data={"name": costs.cards[costs.base].name})
    old = [row for row in rows if row.days > OLD_DAYS]
    if old:
        oldest = max(old, key=lambda row: row.days)
        yield Chip(
            "care", "old-offer", data={"name": oldest.system.name, "days": oldest.days, "count": len(old)}
        )


def _following(view: OffersView) -> Sentence:
    """Return what the seller runs before the order, and the range that this would leave of a cost."""
    costs = view.costs
    if not costs.purchase.work:
        return Sentence("next-hours", {"commands": ("invoke report",)})
    if costs.lines and all(line.measured for line in costs.lines):
        return Sentence("next-pack", {"commands": ("invoke bundle",)})
    wanted = next((row for row in (*view.tied, *view.rows[: view.ranked]) if row.expected), view.rows[0])
    data = {"commands": (f"invoke build --plan {_plan(costs.lines)} run bundle",), "row": wanted}
    if (best := wanted.hours.value) is None or not wanted.expected:
        return Sentence("next-offer", {**data, "after": None})
    after = costs.model.cost(wanted.place, (best * (1 - SETTLED), best, best * (1 + SETTLED))).cost
    return Sentence("next-offer", {**data, "after": quantity(after, view.currency)})


def _plan(lines: Sequence[WorkLine]) -> str:
    """Return the plan by which all the work is on record, else the check of a card."""
    plans = {line.alike[0].trials[0].record.plan if line.alike else "card" for line in lines}
    return plans.pop() if len(plans) == 1 else "card"
