"""Cells that differ in their batch or in their number of devices alone: throughput drawn against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from report import names, words
from report.comparability import Key
from report.frame import Row
from report.lines import Axes, Curve, Wall
from report.lines import curves as draw
from report.plausibility import above_linear
from report.stats import Cell
from report.view import Panel

FEWEST_POINTS = 2
Group = tuple[str, str, str, Key]


def panels(cells: Sequence[Cell], failed: Sequence[Row], workload: str, anchor: str) -> tuple[Panel, ...]:
    """Throughput against batch and against devices, one panel for each work that has several of them."""
    mine = [cell for cell in cells if cell.key.workload == workload and cell.throughput.mean is not None]
    return (*_batches(mine, failed, anchor), *_scaling(mine, anchor))


def _batches(cells: Sequence[Cell], failed: Sequence[Row], anchor: str) -> list[Panel]:
    walls = [row for row in failed if row.failure and row.failure.reason == "out-of-memory"]
    found = []
    for place, (work, members) in enumerate(_works(cells, _any_batch), 1):
        lines = _lines(members, lambda cell: cell.key.batch_size)
        mine = [row for row in walls if replace(_any_batch(row.key), precision="") == work]
        if not any(len(line.points) >= FEWEST_POINTS for line in lines):
            continue
        unit = members[0].rows[0].sample_unit
        name, title = f"{anchor}-batch-{place}", f"{names.model(work.model)}: throughput against batch"
        alt = "; ".join(_said(line, "batch") for line in lines[:12])
        drawn = _walls(mine)
        alt += "".join(f"; {wall.card} {wall.look}: {wall.said}" for wall in drawn)
        axes = Axes("batch", _tick, zero=True, doubling=True)
        drawing = draw(name, title, alt, lines, axes, drawn)
        found.append(
            Panel(name, title, f"{unit}s a second, {work.data_mode} data; more is better", drawing, alt)
        )
    return found


def _walls(rows: Iterable[Row]) -> list[Wall]:
    """The smallest batch of each card and precision that did not fit."""
    least: dict[tuple[str, str], int] = {}
    for row in rows:
        place = (names.unit(row.card, row.machine_label), row.key.precision)
        least[place] = min(row.key.batch_size, least.get(place, row.key.batch_size))
    return [
        Wall(float(batch), f"{batch:,} does not fit", precision, card)
        for (card, precision), batch in sorted(least.items())
    ]


def _scaling(cells: Sequence[Cell], anchor: str) -> list[Panel]:
    found = []
    for place, (work, members) in enumerate(_works(cells, _any_gpus), 1):
        lines = [_scaled(line) for line in _lines(members, lambda cell: cell.key.gpus, base=_one_card)]
        lines = [line for line in lines if len(line.points) >= FEWEST_POINTS]
        if not lines:
            continue
        most = max(x for line in lines for x, _ in line.points)
        ideal = Curve("ideal", ((1.0, 1.0), (most, most)), behind=True, look="ideal")
        name, title = f"{anchor}-scaling-{place}", f"{names.model(work.model)}: scaling"
        alt = "; ".join(_said(line, "devices") for line in lines[:12])
        drawing = draw(name, title, alt, [ideal, *lines], Axes("devices", words.times, zero=True))
        found.append(Panel(name, title, f"throughput over one device's, {work.data_mode} data", drawing, alt))
    return found


def _scaled(line: Curve) -> Curve:
    """Over the single device's; a point that no scaling can reach is left out."""
    first = next((y for x, y in line.points if x == 1), None)
    if not first:
        return replace(line, points=(), spread=())
    kept = [
        (x, y / first, pair and (pair[0] / first, pair[1] / first))
        for (x, y), pair in zip(line.points, line.spread, strict=True)
        if above_linear(first, y, round(x)) is None
    ]
    return replace(line, points=tuple((x, y) for x, y, _ in kept), spread=tuple(pair for *_, pair in kept))


def _works(cells: Sequence[Cell], loose: Callable[[Key], Key]) -> list[tuple[Key, list[Cell]]]:
    groups: dict[Key, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(replace(loose(cell.key), precision=""), []).append(cell)
    return [(work, members) for work, members in groups.items() if len(members) >= FEWEST_POINTS]


def _any_batch(key: Key) -> Key:
    return replace(key, batch_size=0, data_sha256=None, weights_sha256=None, weights=None)


def _any_gpus(key: Key) -> Key:
    """Each device keeps its batch: weak scaling, which is what training on several cards is."""
    return replace(key, gpus=0)


def _one_card(cell: Cell) -> str:
    return cell.rows[0].device


def _lines(
    cells: Sequence[Cell], read: Callable[[Cell], int], base: Callable[[Cell], str] = lambda cell: cell.card
) -> list[Curve]:
    """A line for each card, machine and precision; of several cells at one place the one with most runs."""
    several = len({(base(cell), cell.machine) for cell in cells}) > 1
    groups: dict[tuple[str, str, str], dict[int, Cell]] = {}
    for cell in cells:
        if cell.verdict == "invalid":
            continue
        points = groups.setdefault((base(cell), cell.machine, cell.key.precision), {})
        other = points.get(read(cell))
        if other is None or cell.throughput.n > other.throughput.n:
            points[read(cell)] = cell
    return [_line(several, precision, points) for (_, _, precision), points in groups.items()]


def _line(several: bool, precision: str, points: dict[int, Cell]) -> Curve:
    ordered = sorted(points.items())
    unit = names.unit_of(ordered[0][1])
    return Curve(
        label=f"{unit} {precision}" if several else precision,
        points=tuple((float(x), cell.throughput.mean or 0.0) for x, cell in ordered),
        look=precision,
        card=unit,
        spread=tuple(_ends(cell) for _, cell in ordered),
        dotted=True,
    )


def _ends(cell: Cell) -> tuple[float, float] | None:
    interval = cell.throughput.interval
    return (max(interval.low, 0.0), interval.high) if interval else None


def _said(line: Curve, across: str) -> str:
    points = ", ".join(f"{words.number(y)} at {across} {x:,g}" for x, y in line.points[:8])
    return f"{line.label}: {points}"


def _tick(value: float) -> str:
    return f"{value:,.6g}"
