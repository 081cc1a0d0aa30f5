"""Rows → cells: the runs of one variant on one machine in one session, each figure with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import fmean

from report.comparability import Key, Length, Stack
from report.frame import Row
from report.plausibility import jump
from report.stats.intervals import (
    Interval,
    Runs,
    between_machines,
    log_mean_interval,
    mean_interval,
    within_machine,
)

PROJECTION_TOLERANCE = 0.01
"""A projection further than this from the whole run judges no claim."""

LEAST_PROVEN = 3
"""Proven runs beside which the unproven ones of a line, if fewer, are set apart."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The runs of one metric: every value is kept, the mean and interval are of those that count."""

    values: tuple[float, ...]
    blocks: tuple[int, ...] = ()
    """The block of time that each value belongs to."""
    apart: tuple[float, ...] = ()
    """Of trials that are shown and take no part in the mean."""
    mean: float | None = None
    interval: Interval | None = None

    @property
    def n(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class Cell:
    """Trials that differ in nothing but their repeat."""

    key: Key
    length: Length
    stack: Stack
    session: str
    machine: str
    machine_label: str
    card: str
    rows: tuple[Row, ...]
    seconds: Figure
    epoch_seconds: Figure
    throughput: Figure
    step_seconds: Figure
    quality: Figure
    valid_loss: Figure
    train_loss: Figure
    peak_bytes: Figure
    input_share: Figure
    host_share: Figure
    joules: Figure
    verdict: str
    """valid, warn, unproven, or invalid, of the runs that count: unproven unless most are proven."""

    @property
    def started_at(self) -> datetime:
        return self.rows[-1].started_at

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.unit for row in self.rows if row.unit))

    @property
    def blocks(self) -> int:
        return len({row.block for row in self.rows})

    @property
    def ranked(self) -> bool:
        """Whether it may be said to be faster or slower than another (rules 5, 7; generated data never)."""
        return self.verdict in ("valid", "warn") and self.key.data_source != "generated"


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times `of` is as much as `over`: an interval where both have at least two runs."""

    estimate: float
    interval: Interval | None
    n: tuple[int, int]

    @property
    def tied(self) -> bool | None:
        """Whether the interval includes 1; null without an interval."""
        return None if self.interval is None else self.interval.includes(1.0)


def figure(
    rows: Iterable[Row], read: Callable[[Row], float | None], *, without: Container[str] = ("invalid",)
) -> Figure:
    """All finite values; those of trials whose verdict is in `without` are kept apart from the mean."""
    good: list[tuple[float, int]] = []
    apart: list[float] = []
    for row in rows:
        value = read(row)
        if value is None or not math.isfinite(value):
            continue
        if row.verdict in without:
            apart.append(value)
        else:
            good.append((value, row.block))
    if not good:
        return Figure((), (), tuple(apart))
    values = tuple(value for value, _ in good)
    blocks = tuple(block for _, block in good)
    return Figure(values, blocks, tuple(apart), fmean(values), _not_below_zero(values))


def _not_below_zero(values: Sequence[float]) -> Interval | None:
    """Student's interval; what cannot be below zero is not said to be."""
    interval = mean_interval(values)
    if interval is None or interval.low >= 0 or min(values) < 0:
        return interval
    return replace(interval, low=0.0)


def olympic_mean(values: Sequence[float]) -> float | None:
    """The mean without the least and the most, as MLPerf prints it; null below its five runs."""
    return fmean(sorted(values)[1:-1]) if len(values) >= 5 else None


def plausible(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows, those whose throughput is ten times off their repeats' marked invalid, with the reason."""
    repeats = _repeats(rows)
    return tuple(_believed(row, repeats.get(_identity(row), [])) for row in rows)


def _believed(row: Row, repeats: Sequence[Row]) -> Row:
    others = [other.metrics.throughput for other in repeats if other is not row and other.metrics]
    known = [value for value in others if value is not None]
    if row.metrics is None or len(known) < 2:
        return row
    flag = jump(row.metrics.throughput, known)
    if flag is None:
        return row
    return replace(row, verdict="invalid", causes=(*row.causes, f"{flag.name}: {flag.sentence}"))


def cells(rows: Iterable[Row]) -> tuple[Cell, ...]:
    """Groups the measured rows by key, length, stack, session, machine and card."""
    return tuple(_cell(tuple(group)) for group in _repeats(rows).values())


def _repeats(rows: Iterable[Row]) -> dict[tuple[object, ...], list[Row]]:
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.metrics is not None:
            groups.setdefault(_identity(row), []).append(row)
    return groups


def _identity(row: Row) -> tuple[object, ...]:
    return (row.key, row.length, row.stack, row.session, row.machine, row.card)


def _cell(rows: tuple[Row, ...]) -> Cell:
    first = rows[0]
    assert first.length is not None

    without = _without(rows)

    def of(name: str) -> Figure:
        return figure(rows, lambda row: getattr(row.metrics, name), without=without)

    same_length = len({row.trained for row in rows if row.verdict != "invalid"}) <= 1
    nothing = Figure(())
    return Cell(
        key=first.key,
        length=first.length,
        stack=first.stack,
        session=first.session,
        machine=first.machine,
        machine_label=first.machine_label,
        card=first.card,
        rows=rows,
        seconds=of("protocol_seconds"),
        epoch_seconds=of("epoch_seconds"),
        throughput=of("throughput"),
        step_seconds=of("step_seconds"),
        quality=of("quality") if same_length else nothing,
        valid_loss=of("valid_loss") if same_length else nothing,
        train_loss=of("train_loss") if same_length else nothing,
        peak_bytes=of("peak_bytes"),
        input_share=of("input_share"),
        host_share=of("host_share"),
        joules=of("joules"),
        verdict=_verdict(rows, without),
    )


def _without(rows: Sequence[Row]) -> frozenset[str]:
    """The verdicts whose trials take no part: invalid, and unproven beside three proven ones, and more."""
    unproven = sum(row.verdict == "unproven" for row in rows)
    proven = sum(row.verdict in ("valid", "warn") for row in rows)
    most = proven >= LEAST_PROVEN and proven > unproven
    return frozenset({"invalid", "unproven"} if most else {"invalid"})


def _verdict(rows: tuple[Row, ...], without: frozenset[str]) -> str:
    found = {row.verdict for row in rows} - without
    for word in ("unproven", "warn", "valid"):
        if word in found:
            return word
    return "invalid"


def ratio(of: Figure, over: Figure, *, one_machine: bool, comparisons: int = 1) -> Ratio | None:
    """`of` ÷ `over` with its interval; without one, the ratio of the means.

    On one machine the differences within blocks are the replicates, between machines the block means; the
    level holds for all `comparisons` together.
    """
    if of.mean is None or over.mean is None:
        return None
    compare = within_machine if one_machine else between_machines
    interval = compare(
        Runs(of.values, of.blocks), Runs(over.values, over.blocks), comparisons=max(comparisons, 1)
    )
    estimate = interval.estimate if interval else of.mean / over.mean
    return Ratio(estimate, interval, (of.n, over.n))


def cell_ratio(of: Cell, over: Cell, name: str, *, comparisons: int = 1) -> Ratio | None:
    """The ratio of one figure of two cells, by its attribute's name."""
    together = (of.machine, of.session) == (over.machine, over.session)
    return ratio(getattr(of, name), getattr(over, name), one_machine=together, comparisons=comparisons)


def own_spread(of: Figure) -> Ratio | None:
    """The reference against itself: 1.00 with the interval of its own geometric mean."""
    if of.mean is None:
        return None
    found = log_mean_interval(of.values)
    if found is None:
        return Ratio(1.0, None, (of.n, of.n))
    low, high = found.low / found.estimate, found.high / found.estimate
    return Ratio(1.0, replace(found, low=low, estimate=1.0, high=high), (of.n, of.n))
