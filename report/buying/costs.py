"""What each offer costs for the buyer's work: records and the buyer's file → numbers → costs.

Each range is the wider one: the reaches of the measured 95 % interval and of the band of other units add in
squares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean

from harness.record.published.cards import Card, find_card
from report.buying.cost_model import (
    CERTAIN,
    HOURS_A_YEAR,
    NO_WATTS,
    CostModel,
    CostNumbers,
    CostRanking,
    OfferNumbers,
    Range,
    rank_costs,
)
from report.buying.purchase import Purchase
from report.buying.workload_mix import (
    MixLine,
    OfferedCard,
    UnrecordedLine,
    WorkLine,
    buyers_mix,
    candidates,
    default_mix,
    meant,
    mix_lines,
    timed_cells,
)
from report.compare.cells import Cell
from report.compare.ratio import Speed, work_ratio
from report.compare.spread import UnitBand, UnitSpread, unit_band, unit_spreads
from report.expected.relative import CardsOnPaper
from report.trials.trial import TrialResult

LIFE_YEARS: Range = (2.0, 4.0, 8.0)
"""What the page assumes, and says so, where a bought card's life is not given."""
RENTED: dict[str, Range] = {"life_years": CERTAIN, "utilisation": CERTAIN, "electricity_price": NO_WATTS}
"""For files of rented cards alone: no figure that is shown depends on them."""
INPUTS = (*RENTED, "pue", "residual_share", "host_price", "host_watts")
ENERGY_BAND = 0.05


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of each offer by these numbers, and what the reader has to know about them."""

    numbers: CostNumbers
    """Without the cards' power where that of one is not known."""
    ranking: CostRanking
    power_unknown: tuple[str, ...]
    """The offers whose power is unknown, for which that of all cards is left out of the costs."""
    offers: tuple[OfferedCard, ...]
    lines: tuple[WorkLine, ...]
    left_out: tuple[UnrecordedLine, ...]
    """Lines of the buyer's work of which nothing is known on any offer."""
    paper: CardsOnPaper
    purchase: Purchase

    @property
    def stacks_differ(self) -> bool:
        """Whether a line was not run with the same software on all cards."""
        return any(len({cell.stack for cell in line.cells if cell}) > 1 for line in self.lines)

    @property
    def single_runs(self) -> int:
        """Return how many lines use a single run of a card, whose own scatter no range holds."""
        return sum(
            any(cell and len(line.unit_seconds(cell).values) < 2 for cell in line.cells)
            for line in self.lines
            if isinstance(line, MixLine)
        )

    def measured_on(self, place: int) -> bool:
        """Return whether all the work was measured on an offer."""
        return bool(self.lines) and all(line.cells[place] for line in self.lines)

    def power_measured_on(self, place: int) -> bool:
        """Return whether an offer's power was measured on every line that it has."""
        cells = [cell for line in self.lines if (cell := line.cells[place])]
        return bool(cells) and all(map(_watts, cells))


def costs(
    cells: Sequence[Cell],
    trials: Sequence[TrialResult],
    cards: Sequence[Card],
    purchase: Purchase | None,
    paper: CardsOnPaper,
) -> Costs | None:
    """Return the costs of all offers for the buyer's work; null without a buyer's file.

    Raises UserError where a name in the buyer's file fits several cards or lines.
    """
    if purchase is None:
        return None
    cells = timed_cells(cells)
    offered = candidates(cells, purchase)
    recorded = mix_lines(cells, offered, trials)
    in_use = HOURS_A_YEAR * _inputs(purchase)["utilisation"][1]
    mix: tuple[WorkLine, ...] = default_mix(recorded, in_use)
    if purchase.work:
        mix = buyers_mix(recorded, purchase, offered)
    named = _hours_on(cells, offered, purchase)
    offered, mix = _in_question(offered, mix, named)
    on = offered.index(named[0]) if named else _slowest(offered, mix, paper)
    base = offered[on].card
    left_out = tuple(
        line
        for line in mix
        if isinstance(line, UnrecordedLine)
        and not any(paper.time_over(one.card, base, line.name) for one in offered if one.card != base)
    )
    mix = tuple(line for line in mix if line not in left_out)
    on_record = unit_spreads(trials)
    spreads = tuple(on_record.get(offer.card, UnitSpread()) for offer in offered)
    others, places = max(sum(offer.measured for offer in offered) - 1, 1), range(len(offered))
    numbers = CostNumbers(
        inputs=_inputs(purchase),
        offers=tuple(_offer(offer, i, mix, cards, paper) for i, offer in enumerate(offered)),
        hours=tuple(line.hours for line in mix),
        hours_on=on,
        speed=tuple(
            tuple(
                tuple(
                    _time_over(line, i, j, spreads, others) or _expected_time(line, i, j, offered, paper)
                    for line in mix
                )
                for j in places
            )
            for i in places
        ),
    )
    unknown = _power_unknown(numbers)
    if unknown:
        # As if the cards drew nothing, all alike; the host's share stays.
        unpowered = (replace(offer, watts=(NO_WATTS,) * len(offer.watts)) for offer in numbers.offers)
        numbers = replace(numbers, offers=tuple(unpowered))
    return Costs(numbers, rank_costs(numbers), unknown, offered, mix, left_out, paper, purchase)


def _power_unknown(numbers: CostNumbers) -> tuple[str, ...]:
    """Return the cards that are bought, and whose power is unknown on a line with hours."""
    model = CostModel(numbers)
    return tuple(
        offer.name
        for i, offer in enumerate(numbers.offers)
        if offer.price is not None
        and not offer.rented
        and model.best_hours(i) is not None
        and model.watts(i) is None
    )


def _in_question(
    offered: Sequence[OfferedCard], mix: Sequence[WorkLine], besides: Sequence[OfferedCard]
) -> tuple[tuple[OfferedCard, ...], tuple[WorkLine, ...]]:
    """Return the offers, the cards `besides`, and the other cards that did some of the work."""
    wanted = [one for one in offered if one.offer or one in besides]
    places = [i for i, one in enumerate(offered) if one in wanted or any(line.cells[i] for line in mix)]
    return tuple(offered[place] for place in places), tuple(line.on(places) for line in mix)


def _hours_on(
    cells: Sequence[Cell], offers: Sequence[OfferedCard], purchase: Purchase
) -> tuple[OfferedCard, ...]:
    """Return the card whose hours are given; none where the buyer does not say."""
    if not purchase.hours_on:
        return ()
    cell, name = meant(purchase.hours_on, cells, "'hours_on'"), purchase.hours_on.casefold()
    if cell:
        return tuple(one for one in offers if one.made(cell.machine, cell.card))[:1]
    return tuple(one for one in offers if one.card.casefold() == name)[:1]


def _slowest(offers: Sequence[OfferedCard], mix: Sequence[WorkLine], paper: CardsOnPaper) -> int:
    """Return the slowest of the offers that did most of the mix; where none did any, the slowest expected."""

    def place(i: int) -> tuple[int, float, float]:
        done = [
            math.log(geometric_mean(line.unit_seconds(cell).values))
            for line in mix
            if isinstance(line, MixLine) and (cell := line.cells[i])
        ]
        times = [paper.time_over(offers[i].card, other.card, line.name) for line in mix for other in offers]
        return len(done), sum(done), sum(math.log(time[1]) for time in times if time)

    return max(range(len(offers)), key=place)


def _inputs(purchase: Purchase) -> dict[str, Range]:
    given = ((name, getattr(purchase, name)) for name in INPUTS)
    known = {name: value.values if value else RENTED[name] for name, value in given}
    assumed = purchase.buys and purchase.life_years is None
    return known | ({"life_years": LIFE_YEARS} if assumed else {})


def _offer(
    candidate: OfferedCard, i: int, mix: Sequence[WorkLine], cards: Sequence[Card], paper: CardsOnPaper
) -> OfferNumbers:
    offer, card, specs = candidate.offer, find_card(candidate.device, cards), paper.specs.get(candidate.card)
    paper_watts = card.power_watts and card.power_watts / card.devices if card else None
    board = paper_watts if card else specs.power_watts if specs else None
    quoted = offer.watts.values if offer and offer.watts else None
    on_paper = quoted or ((board, board, board) if board else None)
    return OfferNumbers(
        name=candidate.name,
        rented=bool(offer and offer.rented),
        price=offer.cost if offer else None,
        watts=tuple(_watts(line.cells[i]) or on_paper for line in mix),
    )


def _watts(cell: Cell | None) -> Range | None:
    """Return the mean power in the windows of a cell's valid runs, with the band that sensors are off by."""
    trials = [trial for trial in cell.trials if trial.verdict != "invalid"] if cell else []
    readings = [
        (energy.joules / energy.window_seconds, energy.band or ENERGY_BAND)
        for trial in trials
        if (energy := trial.energy) and energy.joules and energy.window_seconds
    ]
    if not readings:
        return None
    band, watts = max(band for _, band in readings), [watts for watts, _ in readings]
    return min(watts) * (1 - band), fmean(watts), max(watts) * (1 + band)


def _time_over(
    line: WorkLine, i: int, j: int, spreads: Sequence[UnitSpread], comparisons: int
) -> Range | None:
    """Return the time of offer i over offer j; the same card bought and rented has the same time."""
    first, second = line.cells[i], line.cells[j]
    if not isinstance(line, MixLine) or first is None or second is None:
        return None
    if first is second:
        return (1.0, 1.0, 1.0)
    seconds_over = geometric_mean(line.unit_seconds(first).values) / geometric_mean(
        line.unit_seconds(second).values
    )
    band = unit_band(spreads[i], spreads[j], comparisons=comparisons)
    if seconds_over < 1 or (seconds_over == 1 and i < j):
        low, best, high = _times_as_fast(line, first, second, 1 / seconds_over, band)
        return 1 / high, 1 / best, 1 / low
    return _times_as_fast(line, second, first, seconds_over, band)


def _expected_time(
    line: WorkLine, i: int, j: int, offered: Sequence[OfferedCard], paper: CardsOnPaper
) -> Range | None:
    """Return the same by what is known on paper; null where one of them failed at this work."""
    if i != j and isinstance(line, MixLine) and (line.failed(i) or line.failed(j)):
        return None
    return paper.time_over(offered[i].card, offered[j].card, line.name)


def _times_as_fast(line: MixLine, fast: Cell, slow: Cell, best: float, band: UnitBand) -> Range:
    """Return how many times as fast the faster card is, in any two units of the two models."""
    speed: Speed = "throughput" if line.by_throughput else "seconds"
    ends = work_ratio(fast, slow, speed, (), comparisons=band.comparisons).interval
    low, high = (ends.low / ends.estimate, ends.high / ends.estimate) if ends else (1.0, 1.0)
    below, above = band.around(best * low, best, best * high)
    return below, best, above
