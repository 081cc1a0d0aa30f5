"""A workload of many contests at a glance: what each precision gains over fp32-ieee, by model."""

from __future__ import annotations

from collections.abc import Sequence

from report import charts, names, words
from report.answer import best_supported
from report.charts import Mark
from report.contests import Contest
from report.speedups import Speedup
from report.view import Panel, Table

FEWEST_CONTESTS = 3


def panels(contests: Sequence[Contest], gains: Sequence[Speedup], anchor: str) -> tuple[Panel, ...]:
    """A panel for each data mode and protocol, a row for each model, all on one axis."""
    groups = _groups(contests, gains)
    everything = [_extent(gain) for found in groups.values() for gain in found]
    if not everything:
        return ()
    span = (min(low for low, _ in everything), max(high for _, high in everything))
    found = []
    for place, ((protocol, mode, setting), members) in enumerate(groups.items(), 1):
        rows: dict[str, list[Mark]] = {}
        for gain in members:
            rows.setdefault(names.model(gain.of.key.model), []).append(_mark(gain))
        unit = f"times as fast as fp32-ieee; {protocol}, {mode} data{setting}"
        alt = "; ".join(
            f"{names.model(g.of.key.model)} {g.of.key.precision} {_said(g)}" for g in members[:24]
        )
        name, title = f"{anchor}-gain-{place}", "Speed against 32-bit, by model"
        drawing = charts.grouped(name, title, alt, list(rows.items()), span=span, write=words.times)
        found.append(Panel(name, title, unit, drawing, alt))
    return tuple(found)


def table(contests: Sequence[Contest], gains: Sequence[Speedup]) -> Table | None:
    """The same figures with their intervals: a row for each model, a column for each precision."""
    groups = _groups(contests, gains)
    precisions = list(dict.fromkeys(g.of.key.precision for found in groups.values() for g in found))
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for (protocol, mode, setting), found in groups.items():
        for gain in found:
            place = (names.model(gain.of.key.model), f"{protocol}, {mode}{setting}")
            rows.setdefault(place, {})[gain.of.key.precision] = names.gain(gain)
    if not rows:
        return None
    caption = "Times as fast as fp32-ieee on the same machine, with the 95 % interval."
    values = tuple((*place, *(said.get(name, "–") for name in precisions)) for place, said in rows.items())
    return Table(caption, ("Model", "Protocol and data", *precisions), values)


def _groups(
    contests: Sequence[Contest], gains: Sequence[Speedup]
) -> dict[tuple[str, str, str], list[Speedup]]:
    """By protocol, data mode, and what else is never mixed: devices and how they share, profile, layout."""
    if len(contests) < FEWEST_CONTESTS:
        return {}
    own = [line.cell for contest in contests for line in contest.lines if line.own]
    groups: dict[tuple[str, str, str], list[Speedup]] = {}
    for gain in gains:
        if gain.over.key.precision == "fp32-ieee" and any(gain.of is cell for cell in own):
            key = gain.of.key
            groups.setdefault((key.protocol, key.data_mode, names.setting(key)), []).append(gain)
    return {place: best_supported(found) for place, found in groups.items()}


def _extent(gain: Speedup) -> tuple[float, float]:
    interval = gain.ratio.interval
    return (interval.low, interval.high) if interval else (gain.ratio.estimate, gain.ratio.estimate)


def _said(gain: Speedup) -> str:
    return f"{words.times(gain.ratio.estimate)} ×"


def _mark(gain: Speedup) -> Mark:
    low, high = _extent(gain)
    return Mark(
        label=gain.of.key.precision,
        note="",
        said=_said(gain),
        value=gain.ratio.estimate,
        low=low if gain.ratio.interval else None,
        high=high if gain.ratio.interval else None,
        look=gain.of.key.precision,
        card=names.unit_of(gain.of),
        doubtful=not (gain.of.ranked and gain.over.ranked),
    )
