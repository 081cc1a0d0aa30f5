"""Published training speeds of the networks of plan `card`, as what a card should reach in them.

Others trained the same model in the same precision, with batches, loaders and compilers of their own. So a
card's published figure says what this plan should reach by what another card on record reached of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from harness.record.published.cards import Card
from report.expected.figures import PublishedRow, read_tables
from report.expected.products import KnownSpeed, PublishedProduct, load_products

WORKS = {
    "resnet50:amp-fp16": re.compile(r"resnet50(-noio)?( v1\.5| NCHW| channels_last)?"),
    "gpt2-124m:amp-bf16": re.compile(r"GPT-2 124M(, length 1024)?"),
}
"""What the tables call each network, by its model and precision."""
UNITS = ("images/s", "samples/s", "items/s", "tokens/s")
LEAST_BATCH = 0.25
"""A published batch is at least so large beside this plan's."""
NETWORK_SD = 0.23
"""How far the ratio of two programs' speeds of ResNet-50 on one card lies from that on others (22 pairs)."""

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


def known_network(
    name: str, card: Card | None, rows: Sequence[PublishedRow], reached: Mapping[str, CardFigures]
) -> KnownSpeed | None:
    """Return what a card's published figures lead to, by what other cards on record reached of their own.

    Its deviation is null where none of them has a figure of the same program.
    """
    network, _, batch = name.rpartition(":")[0].rpartition(":")
    if card is None or network not in WORKS:
        return None
    alike = [
        row
        for row in rows
        if WORKS[network].fullmatch(row.work)
        and network.endswith(f":{row.precision}")
        and (row.batch is None or row.batch >= LEAST_BATCH * int(batch))
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
    published = _medians(row for row in alike if row.card in others)
    logs = {
        (program, other): math.log(rate * others[other] / value)
        for (program, _), rate in _medians(own).items()
        for (same, other), value in published.items()
        if same == program
    }
    if not logs:
        return KnownSpeed("published", median(row.value for row in own), None, len(own), 1, years)
    beside = len({other for _, other in logs})
    sd = NETWORK_SD * math.sqrt(1 + 1 / beside)
    return KnownSpeed("published", math.exp(fmean(logs.values())), sd, len(own), 1, years, beside=beside)


def _medians(rows: Iterable[PublishedRow]) -> dict[tuple[str, str], float]:
    """Return the median rate of each program on each card."""
    rates: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        rates.setdefault((f"{row.program} {row.work}", row.card), []).append(row.value)
    return {key: median(values) for key, values in rates.items()}
