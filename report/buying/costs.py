"""What each offer costs for the buyer's work: records and the buyer's file → numbers → costs.

A work is by its measurements where every card has that very work on record, else by what is expected of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean

from harness.record.published.cards import Card, find_card
from report.buying.cost_model import CERTAIN, CostModel, OfferNumbers, Range
from report.buying.purchase import Purchase
from report.buying.workload_mix import OfferedCard, WorkLine, offered_cards, timed_cells, work_lines
from report.compare.card_units import UnitSpread, unit_spreads
from report.compare.cells import Cell
from report.compare.ratio import work_ratio
from report.expected.relative import CardsOnPaper
from report.stats.contrast import assumed_reach
from report.trials.key import MEASURED_FIELDS, without_fields
from report.trials.trial import TrialResult

LIFE_YEARS: Range = (2.0, 4.0, 8.0)
"""What the page assumes, and says so, where a card's life is not given."""
SITE = ("busy_share", "pue", "residual_share", "host_price", "host_watts")
NOTHING: Range = (0.0, 0.0, 0.0)
ENERGY_BAND = 0.05
GB = 1e9


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of the offers, and what the reader has to know about them."""

    cards: tuple[OfferedCard, ...]
    """Each offer's, and behind them the one of the hours where it is no offer's."""
    base: int
    """The place of the card that the hours are on."""
    lines: tuple[WorkLine, ...]
    left_out: tuple[WorkLine, ...]
    """Lines of the buyer's work of which nothing is known on any offer."""
    speeds: tuple[tuple[Range | None, ...], ...]
    """Each offer's time over that of the base, by line."""
    model: CostModel
    """The sums of the offers whose hours are known, by their places among the cards."""
    order: tuple[int, ...]
    """The places of the model's offers that the work is not known to be too large for, the cheapest first."""
    fits: tuple[bool | None, ...]
    """For each card whether all the work fits its memory; null where that is not known."""
    memory: tuple[float | None, ...]
    """Each card's bytes, as the framework saw them, else on paper."""
    without_power: tuple[str, ...]
    """The offers whose power is unknown, for which that of all is left out of the sums."""
    paper: CardsOnPaper
    purchase: Purchase

    @property
    def offers(self) -> tuple[OfferedCard, ...]:
        """The cards that have an offer."""
        return tuple(one for one in self.cards if one.offer)

    @property
    def powered(self) -> bool:
        """Whether power is in the sums."""
        return self.purchase.electricity_price is not None and not self.without_power


def costs(
    cells: Sequence[Cell],
    trials: Sequence[TrialResult],
    on_paper: Sequence[Card],
    purchase: Purchase | None,
    paper: CardsOnPaper,
) -> Costs | None:
    """Return the costs of all offers for the buyer's work; null without a buyer's file.

    Raises UserError where a name in the buyer's file fits several cards or lines.
    """
    if purchase is None:
        return None
    cells = timed_cells(cells)
    (cards, named), count = offered_cards(cells, purchase, on_paper), len(purchase.offer)
    times = _Times(cards, unit_spreads(trials), paper)
    asked = work_lines(cells, cards, purchase)
    base = _most_known(cards, asked, paper) if named is None else named
    given = tuple(replace(line, measured=times.are_measured(line, base)) for line in asked)
    # The card of the hours takes them as given, whatever the work is.
    others = [i for i in range(count) if i != base]
    lines = tuple(
        line
        for line in given
        if any(line.cells) or not others or any(times.over(line, i, base) for i in others)
    )
    speeds = tuple(tuple(times.over(line, i, base) for line in lines) for i in range(count))
    places = tuple(i for i in range(count) if purchase.work and lines and all(speeds[i]))
    memory = tuple(_memory(one, trials, paper) for one in cards)
    watts = {i: _watts(cards[i], i, lines, speeds[i], on_paper, paper) for i in places}
    bought = [i for i in places if not purchase.offer[i].rented]
    unknown = tuple(cards[i].name for i in bought if watts[i] is None)
    tariff = purchase.electricity_price
    site = {name: getattr(purchase, name).values for name in SITE} | {
        "life_years": purchase.life_years.values if purchase.life_years else LIFE_YEARS,
        "electricity_price": tariff.values if tariff and not unknown else NOTHING,
    }
    offers = {
        i: OfferNumbers(offer.rented, offer.cost, watts[i] or NOTHING, _hours(lines, speeds[i]))
        for i, offer in enumerate(purchase.offer)
        if i in places
    }
    apart = {(i, j): times.of_work(lines, i, j, speeds) for i, j in product(places, repeat=2)}
    model = CostModel(site, offers, apart)
    fits = tuple(_fits(one, memory[i], lines, trials) for i, one in enumerate(cards))
    order = tuple(i for i in model.order() if fits[i] is not False)
    left = tuple(line for line in given if line not in lines)
    return Costs(cards, base, lines, left, speeds, model, order, fits, memory, unknown, paper, purchase)


def _most_known(cards: Sequence[OfferedCard], lines: Sequence[WorkLine], paper: CardsOnPaper) -> int:
    """Return the place of the first card with most of the work on record, or that tables know."""
    return max(
        range(len(cards)),
        key=lambda i: (sum(line.cells[i] is not None for line in lines), cards[i].card in paper.specs),
    )


@dataclass(frozen=True, slots=True)
class _Times:
    """How long one card takes over another."""

    cards: Sequence[OfferedCard]
    spreads: dict[str, UnitSpread]
    paper: CardsOnPaper

    def are_measured(self, line: WorkLine, base: int) -> bool:
        """Return whether a line is on record of the base, and of each card of which anything is known."""
        known = (self.paper.time_over(one.card, self.cards[base].card, line.name) for one in self.cards)
        return line.cells[base] is not None and all(
            cell or not time for cell, time in zip(line.cells, known, strict=True)
        )

    def over(self, line: WorkLine, i: int, j: int) -> Range | None:
        """Return the time of card i over card j in a line; a card bought and rented has the same time."""
        one, other, of, over = self.cards[i], self.cards[j], line.cells[i], line.cells[j]
        if i == j or (of is not None and of is over):
            return CERTAIN
        if not line.measured:
            return self.paper.time_over(one.card, other.card, line.name)
        if of is None or over is None:
            return None
        # Any two units of the two models may come.
        units = [self.spreads.get(card.card, UnitSpread()).assumption for card in (one, other)]
        found = work_ratio(of, over, "throughput", (), units=units)
        alone = math.exp(assumed_reach(units))
        slow, fast = found.estimate / alone, found.estimate * alone
        if found.interval:
            slow, fast = found.interval.low, found.interval.high
        return 1 / fast, 1 / found.estimate, 1 / slow

    def of_work(
        self, lines: Sequence[WorkLine], i: int, j: int, speeds: Sequence[Sequence[Range | None]]
    ) -> Range:
        """Return the same for the whole work, each line's range by its share of both cards' hours."""
        shares = [
            [line.hours * (time[1] if time else 0.0) for line, time in zip(lines, speeds[k], strict=True)]
            for k in (i, j)
        ]
        best = sum(shares[0]) / sum(shares[1])
        low = high = 0.0
        for line, first, second in zip(lines, *shares, strict=True):
            weight = (first / sum(shares[0]) + second / sum(shares[1])) / 2
            if (time := self.over(line, i, j)) is not None:
                low, high = (
                    low + weight * math.log(time[0] / time[1]),
                    high + weight * math.log(time[2] / time[1]),
                )
        return best * math.exp(low), best, best * math.exp(high)


def _hours(lines: Sequence[WorkLine], times: Sequence[Range | None]) -> Range:
    """Return the hours of a year's work at the low, best and high ends of each line's time."""
    ends = [
        sum(line.hours * time[at] for line, time in zip(lines, times, strict=True) if time) for at in range(3)
    ]
    return ends[0], ends[1], ends[2]


def _watts(
    one: OfferedCard,
    place: int,
    lines: Sequence[WorkLine],
    times: Sequence[Range | None],
    on_paper: Sequence[Card],
    paper: CardsOnPaper,
) -> Range | None:
    """Return mean power over the work, by hours: measured where the work is, else quoted or on paper."""
    card, specs = find_card(one.device, on_paper), paper.specs.get(one.card)
    board = (
        card.power_watts and card.power_watts / card.devices if card else specs.power_watts if specs else None
    )
    quoted = (
        one.offer.watts.values if one.offer and one.offer.watts else (board, board, board) if board else None
    )
    total, mean = _hours(lines, times)[1], [0.0, 0.0, 0.0]
    for line, time in zip(lines, times, strict=True):
        power = (_measured_watts(line.cells[place]) if line.measured else None) or quoted
        if power is None or time is None:
            return None
        mean = [sum_ + line.hours * time[1] / total * end for sum_, end in zip(mean, power, strict=True)]
    return mean[0], mean[1], mean[2]


def _measured_watts(cell: Cell | None) -> Range | None:
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


def _memory(one: OfferedCard, trials: Sequence[TrialResult], paper: CardsOnPaper) -> float | None:
    """Return a card's memory as the framework saw it, else on paper."""
    measured = [trial.record.measurement for trial in trials if one.made(trial)]
    sizes = [found.device.memory_bytes for found in measured if found]
    specs = paper.specs.get(one.card)
    return max(filter(None, sizes), default=None) or (specs.memory_gb * GB if specs else None)


def _fits(
    one: OfferedCard, memory: float | None, lines: Sequence[WorkLine], trials: Sequence[TrialResult]
) -> bool | None:
    """Return whether all the work fits a card's memory, by what it took and by what failed there."""
    works = {without_fields(cell.key, *MEASURED_FIELDS) for line in lines for cell in line.alike}
    for trial in trials:
        too_large = trial.failure is not None and trial.failure.reason == "out-of-memory"
        if too_large and one.made(trial) and without_fields(trial.key, *MEASURED_FIELDS) in works:
            return False
    peaks = [line.peak_bytes for line in lines]
    if memory is None or not any(peaks):
        return None
    return False if max(filter(None, peaks)) > memory else True if all(peaks) else None
