"""Constructed buyers for the tests of money: no price or figure here is real."""

from __future__ import annotations

import random

from report.buying.cost_model import CostNumbers, OfferNumbers, Range
from report.buying.costs import INPUTS

FILE = """\
currency = "EUR"
life_years = { low = 3, best = 4, high = 5 }
utilisation = { low = 0.3, best = 0.5, high = 0.7 }
electricity_price = { low = 0.20, best = 0.25, high = 0.35 }
pue = 1.3
residual_share = { low = 0, best = 0.1, high = 0.2 }
host_price = 1500
host_watts = 120

[[offer]]
card = "Card A"
price = 2000
date = 2026-01-05
source = "a constructed offer"
watts = 300

[[offer]]
card = "Card B"
price = { low = 3000, best = 3200, high = 3500 }
date = 2025-01-05
source = "another constructed offer"
watts = 350

[[work]]
workload = "word_lm"
model = "lstm"
precision = "fp32-ieee"
hours_per_year = 1040

[[work]]
workload = "cifar_fastai"
model = "resnet50"
precision = "fp16-master"
hours_per_year = 1560
"""


def around(value: float, part: float) -> Range:
    """A range of ± a part of a value."""
    return value * (1 - part), value, value * (1 + part)


Made = tuple[OfferNumbers, tuple[float | None, ...]]
"""A card, and its seconds for one unit of each row's work."""


def card(name: str, price: Range | None, seconds: tuple[float | None, ...], **changes: object) -> Made:
    """A card that is bought, of 300 W throughout."""
    values: dict[str, object] = {
        "name": name,
        "rented": False,
        "price": price,
        "watts": tuple((300.0, 300.0, 300.0) for _ in seconds),
    }
    return OfferNumbers(**{**values, **changes}), seconds  # type: ignore[arg-type]


def speeds(cards: tuple[Made, ...], part: float) -> tuple[tuple[tuple[Range | None, ...], ...], ...]:
    """Each card's time over each other's, give or take a part that is the same both ways round."""

    def over(one: float | None, other: float | None, same: bool) -> Range | None:
        if one is None or other is None:
            return None
        best = one / other
        return (1.0, 1.0, 1.0) if same else (best / (1 + part), best, best * (1 + part))

    return tuple(
        tuple(tuple(over(a, b, mine is his) for a, b in zip(mine[1], his[1], strict=True)) for his in cards)
        for mine in cards
    )


def numbers(
    *cards: Made, hours: tuple[float, ...] = (30.0, 10.0), part: float = 0.08, **changes: Range
) -> CostNumbers:
    """A buyer whose site is certain unless `changes` says otherwise."""
    site = {
        "life_years": 4.0,
        "utilisation": 0.5,
        "electricity_price": 0.25,
        "pue": 1.3,
        "residual_share": 0.1,
        "host_price": 1500.0,
        "host_watts": 120.0,
    }
    inputs: dict[str, Range] = {name: (site[name], site[name], site[name]) for name in INPUTS}
    return CostNumbers(
        inputs={**inputs, **changes},
        offers=tuple(one for one, _ in cards),
        hours=hours,
        hours_on=0,
        speed=speeds(cards, part),
    )


def random_buyer(seed: int) -> CostNumbers:
    """Any buyer: 1 to 4 cards, 1 to 4 rows, bought and rented, with gaps wherever gaps can be."""
    draw = random.Random(seed)

    def ranged(low: float, high: float) -> Range:
        found = sorted(draw.uniform(low, high) for _ in range(3))
        return (found[0], found[1], found[2]) if draw.random() < 0.7 else (found[1], found[1], found[1])

    rows = draw.randint(1, 4)
    cards = []
    for place in range(draw.randint(1, 4)):
        rented = draw.random() < 0.25
        watts = tuple(ranged(50, 700) if draw.random() < 0.95 else None for _ in range(rows))
        cards.append(
            card(
                f"card {place}",
                None if draw.random() < 0.1 else ranged(0.1, 4) if rented else ranged(300, 40_000),
                tuple(draw.uniform(10, 5000) if draw.random() < 0.95 else None for _ in range(rows)),
                rented=rented,
                watts=watts,
            )
        )
    return numbers(
        *cards,
        hours=tuple(draw.choice([0.0, draw.uniform(0.1, 100)]) for _ in range(rows)),
        part=draw.uniform(0, 0.3),
        life_years=ranged(1, 8),
        utilisation=ranged(0.05, 1),
        electricity_price=ranged(0, 0.6),
        pue=ranged(1, 2),
        residual_share=ranged(0, 0.6),
        host_price=ranged(0, 5000),
        host_watts=ranged(0, 400),
    )
