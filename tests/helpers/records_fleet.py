"""Constructed records of many units of one card: no figure here was measured."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

from harness.record import Record
from tests.helpers import records_builder as build
from tests.helpers.records_devices import CONVNET, LEAD, TIMED

CARD = "Constructed Card F"
SPREAD = 0.01


def fleet(
    units: int = 64,
    *,
    cards_per_machine: int = 4,
    slow: Mapping[int, float] | None = None,
    spread: float = SPREAD,
    repeats: int = 3,
    card: str = CARD,
    seed: int = 1,
    **changes: Any,
) -> list[Record]:
    """Units whose speeds scatter by `spread`; those in `slow` are slower by so much. Machine 0 leads."""
    noise = random.Random(seed)
    found = []
    for unit in range(units):
        machine, place = divmod(unit, cards_per_machine)
        on = build.machine(card, label=f"node-{machine:02}").model_copy(
            update={"id": f"{seed:04x}{machine:08x}"}
        )
        session = LEAD if machine == 0 else f"20260130-{seed:02x}{machine:04x}"
        step = 0.05 * math.exp(noise.gauss(0, spread)) / (1 - (slow or {}).get(unit, 0.0))
        for repeat in range(1, repeats + 1):
            asked = build.trial(CONVNET, "amp-fp16", repeat, batch_size=64, data="synthetic", limit=TIMED)
            seconds = step * noise.gauss(1, 0.002)
            made = build.measurement(CONVNET, asked, seconds, card=card, complete=False, seed=unit)
            device = made.device.model_copy(update={"unit": f"{unit:06x}{seed:010x}"})
            made = made.model_copy(update={"device": device})
            order = unit % cards_per_machine * repeats + repeat
            found.append(
                build.record(
                    asked, made, on=on, session=session, order=order, cards_given=(place,), **changes
                )
            )
    return found
