"""Published training speeds of the networks of plan `card`, as what a card should reach in them.

Others trained the same model in the same precision, with batches, loaders and compilers of their own. So a
card's published figure says what this plan should reach by what another card on record reached of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Literal

from harness.record.published.cards import Card
from report.expected.figures import TIMES, PublishedRow, read_tables
from report.expected.products import KnownSpeed

WORKS = {
    "resnet50:amp-fp16": {
        "resnet50",
        "resnet50 v1.5",
        "resnet50 NCHW",
        "resnet50 channels_last",
        "resnet50-noio channels_last",
    },
    "gpt2-124m:amp-bf16": {"GPT-2 124M", "GPT-2 124M, length 1024"},
}
"""What the tables call each network, by its model and precision."""
UNITS = {"images/s": 1, "samples/s": 1, "items/s": 1, "tokens/s": 1, "ms/step": 1024}
"""Units of such figures, and in a step the tokens of each sequence."""
LEAST_BATCH = 0.25
"""A published batch is at least so large beside this plan's."""
NETWORK_SD = 0.23
"""How far the ratio of two programs' speeds of ResNet-50 on one card lies from that on others (22 pairs)."""

CardFigures = dict[str, list[tuple[str, float]]]
"""By its name what was measured on a card, with the machine."""


@dataclass(frozen=True, slots=True)
class PublishedNetwork:
    """One figure in images or tokens per second; null where no source says the batch or the year."""

    name: str
    card: str
    program: str
    rate: float
    batch: int | None
    year: int | None


def load_networks(root: Path) -> tuple[PublishedNetwork, ...]:
    """Return the figures of one device of the tables; none where the clone has no tables."""
    return tuple(_networks([row for table in read_tables(root).values() for row in table]))


def _networks(rows: Sequence[PublishedRow]) -> Iterator[PublishedNetwork]:
    for row in rows:
        name = next((key for key, works in WORKS.items() if row.work in works), "")
        if not name.endswith(f":{row.precision}") or row.unit not in UNITS:
            continue
        if row.unit in TIMES and (row.batch is None or not name.startswith("gpt2")):
            continue
        rate = 1000 * (row.batch or 0) * UNITS[row.unit] / row.value if row.unit in TIMES else row.value
        program = f"{row.program} {row.work}"
        yield PublishedNetwork(name, row.card, program, rate, row.batch, _year(row))


def _year(row: PublishedRow) -> int | None:
    found = re.search(r"NGC(?: PyTorch)? (\d\d)\.", row.software)
    if found:
        return 2000 + int(found[1])
    stated = re.search(r"\b(20\d\d)\b", f"{row.source} {row.software}")
    return int(stated[1]) if stated else None


def known_network(
    name: str,
    card: Card | None,
    networks: Sequence[PublishedNetwork],
    reached: Mapping[str, CardFigures],
) -> KnownSpeed | None:
    """Return what a card's published figures lead to, by what other cards on record reached of their own.

    Its deviation is null where none of them has a figure of the same program.
    """
    network, _, batch = name.rpartition(":")[0].rpartition(":")
    if card is None or network not in WORKS:
        return None
    alike = [
        one
        for one in networks
        if one.name == network and (one.batch is None or one.batch >= LEAST_BATCH * int(batch))
    ]
    own = [one for one in alike if one.card == card.name]
    if not own:
        return None
    years = tuple(sorted({one.year for one in own if one.year}))
    rates = {
        model: median(rate for _, rate in figures[name])
        for model, figures in reached.items()
        if name in figures and model != card.name
    }
    found, beside = [], set()
    for program, rate in _medians(own, "program").items():
        others = _medians((one for one in alike if one.program == program and one.card in rates), "card")
        if others:
            beside |= set(others)
            shares = [math.log(rates[other] / published) for other, published in others.items()]
            found.append(math.log(rate) + fmean(shares))
    if not found:
        return KnownSpeed("published", median(one.rate for one in own), None, len(own), 1, years)
    sd = NETWORK_SD * math.sqrt(1 + 1 / len(beside))
    return KnownSpeed("published", math.exp(fmean(found)), sd, len(own), 1, years, len(beside))


def _medians(figures: Iterable[PublishedNetwork], column: Literal["program", "card"]) -> dict[str, float]:
    rates: dict[str, list[float]] = {}
    for one in figures:
        rates.setdefault(getattr(one, column), []).append(one.rate)
    return {key: median(values) for key, values in rates.items()}
