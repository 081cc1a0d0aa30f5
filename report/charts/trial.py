"""What the trials of one line did over time: small axes above each other, which share what is across."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan
from statistics import fmean

from matplotlib.axes import Axes

from report.charts.sheet import Sheet, stroke, ticks
from report.charts.style import INK, NOTE, RULE, SOFT, Layout, Style, linear_ticks, system_colour

WIDTH, EDGE = 358.0, 14.0
HEADER, STRIP, BETWEEN, UNDER = 17.0, 40.0, 9.0, 44.0
MOST_STEPS, MOST_VALUES, MOST_WINDOWS, MOST_SCALES = 90, 60, 20, 200


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Seconds of a step, a value for each `steps_per_value`; the first that counts; changes of level."""

    seconds: tuple[float, ...]
    steps_per_value: int
    first: int
    changes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TelemetryTrace:
    """What was read of a device over time; null leaves a gap. Its axis ends at `floor` and `ceiling`."""

    name: str
    unit: str
    values: tuple[float | None, ...]
    floor: float | None = None
    ceiling: float | None = None


@dataclass(frozen=True, slots=True)
class TrialTimeline:
    """One trial. `times`, in seconds, belong to all quantities alike, `windows` are where it trained."""

    doubtful: bool
    steps: StepTimes
    times: tuple[float, ...] = ()
    windows: tuple[tuple[float, float], ...] = ()
    quantities: tuple[TelemetryTrace, ...] = ()
    loss_scales: tuple[tuple[int, float], ...] = ()
    """(step, loss scale) at each change."""


@dataclass(frozen=True, slots=True)
class Timelines:
    """The trials of one line over each other: the doubtful ones dark, the others in the system's colour."""

    trials: tuple[TrialTimeline, ...]
    slot: int = 0

    def sheet(self, layout: Layout) -> Sheet:
        """Steps first, over steps; below them the devices, over seconds. It is as wide in every layout."""
        scaled = any(trial.loss_scales for trial in self.trials)
        names = list(dict.fromkeys(quantity.name for trial in self.trials for quantity in trial.quantities))
        strips = 1 + scaled + len(names)
        height = (HEADER + STRIP + BETWEEN) * strips + UNDER * (2 if names else 1)
        strip = _Strips(sheet := Sheet(WIDTH, height))
        self._steps(strip)
        if scaled:
            self._loss_scales(strip)
        most = max(len(trial.steps.seconds) * trial.steps.steps_per_value for trial in self.trials)
        strip.across(most or 1, "step; pale ground: cut; dashed: a change of level")
        for name in names:
            self._quantity(strip, name)
        if names:
            most_seconds = max(trial.times[-1] for trial in self.trials if trial.times)
            strip.across(most_seconds or 1.0, "seconds; pale ground: it trained")
        return sheet

    def extents(self) -> list[str]:
        """What each axis reaches from and to, in words: 'clock 1,200 to 1,350 MHz'."""
        seconds = [value for trial in self.trials for value in trial.steps.seconds]
        parts = [f"step time {_range(_milliseconds(seconds), 'ms')}"] if seconds else []
        names = {quantity.name: quantity.unit for trial in self.trials for quantity in trial.quantities}
        return parts + [f"{name} {_range(self._values(name), unit)}" for name, unit in names.items()]

    def _of(self, name: str) -> list[tuple[TrialTimeline, TelemetryTrace]]:
        return [
            (trial, quantity)
            for trial in self.trials
            for quantity in trial.quantities
            if quantity.name == name
        ]

    def _values(self, name: str) -> list[float]:
        return [value for _, quantity in self._of(name) for value in quantity.values if value is not None]

    def _ink(self, trial: TrialTimeline) -> Style:
        if trial.doubtful:
            return {"color": INK, "alpha": 0.9}
        return {"color": system_colour(self.slot), "alpha": 0.5}

    def _steps(self, strip: _Strips) -> None:
        """The least and the most of a few steps at a time; outliers reach beyond the axis."""
        seconds = sorted(value for trial in self.trials for value in trial.steps.seconds)
        axes = strip.add("step time", _range(_milliseconds(seconds), "ms"))
        if not seconds:
            return
        axes.set_ylim(0, min(seconds[-1], 2.0 * seconds[int(0.95 * (len(seconds) - 1))]) or 1.0)
        for trial in sorted(self.trials, key=lambda trial: trial.doubtful):
            steps, count = trial.steps, len(trial.steps.seconds)
            if steps.first:
                axes.axvspan(0, steps.first, color=SOFT, alpha=0.25 / len(self.trials), lw=0)
            buckets = _buckets(count, MOST_STEPS)
            parts = [steps.seconds[start:stop] for start, stop in buckets]
            middles = [(start + stop) / 2 * steps.steps_per_value for start, stop in buckets]
            low, high = [min(part) for part in parts], [max(part) for part in parts]
            axes.fill_between(middles, low, high, lw=0.8, **self._ink(trial))
        for change in sorted({change for trial in self.trials for change in trial.steps.changes}):
            axes.axvline(change, color=INK, lw=1.2, ls=(0, (2, 2)))

    def _loss_scales(self, strip: _Strips) -> None:
        """In powers of two; it holds between its changes."""
        histories = [(trial, [scale for scale in trial.loss_scales if scale[1] > 0]) for trial in self.trials]
        values = [scale for _, history in histories for _, scale in history]
        axes = strip.add("loss scale", _range(values, ""))
        if not values:
            return
        axes.set_yscale("log", base=2)
        axes.set_ylim(min(values) / 1.2, max(values) * 1.2)
        ticks(axes)
        for trial, history in histories:
            if history:
                steps, scales = zip(*history[-MOST_SCALES:], strict=True)
                last = max(len(trial.steps.seconds) * trial.steps.steps_per_value, steps[-1])
                until = ([*steps, last], [*scales, scales[-1]])
                stroke(axes, *until, {**self._ink(trial), "drawstyle": "steps-post", "lw": 1.3})

    def _quantity(self, strip: _Strips, name: str) -> None:
        shown, values = self._of(name), self._values(name)
        axes = strip.add(name, _range(values, shown[0][1].unit))
        if not values:
            return
        floor = min(values) if shown[0][1].floor is None else shown[0][1].floor
        ceiling = max(values) if shown[0][1].ceiling is None else shown[0][1].ceiling
        axes.set_ylim(floor, max(ceiling, floor + 1e-9))
        for begin, end in _merged(window for trial, _ in shown for window in trial.windows)[:MOST_WINDOWS]:
            axes.axvspan(begin, end, color=SOFT, alpha=0.12, lw=0)
        for trial, quantity in sorted(shown, key=lambda pair: pair[0].doubtful):
            stroke(axes, *thinned(trial.times, quantity.values), {**self._ink(trial), "lw": 1.3})


class _Strips:
    """Axes under each other on a sheet; those added since the last `across` share what is across."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.y = 0.0
        self.shared: Axes | None = None

    def add(self, name: str, extent: str) -> Axes:
        """Axes under a line that says what they show and what it reaches from and to."""
        width = self.sheet.width
        self.sheet.text(0, self.y + NOTE, name, colour=INK)
        self.sheet.text(width, self.y + NOTE, extent, align="right")
        axes = self.sheet.axes(0, self.y + HEADER, width, STRIP, above=self.shared)
        stroke(axes, [0, 1], [0, 0], {"color": RULE, "lw": 1, "transform": axes.transAxes})
        self.shared = self.shared or axes
        self.y += HEADER + STRIP + BETWEEN
        return axes

    def across(self, most: float, label: str) -> None:
        """Ends the shared axis at `most` and writes its ticks."""
        assert self.shared is not None
        self.shared.set_xlim(0, most)
        places = [tick for tick in linear_ticks([0.0, most], zero=True, most=4) if tick <= most]
        for tick in places:
            text, x = f"{tick:,g}", tick / most * self.sheet.width
            align = "left" if x < EDGE else "right" if x > self.sheet.width - 2 * EDGE else "center"
            self.sheet.text(min(max(x, 0), self.sheet.width), self.y + 4, text, align=align)
        self.sheet.text(self.sheet.width / 2, self.y + 18, label, align="center")
        self.y += UNDER
        self.shared = None


def _milliseconds(seconds: Iterable[float]) -> list[float]:
    return [value * 1000 for value in seconds]


def _range(values: Sequence[float], unit: str) -> str:
    if not values:
        return "none"
    low, high = _short(min(values)), _short(max(values))
    return f"{low if low == high else f'{low} to {high}'} {unit}".strip()


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _merged(windows: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Overlapping windows as one."""
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(windows):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((begin, end))
    return merged


def thinned(
    times: Sequence[float], values: Sequence[float | None], most: int = MOST_VALUES
) -> tuple[list[float], list[float]]:
    """Means of equal counts, at most so many, and a gap where nothing is known."""
    pairs = list(zip(times, values, strict=False))
    xs, ys = [], []
    for start, stop in _buckets(len(pairs), most):
        known = [value for _, value in pairs[start:stop] if value is not None]
        xs.append(fmean(time for time, _ in pairs[start:stop]))
        ys.append(fmean(known) if known else nan)
    return xs, ys


def _buckets(count: int, most: int) -> list[tuple[int, int]]:
    parts = min(count, most)
    return [(place * count // parts, (place + 1) * count // parts) for place in range(parts)]
