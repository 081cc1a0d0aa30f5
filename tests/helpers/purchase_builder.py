"""Constructed buyers for the tests of money: no price or figure here is real."""

from __future__ import annotations

import math
import random
from itertools import product

from report.buying.cost_model import CostModel, OfferNumbers, Range

FILE = """\
currency = "EUR"
life_years = { low = 3, best = 4, high = 5 }
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


def around(value: float, part: float = 0.0) -> Range:
    """A range of ± a part of a value."""
    return value * (1 - part), value, value * (1 + part)


def bought(price: float, watts: float, hours: float, part: float = 0.0) -> OfferNumbers:
    """A card that is bought, whose hours alone are uncertain."""
    return OfferNumbers(False, around(price), around(watts), (hours / (1 + part), hours, hours * (1 + part)))


def rented(price: float, hours: float) -> OfferNumbers:
    """A card that is rented."""
    return OfferNumbers(True, around(price), around(0.0), around(hours))


def model(*offers: OfferNumbers, shared: bool = False, **site: Range | float) -> CostModel:
    """The costs of offers at a site; of `shared` hours each is as uncertain as the other, together."""
    known = {"life_years": 4.0, "busy_share": 0.8, "electricity_price": 0.25, "pue": 1.0}
    known |= {"residual_share": 0.0, "host_price": 2500.0, "host_watts": 150.0}
    inputs = {
        name: around(value) if isinstance(value, float) else value for name, value in (known | site).items()
    }

    def over(one: OfferNumbers, other: OfferNumbers) -> Range:
        best = one.hours[1] / other.hours[1]
        apart = math.hypot(*(math.log(each.hours[2] / each.hours[1]) for each in (one, other)))
        return around(best) if shared else (best / math.exp(apart), best, best * math.exp(apart))

    times = {(i, j): over(offers[i], offers[j]) for i, j in product(range(len(offers)), repeat=2)}
    return CostModel(inputs, dict(enumerate(offers)), times)


def random_model(seed: int) -> CostModel:
    """Any buyer: 1 to 4 cards, bought and rented."""
    draw = random.Random(seed)

    def ranged(low: float, high: float) -> Range:
        found = sorted(draw.uniform(low, high) for _ in range(3))
        return (found[0], found[1], found[2]) if draw.random() < 0.7 else (found[1], found[1], found[1])

    offers = []
    for _ in range(draw.randint(1, 4)):
        rent = draw.random() < 0.25
        price = ranged(0.1, 4) if rent else ranged(300, 40_000)
        offers.append(OfferNumbers(rent, price, ranged(50, 700), ranged(10, 30_000)))
    return model(
        *offers,
        life_years=ranged(1, 8),
        busy_share=ranged(0.05, 1),
        electricity_price=ranged(0, 0.6),
        pue=ranged(1, 2),
        residual_share=ranged(0, 0.6),
        host_price=ranged(0, 5000),
        host_watts=ranged(0, 400),
    )
