"""What cards cost: against the time they take, by what it depends on, and at which price the answer turns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from report.charts.sheet import KEY_LINE, Key, Sheet, bar, grid, interval, key_rows, legend, stroke, ticks
from report.charts.style import (
    BLUE,
    CARD_LOOKS,
    INK,
    LINE,
    MARKER_SIZES,
    NOTE,
    ORANGE,
    PAPER,
    RULE,
    SOFT,
    Layout,
    Style,
    cut,
    linear_ticks,
    ratio_ticks,
    width_of,
    wrapped,
    written,
)

Range = tuple[float, float, float]
"""Low, best, high."""

TOP, UNDER, EDGE = 26.0, 44.0, 12.0
HEADROOM = 1.05
"""So that the last zone is seen."""
TURN: Style = {"ls": "none", "color": INK, "marker": "|", "ms": 14, "mew": 1.6}
"""The mark of the price at which the answer turns."""
OFFER = 24.0
"""Height of an offer's line below its words, px."""


@dataclass(frozen=True, slots=True)
class CardCost:
    """One card's hours for the mix, and what they cost. `label` names it with its cost."""

    label: str
    hours: Range
    cost: Range


@dataclass(frozen=True, slots=True)
class CostAgainstTime:
    """Hours across, cost upwards, both with their ranges."""

    cards: tuple[CardCost, ...]
    across: str
    up: str

    def sheet(self, layout: Layout) -> Sheet:
        """The cards are named below."""
        keys = [Key(card.label, _mark(place)) for place, card in enumerate(self.cards)]
        rows = key_rows(keys, layout.width)
        hours = [hours for card in self.cards for hours in card.hours]
        costs = [cost for card in self.cards for cost in card.cost]
        sheet, axes, foot = _from_zero(layout, (hours, costs), (self.across, self.up), KEY_LINE * len(rows))
        for place, card in enumerate(self.cards):
            _crossed(axes, card, CARD_LOOKS[place % len(CARD_LOOKS)].colour)
            stroke(axes, card.hours[1:2], card.cost[1:2], {**_mark(place), "zorder": 3})
        legend(sheet, foot, rows)
        return sheet


@dataclass(frozen=True, slots=True)
class Input:
    """One input, and the ratio of the two costs at the low and at the high end of its range."""

    label: str
    at_low: float
    at_high: float


@dataclass(frozen=True, slots=True)
class Tornado:
    """How far each input moves the ratio of two costs from what it is at best; across 1 the ranking turns."""

    ratio: float
    inputs: tuple[Input, ...]

    def sheet(self, layout: Layout) -> Sheet:
        """Labels stand above their bars, as long as they are."""
        names = [wrapped(reach.label, layout.width, NOTE) for reach in self.inputs]
        heights = [LINE * len(name) + 28 for name in names]
        sheet = Sheet(layout.width, sum(heights) + 22)
        room = layout.width - 2 * EDGE
        axes = sheet.axes(EDGE, 0, room, sum(heights))
        values = [
            self.ratio,
            *(end for reach in self.inputs for end in (reach.at_low, reach.at_high)),
        ]
        ends, places = ratio_ticks(values, room)
        axes.set(xscale="log", xlim=ends, ylim=(sum(heights), 0))
        ticks(axes, [(place, written(place, "times")) for place in places])
        top = 0.0
        for reach, name, height in zip(self.inputs, names, heights, strict=True):
            for place, line in enumerate(name, 1):
                sheet.text(0, top + LINE * place, line, colour=INK)
            y = top + height - 14
            _rules(axes, places, y, 9)
            stroke(axes, [1.0, 1.0], [y - 9, y + 9], {"color": INK, "lw": 1.2})
            low, high = (min(max(end, ends[0]), ends[1]) for end in (reach.at_low, reach.at_high))
            colour = ORANGE if min(low, high) <= 1 <= max(low, high) else BLUE
            stroke(axes, [low, self.ratio, high], [y] * 3, bar(colour, 5, alpha=0.35))
            for end, fill in ((low, PAPER), (high, colour)):
                stroke(axes, [end], [y], {**_point("o", colour), "mfc": fill, "zorder": 3})
            top += height
        return sheet


@dataclass(frozen=True, slots=True)
class OfferPrice:
    """One offer. `place` tells its card's look: 0 and 1 for the two that are compared.

    `turn` is the price of this card at which the answer turns, all other offers as they are, and
    `turns_at` says so. Without it only the offer is drawn.
    """

    label: str
    price: Range
    place: int
    turn: Range | None = None
    turns_at: str = ""


@dataclass(frozen=True, slots=True)
class PriceLine:
    """A line of prices for each offer: the offer a dot, and under it which card costs less at which price."""

    sides: tuple[str, str]
    """What holds where the first and where the second of the two is the cheaper."""
    between: str
    offers: tuple[OfferPrice, ...]
    across: str

    def sheet(self, layout: Layout) -> Sheet:
        """What an offer is and where it turns stand above its line, the key below the axis."""
        most = max(end for offer in self.offers for end in (offer.price[2], *(offer.turn or ())))
        across = linear_ticks((most * HEADROOM,), zero=True, most=max(2, int(layout.width // 90)))
        edge = max(EDGE, width_of(written(across[-1], "number"), NOTE) / 2)
        words = [
            [(line, colour) for text, colour in _told(offer) for line in wrapped(text, layout.width, NOTE)]
            for offer in self.offers
        ]
        shown = [Key(label, style) for label, style in (*self._zones(), ("where it turns", TURN))]
        keys = key_rows(shown, layout.width)
        bottom = sum(OFFER + LINE * len(lines) for lines in words)
        sheet = Sheet(layout.width, bottom + UNDER + KEY_LINE * len(keys))
        axes = sheet.axes(edge, 0, layout.width - 2 * edge, bottom)
        axes.set(xlim=(across[0], across[-1]), ylim=(bottom, 0))
        ticks(axes, [(tick, written(tick, "number")) for tick in across])
        top = 0.0
        for offer, lines in zip(self.offers, words, strict=True):
            for place, (line, colour) in enumerate(lines, 1):
                sheet.text(0, top + LINE * place, line, colour=colour)
            top += OFFER + LINE * len(lines)
            _rules(axes, across, top - OFFER / 2, 7)
            self._offer(axes, offer, top - OFFER / 2)
        sheet.text(layout.width / 2, bottom + UNDER - 8, cut(self.across, layout.width, NOTE), align="center")
        legend(sheet, bottom + UNDER, keys)
        return sheet

    def _zones(self) -> list[tuple[str, Style]]:
        """Where the first costs less, where the second does, and between them."""
        looks = [bar(CARD_LOOKS[place].colour, 8, alpha=0.4) for place in (0, 1)]
        return [*zip(self.sides, looks, strict=True), (self.between, bar(SOFT, 8, alpha=0.2))]

    def _offer(self, axes: Axes, offer: OfferPrice, y: float) -> None:
        """One line: the zones of its prices, the price at which it turns, and the offer itself."""
        look = CARD_LOOKS[offer.place % len(CARD_LOOKS)]
        if offer.turn is not None:
            end = axes.get_xlim()[1]
            low, best, high = (min(max(value, 0.0), end) for value in offer.turn)
            own, other, between = (style for _, style in self._zones())
            own, other = (own, other) if offer.place == 0 else (other, own)
            for begin, until, style in ((0.0, low, own), (low, high, between), (high, end, other)):
                stroke(axes, [begin, until], [y] * 2, style)
            if offer.turn[1] > 0:
                stroke(axes, [best], [y], TURN)
        low, best, high = offer.price
        stroke(axes, [low, high], [y] * 2, interval(look.colour, 1.6, 3))
        stroke(axes, [best], [y], {**_point(look.marker, look.colour), "zorder": 3})


def _told(offer: OfferPrice) -> list[tuple[str, str]]:
    """What stands above an offer's line, with its colours."""
    return [(text, colour) for text, colour in ((offer.label, INK), (offer.turns_at, SOFT)) if text]


def _rules(axes: Axes, places: Sequence[float], y: float, reach: float, colour: str = RULE) -> None:
    """Short pieces of upright lines around one row, so that they cross no label."""
    xs = [x for place in places for x in (place, place, math.nan)]
    stroke(axes, xs, [y - reach, y + reach, math.nan] * len(places), {"color": colour, "lw": 1})


def _point(marker: str, colour: str) -> Style:
    size = MARKER_SIZES[marker]
    return {"ls": "none", "marker": marker, "ms": size, "mec": colour, "mfc": colour, "mew": 1.6}


def _mark(place: int) -> Style:
    look = CARD_LOOKS[place % len(CARD_LOOKS)]
    return _point(look.marker, look.colour)


def _crossed(axes: Axes, card: CardCost, colour: str) -> None:
    (left, x, right), (low, y, high) = card.hours, card.cost
    stroke(axes, [left, right], [y, y], interval(colour, 1.6, 3))
    stroke(axes, [x, x], [low, high], interval(colour, 1.6, 3, upright=True))


def _from_zero(
    layout: Layout, values: tuple[Sequence[float], Sequence[float]], labels: tuple[str, str], below: float
) -> tuple[Sheet, Axes, float]:
    """A sheet with axes that both begin at zero, and where these end; `below` px are left under them."""
    up = linear_ticks(values[1], zero=True)
    across = linear_ticks(values[0], zero=True, most=max(2, int(layout.width // 80)))
    left = max(width_of(written(tick, "number"), NOTE) for tick in up) + 8
    room = layout.width - left - max(EDGE, width_of(written(across[-1], "number"), NOTE) / 2)
    height = 0.35 * layout.width + 70
    foot = TOP + height + UNDER
    sheet = Sheet(layout.width, foot + below)
    axes = sheet.axes(left, TOP, room, height)
    axes.set(xlim=(across[0], across[-1]), ylim=(up[0], up[-1]))
    ticks(axes, *([(tick, written(tick, "number")) for tick in places] for places in (across, up)))
    grid(axes, up=up)
    middle = left + room / 2
    fits = 2 * min(middle, layout.width - middle)
    sheet.text(middle, foot - 8, cut(labels[0], fits, NOTE), align="center")
    sheet.text(0, NOTE, cut(labels[1], layout.width, NOTE))
    return sheet, axes, foot
