"""Records and the buyer's file → the numbers that every purchase figure stands on.

Each range is the wider one: the measured 95 % interval times the band in which other units may lie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean

from harness.errors import UserError
from harness.record.cards import Card
from report import text
from report.comparisons.cells import Cell, cell_ratio
from report.comparisons.expectation import Buyer
from report.comparisons.groups import ComparisonGroup
from report.comparisons.unit_spread import pair_band, unit_band, unit_means
from report.cost.mix import MixLine, asked, lines, reader, without_purchase
from report.cost.numbers import INPUTS, CardNumbers, Numbers, Range, RowNumbers
from report.cost.offers import Offer, offers, usable
from report.cost.purchase import FILE, Purchase
from report.stats.intervals import Interval, log_mean_interval
from report.trials.trial import Trial

ENERGY_BAND = 0.05
GIB = 2**30
NEUTRAL: dict[str, Range] = {
    "life_years": (1.0, 1.0, 1.0),
    "utilisation": (1.0, 1.0, 1.0),
    "electricity_price": (0.0, 0.0, 0.0),
}
"""For files of rented cards alone, and where there is no file: no figure that is shown depends on them."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The numbers, and what has to be said beside them."""

    numbers: Numbers
    offers: tuple[Offer, ...]
    lines: tuple[MixLine, ...]
    purchase: Purchase | None
    own_mix: bool
    """Whether the mix is the buyer's, or an hour of each line."""
    measured_power: tuple[bool, ...]
    """Of each offer: whether its power was measured on every line that it has."""
    doubts: tuple[str, ...]


def gather(
    groups: Sequence[ComparisonGroup],
    trials: Sequence[Trial],
    cards: Sequence[Card],
    purchase: Purchase | None,
) -> Gathered | None:
    """The numbers of all offers on the mix; null where no ranked figure is at hand.

    Raises UserError where a name in the buyer's file fits several cards or lines.
    """
    cells = usable(groups)
    found, missing = offers(cells, purchase)
    every = lines(cells, found, trials)
    if not every:
        return None
    own = purchase is not None and bool(purchase.work)
    mix, absent = asked(every, purchase) if own and purchase else (without_purchase(every), ())
    if not mix:
        return None
    on = _hours_on(found, mix, purchase)
    speed = tuple(
        tuple(_speeds(mix, i, j, cells, found) for j in range(len(found))) for i in range(len(found))
    )
    numbers = Numbers(
        inputs=_inputs(purchase),
        limits=_limits(purchase),
        cards=tuple(_card(offer, i, mix, trials, cards, purchase, cells) for i, offer in enumerate(found)),
        rows=tuple(RowNumbers(line.name, line.hours) for line in mix),
        hours_on=on,
        speed=speed,
    )
    return Gathered(
        numbers,
        found,
        mix,
        purchase,
        own,
        tuple(_all_measured(mix, i) for i in range(len(found))),
        (*missing, *absent, *_single_runs(mix)),
    )


def buyer(
    groups: Sequence[ComparisonGroup], trials: Sequence[Trial], purchase: Purchase | None
) -> Buyer | None:
    """The buyer's own hours of each work on record; null where the file has none.

    Raises UserError where a name in the file fits several cards or lines.
    """
    if purchase is None or not purchase.work:
        return None
    cells = usable(groups)
    found, _ = offers(cells, purchase)
    every = lines(cells, found, trials)
    mix = asked(every, purchase)[0] if every else ()
    if not mix:
        return None
    on = found[_hours_on(found, mix, purchase)]
    return Buyer({(line.key, line.length): line.hours for line in mix}, (on.machine, on.card))


def _hours_on(found: Sequence[Offer], mix: Sequence[MixLine], purchase: Purchase | None) -> int:
    """The offer whose hours are given; without a name the slowest of those that did most of the mix."""
    if purchase is not None and purchase.hours_on:
        wanted = purchase.hours_on.casefold()
        named = [i for i, one in enumerate(found) if wanted in f"{one.card} {one.name}".casefold()]
        if not named:
            raise UserError(
                f"{FILE}: 'hours_on' names '{text.clean(purchase.hours_on, 60)}', no ranked card",
                remedy=f"take one of {', '.join(one.name for one in found)}",
            )
        return named[0]

    def place(i: int) -> tuple[int, float]:
        done = [line for line in mix if line.cells[i]]
        return len(done), sum(
            math.log(geometric_mean(reader(line)(cell))) for line in done if (cell := line.cells[i])
        )

    return max(range(len(found)), key=place)


def _inputs(purchase: Purchase | None) -> dict[str, Range]:
    found: dict[str, Range] = {}
    for name in INPUTS:
        given = getattr(purchase, name) if purchase else None
        found[name] = given.values if given else NEUTRAL.get(name, (0.0, 0.0, 0.0))
    found["pue"] = purchase.pue.values if purchase else (1.0, 1.0, 1.0)
    return found


def _limits(purchase: Purchase | None) -> dict[str, float | None]:
    if purchase is None:
        return dict.fromkeys(("budget", "cards", "slots", "watts"))
    lives = purchase.life_years is not None and purchase.utilisation is not None
    return {
        "budget": purchase.budget if lives else None,
        "cards": purchase.cards,
        "slots": purchase.slots,
        "watts": purchase.watts_available,
    }


def _card(
    offer: Offer,
    i: int,
    mix: Sequence[MixLine],
    trials: Sequence[Trial],
    cards: Sequence[Card],
    purchase: Purchase | None,
    cells: Sequence[Cell],
) -> CardNumbers:
    board = offer.board_watts(cards)
    quoted = offer.quote.watts.values if offer.quote and offer.quote.watts else None
    paper = quoted or ((board, board, board) if board else None)
    memory, needed = offer.memory_bytes(trials), purchase.memory_gib if purchase else None
    watts = tuple(_watts(line.cells[i]) or paper for line in mix)
    return CardNumbers(
        name=offer.name,
        rented=bool(offer.quote and offer.quote.rented),
        price=offer.quote.cost if offer.quote else None,
        watts=watts,
        board_watts=board or max((one[2] for one in watts if one), default=None),
        fits=needed is None or memory is None or memory >= needed * GIB,
        seconds=tuple(_seconds(line, i, cells) for line in mix),
    )


def _watts(cell: Cell | None) -> Range | None:
    """Mean power in the windows of a cell's runs, with the band that sensors are off by."""
    told = [trial.record.telemetry.energy for trial in cell.trials if trial.record.telemetry] if cell else []
    known = [
        (e.joules / e.window_seconds, e.band or ENERGY_BAND) for e in told if e.joules and e.window_seconds
    ]
    if not known:
        return None
    band, watts = max(band for _, band in known), [watts for watts, _ in known]
    return min(watts) * (1 - band), fmean(watts), max(watts) * (1 + band)


def _all_measured(mix: Sequence[MixLine], i: int) -> bool:
    return all(_watts(line.cells[i]) for line in mix if line.cells[i])


def _seconds(line: MixLine, i: int, cells: Sequence[Cell]) -> Range | None:
    """Seconds for one unit of the work on any unit of the card."""
    cell = line.cells[i]
    if cell is None:
        return None
    values = reader(line)(cell)
    middle, found = geometric_mean(values), log_mean_interval(values)
    band = unit_band(1.0, unit_means(cells, cell.card))
    low, high = (found.low / found.estimate, found.high / found.estimate) if found else (1.0, 1.0)
    return middle * low / band.high, middle, middle * high / band.low


def _speeds(
    mix: Sequence[MixLine], i: int, j: int, cells: Sequence[Cell], found: Sequence[Offer]
) -> tuple[Range | None, ...]:
    """Time of offer i over offer j on each line; the same card bought and rented has the same time."""
    return tuple(_time_over(line, i, j, cells, len(found)) for line in mix)


def _time_over(line: MixLine, i: int, j: int, cells: Sequence[Cell], offered: int) -> Range | None:
    one, other = line.cells[i], line.cells[j]
    if one is None or other is None:
        return None
    if one is other:
        return (1.0, 1.0, 1.0)
    read = reader(line)
    mine, theirs = geometric_mean(read(one)), geometric_mean(read(other))
    if mine < theirs or (mine == theirs and i < j):
        low, best, high = _times_as_fast(line, one, other, theirs / mine, cells, offered)
        return 1 / high, 1 / best, 1 / low
    return _times_as_fast(line, other, one, mine / theirs, cells, offered)


def _times_as_fast(
    line: MixLine, fast: Cell, slow: Cell, best: float, cells: Sequence[Cell], offered: int
) -> Range:
    """How many times as fast the faster card is, in any two units of the two models."""
    of, over, name = (fast, slow, "throughput") if line.by_throughput else (slow, fast, "seconds")
    ratio = cell_ratio(of, over, name, comparisons=offered - 1)
    interval: Interval | None = ratio.interval if ratio else None
    low, high = (
        (interval.low / interval.estimate, interval.high / interval.estimate) if interval else (1.0, 1.0)
    )
    band = pair_band(cells, fast.card, slow.card)
    return best * low * band.low, best, best * high * band.high


def _single_runs(mix: Sequence[MixLine]) -> tuple[str, ...]:
    alone = [line for line in mix if any(cell and len(reader(line)(cell)) < 2 for cell in line.cells)]
    if not alone:
        return ()
    return (
        f"{text.count(len(alone), 'line')} of the mix {'stands' if len(alone) == 1 else 'stand'} on "
        "a single run of a card: of its own scatter nothing is in the ranges.",
    )
