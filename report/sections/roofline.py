"""Trials → how close each device's work comes to its limits: roofline, table, and what bounds each trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from harness.record import DeviceUsed, Precision
from harness.record.cards import Card, find, peak_tflops
from report import text
from report.charts.roofline import Bandwidth, Roof, Roofline, RooflineMark, rate
from report.sections.view import LimitsView, Panel, Table
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
COLUMNS = (
    *("work", "precision", "operations/s", "of the peak on paper (MFU)", "of the fastest product here"),
    *("of the copy bandwidth here", "operations a counted byte", "bound by"),
)


def limits(trials: Sequence[Trial], cards: Sequence[Card], anchor: str) -> tuple[LimitsView, ...]:
    """What each device reached; `trials` may be of several devices, invalid ones are left out."""
    known = ceilings(trial.record for trial in trials)
    devices: dict[Device, list[Trial]] = {}
    for trial in trials:
        device = device_of(trial.record)
        if device is not None and trial.verdict != "invalid" and not trial.is_ceiling:
            devices.setdefault(device, []).append(trial)
    found = []
    for number, (device, own) in enumerate(devices.items(), 1):
        one = _limits(own, cards, known.get(device, {}), f"{anchor}-{number}")
        if one is not None:
            found.append(one)
    return tuple(found)


def _limits(
    trials: Sequence[Trial], cards: Sequence[Card], measured: Mapping[str, float], name: str
) -> LimitsView | None:
    alike = grouped_by(trials, same_but()).values()
    works = [(work, reached) for work in alike if (reached := _typical(work, cards, measured))]
    if not works:
        return None
    used = trials[0].record.measurement
    assert used is not None
    notes = (
        [] if measured else ["No ceiling was measured on this device: `invoke run --plan ceilings` does it."]
    )
    warning = unhealthy(used.device.name, measured, cards)
    notes += [warning] if warning else []
    notes += [said for work, reached in works if (said := doubtful(_named(work[0]), reached))]
    table = Table(
        f"How close each work comes to the limits of {text.clean(trials[0].card)}",
        COLUMNS,
        tuple(_line(work[0], reached) for work, reached in works),
    )
    drawn = _panel(works, used.device, cards, measured, name)
    paper = datasheet_table(used.device, cards, measured, trials)
    return LimitsView(trials[0].card, drawn, table, tuple(notes), paper)


def _typical(
    trials: Sequence[Trial], cards: Sequence[Card], measured: Mapping[str, float]
) -> RooflinePoint | None:
    """The run whose speed is the middle one; null where its operations are not known."""
    found = [
        roofline_point(trial.record, trial.summary, cards, measured)
        for trial in trials
        if trial.summary is not None
    ]
    known = [(one.flops_per_second, one) for one in found if one.flops_per_second is not None]
    if not known:
        return None
    middle = median(rate for rate, _ in known)
    return min(known, key=lambda pair: abs(pair[0] - middle))[1]


def _line(trial: Trial, found: RooflinePoint) -> tuple[str, ...]:
    bound = found.bound
    share = "" if bound.share is None else f", {text.percent(bound.share)}"
    return (
        _named(trial),
        trial.key.precision,
        rate(found.flops_per_second or 0.0, "FLOP/s"),
        text.percent(found.utilization),
        text.percent(found.compute_share),
        text.percent(found.memory_share),
        text.number(found.intensity),
        f"{bound.kind}{share}",
    )


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
            _named(trials[0]), trials[0].key.precision, found.intensity, found.flops_per_second / device.count
        )
        for trials, found in works
        if found.intensity is not None and found.flops_per_second is not None
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
    card, found = find(device.name, cards), []
    for label in TYPES:
        reached, peak = ceiling_of(measured, label), card and peak_tflops(card, label)
        if reached is not None:
            found.append(Roof(KINDS[label], label, reached, True))
        if peak:
            found.append(Roof(KINDS[label], label, peak * 1e12, False))
    return [
        replace(roof, label=f"{roof.label}, {'measured' if roof.measured else 'on paper'}")
        for roof in _together(found)
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
    found = [Bandwidth(reached, True)] if reached is not None and COPY in measured else []
    if card:
        found.append(Bandwidth(card.bandwidth_gbs * 1e9 / card.devices, False))
    return found


PRODUCTS: tuple[tuple[Precision, str], ...] = (
    ("fp32-ieee", "FP32 products"),
    ("fp32-tf32", "TF32 products"),
    ("pure-fp16", "FP16 products"),
    ("pure-bf16", "BF16 products"),
)
GIB, GB = 2**30, 1e9


def datasheet_table(
    device: DeviceUsed, cards: Sequence[Card], measured: Mapping[str, float], trials: Sequence[Trial]
) -> Table | None:
    """What one device of a card should do and what it did; null where neither is known."""
    card = find(device.name, cards)
    found = [
        *_products(card, measured),
        _bandwidth(card, measured),
        _memory(card, device),
        _power(card, trials),
    ]
    kept = tuple(row for row in found if row is not None)
    if card is None and not measured:
        return None
    return Table(_caption(card, device), ("Limit", "On paper", "Measured here", "Of the paper's"), kept)


def _caption(card: Card | None, device: DeviceUsed) -> str:
    if card is None:
        return f"{text.clean(device.name, 60)}: what was measured; results/cards.toml does not have it."
    said = f"{card.name} on paper (dense, one device) and as measured. "
    said += f"Source: {text.clean(card.source, 200)} (confidence {card.confidence})."
    return said + (f" {text.clean(card.note, 240)}." if card.note else "")


def _products(card: Card | None, measured: Mapping[str, float]) -> list[tuple[str, ...] | None]:
    found: list[tuple[str, ...] | None] = []
    for label, name in PRODUCTS:
        paper = peak_tflops(card, label) if card else None
        reached = ceiling_of(measured, label)
        here = None if reached is None else reached / 1e12
        found.append(_row(name, paper, here, "TFLOP/s"))
    return found


def _bandwidth(card: Card | None, measured: Mapping[str, float]) -> tuple[str, ...] | None:
    paper = card.bandwidth_gbs / card.devices if card else None
    reached = bandwidth_of(measured) if COPY in measured else None
    return _row("Memory bandwidth", paper, None if reached is None else reached / GB, "GB/s")


def _memory(card: Card | None, device: DeviceUsed) -> tuple[str, ...] | None:
    """Vendors print 2³⁰ bytes as a gigabyte of memory; the device says what is left to use."""
    paper = card.memory_gb / card.devices if card else None
    here = device.memory_bytes / GIB if device.memory_bytes else None
    return _row("Memory", paper, here, "GiB")


def _power(card: Card | None, trials: Sequence[Trial]) -> tuple[str, ...] | None:
    """The board's limit, and the one that the driver held to while the trials ran."""
    told = [trial.record.telemetry.cards for trial in trials if trial.record.telemetry]
    limits = [one.power_limit_watts for cards in told for one in cards if one.power_limit_watts]
    paper = card.power_watts / card.devices if card else None
    return _row("Power limit", paper, max(limits, default=None), "W")


def _row(name: str, paper: float | None, here: float | None, unit: str) -> tuple[str, ...] | None:
    if paper is None and here is None:
        return None
    on_paper, found = (f"{text.number(value)} {unit}" if value else "–" for value in (paper, here))
    return name, on_paper, found, text.percent(share(here, paper))
