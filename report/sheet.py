"""A device on paper beside what was measured on it: peaks, memory, bandwidth and power, with their source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.cards import Card, find, peak_tflops
from harness.record import DeviceUsed, Precision
from report import words
from report.ceiling import COPY, bandwidth_of, ceiling_of, share
from report.frame import Row
from report.view import Table

PRODUCTS: tuple[tuple[Precision, str], ...] = (
    ("fp32-ieee", "FP32 products"),
    ("fp32-tf32", "TF32 products"),
    ("pure-fp16", "FP16 products"),
    ("pure-bf16", "BF16 products"),
)
GIB, GB = 2**30, 1e9


def table(
    device: DeviceUsed, cards: Sequence[Card], measured: Mapping[str, float], rows: Sequence[Row]
) -> Table | None:
    """What one device of a card should do and what it did; null where neither is known."""
    card = find(device.name, cards)
    found = [
        *_products(card, measured),
        _bandwidth(card, measured),
        _memory(card, device),
        _power(card, rows),
    ]
    kept = tuple(row for row in found if row is not None)
    if card is None and not measured:
        return None
    return Table(_caption(card, device), ("Limit", "On paper", "Measured here", "Of the paper's"), kept)


def _caption(card: Card | None, device: DeviceUsed) -> str:
    if card is None:
        return f"{words.clean(device.name, 60)}: what was measured; results/cards.toml does not have it."
    said = f"{card.name} on paper (dense, one device) and as measured. "
    said += f"Source: {words.clean(card.source, 200)} (confidence {card.confidence})."
    return said + (f" {words.clean(card.note, 240)}." if card.note else "")


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


def _power(card: Card | None, rows: Sequence[Row]) -> tuple[str, ...] | None:
    """The board's limit, and the one that the driver held to while the trials ran."""
    told = [row.record.telemetry.cards for row in rows if row.record.telemetry]
    limits = [one.power_limit_watts for cards in told for one in cards if one.power_limit_watts]
    paper = card.power_watts / card.devices if card else None
    return _row("Power limit", paper, max(limits, default=None), "W")


def _row(name: str, paper: float | None, here: float | None, unit: str) -> tuple[str, ...] | None:
    if paper is None and here is None:
        return None
    on_paper, found = (f"{words.number(value)} {unit}" if value else "–" for value in (paper, here))
    return name, on_paper, found, words.percent(share(here, paper))
