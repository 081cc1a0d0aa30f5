"""What a workload on a constructed card would write. Nothing was measured."""

from __future__ import annotations

import json
import random

from harness.engine.container import RunSpec
from harness.files import unit_of
from harness.image.catalog import load_images
from harness.image.lock import lock_packages
from harness.record import DeviceUsed, Epoch, Measurement, Memory, PrecisionFound, Rank, TrialSpec, Window
from harness.record.events import FILE as EVENTS
from harness.record.measurement import Flops
from harness.record.published.cards import find, load_cards
from harness.record.series import Series
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.fake_drivers import TOGGLE_SECONDS, Box
from tests.helpers.records_devices import CONVNET

RESNET = {**CONVNET, "steps_per_epoch": 1000}
MLP = {**RESNET, "workload": "tensorcore_mlp", "protocol": "warmed/1", "model": "mlp", "unit": "sample"}
MLP["image_size"] = None
MLP_FLOPS = 3 * 3 * 2 * 4096**2
"""Three layers, forward and twice backward, one sample."""
RESNET_FLOPS = 3 * 2 * 4.09e9
RESNET_SECONDS = 0.25
"""Of a step, which is within the peak of each of the cards."""
OUTPUTS = {"amp-fp16": "float16", "amp-bf16": "bfloat16"}
SHARED = 0.97
"""What each further card of a trial is worth."""

BEGAN = 1000.0
"""Where the telemetry's clock begins."""
TRAINS_FROM, TRAINS_SECONDS = 10, 75
OWN_BYTES = 6 * 2**30


def train(box: Box, spec: RunSpec, cards: tuple[str, ...]) -> None:
    """Writes what a workload on these cards would."""
    measured = measurement(box, spec.trial, cards)
    begin = BEGAN + TRAINS_FROM
    trained = {"event": "segment", "begin": begin, "end": begin + measured.window.seconds}
    (spec.folders.output / EVENTS).write_text(json.dumps(trained) + "\n")
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
        MLP if of_products else RESNET,
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
        precision=PrecisionFound(
            label=variant.precision,
            output_dtypes={f"torch.{OUTPUTS.get(variant.precision, 'float32')}": 54},
            parameter_dtypes={"torch.float32": 161},
            method="constructed",
        ),
        samples_per_step=samples,
        window=Window(seconds=seconds, steps=count, samples=count * samples),
        step_us=Series.of(step_us),
        step_clock="device",
        epochs=(Epoch(index=1, steps=count, train_seconds=seconds, complete=False),),
        memory=memory,
        parallel="ddp" if several else None,
        ranks=tuple(
            Rank(rank=rank, samples=count * variant.batch_size, seconds=seconds, memory=memory)
            for rank in range(len(cards) if several else 0)
        ),
        flops=Flops(per_sample=MLP_FLOPS if of_products else RESNET_FLOPS, method="constructed"),
    )


def step_seconds(box: Box, trial: TrialSpec) -> float:
    """A step of a trial's batch; of products by what the card reaches of its peak on paper."""
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
