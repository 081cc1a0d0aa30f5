"""Rows whose figures cannot be: marked invalid with the reason, so that no chart shows them as results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from harness.record.cards import Card, find, peak_tflops
from report.comparisons.pairs import matched, same_but, without
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
    timed = [row for row in rows if row.metrics is not None and row.metrics.throughput is not None]
    alone = [row for row in timed if row.key == without(row.key, "gpus")]
    within = ("device", _home)
    single = matched(rows, alone, same_but("gpus", within=within))
    alike = matched(rows, timed, same_but(within=within))
    return tuple(_flags(row, one, same, cards) for (row, one), (_, same) in zip(single, alike, strict=True))


def _home(row: Row) -> str:
    """Processors of one name differ in how many cores a machine lends out, so theirs stay at home."""
    return row.machine if row.environment.device == "cpu" else ""


def _flags(row: Row, alone: Sequence[Row], alike: Sequence[Row], cards: Sequence[Card]) -> tuple[Flag, ...]:
    """What is wrong with a row beside the same work on one device, and beside the same of other sessions."""
    if row.metrics is None or row.metrics.throughput is None:
        return ()
    single = _throughputs(alone)
    elsewhere = _throughputs(other for other in alike if other.session != row.session)
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
