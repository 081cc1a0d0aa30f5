"""What a workload on a constructed card would write. Nothing was measured."""

from __future__ import annotations

import json
import random
from typing import Any

from harness.engine.container import RunSpec
from harness.files import unit_of
from harness.image.catalog import load_images
from harness.image.lock import lock_packages
from harness.record import (
    DeviceUsed,
    Epoch,
    LossScale,
    Measurement,
    Memory,
    PrecisionFound,
    Rank,
    TrialSpec,
    Window,
)
from harness.record.events import FILE as EVENTS
from harness.record.measurement import Flops, Probe
from harness.record.published.cards import find, load_cards
from harness.record.series import Series
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.fake_drivers import TOGGLE_SECONDS, Box
from tests.helpers.records_devices import CONVNET

MLP: dict[str, Any] = {
    "workload": "tensorcore_mlp",
    "protocol": "warmed/1",
    "model": "mlp",
    "image_size": None,
    "quality": None,
    "unit": "sample",
    "steps_per_epoch": 100,
    "epochs": 100,
    "valid_batches": 0,
}
STEPS_PER_EPOCH = 100
MLP_FLOPS = 3 * 3 * 2 * 4096**2
"""Three layers, forward and twice backward, one sample."""
RESNET_FLOPS = 3 * 2 * 4.09e9
RESNET_SECONDS = 0.25
"""Of a step, which is within the peak of each of the cards."""
SHARED = 0.97
"""What each further card of a trial is worth."""

BEGAN = 1000.0
"""Where the telemetry's clock begins."""
TRAINS_FROM, TRAINS_SECONDS = 10, 75
OWN_BYTES = 6 * 2**30
_TYPES = {
    "fp32-ieee": ("float32", "fp32-ieee"),
    "fp32-tf32": ("float32", "tf32"),
    "amp-fp16": ("float16", "fp16"),
    "amp-bf16": ("bfloat16", "bf16"),
}


def train(box: Box, spec: RunSpec, cards: tuple[str, ...]) -> None:
    """Writes what a workload on these cards would."""
    measured = measurement(box, spec.trial, cards)
    begin, lines = BEGAN + TRAINS_FROM, []
    for epoch in measured.epochs:
        end = begin + epoch.train_seconds
        lines.append(json.dumps({"event": "segment", "begin": begin, "end": end}))
        begin = end
    (spec.folders.output / EVENTS).write_text("\n".join(lines) + "\n")
    (spec.folders.output / "measurement.json").write_text(measured.model_dump_json())


def measurement(box: Box, trial: TrialSpec, cards: tuple[str, ...]) -> Measurement:
    """One trial's measurement."""
    asked, variant = trial.asked, trial.asked.variant
    of_products = asked.workload == "tensorcore_mlp"
    step_us = steps(trial.id, step_seconds(box, trial))
    count, seconds = len(step_us), sum(step_us) / 1e6
    several = len(cards) > 1
    samples = variant.batch_size * len(cards)
    memory = Memory(allocated_peak_bytes=OWN_BYTES - 2**30, reserved_peak_bytes=OWN_BYTES)
    image = load_images(ROOT).image(box.image)
    return build.measurement(
        MLP if of_products else CONVNET,
        trial,
        seconds / count,
        card=box.framework_name,
        complete=False,
        device=DeviceUsed(
            kind=box.kind,
            name=box.framework_name,
            count=len(cards),
            unit=unit_of(cards[0]) if box.kind == "cuda" else None,
            capability=box.capability,
            memory_bytes=box.chips[0].memory_bytes,
        ),
        versions={"torch": "2.13.0", "cuda" if box.kind == "cuda" else "hip": "constructed"},
        packages=lock_packages(ROOT / "docker" / image.lock) | image.from_base,
        precision=precision(variant.precision),
        samples_per_step=samples,
        window=Window(seconds=seconds, steps=count, samples=count * samples),
        step_us=Series.of(step_us),
        step_clock="device",
        epochs=tuple(
            Epoch(
                index=index,
                steps=len(part),
                train_seconds=sum(part) / 1e6,
                complete=len(part) == STEPS_PER_EPOCH,
            )
            for index, part in enumerate(epochs_of(step_us), 1)
        ),
        memory=memory,
        parallel="ddp" if several else None,
        ranks=tuple(
            Rank(rank=rank, samples=count * variant.batch_size, seconds=seconds, memory=memory)
            for rank in range(len(cards) if several else 0)
        ),
        flops=Flops(per_sample=MLP_FLOPS if of_products else RESNET_FLOPS, method="constructed"),
    )


def epochs_of(step_us: list[int]) -> list[list[int]]:
    """The steps of each pass."""
    return [step_us[first : first + STEPS_PER_EPOCH] for first in range(0, len(step_us), STEPS_PER_EPOCH)]


def precision(label: str) -> PrecisionFound:
    """What a workload finds of a label that its card computes in."""
    outputs, reads_as = _TYPES[label]
    scaled = LossScale(kind="dynamic", first=65536, last=65536, skipped_steps=0)
    return PrecisionFound(
        label=label,
        output_dtypes={f"torch.{outputs}": 54},
        parameter_dtypes={"torch.float32": 161},
        method="torch.autocast" if label.startswith("amp") else "none",
        loss_scale=scaled if label == "amp-fp16" else None,
        probes=tuple(
            Probe(operation=name, error=1e-3, reads_as=reads_as) for name in ("matmul", "convolution")
        ),
    )


def step_seconds(box: Box, trial: TrialSpec) -> float:
    """A step of a trial's batch on one card; of plain products by what the card reaches of its peak on paper."""
    variant = trial.asked.variant
    if trial.asked.workload == "convnet":
        return RESNET_SECONDS / (SHARED if variant.gpus > 1 else 1.0)
    card = find(box.framework_name, load_cards(ROOT))
    assert card is not None
    return variant.batch_size * MLP_FLOPS / (box.reach * 1e12 * card.peaks.fp32)


def steps(seed: str, seconds: float) -> list[int]:
    """Steps in microseconds over the window: 2.4 % apart where the boost clock toggles."""
    noise, series, elapsed = random.Random(seed), [], 0.0
    while elapsed < TRAINS_SECONDS or len(series) < 210:
        slow = int(TRAINS_FROM + elapsed) // TOGGLE_SECONDS % 2 == 0
        value = round(1e6 * seconds * (1.012 if slow else 0.988) * noise.gauss(1, 0.004))
        series.append(value)
        elapsed += value / 1e6
    return series
