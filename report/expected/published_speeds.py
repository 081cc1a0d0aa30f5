"""Published speeds of matrix products and of the networks of plan `card`: what a card should reach in them.

A product is by the share of its peak on paper that a card of its architecture reaches. Of a network others
trained the same model in the same precision, with batches, loaders and compilers of their own: a card's
published figure says what this plan should reach by what another card on record reached of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Annotated, Literal

from pydantic import Field

from harness.record import Model
from harness.record.published.cards import Card
from report.expected.figures import PublishedRow, read_tables
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
"""Standard deviation of the logarithm of the speed between cards of one model, where it was not measured.

Sinha et al., SC'22 (arXiv 2208.11035) give 8 % on average, 22 % at most, between units of a cluster without
its outliers. Taken for a range of ± 2.7 standard deviations that is one of 1.5 and of 4 %. It is no less than
between published products of one card, arithmetic and version of torch.
"""
METHOD_SD = 0.035
"""The same, assumed, between published products that last, on random normals, and those of this plan."""
SHORT_SD = 0.13
"""The same for others, where too few pairs of the tables say it."""
COPY_SHARES = {"HBM": (0.890, 0.908, 0.896), "GDDR": (0.815,)}
"""Shares of the paper's bandwidth, in copies of 4 GiB: A100, H100, H200; RTX PRO 6000 (KempnerInstitute/
kempner-computing-handbook 330bcb9)."""
LEAST_CARDS = 2
WORKS = {
    "resnet50:amp-fp16": re.compile(r"resnet50(-noio)?( v1\.5| NCHW| channels_last)?"),
    "gpt2-124m:amp-bf16": re.compile(r"GPT-2 124M(, length 1024)?"),
}
"""What the tables call each network, by its model and precision."""
COMPILED = "compiled"
"""Stands in a name in the batch's place: from LARGE_BATCH on a doubling adds at most 5 % (16 cards)."""
LARGE_BATCH = 8
UNITS = ("images/s", "samples/s", "items/s", "tokens/s")
LEAST_BATCH = 0.25
"""A published batch is at least so large beside this plan's."""
NETWORK_SD = 0.23
"""How far the ratio of two programs' speeds of ResNet-50 on one card lies from that on others (22 pairs)."""


class PublishedProduct(Model):
    """One figure in TFLOP/s; null are the architecture and the peak of a card that no table describes."""

    card: str
    arithmetic: str
    tflops: Annotated[float, Field(gt=0)]
    year: int | None = None
    software: str = ""
    taken: Literal["sustained", "short"] | None = None
    """Sustained: squares of 16,384 of random normals, as this plan's."""
    units: Annotated[int, Field(ge=1)] = 1
    """The number of cards whose mean it is."""
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

    basis: Literal["host", "records", "published", "architecture", "paper"]
    middle: float
    sd: float | None
    figures: int
    cards: int
    years: tuple[int, ...] = ()
    sustained: bool = False
    """Whether the figures were taken as this plan's are."""
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
    own = [one for one in products if (one.card, one.arithmetic) == (card.name, arithmetic)]
    lasting = [one for one in own if one.taken == "sustained"]
    used = lasting or own
    if not used:
        return _by_share(card, arithmetic, products)
    short, sd = (0.0, METHOD_SD) if lasting else _short_over_sustained(products, card.name)
    sd = math.hypot(sd, UNIT_SD * math.sqrt(1 + 1 / sum(one.units for one in used)))
    years = tuple(sorted({one.year for one in used if one.year}))
    middle = median(one.tflops for one in used) / math.exp(short)
    return KnownSpeed("published", middle, sd, len(used), 1, years, bool(lasting))


def by_paper(name: str, paper: float | None, card: Card | None, links: Sequence[float]) -> KnownSpeed | None:
    """Return what the paper's bandwidth leads to, by the shares of other cards' copies, of hosts' `links`."""
    kind = (card.memory_type or "")[:4].rstrip("2345") if card else ""
    shares = COPY_SHARES.get(kind, ()) if name.startswith("copy") else links
    if not paper or not shares:
        return None
    sd = math.hypot(METHOD_SD, UNIT_SD * math.sqrt(1 + 1 / len(shares)))
    middle = paper * math.exp(fmean(map(math.log, shares)))
    return KnownSpeed("paper", middle, sd, len(shares), len(shares))


def _short_over_sustained(products: Iterable[PublishedProduct], without: str) -> tuple[float, float]:
    """Return how much more other published products are than sustained ones, and how one more deviates.

    Both of the logarithm, from the cards but one that have both.
    """
    pairs: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    for one in products:
        if one.card != without:
            sides = pairs.setdefault((one.card, one.arithmetic), ([], []))
            sides[one.taken == "sustained"].append(math.log(one.tflops))
    logs = [median(short) - median(lasting) for short, lasting in pairs.values() if short and lasting]
    if len(logs) <= LEAST_CARDS:
        return 0.0, SHORT_SD
    return fmean(logs), stdev(logs) * math.sqrt(1 + 1 / len(logs))


def _by_share(card: Card, arithmetic: str, products: Sequence[PublishedProduct]) -> KnownSpeed | None:
    """Return what the card's peak and its architecture's share of it lead to."""
    peak = peak_of(card, arithmetic)
    by_kind = _shares(products, _short_over_sustained(products, card.name)[0])
    shares = by_kind.get((card.architecture.split()[0], arithmetic), {})
    if not peak or len(shares) < LEAST_CARDS:
        return None
    of_all = [list(one.values()) for one in by_kind.values() if len(one) > 1]
    squares = sum((share - fmean(one)) ** 2 for one in of_all for share in one)
    sd = math.sqrt(squares / sum(len(one) - 1 for one in of_all) * (1 + 1 / len(shares)))
    middle = peak * math.exp(fmean(shares.values()))
    used = [one for one in products if one.arithmetic == arithmetic and one.card in shares]
    years = tuple(sorted({one.year for one in used if one.year}))
    return KnownSpeed("architecture", middle, math.hypot(METHOD_SD, sd), len(used), len(shares), years)


def _shares(products: Iterable[PublishedProduct], short: float) -> dict[tuple[str, str], dict[str, float]]:
    """Return by architecture and arithmetic each card's logarithm of its share of the peak.

    A product that is not sustained is less by `short`.
    """
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for one in products:
        if one.architecture and one.peak:
            of = found.setdefault((one.architecture, one.arithmetic), {})
            more = 0.0 if one.taken == "sustained" else short
            of.setdefault(one.card, []).append(math.log(one.tflops / one.peak) - more)
    return {key: {card: median(logs) for card, logs in of.items()} for key, of in found.items()}


CardFigures = dict[str, list[tuple[str, float]]]
"""By its name what was measured on a card, with the machine."""


@dataclass(frozen=True, slots=True)
class PublishedSpeeds:
    """What others published of cards: products, and rates of these networks on one device."""

    products: tuple[PublishedProduct, ...] = ()
    networks: tuple[PublishedRow, ...] = ()


def load_published(root: Path, cards: Sequence[Card]) -> PublishedSpeeds:
    """Return the published speeds; none where the clone has no tables."""
    rows = (row for table in read_tables(root).values() for row in table if row.unit in UNITS)
    networks = (row for row in rows if any(works.fullmatch(row.work) for works in WORKS.values()))
    return PublishedSpeeds(load_products(root, cards), tuple(networks))


def network_name(model: str, precision: str, batch: int, unit: str, *, compiled: bool) -> str:
    """Return what a network's speed is compared by: 'resnet50:amp-fp16:256:image'."""
    return f"{model}:{precision}:{COMPILED if compiled and batch >= LARGE_BATCH else batch}:{unit}"


def known_network(
    name: str, card: Card | None, rows: Sequence[PublishedRow], reached: Mapping[str, CardFigures]
) -> KnownSpeed | None:
    """Return what a card's published figures lead to, by what other cards on record reached of their own.

    Its deviation is null where none of them has a figure of the same program.
    """
    network, _, batch = name.rpartition(":")[0].rpartition(":")
    if card is None or network not in WORKS:
        return None
    least = LARGE_BATCH if batch == COMPILED else LEAST_BATCH * int(batch)
    alike = [
        row
        for row in rows
        if WORKS[network].fullmatch(row.work)
        and network.endswith(f":{row.precision}")
        and (row.batch is None or row.batch >= least)
    ]
    own = [row for row in alike if row.card == card.name]
    if not own:
        return None
    years = tuple(sorted({row.year for row in own if row.year}))
    others = {
        model: median(rate for _, rate in figures[name])
        for model, figures in reached.items()
        if name in figures and model != card.name
    }
    published = _median_rates(row for row in alike if row.card in others)
    logs = {
        (program, other): math.log(rate * others[other] / value)
        for (program, _), rate in _median_rates(own).items()
        for (same, other), value in published.items()
        if same == program
    }
    if not logs:
        return KnownSpeed("published", median(row.value for row in own), None, len(own), 1, years)
    beside = len({other for _, other in logs})
    sd = NETWORK_SD * math.sqrt(1 + 1 / beside)
    return KnownSpeed("published", math.exp(fmean(logs.values())), sd, len(own), 1, years, beside=beside)


def _median_rates(rows: Iterable[PublishedRow]) -> dict[tuple[str, str], float]:
    """Return the median rate of each program on each card."""
    rates: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        rates.setdefault((f"{row.program} {row.work}", row.card), []).append(row.value)
    return {key: median(values) for key, values in rates.items()}
