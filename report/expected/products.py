"""Published speeds of matrix products: how much of its peak on paper a card of an architecture reaches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Annotated, Literal

from pydantic import Field

from harness.record import Model
from harness.record.published.cards import Card
from report.expected.specs import FOLDER, csv_rows, load_specs

FILE = FOLDER / "products.csv"
NO_BF16 = {"Pascal", "Maxwell", "Volta", "Turing"}
"""Architectures that emulate bf16."""
PEAKS = {
    "fp32-ieee": "fp32_tflops",
    "tf32": "tf32_tflops",
    "fp16": "fp16_tflops",
    "bf16": "fp16_tflops",
}


UNIT_SD = 0.03
"""Standard deviation of the logarithm between cards of one model: as `report.compare.spread` has it, and no
less than between published products of one card, arithmetic and version of torch."""
METHOD_SD = 0.13
"""The same between published products and those of this plan, which last, on random normals: an H200 reached
0.84 to 1.00 of them."""
LEAST_CARDS = 2
Basis = Literal["host", "records", "published", "architecture"]


class PublishedProduct(Model):
    """One figure in TFLOP/s; null are the architecture and the peak of a card that no table describes."""

    card: str
    arithmetic: str
    tflops: Annotated[float, Field(gt=0)]
    year: int | None = None
    software: str = ""
    source: str
    architecture: str | None = None
    peak: float | None = None


def load_products(root: Path, cards: Sequence[Card]) -> tuple[PublishedProduct, ...]:
    """Return the published products; none where the clone has no table of them."""
    if not (root / FILE).is_file():
        return ()
    specs, sold = load_specs(root, cards), {card.name: card for card in cards}

    def described(row: PublishedProduct) -> PublishedProduct:
        found = specs.get(row.card)
        if found is None:
            return row
        if card := sold.get(row.card):
            peak = peak_of(card, row.arithmetic)
        elif row.arithmetic == "bf16" and found.architecture in NO_BF16:
            peak = None
        else:
            peak = getattr(found, PEAKS.get(row.arithmetic, ""), None)
        return row.model_copy(update={"architecture": found.architecture, "peak": peak})

    return tuple(described(row) for _, row in csv_rows(root, FILE, PublishedProduct))


def peak_of(card: Card, arithmetic: str) -> float | None:
    """Return the dense peak of one device of a card in TFLOP/s; null where no source has it."""
    whole: float | None = getattr(card.peaks, arithmetic.partition("-")[0], None)
    return whole / card.devices if whole else None


@dataclass(frozen=True, slots=True)
class KnownSpeed:
    """What other cards reach: the middle of `figures` of `cards`, and the standard deviation of its
    logarithm for one card more; null where it is not known how much the work differs."""

    basis: Basis
    middle: float
    sd: float | None
    figures: int
    cards: int
    years: tuple[int, ...] = ()
    beside: int = 0
    """Other cards by which published figures of another way to do the work are brought to this plan's."""


def known_of(
    name: str,
    others: Sequence[Sequence[tuple[str, float]]],
    machine: str,
    card: Card | None,
    products: Sequence[PublishedProduct],
) -> KnownSpeed | None:
    """Return what is known of a measured thing: `others` are the figures of each other card of the model."""
    host = [one for one in others if one[0][0] == machine]
    if others:
        logs = [math.log(median(value for _, value in one)) for one in host or others]
        sd = UNIT_SD * math.sqrt(1 + 1 / len(logs))
        return KnownSpeed("host" if host else "records", math.exp(fmean(logs)), sd, len(logs), len(logs))
    if card is None or not name.startswith("gemm_"):
        return None
    arithmetic = name.split("_")[1]
    alike = [one for one in products if one.arithmetic == arithmetic]
    own = [one for one in alike if one.card == card.name]
    if own:
        sd = math.hypot(METHOD_SD, UNIT_SD * math.sqrt(1 + 1 / len(own)))
        years = tuple(sorted({one.year for one in own if one.year}))
        return KnownSpeed("published", median(one.tflops for one in own), sd, len(own), 1, years)
    return _by_share(alike, card, arithmetic, products)


def _by_share(
    alike: Sequence[PublishedProduct], card: Card, arithmetic: str, products: Sequence[PublishedProduct]
) -> KnownSpeed | None:
    """Return what the card's peak and its architecture's share of it lead to."""
    peak = peak_of(card, arithmetic)
    shares = _shares(alike).get((card.architecture.split()[0], arithmetic), {})
    if not peak or len(shares) < LEAST_CARDS:
        return None
    of_all = [list(one.values()) for one in _shares(products).values() if len(one) > 1]
    squares = sum((share - fmean(one)) ** 2 for one in of_all for share in one)
    sd = math.sqrt(squares / sum(len(one) - 1 for one in of_all) * (1 + 1 / len(shares)))
    middle = peak * math.exp(fmean(shares.values()))
    years = tuple(sorted({one.year for one in alike if one.card in shares and one.year}))
    figures = sum(one.card in shares for one in alike)
    return KnownSpeed("architecture", middle, math.hypot(METHOD_SD, sd), figures, len(shares), years)


def _shares(products: Iterable[PublishedProduct]) -> dict[tuple[str, str], dict[str, float]]:
    """Return by architecture and arithmetic each card's logarithm of its share of the peak."""
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for one in products:
        if one.architecture and one.peak:
            of = found.setdefault((one.architecture, one.arithmetic), {})
            of.setdefault(one.card, []).append(math.log(one.tflops / one.peak))
    return {key: {card: median(logs) for card, logs in of.items()} for key, of in found.items()}
