"""Page one of two software stacks that alternated in one session."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from report import text
from report.analysis import Analysis
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.compare.sides import StackComparison, StackWork
from report.page.filters import apart
from report.page.values import Chip, Headline, NamedSystem, Picture, Quantity, quantity

MOST_MOVED = 5


@dataclass(frozen=True, slots=True)
class StackRow:
    """One work as the table has it."""

    label: str
    of: StackWork
    first: Quantity
    second: Quantity
    ratio: Quantity


@dataclass(frozen=True, slots=True)
class StackView:
    """Both stacks by their names, and each work."""

    comparison: StackComparison
    names: tuple[str, str]
    rows: tuple[StackRow, ...]
    picture: Picture | None
    """Null where no work has a range."""

    @property
    def pairs(self) -> int:
        """Return how many pairs a figure has at least."""
        return min((len(row.of.twins) for row in self.rows if row.ratio), default=0)


def viewed(analysis: Analysis) -> StackView:
    """Return the leading session's two stacks."""
    comparison = analysis.stacks
    assert comparison is not None
    keys = [work.key for work in comparison.works]
    rows = []
    for work in comparison.works:
        label = f"{text.model_name(work.key.model)}{apart(work.key, keys)}, {work.key.precision}"
        speeds = [[getattr(pair, side) for pair in work.twins] for side in ("first", "second")]
        first, second = (Quantity(geometric_mean(side) if side else None, work.unit) for side in speeds)
        rows.append(StackRow(label, work, first, second, quantity(work.ratio)))
    return StackView(comparison, _names(comparison), tuple(rows), _picture(rows))


def _picture(rows: Sequence[StackRow]) -> Picture | None:
    """Return the ratio of each pair in their order, and below them that of all with its range."""
    drawn, alt = [], []
    for row in rows:
        ratios = [pair.first / pair.second for pair in row.of.twins]
        if (of := row.of.ratio) is not None:
            pairs = (Mark(ratio, slot=4, small=True) for ratio in ratios)
            drawn.append(ScaleRow(row.label, (Mark(of.estimate, of.low, of.high), *pairs)))
            alt.append(f"{row.label} {of.estimate:.2f}, {of.low:.2f} to {of.high:.2f}")
    if not drawn:
        return None
    chart = ScaleRows((RowGroup("", tuple(drawn)),), "times as fast", dots=True, zero=False)
    return Picture("twins", chart, "; ".join(alt))


def _names(comparison: StackComparison) -> tuple[str, str]:
    """'torch 2.13.0' and 'torch 2.12.1' where packages alone were asked for."""
    words = comparison.asked
    pins = [word.partition("==")[0].lower() for word in words if "==" in word and not word.startswith("env:")]
    own = {name.lower(): version for name, version, _ in comparison.moved}
    first = f"image {comparison.environment}"
    if len(pins) == len(words) and all(own.get(name) for name in pins):
        first = ", ".join(f"{name} {own[name]}" for name in pins)
    shown = (word.removeprefix("env:").replace("==", " ").replace("image:", "image ") for word in words)
    return text.clean(first, 60), text.clean(", ".join(shown), 60)


def headline(view: StackView) -> Headline:
    """Return the largest difference, and which works are equal."""
    differing = [row for row in view.rows if row.of.verdict in ("slower", "faster")]
    row = max(differing, key=lambda row: abs(math.log(row.ratio.value or 1.0)), default=None)
    verdicts = [each.of.verdict for each in view.rows]
    state = row.of.verdict if row else "equal" if "equal" in verdicts else "unknown"
    systems = [NamedSystem("", "", name, slot, not slot) for slot, name in enumerate(view.names)]
    equal = [each.label for each in view.rows if each.of.verdict == "equal"]
    widest = max((each.ratio for each in view.rows if each.of.verdict == "equal"), key=_width, default=None)
    data = {"first": systems[0], "second": systems[1], "row": row, "ratio": row.ratio if row else None}
    return Headline(f"stacks-{state}", {**data, "equal": equal, "widest": widest})


def _width(ratio: Quantity) -> float:
    return max((ratio.high or 1.0) - 1, 1 - (ratio.low or 1.0))


def chips(view: StackView) -> Iterator[Chip]:
    """Yield that the stacks alternated, and how much moved at once."""
    yield Chip("good", "interleaved")
    if len(view.comparison.moved) > 1:
        yield Chip("care", "moved", "ran", {"count": len(view.comparison.moved)})


def notes(analysis: Analysis, view: StackView) -> tuple[Headline, ...]:
    """Return how sure it is, what differs, and the line that measures it again, or finds the version."""
    own, asked = analysis.own, view.comparison.asked
    line = text.run_again(own[0].record.plan, view.comparison.environment)
    moved = view.comparison.moved
    differs = {"moved": moved[:MOST_MOVED], "count": len(moved), "asked": view.names[1]}
    following = Headline(
        "next-again", {"commands": (f"{line} --against '{','.join(asked)}'",), "each": False}
    )
    return Headline("stacks-sure", {"pairs": view.pairs}), Headline("stacks-differ", differs), following
