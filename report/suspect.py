"""Rows whose figures cannot be: marked invalid with the reason, so that no chart shows them as results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from harness.record.cards import Card, find, peak_tflops
from report.comparability import Key, alone
from report.frame import Row
from report.plausibility import Flag, above_linear, above_peak, flags, idle_device, jump


def marked(rows: Sequence[Row], cards: Sequence[Card]) -> tuple[Row, ...]:
    """The same rows in the same order; what is flagged is invalid, and its causes name the flag."""
    return tuple(_marked(row, raised) for row, raised in zip(rows, suspects(rows, cards), strict=True))


def _marked(row: Row, raised: tuple[Flag, ...]) -> Row:
    if not raised:
        return row
    said = tuple(f"{flag.name}: {flag.sentence}" for flag in raised)
    return replace(row, verdict="invalid", causes=(*row.causes, *said))


def suspects(rows: Sequence[Row], cards: Sequence[Card]) -> tuple[tuple[Flag, ...], ...]:
    """Each row's flags, by its card's peak, one device's throughput, other sessions, its device's work."""
    alike: dict[object, list[Row]] = {}
    for row in rows:
        if row.metrics is not None and row.metrics.throughput is not None:
            alike.setdefault(_alike(row, row.key), []).append(row)
    return tuple(_flags(row, alike, cards) for row in rows)


def _alike(row: Row, key: Key) -> object:
    """What a throughput may be held against: the same work on the same model of device.

    Processors of one name differ in how many of their cores a machine lends out, so theirs stay at home.
    """
    return key, row.device, row.machine if row.environment.device == "cpu" else ""


def _flags(row: Row, alike: dict[object, list[Row]], cards: Sequence[Card]) -> tuple[Flag, ...]:
    if row.metrics is None or row.metrics.throughput is None:
        return ()
    single = _throughputs(alike.get(_alike(row, alone(row.key)), ()))
    elsewhere = _throughputs(
        other for other in alike.get(_alike(row, row.key), ()) if other.session != row.session
    )
    return flags(
        above_peak(peak_share(row, cards), "the card's dense peak in this precision"),
        above_linear(median(single) if single else None, row.metrics.throughput, row.key.gpus),
        jump(row.metrics.throughput, elsewhere) if len(elsewhere) > 1 else None,
        idle_device(row.busy_share),
    )


def _throughputs(rows: Iterable[Row]) -> list[float]:
    return [
        row.metrics.throughput
        for row in rows
        if row.verdict != "invalid" and row.metrics is not None and row.metrics.throughput is not None
    ]


def peak_share(row: Row, cards: Sequence[Card]) -> float | None:
    """Model FLOP utilisation: FLOPs per sample · samples per second ÷ the devices' dense peak, 0 to 1.

    Null where the card, its peak in the label's arithmetic, or the operations are not known.
    """
    card = find(row.device, cards)
    if card is None or row.metrics is None or row.metrics.throughput is None or not row.flops_per_sample:
        return None
    peak = peak_tflops(card, row.key.precision)  # type: ignore[arg-type]
    return (
        None if peak is None else row.flops_per_sample * row.metrics.throughput / (peak * 1e12 * row.key.gpus)
    )
