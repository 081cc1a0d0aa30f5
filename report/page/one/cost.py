"""What each offer costs a year for the buyer's work, measured or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from harness.record.published.cards import means_card
from report import text
from report.analysis import Analysis
from report.buying.cost_model import HOURS_A_YEAR, CostModel
from report.buying.costs import Costs
from report.buying.workload_mix import OfferedCard, UnrecordedLine, WorkLine, fits_work
from report.charts.marks import Look
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.expected.refusal import Refusal
from report.page.filters import value
from report.page.one.answering import AnswerPage
from report.page.values import Chip, NamedSystem, Picture, Quantity, Sentence, Systems, quantity

OLD_DAYS = 90
"""An offer that is older is marked."""
GB = 1e9


@dataclass(frozen=True, slots=True)
class OfferRow:
    """One offer, or the card that the hours are on. What is not known is not known of the whole work."""

    system: NamedSystem
    measured: bool
    """Whether the whole work was measured on it, and not expected of its card."""
    unranked: bool
    """Whether something ran on it, of which nothing is ranked."""
    reference: bool
    """Whether the hours are given on it."""
    number: int
    offered: date | None
    source: str
    days: int
    price: Quantity
    times: Quantity
    """Times as fast as the reference."""
    hours: Quantity
    cost: Quantity
    """What a year's work costs."""
    ratio: Quantity | None
    """Its cost over the cheapest's; null for that one."""
    turns_at: Quantity
    """The price at which it costs as much as the cheapest; of that one, as much as the second."""
    watts: Quantity
    watts_measured: bool
    memory: Quantity
    fits: bool | None
    """Whether all the work fits its memory; null where that is not known."""
    cheapest: bool
    tied: bool
    """Whether the ranges of two costs leave open which is less."""
    missing: tuple[Sentence, ...]
    """Why it has no cost."""

    @property
    def too_slow(self) -> bool:
        """Whether the work takes longer than a year."""
        return bool(self.hours.value and self.hours.value > HOURS_A_YEAR)


@dataclass(frozen=True, slots=True)
class WorkRow:
    """A line of the buyer's work with its hours; `peak` is memory that it took on some card."""

    name: str
    hours: float
    peak: Quantity
    left_out: Sentence | None = None


@dataclass(frozen=True, slots=True)
class OffersView:
    """Every offer, the work, and the picture of speed against cost."""

    rows: tuple[OfferRow, ...]
    works: tuple[WorkRow, ...]
    picture: Picture | None
    currency: str
    costs: Costs

    @property
    def on(self) -> NamedSystem:
        """The card that the hours are on."""
        return next(row.system for row in self.rows if row.reference)

    @property
    def priced(self) -> list[OfferRow]:
        """Those with a cost, the cheapest first."""
        return [row for row in self.rows if row.cost]


def viewed(analysis: Analysis, systems: Systems) -> OffersView:
    """Return the offers of the buyer's file, the cheapest first, and the card that the hours are on."""
    costs = analysis.costs
    assert costs is not None
    order, currency = costs.ranking.order, costs.purchase.currency
    works = tuple(_works(costs, analysis))
    peaks = [work.peak.value for work in works if not work.left_out]
    places = [*order, *(place for place in range(len(costs.offers)) if place not in order)]
    rows = tuple(_row(costs, place, analysis, systems, peaks) for place in places)
    return OffersView(rows, works, _picture(rows, currency), currency, costs)


def _row(
    costs: Costs, place: int, analysis: Analysis, systems: Systems, peaks: Sequence[float | None]
) -> OfferRow:
    ranking = costs.ranking
    one, found, model = costs.offers[place], ranking.offers[place], CostModel(costs.numbers)
    offer, currency, on = one.offer, costs.purchase.currency, costs.numbers.hours_on
    unit = f"{currency}/h" if costs.numbers.offers[place].rented else currency
    cheapest, turns = ranking.order[:1] == (place,), found.turning_price
    ratios = [ranking.offers[other].ratio for other in ranking.order if other != place]
    ties = [ratio[0] <= 1 for ratio in (ratios if cheapest else [found.ratio]) if ratio]
    memory = _memory(one, costs, analysis)
    return OfferRow(
        system=systems.of(one),
        measured=costs.measured_on(place),
        unranked=not one.measured and _ran(one, analysis),
        reference=place == on,
        number=offer.number if offer else 1,
        offered=offer.date if offer else None,
        source=text.clean(offer.source, 120) if offer else "",
        days=(analysis.request.now.date() - offer.date).days if offer else 0,
        price=quantity(offer.cost if offer else None, unit),
        times=Quantity(1.0, "ratio") if place == on else quantity(model.speed(place, on)),
        hours=quantity(found.hours, "h"),
        cost=quantity(found.cost, currency, best=cheapest),
        ratio=None if cheapest else quantity(found.ratio, "ratio"),
        turns_at=quantity((max(turns[0], 0.0), *turns[1:]) if turns and turns[1] > 0 else None, unit),
        watts=quantity(None if costs.power_unknown else model.watts(place), "W"),
        watts_measured=costs.power_measured_on(place),
        memory=Quantity(memory, "bytes"),
        fits=_fits(memory, peaks),
        cheapest=cheapest,
        tied=any(ties),
        missing=() if found.hours else tuple(_missing(costs, place, analysis)),
    )


def _memory(one: OfferedCard, costs: Costs, analysis: Analysis) -> float | None:
    """Return a card's memory as the framework saw it, else on paper."""
    specs = costs.paper.specs.get(one.card)
    return one.memory_bytes(analysis.trials) or (specs.memory_gb * GB if specs else None)


def _fits(memory: float | None, peaks: Sequence[float | None]) -> bool | None:
    known = [peak for peak in peaks if peak]
    if memory is None or not known:
        return None
    return False if max(known) > memory else True if len(known) == len(peaks) else None


def _missing(costs: Costs, place: int, analysis: Analysis) -> Iterator[Sentence]:
    """Yield why an offer has no figure of a line: a failure, a card that no one knows, or a refusal."""
    one = costs.offers[place]
    if _ran(one, analysis) and not one.measured and one.card not in costs.paper.specs:
        yield Sentence("not-ranked", {"card": one.name})
    for line in costs.lines or costs.left_out:
        if not line.cells[place]:
            if one.measured and not isinstance(line, UnrecordedLine):
                yield Sentence("not-measured", {"work": line.name, "reason": line.reasons[place]})
            else:
                yield _unknown(costs, one, line)


def _ran(one: OfferedCard, analysis: Analysis) -> bool:
    names = (name for trial in analysis.trials for name in (trial.card, trial.machine_label))
    return any(means_card(one.card, name) for name in names)


def _unknown(costs: Costs, one: OfferedCard, line: WorkLine) -> Sentence:
    """Return why nothing is expected of a card in a line of work."""
    paper, base = costs.paper, costs.offers[costs.numbers.hours_on]
    for card in (one, base):
        if card.card not in paper.specs:
            return Sentence("unknown-card", {"card": card.name, "use": paper.unknown.get(card.card, "")})
    if line.precision is None:
        return Sentence("no-precision", {"work": line.name})
    said = paper.speeds.get((one.card, base.card, line.name))
    data: dict[str, Any] = {"card": one.name, "base": base.name, "work": line.name}
    return (
        Sentence("refused", {**data, "refusal": said})
        if isinstance(said, Refusal)
        else Sentence("same", data)
    )


def _works(costs: Costs, analysis: Analysis) -> Iterator[WorkRow]:
    """Yield each line of work with its hours; of what is left out, the reason."""
    for line in (*costs.lines, *costs.left_out):
        out = isinstance(line, UnrecordedLine) and line in costs.left_out
        why = _left_out(costs, line, analysis) if out and isinstance(line, UnrecordedLine) else None
        yield WorkRow(line.name, line.hours, Quantity(_peak(line, analysis), "bytes"), why)


def _left_out(costs: Costs, line: UnrecordedLine, analysis: Analysis) -> Sentence:
    ran = [trial for trial in analysis.trials if fits_work(trial.key, line.work)]
    if ran and all(trial.verdict == "invalid" for trial in ran):
        return Sentence("invalid-runs", {"count": len(ran)})
    base = costs.numbers.hours_on
    others = [one for place, one in enumerate(costs.offers) if place != base] or [costs.offers[base]]
    return _unknown(costs, others[0], line)


def _peak(line: WorkLine, analysis: Analysis) -> float | None:
    """Return the most memory that a run of this work took on a GPU, ranked or not."""
    if isinstance(line, UnrecordedLine):
        cells = [cell for cell in analysis.cells if fits_work(cell.key, line.work)]
    else:
        cells = [cell for cell in line.cells if cell]
    on_gpu = (cell for cell in cells if cell.trials[0].environment.device != "cpu")
    return max((peak for cell in on_gpu if (peak := cell.figures["peak_bytes"].mean)), default=None)


def _picture(rows: Sequence[OfferRow], currency: str) -> Picture | None:
    """Return what each offer costs a year, from zero; null where none has a cost."""
    shown = [row for row in rows if row.offered or row.cost]
    if not any(row.cost for row in shown):
        return None
    drawn = tuple(_priced_row(row) for row in shown)
    alt = "; ".join(f"{row.label}: {row.text} {row.small}" for row in drawn)
    return Picture(
        "lead", ScaleRows((RowGroup("", drawn),), f"{currency} a year", reference=None), alt, "costs"
    )


def _priced_row(row: OfferRow) -> ScaleRow:
    """Return a bar with its range, hollow where the work was not measured on it; else why there is none."""
    name = f"{row.number} × {row.system.name}" if row.number > 1 else row.system.name
    if row.cost.value is None:
        return ScaleRow(name, text="no cost")
    look: Look = "measured" if row.measured else "projected"
    mark = Mark(row.cost.value, row.cost.low, row.cost.high, look, row.system.slot)
    return ScaleRow(name, (mark,), "" if row.measured else "expected", value(row.cost))


def page(analysis: Analysis, systems: Systems) -> AnswerPage:
    """Return the page of a buyer's offers."""
    view = viewed(analysis, systems)
    guessed = [row for row in view.priced if not row.measured and not row.reference]
    widest = max(guessed, key=lambda row: (row.times.high or 1) / (row.times.low or 1), default=None)
    paper = view.costs.paper
    sure = {"figures": paper.figures, "cards": paper.cards, "widest": widest}
    first = view.priced[0] if view.priced else None
    return AnswerPage(
        headline=_headline(view),
        picture=_picture(view.rows, view.currency),
        template="cost",
        table=view,
        notes=(Sentence("offers-sure", sure), Sentence("what-turns", {"first": first})),
        following=_following(view),
        cells=[cell for line in view.costs.lines for cell in line.cells if cell],
        chips=tuple(_chips(view)),
        about={"offers": sum(row.offered is not None for row in view.rows)},
    )


def _headline(view: OffersView) -> Sentence:
    """Return which offer to buy and what it costs, with the others over it; or that this is open."""
    priced, count = view.priced, sum(row.offered is not None for row in view.rows)
    if not priced:
        why = next((row.missing[0] for row in view.rows if row.missing), None)
        lefts = (work.left_out for work in view.works if work.left_out)
        return Sentence("offers-unknown", {"count": count, "why": why or next(lefts, None)})
    first, *others = priced
    if first.tied:
        second = next(row for row in others if row.tied)
        return Sentence("offers-tied", {"first": first, "second": second, "count": count})
    return Sentence("offers", {"first": first, "others": [row.ratio for row in others if row.ratio]})


def _chips(view: OffersView) -> Iterator[Chip]:
    """Yield how many offers nobody measured, which have no cost, and which are old."""
    offered = [row for row in view.rows if row.offered]
    guessed = [row for row in offered if not row.measured]
    for name, count in Counter(
        "not-ranked-offers" if row.unranked else "not-measured" for row in guessed
    ).items():
        yield Chip("stop", name, data={"count": count, "of": len(offered)})
    if missing := [row.system.name for row in offered if row.missing]:
        yield Chip("care", "no-cost", data={"names": missing})
    if any(work.left_out for work in view.works):
        yield Chip("care", "work-left-out", data={"hours": sum(w.hours for w in view.works if w.left_out)})
    if not view.costs.purchase.hours_on:
        yield Chip("care", "hours-assumed", "costs", {"name": view.on.name})
    old = [row for row in offered if row.days > OLD_DAYS]
    if old:
        oldest = max(old, key=lambda row: row.days)
        yield Chip(
            "care", "old-offer", data={"name": oldest.system.name, "days": oldest.days, "count": len(old)}
        )


def _following(view: OffersView) -> Sentence:
    open_ = [row for row in view.rows if row.offered and not row.measured]
    commands = ("invoke build run bundle",) if open_ else ("invoke bundle",)
    wanted = [row for row in open_ if row.tied or row.cheapest] or open_
    return Sentence("next-offer", {"commands": commands, "names": [row.system.name for row in wanted[:2]]})
