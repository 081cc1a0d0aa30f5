"""What a processor computes in by itself, and how long epochs take on two cores, where steps were timed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.record import Cpu, Precision, TrialRequest
from harness.record.vocabulary.workload import declared


@dataclass(frozen=True, slots=True)
class Length:
    """What a whole protocol takes, validation included."""

    epoch_seconds: float
    epochs: int


OF_MODELS = {
    # By the processor time of a few steps at 224 pixels, halved for two cores.
    ("cifar_fastai", "resnet18"): Length(2100.0, 30),
    ("cifar_fastai", "resnet34"): Length(3450.0, 30),
    ("cifar_fastai", "resnet50"): Length(6300.0, 30),
    ("cifar_fastai", "resnet101"): Length(10000.0, 30),
    # By the committed records of `desk` and `iris-quick`.
    ("word_lm", "LSTM"): Length(750.0, 30),
    ("cifar_resnet44", "resnet44"): Length(280.0, 40),
}
"""By workload and model, for the protocol's own size of batch and image."""

OF_STEPS = {("tensorcore_mlp", "amp-fp16"): 130.0}
"""By workload and precision: one core's seconds, which a second core does not shorten.

Where a processor has no arithmetic in half precision, torch does it number by number.
"""

TRAIN_IMAGES = {"cifar_resnet44": 50_000}


def emulated(precision: Precision, cpu: Cpu) -> str | None:
    """That a processor only emulates a precision; null where it does not, or where nothing is known of it."""
    sixteen_bit = next((name for name in ("bf16", "fp16") if name in precision), None)
    if sixteen_bit is None or cpu.native_16_bit is None or sixteen_bit in cpu.native_16_bit:
        return None
    return f"this CPU only emulates {sixteen_bit} (`--precision {precision}` runs it)"


def length(asked: TrialRequest) -> Length | None:
    """What is known of a protocol on two cores; null where no step of it was timed.

    Smaller or fewer images take as much less.
    """
    options = asked.variant.options
    found = OF_MODELS.get((asked.workload, asked.variant.model))
    if found is None:
        return None
    itself, images = declared(asked.workload), TRAIN_IMAGES.get(asked.workload)
    pixels = itself.image_size if itself else None
    share = 1.0
    if pixels and asked.variant.image_size:
        share *= (asked.variant.image_size / pixels) ** 2
    if images:
        share *= float(options.get("train_images", images)) / images
    return replace(found, epoch_seconds=found.epoch_seconds * share)


def seconds_of_steps(asked: TrialRequest) -> float | None:
    """What a trial takes that is limited to some steps; null where no step is known to be slow.

    Options make the work a smaller one.
    """
    each, steps = OF_STEPS.get((asked.workload, asked.variant.precision)), asked.variant.limit.steps
    # One more is taken after the window, to count the memory.
    return each * (steps + 1) if each and steps and not asked.variant.options else None
