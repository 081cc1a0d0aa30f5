"""Whether a card is as it should be: what it reaches, and whether it computes and keeps what it should.

Protocol `card/2`, one process. A product and a training step are replayed, whose bits have to be equal
(`parts/numerics/card_faults.py`). Timed for seconds, in samples of about 10 ms, are products of random
normals in each precision that the device has (fp8 by torch's scaled product with fast accumulation), which
count from half of their time on, copies within the memory, and copies over the link to the pinned memory of
the host and back. A pattern is written to nine tenths of the free memory and read back. Then comes the
window: products in the trial's own precision without a pause, for the limit's seconds. Products are squares
of one size, or of the largest half of it that fits.

Each part is a phase by its name, so that clock, power and temperature are known for it. Nothing is trained.
"""

from __future__ import annotations

from parts.trial import Failed, TrialProcess, main  # isort: skip  (its clock starts with this line)

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from parts.device import choose, facts, seed_everything
from parts.numerics import card_faults, precision
from parts.timing.clock import Clock
from parts.timing.operations import (
    COPY_BYTES,
    HOST_BYTES,
    TimedOperation,
    calls_per_step,
    copies,
    eight_bits,
    fits,
    link_copies,
    measure_operation,
    product,
    protocol_steps,
    settled_rate,
)

TITLE = "Whether a card is as it should be"
ABOUT = (
    "Products in each precision, copies, replayed steps, a pattern in the memory, and a load without a "
    "pause: nothing is trained."
)
WARM_UP = 10
LABELS = {each.arithmetic[0]: label for label, each in precision.PRECISIONS.items() if each.plain}
STEP_LABELS = {"fp32-ieee": "fp32-ieee", "fp16": "amp-fp16", "bf16": "amp-bf16"}
"""The precisions of the training steps that are replayed, by their arithmetic."""
ON_PROCESSORS = ("fp32-ieee", "bf16")
SIDES = {"cpu": 1024, "cuda": 16384}
PART_SECONDS = {"cpu": 1.0, "cuda": 10.0}
COPY_SECONDS_SHARE = 0.1
OPTIONS: dict[str, Any] = {"part_seconds": 0.0, "largest": SIDES["cuda"], "copy_bytes": 0}
"""Seconds of each product, and a tenth as many of each copy; 0 takes the default of the kind of device."""


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run all parts, then the load."""
    trial.choose("protocol", trial.asked["protocol"], ("card/2",))
    trial.choose("data", trial.asked["data"], ("synthetic",))
    trial.choose("data mode", trial.variant["data_mode"], ("cached",))
    trial.choose("model", trial.variant["model"], ("card",))
    label = trial.choose("precision", trial.variant["precision"], tuple(LABELS.values()))
    options = trial.options(OPTIONS)
    with trial.phase("device"):
        device = choose(trial.asked["device"], trial.variant["gpus"])
        precision.switch(label, device)
    seed_everything(trial.seed)
    with torch.no_grad():
        found = Parts(trial, device, options).measure_all(leave_out=precision.PRECISIONS[label].arithmetic[0])
        with trial.phase("first_step"):
            arithmetic = precision.prepare(label, device)
            load = square(precision.PRECISIONS[label].weights, device, options["largest"])
            calls = calls_per_step(load, WARM_UP, device)

    clock = Clock(trial, device, steps_per_epoch=protocol_steps(trial), epochs=1)
    measured, rate = measure_operation(clock, load, calls, arithmetic)
    ceilings = {f"gemm_{found.left_out}_tflops": rate / 1e12, **found.rates}
    return {**measured, "ceilings": ceilings, "card": found.record}


def square(dtype: torch.dtype, device: torch.device, largest: int) -> TimedOperation:
    """Return the product of squares of one size, `largest` at most; half of it where memory is short."""
    side = min(SIDES[device.type], largest)
    while side > 1 and not fits((side, side, side), device, dtype):
        side //= 2
    return product((side, side, side), device, dtype)


class Parts:
    """What is measured before the load, one part after the other."""

    def __init__(self, trial: TrialProcess, device: torch.device, options: dict[str, Any]) -> None:
        self.trial, self.device, self.largest = trial, device, options["largest"]
        self.simulated = facts(trial.asked["device"], device).get("simulated", False)
        self.small = device.type == "cpu" or self.simulated
        self.seconds = options["part_seconds"] or PART_SECONDS[device.type]
        self.copy_bytes = options["copy_bytes"]
        self.rates: dict[str, float] = {}
        self.record: dict[str, Any] = {"replays": []}
        self.left_out = ""

    def measure_all(self, leave_out: str) -> Parts:
        """Measure everything but the product in the load's arithmetic."""
        self.left_out = leave_out
        for arithmetic in (*LABELS, "fp8"):
            self._measure_arithmetic(arithmetic)
        self._copies()
        with self.trial.phase("memory pattern"):
            self.record["memory_pattern"] = card_faults.pattern_kept(self.device, small=self.small)
        return self

    def _measure_arithmetic(self, arithmetic: str) -> None:
        try:
            dtype = self._prepare(arithmetic)
            with self.trial.phase(f"replay {arithmetic}"):
                of = card_faults.replay_product(arithmetic, dtype, self.device, small=self.small)
                self.record["replays"].append(of)
                if arithmetic in STEP_LABELS:
                    label = STEP_LABELS[arithmetic]
                    step = card_faults.replay_training_step(arithmetic, label, self.device, small=self.small)
                    self.record["replays"].append(step)
            if arithmetic != self.left_out:
                operands = partial(square, dtype, self.device, self.largest)
                name = f"gemm_{arithmetic}_tflops"
                self._time_part(f"product {arithmetic}", name, operands, self.seconds)
        except Failed as lacking:
            print(f"nothing is measured in {arithmetic}: {lacking}", flush=True)

    def _prepare(self, arithmetic: str) -> torch.dtype:
        """Return the operands' type, its switches set; raises Failed where the device lacks it."""
        if self.device.type == "cpu" and arithmetic not in ON_PROCESSORS:
            raise Failed("unsupported", f"no processor is measured in {arithmetic}")
        if arithmetic == "fp8":
            return eight_bits(self.device)
        precision.switch(LABELS[arithmetic], self.device)
        return precision.PRECISIONS[LABELS[arithmetic]].weights

    def _copies(self) -> None:
        device, seconds = self.device, COPY_SECONDS_SHARE * self.seconds
        within, over = self.copy_bytes or COPY_BYTES[device.type], self.copy_bytes or HOST_BYTES
        self._time_part("copy", "copy_gb_per_second", partial(copies, device, within), seconds)
        for operation, back in (("host-to-device", False), ("device-to-host", True)):
            if device.type == "cuda":
                name = f"{operation.replace('-', '_')}_pinned_gb_per_second"
                self._time_part(operation, name, partial(link_copies, device, over, back=back), seconds)

    def _time_part(self, phase: str, name: str, make: Callable[[], TimedOperation], seconds: float) -> None:
        with self.trial.phase(phase):
            rate = settled_rate(make(), seconds, self.device)
        self.rates[name] = rate / (1e12 if name.endswith("tflops") else 1e9)


if __name__ == "__main__":
    main(run)
