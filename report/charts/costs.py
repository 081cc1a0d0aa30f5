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
    PURPLE,
    RULE,
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
            xs = [x for place in places for x in (place, place, math.nan)]
            stroke(axes, xs, [y - 9, y + 9, math.nan] * len(places), {"color": RULE, "lw": 1})
            stroke(axes, [1.0, 1.0], [y - 9, y + 9], {"color": INK, "lw": 1.2})
            low, high = (min(max(end, ends[0]), ends[1]) for end in (reach.at_low, reach.at_high))
            colour = ORANGE if min(low, high) <= 1 <= max(low, high) else BLUE
            stroke(axes, [low, self.ratio, high], [y] * 3, bar(colour, 5, alpha=0.35))
            for end, fill in ((low, PAPER), (high, colour)):
                stroke(axes, [end], [y], {**_point("o", colour), "mfc": fill, "zorder": 3})
            top += height
        return sheet


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The cost of one card as its price grows, and that of another: they meet at the break-even price."""

    card: str
    other: str
    price: float
    """As quoted."""
    cost: float
    other_cost: float
    line: tuple[tuple[float, float], tuple[float, float]]
    """Price and cost at both ends of the axis."""
    turn: Range
    across: str
    up: str

    def sheet(self, layout: Layout) -> Sheet:
        """The range of the break-even price stands on the axis."""
        looks = (
            Key(self.card, {"color": BLUE, "lw": 1.8}),
            Key(self.other, {"color": ORANGE, "lw": 1.8}),
            Key("as quoted", _point("o", BLUE)),
            Key("break-even, with its range", _point("D", PURPLE)),
        )
        rows = key_rows(looks, layout.width)
        prices, costs = zip(*self.line, strict=True)
        values, labels = (prices, [*costs, self.other_cost]), (self.across, self.up)
        sheet, axes, foot = _from_zero(layout, values, labels, KEY_LINE * len(rows))
        stroke(axes, axes.get_xlim(), [self.other_cost] * 2, {"color": ORANGE, "lw": 1.8})
        stroke(axes, prices, costs, {"color": BLUE, "lw": 1.8})
        low, best, high = (min(max(value, axes.get_xlim()[0]), axes.get_xlim()[1]) for value in self.turn)
        stroke(axes, [low, high], [self.other_cost] * 2, bar(PURPLE, 7, alpha=0.3))
        stroke(axes, [self.price], [self.cost], {**_point("o", BLUE), "zorder": 3})
        stroke(axes, [best], [self.other_cost], {**_point("D", PURPLE), "zorder": 3})
        legend(sheet, foot, rows)
        return sheet


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
