"""Trials → how close each device's work comes to its limits: roofline, table, and what bounds each trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from harness.record import DeviceUsed, Precision
from harness.record.cards import Card, find, peak_tflops
from report import text
from report.charts.roofline import Bandwidth, Roof, Roofline, RooflineMark, rate
from report.sections.view import LimitsView, Panel, Table, tabled
from report.trials import all_reduce
from report.trials.ceilings import (
    COPY,
    GEMM,
    Device,
    RooflinePoint,
    bandwidth_of,
    ceiling_of,
    ceilings,
    device_of,
    doubtful,
    roofline_point,
    share,
    unhealthy,
)
from report.trials.pairs import grouped_by, same_but
from report.trials.trial import Trial

SAME_ROOF = 0.05
TYPES: tuple[Precision, ...] = ("fp32-ieee", "fp32-tf32", "pure-fp16", "pure-bf16")
KINDS = {label: GEMM[label].removeprefix("gemm_").removesuffix("_tflops") for label in TYPES}


def limits(trials: Sequence[Trial], cards: Sequence[Card], anchor: str) -> tuple[LimitsView, ...]:
    """What each device reached; `trials` may be of several devices, invalid ones are left out."""
    by_device = ceilings(trial.record for trial in trials)
    together = all_reduce.reached(trial.record for trial in trials)
    devices: dict[Device, list[Trial]] = {}
    for trial in trials:
        device = device_of(trial.record)
        if device is not None and trial.verdict != "invalid" and not trial.is_ceiling:
            devices.setdefault(device, []).append(trial)
    views = []
    for number, (device, own) in enumerate(devices.items(), 1):
        view = _limits(own, cards, by_device.get(device, {}), f"{anchor}-{number}")
        if view is not None:
            said = [all_reduce_words(found) for (first, *_), found in together.items() if first == device]
            views.append(replace(view, notes=(*view.notes, *said)))
    return tuple(views)


def all_reduce_words(found: all_reduce.Reached) -> str:
    """What several devices reach together, and what is left of it in the smallest and largest messages."""
    noun = "processes" if found.backend == "gloo" else "devices"
    several = f"{found.devices} {noun}{text.on_nodes(found.nodes)}"
    words = f"An all-reduce over {several} reaches {_gigabytes(found.bus_bytes_per_second)} of bus bandwidth"
    if found.bus_of_sizes:
        ends = (found.bus_of_sizes[0], found.bus_of_sizes[-1])
        told = (f"{_gigabytes(rate)} in messages of {_message(size)}" for size, rate in ends)
        words += f" at its fastest, {' and '.join(told)}"
    return f"{words} ({text.clean(found.backend, 40)}, {text.count(found.trials, 'run')})."


def _gigabytes(bytes_per_second: float) -> str:
    return f"{text.number(bytes_per_second / 1e9)} GB/s"


def _message(size: int) -> str:
    return f"{size / 2**10:g} KiB" if size < 2**20 else f"{size / 2**20:g} MiB"


def _limits(
    trials: Sequence[Trial], cards: Sequence[Card], measured: Mapping[str, float], name: str
) -> LimitsView | None:
    alike = grouped_by(trials, same_but()).values()
    works = [(work, reached) for work in alike if (reached := _typical(work, cards, measured))]
    if not works:
        return None
    used = trials[0].record.measurement
    assert used is not None
    device = used.device.model_copy(update={"name": trials[0].device_name})
    notes = (
        [] if measured else ["No ceiling was measured on this device: `invoke run --plan ceilings` does it."]
    )
    warning = unhealthy(device.name, measured, cards)
    notes += [warning] if warning else []
    notes += [doubt for work, reached in works if (doubt := doubtful(_named(work[0]), reached))]
    caption = f"How close each work comes to the limits of {text.clean(trials[0].card)}"
    table = tabled(caption, [_line(work[0], reached) for work, reached in works])
    drawn = _panel(works, device, cards, measured, name)
    paper = datasheet_table(device, cards, measured, trials)
    return LimitsView(trials[0].card, drawn, table, tuple(notes), paper)


def _typical(
    trials: Sequence[Trial], cards: Sequence[Card], measured: Mapping[str, float]
) -> RooflinePoint | None:
    """The run whose speed is the middle one; null where its operations are not known."""
    points = [
        roofline_point(trial.record, trial.summary, cards, measured)
        for trial in trials
        if trial.summary is not None
    ]
    rated = [(point.flops_per_second, point) for point in points if point.flops_per_second is not None]
    if not rated:
        return None
    middle = median(rate for rate, _ in rated)
    return min(rated, key=lambda pair: abs(pair[0] - middle))[1]


def _line(trial: Trial, point: RooflinePoint) -> dict[str, str]:
    bound = point.bound
    return {
        "work": _named(trial),
        "precision": trial.key.precision,
        "operations/s": rate(point.flops_per_second or 0.0, "FLOP/s"),
        "of the peak on paper (MFU)": text.percent(point.utilization),
        "of the fastest product here": text.percent(point.compute_share),
        "of the copy bandwidth here": text.percent(point.memory_share),
        "operations a counted byte": text.number(point.intensity),
        "bound by": bound.kind if bound.share is None else f"{bound.kind}, {text.percent(bound.share)}",
    }


def _named(trial: Trial) -> str:
    return f"{text.model_name(trial.key.model)}, batch {trial.key.batch_size}, {trial.key.data_mode} data"


def _panel(
    works: Iterable[tuple[list[Trial], RooflinePoint]],
    device: DeviceUsed,
    cards: Sequence[Card],
    measured: Mapping[str, float],
    name: str,
) -> Panel | None:
    points = [
        RooflineMark(
            _named(trials[0]), trials[0].key.precision, point.intensity, point.flops_per_second / device.count
        )
        for trials, point in works
        if point.intensity is not None and point.flops_per_second is not None
    ]
    roofs, slopes = _roofs(device, cards, measured), _slopes(device, cards, measured)
    if not points or not (roofs and slopes):
        return None
    title = f"Roofline of {text.clean(device.name)}"
    described = (
        f"{text.count(len(points), 'work')} under {text.count(len(roofs), 'roof')}. Operations a counted "
        "byte is the least it can be, since fusion and caches save bytes. Solid lines were measured on this "
        "device, dashed ones are on paper; rates are of one device."
    )
    chart = Roofline(tuple(points), tuple(roofs), tuple(slopes))
    return Panel(name, title, "FLOP/s over FLOP per counted byte", chart, described)


def _roofs(device: DeviceUsed, cards: Sequence[Card], measured: Mapping[str, float]) -> list[Roof]:
    card, roofs = find(device.name, cards), []
    for label in TYPES:
        reached, peak = ceiling_of(measured, label), card and peak_tflops(card, label)
        if reached is not None:
            roofs.append(Roof(KINDS[label], label, reached, True))
        if peak:
            roofs.append(Roof(KINDS[label], label, peak * 1e12, False))
    return [
        replace(roof, label=f"{roof.label}, {'measured' if roof.measured else 'on paper'}")
        for roof in _together(roofs)
    ]


def _together(roofs: Sequence[Roof]) -> list[Roof]:
    """Roofs that no drawing tells apart become one with both names."""
    kept: list[Roof] = []
    for roof in roofs:
        for place, other in enumerate(kept):
            near = abs(other.flops_per_second / roof.flops_per_second - 1) < SAME_ROOF
            if near and other.measured == roof.measured:
                kept[place] = replace(other, label=f"{other.label} and {roof.label}")
                break
        else:
            kept.append(roof)
    return kept


def _slopes(device: DeviceUsed, cards: Sequence[Card], measured: Mapping[str, float]) -> list[Bandwidth]:
    card, reached = find(device.name, cards), bandwidth_of(measured)
    slopes = [Bandwidth(reached, True)] if reached is not None and COPY in measured else []
    if card:
        slopes.append(Bandwidth(card.bandwidth_gbs * 1e9 / card.devices, False))
    return slopes


def datasheet_table(
    device: DeviceUsed, cards: Sequence[Card], measured: Mapping[str, float], trials: Sequence[Trial]
) -> Table | None:
    """What one device of a card should do and what it did; null where neither is known.

    Vendors print 2³⁰ bytes as a gigabyte of memory; the device says what is left to use. Of power the board's
    limit stands beside the one that the driver held to while the trials ran.
    """
    card = find(device.name, cards)
    if card is None and not measured:
        return None
    rows = [
        _row(
            f"{KINDS[label].removesuffix('-ieee').upper()} products",
            peak_tflops(card, label) if card else None,
            _in(ceiling_of(measured, label), 1e12),
            "TFLOP/s",
        )
        for label in TYPES
    ]
    copied = bandwidth_of(measured) if COPY in measured else None
    watched = [trial.record.telemetry.cards for trial in trials if trial.record.telemetry]
    watts = [
        device_read.power_limit_watts
        for shown in watched
        for device_read in shown
        if device_read.power_limit_watts
    ]
    paper = (card.bandwidth_gbs, card.memory_gb, card.power_watts) if card else (None,) * 3
    bandwidth, memory, power = (value and value / card.devices if card else None for value in paper)
    rows += [
        _row("Memory bandwidth", bandwidth, _in(copied, 1e9), "GB/s"),
        _row("Memory", memory, _in(device.memory_bytes or None, 2**30), "GiB"),
        _row("Power limit", power, max(watts, default=None), "W"),
    ]
    kept = tuple(row for row in rows if row is not None)
    return Table(_caption(card, device), ("Limit", "On paper", "Measured here", "Of the paper's"), kept)


def _in(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _caption(card: Card | None, device: DeviceUsed) -> str:
    if card is None:
        return f"{text.clean(device.name, 60)}: what was measured; results/cards.toml does not have it."
    words = f"{card.name} on paper (dense, one device) and as measured. "
    words += f"Source: {text.clean(card.source, 200)} (confidence {card.confidence})."
    return words + (f" {text.clean(card.note, 240)}." if card.note else "")


def _row(name: str, paper: float | None, here: float | None, unit: str) -> tuple[str, ...] | None:
    if paper is None and here is None:
        return None
    on_paper, measured = (f"{text.number(value)} {unit}" if value else "–" for value in (paper, here))
    return name, on_paper, measured, text.percent(share(here, paper))
