"""A figure in px from its left and top edge, with the parts of it that a page can hide, and legends."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator
from matplotlib.transforms import Affine2D

from report.charts.style import (
    INK,
    LABEL,
    LINE,
    NOTE,
    PAPER,
    RULE,
    SETTINGS,
    SOFT,
    Style,
    cut,
    font,
    plain,
    width_of,
    wrapped,
)

DPI = 72.0
"""So that a point is a px."""
PNG_SCALE = 2.0
MARGIN = 12.0
"""Around a drawing in a file of its own, px."""
FOOT, HEADING = "foot", "heading"
KEY_LINE = 18.0
"""From one row of a legend to the next, px."""
_MARK, _STROKE, _BETWEEN = 18.0, 36.0, 18.0
"""Room for the sample of a mark and of a line, and between two entries, px."""


class Sheet:
    """A matplotlib figure. Artists belong to a part of it by their gid."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.figure: Figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI)
        self.figure.patch.set_visible(False)
        self.shift = Affine2D()
        """Of texts and lines in inches; what a margin moves."""
        self.from_corner = self.shift + self.figure.dpi_scale_trans
        self.parts = {FOOT: {"class": FOOT}, HEADING: {"class": HEADING}}

    def axes(
        self, left: float, top: float, width: float, height: float, *, above: Axes | None = None
    ) -> Axes:
        """Bare axes, without a box or a tick; they share what is across with those `above`."""
        bottom = 1 - (top + height) / self.height
        place = (left / self.width, bottom, width / self.width, height / self.height)
        axes = self.figure.add_axes(place, sharex=above)
        axes.spines[:].set_visible(False)
        axes.patch.set_visible(False)
        axes.tick_params(length=0, pad=5, labelcolor=SOFT)
        axes.xaxis.set_gid(FOOT)
        ticks(axes)
        return axes

    def place(self, axes: Axes, x: float, y: float) -> tuple[float, float]:
        """Where a point of axes stands, px."""
        across, up = axes.transData.transform((x, y))
        return float(across), self.height - float(up)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = NOTE,
        bold: bool = False,
        colour: str = SOFT,
        align: str = "left",
        part: str | None = None,
    ) -> None:
        """One line whose baseline stands `y` px below the top."""
        self.figure.text(
            x / DPI,
            (self.height - y) / DPI,
            plain(text),
            transform=self.from_corner,
            fontproperties=font(size, bold),
            parse_math=False,
            color=colour,
            ha=align,
            va="baseline",
            gid=part,
        )

    def line(self, places: Sequence[tuple[float, float]], style: Style, part: str | None = None) -> None:
        """A line through places, or marks at them."""
        across = [x / DPI for x, _ in places]
        up = [(self.height - y) / DPI for _, y in places]
        self.figure.add_artist(Line2D(across, up, transform=self.from_corner, gid=part, **style))

    def part(self, card: str, precision: str, step: float = 0.0) -> str:
        """Names a part that a reader can hide; where it is a row of `step` px, those below it close up."""
        name = f"part-{len(self.parts)}"
        self.parts[name] = {"class": "series", "data-card": plain(card), "data-precision": plain(precision)}
        if step:
            self.parts[name]["data-step"] = f"{step:g}"
        return name

    def label(self, step: float) -> str:
        """Names a part of `step` px that nobody hides, and that closes up with the rows."""
        name = f"part-{len(self.parts)}"
        self.parts[name] = {"class": "label", "data-step": f"{step:g}"}
        return name

    def head(self, title: str, unit: str) -> float:
        """Writes a title and its unit above everything; returns the px that they take."""
        lines = [(line, LABEL + 1, True, INK) for line in wrapped(title, self.width, LABEL + 1, True)]
        lines += [(line, NOTE, False, SOFT) for line in wrapped(unit, self.width, NOTE, lines=3)]
        before, room = self.height, LINE * len(lines) + 10
        self.height += room
        self._resize((self.width, before), (self.width, self.height))
        for place, (line, size, bold, colour) in enumerate(lines, 1):
            self.text(0, LINE * place - 3, line, size=size, bold=bold, colour=colour, part=HEADING)
        return room

    def _resize(self, before: tuple[float, float], now: tuple[float, float], margin: float = 0.0) -> None:
        """Another size in px of the figure, whose axes keep theirs and stand `margin` from its lower left."""
        self.figure.set_size_inches(now[0] / DPI, now[1] / DPI)
        for axes in self.figure.axes:
            left, bottom, wide, high = axes.get_position().bounds
            places = (
                left * before[0] + margin,
                bottom * before[1] + margin,
                wide * before[0],
                high * before[1],
            )
            x, y, across, up = (place / now[n % 2] for n, place in enumerate(places))
            axes.set_position((x, y, across, up))

    def svg(self) -> str:
        """As matplotlib writes it."""
        target = BytesIO()
        with _settings():
            self.figure.savefig(target, format="svg", metadata={"Date": None})
        return target.getvalue().decode()

    def png(self) -> bytes:
        """On paper with a margin, two pixels to a px."""
        # Not by `bbox_inches`, which moves the axes and leaves what is placed in inches where it was.
        size = (self.width, self.height)
        self._resize(size, (size[0] + 2 * MARGIN, size[1] + 2 * MARGIN), MARGIN)
        self.shift.translate(MARGIN / DPI, MARGIN / DPI)
        self.figure.patch.set(visible=True, facecolor=PAPER)
        target, nothing = BytesIO(), {"Software": None}
        with _settings():
            self.figure.savefig(target, format="png", dpi=DPI * PNG_SCALE, metadata=nothing)
        return target.getvalue()


def ticks(axes: Axes, across: Iterable[tuple[float, str]] = (), up: Iterable[tuple[float, str]] = ()) -> None:
    """Sets the ticks of axes with their labels, and no others."""
    for axis, wanted in ((axes.xaxis, list(across)), (axes.yaxis, list(up))):
        axis.set_ticks([at for at, _ in wanted], [label for _, label in wanted])
        axis.set_minor_locator(NullLocator())
        for label in axis.get_ticklabels():
            label.set(fontproperties=font(NOTE), parse_math=False)


def stroke(
    axes: Axes, xs: Sequence[float], ys: Sequence[float], style: Style, part: str | None = None
) -> None:
    """A line through points of axes, or marks at them, that may reach over their edge; NaN breaks it."""
    # `plot` does more, such as looking for limits, and takes many times as long.
    axes.add_artist(Line2D(xs, ys, clip_on=False, gid=part, **style))


def grid(axes: Axes, across: Sequence[float] = (), up: Sequence[float] = ()) -> None:
    """Pale lines at ticks, from edge to edge."""
    rule = {"color": RULE, "lw": 1, "zorder": 0}
    if up:
        low, high = axes.get_xlim()
        stroke(axes, [low, high, math.nan] * len(up), [y for at in up for y in (at, at, math.nan)], rule)
    if across:
        low, high = axes.get_ylim()
        stroke(
            axes, [x for at in across for x in (at, at, math.nan)], [low, high, math.nan] * len(across), rule
        )


def bar(colour: str, height: float, **more: Any) -> Style:
    """The style of a line that is a bar, `height` px."""
    return {"color": colour, "lw": height, "solid_capstyle": "butt", **more}


def interval(colour: str, width: float, cap: float, *, upright: bool = False, **more: Any) -> Style:
    """The style of an error bar: a line whose ends carry caps of `cap` px on either side."""
    marker = "_" if upright else "|"
    return {"color": colour, "lw": width, "marker": marker, "ms": 2 * cap, "mew": width, **more}


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a legend: its words, how its line or mark looks, and the part that it is hidden with."""

    label: str
    style: Style
    part: str | None = None


def key_rows(keys: Sequence[Key], width: float) -> list[list[tuple[float, Key]]]:
    """The rows in which the entries of a legend stand, each with where it begins; a row takes KEY_LINE px."""
    rows: list[list[tuple[float, Key]]] = []
    x = math.inf
    for key in keys:
        wide = _sample(key) + width_of(key.label, NOTE)
        if x + wide > width:
            rows.append([])
            x = 0.0
        rows[-1].append((x, key))
        x += wide + _BETWEEN
    return rows


def legend(sheet: Sheet, top: float, rows: Sequence[Sequence[tuple[float, Key]]]) -> None:
    """Writes the rows of a legend."""
    for place, row in enumerate(rows):
        y = top + KEY_LINE * place + 12
        for x, key in row:
            sample = _sample(key)
            sheet.line([(x, y - 4), (x + sample - 11, y - 4)], {**key.style, "markevery": [1]}, key.part)
            sheet.text(x + sample, y, cut(key.label, sheet.width - x - sample, NOTE), part=key.part)


def _sample(key: Key) -> float:
    return _MARK if key.style.get("ls") == "none" else _STROKE


@contextmanager
def _settings() -> Iterator[None]:
    """matplotlib's, for as long as something is written; a letter that its font lacks is no warning."""
    with rc_context(SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield
