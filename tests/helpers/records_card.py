"""Constructed checks of a card: no figure here was measured, and every label says so."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from harness.record import Finding, Gpu, Limit, PrecisionFound, Record, TrialSpec
from harness.record.measurement import CardCheck, Flops, MemoryPattern, Replay
from harness.record.series import Series
from tests.helpers import records_builder as build

CARD: dict[str, Any] = {
    "workload": "card",
    "protocol": "card/2",
    "model": "card",
    "quality": None,
    "unit": "sample",
    "steps_per_epoch": 7500,
    "epochs": 1,
    "valid_batches": 0,
}
NET = {
    **CARD,
    "workload": "convnet",
    "protocol": "synthetic/1",
    "model": "resnet50",
    "unit": "image",
    "image_size": 224,
}
SPEEDS = {
    "gemm_fp32-ieee_tflops": 50.0,
    "gemm_tf32_tflops": 340.0,
    "gemm_bf16_tflops": 670.0,
    "gemm_fp16_tflops": 640.0,
    "gemm_fp8_tflops": 1260.0,
    "copy_gb_per_second": 4200.0,
    "host_to_device_pinned_gb_per_second": 55.0,
    "device_to_host_pinned_gb_per_second": 55.0,
}
STEP = 0.01
CHECKED = "20260131-aaaccc"
"""The session of a check unless another card or machine is asked for."""
HALF: dict[str, Any] = {"output_dtypes": {"float16": 1}, "parameter_dtypes": {}, "method": "constructed"}


def checked_card(
    digit: str = "c",
    *,
    machine: str = "a",
    card: str = "Constructed Card A",
    speed: float = 1.0,
    speeds: Mapping[str, float] | None = None,
    at: Callable[[float], float] = lambda second: 1.0,
    differing: int = 0,
    sha256: str = "a" * 64,
    wrong_words: int = 0,
    causes: tuple[Finding, ...] = (),
) -> list[Record]:
    """A session of plan `card`: two processes, the second with a load of 75 s, and a network twice.

    `speed` is of everything, `speeds` of what they name, `at` of the load at a second. Where
    less than 256 images fit, the network was tried with 256 first.
    """
    unit, session = digit * 16, f"20260131-{machine * 3}{digit * 3}"
    on = build.machine(card, label=f"card-{machine}", digits=machine).model_copy(
        update={"gpus": (Gpu(index=0, vendor="NVIDIA", name=card, unit=unit, memory_bytes=24 * 2**30),)}
    )
    found, dice = [], random.Random(digit)
    for order, seconds in enumerate((4, 75)):
        asked = build.trial(
            CARD, "pure-fp16", 1, batch_size=1, data="synthetic", limit=Limit(seconds=seconds)
        )
        steps: list[int] = []
        left = 1e6 * seconds
        while left > 0:
            wave = 1 + 0.01 * dice.uniform(-1, 1)
            steps.append(round(1e6 * STEP * wave / (speed * at(len(steps) * STEP))))
            left -= steps[-1]
        ceilings = {
            name: rate * speed * (speeds or {}).get(name, 1.0) * (1 + 0.002 * order)
            for name, rate in SPEEDS.items()
        }
        check = CardCheck(
            replays=(
                Replay(
                    computation="product",
                    arithmetic="bf16",
                    replays=200,
                    differing=differing,
                    largest_relative_difference=0.001 * bool(differing),
                    bound=0.06,
                    bits_promised=True,
                    sha256=sha256,
                ),
            ),
            memory_pattern=MemoryPattern(tested_bytes=2**33, passes=2, wrong_words=wrong_words),
        )
        found_in = PrecisionFound(label="pure-fp16", **HALF)
        measured = build.measurement(
            CARD, asked, STEP, card=card, steps=10, ceilings=ceilings, precision=found_in
        )
        measured = measured.model_copy(
            update={
                "card": check,
                "flops": Flops(per_sample=6.4e12, method="constructed"),
                "step_us": Series.from_microseconds(steps),
            }
        )
        measured = build.changed(
            measured,
            device__unit=unit,
            window__seconds=sum(steps) / 1e6,
            window__steps=len(steps),
            window__samples=len(steps),
        )
        found.append(
            build.record(asked, measured, on=on, session=session, order=order, plan="card", causes=causes)
        )
    for repeat in (1, 2):
        asked = build.trial(NET, "amp-fp16", repeat, batch_size=256, data="synthetic")
        measured = build.measurement(
            NET,
            asked,
            0.05 / speed,
            card=card,
            seed=repeat + ord(digit),
            precision=PrecisionFound(label="amp-fp16", **HALF),
        )
        measured = build.changed(measured, device__unit=unit)
        found.append(build.record(asked, measured, on=on, session=session, order=2 + repeat, plan="card"))
    return found


def checked_box(loss: Mapping[int, float], missing: int | None = None, works: int = 4) -> list[Record]:
    """One session of plan `card` on eight cards, each slower by its `loss`; one may be missing."""
    gpus = tuple(
        Gpu(
            index=at,
            vendor="NVIDIA",
            name="Constructed Card A",
            unit=f"{at:x}" * 16,
            bus=f"0000:{at + 27:02x}:00.0",
        )
        for at in range(8)
    )
    found = []
    for gpu in gpus:
        speed = (1 - loss.get(gpu.index, 0.0)) * (1 + 0.01 * math.sin(gpu.index))
        for one in () if gpu.index == missing else checked_card(f"{gpu.index:x}", speed=speed)[-works:]:
            asked = one.trial.asked.model_copy(update={"card": gpu.index})
            trial = TrialSpec.from_request(asked, one.trial.repeat, seed=1, timeout_seconds=60.0)
            changes = {"trial": trial, "session": CHECKED, "cards_given": (gpu.index,), "order": len(found)}
            machine = one.machine.model_copy(update={"gpus": gpus})
            found.append(one.model_copy(update={**changes, "machine": machine}))
    return found


@cache
def three_others() -> tuple[Record, ...]:
    """Sound checks of three more cards of the model, each in a machine of its own."""
    return tuple(record for digit in "def" for record in checked_card(digit, machine=digit))
