"""Roughly how long a trial will take: by this machine's records, a published run, or two cores' steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from harness.device_kinds import DEVICE_KINDS
from harness.plan.order import Planned
from harness.record import DEEP, Limit, Record, TrialRequest, TrialSpec
from harness.record.vocabulary.workload import declared

CARD_SECONDS = {"cpu": 8.0, "cuda": 25.0, "rocm": 25.0}
"""Of the workload `card` before its window."""
UNKNOWN_FULL_SECONDS = 3600.0
CAPPED_SECONDS = 30.0
"""A trial capped by steps alone, on a card nobody has timed."""
FEW_STEPS_SECONDS = 5.0
"""A trial of no more steps than a warm-up has."""
WARM_UP_STEPS = 5
LENGTH_OPTIONS = ("epochs", "lead_in", "framework", "train_images")
"""Options of workloads that change how long a whole protocol is."""
PUBLISHED_EPOCHS = 30
"""Of a protocol that nothing else is known of."""


@dataclass(frozen=True, slots=True)
class Length:
    """What a whole protocol takes on two cores, validation included."""

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


@dataclass(frozen=True, slots=True)
class Speeds:
    """What is known of durations, in seconds: whole protocols, setups, and step times, each by its row."""

    protocol_seconds: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    published_seconds: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    """Already scaled to this card, where its peak is known."""
    setup_seconds: Mapping[str, float] = field(default_factory=dict)
    """By workload."""


def row(item: Planned) -> tuple[str, ...]:
    """What a duration depends on most."""
    asked = item.trial.asked
    variant = asked.variant
    length = [f"{name} {variant.options[name]}" for name in LENGTH_OPTIONS if name in variant.options]
    if variant.image_size is not None:
        length.append(f"{variant.image_size} px")
    return (asked.workload, asked.protocol, variant.model, variant.precision, variant.data_mode, *length)


def learned(prior: Speeds, records: Iterable[Record], machine: str) -> Speeds:
    """The same with what a machine's own records say, which goes before what was known."""
    protocol = dict(prior.protocol_seconds)
    setup = dict(prior.setup_seconds)
    for record in records:
        if record.machine.id != machine or record.measurement is None or record.summary is None:
            continue
        if record.plan == DEEP:
            continue
        item = Planned(record.trial, "timing", record.trial.asked.variant.model)
        if record.summary.protocol_seconds is not None:
            protocol[row(item)] = record.summary.protocol_seconds
        trained = sum(
            epoch.train_seconds + (epoch.valid_seconds or 0.0) for epoch in record.measurement.epochs
        )
        setup[record.trial.asked.workload] = max(0.0, record.wall_seconds - trained)
    return Speeds(protocol, prior.published_seconds, setup)


def seconds(item: Planned, speeds: Speeds) -> float:
    """A trial's estimated duration in seconds: its setup, and the most that its limits allow."""
    return min(item.trial.timeout_seconds, _without_time_out(item, speeds))


def is_time_out(item: Planned, speeds: Speeds) -> bool:
    """Whether a trial's estimate is its time-out, since nothing is known of how long it takes."""
    limit = item.trial.asked.variant.limit
    return (
        limit.seconds is None
        and limit.steps is None
        and _known_seconds(item, speeds) is None
        and _without_time_out(item, speeds) >= item.trial.timeout_seconds
    )


def _without_time_out(item: Planned, speeds: Speeds) -> float:
    asked = item.trial.asked
    before = CARD_SECONDS[asked.device] if asked.workload == "card" else 0.0
    setup = speeds.setup_seconds.get(asked.workload, DEVICE_KINDS[asked.device].setup_seconds + before)
    train, limit = _whole_seconds(item, speeds), asked.variant.limit
    if limit.epochs is not None:
        train *= min(1.0, limit.epochs / _epochs(asked))
    if limit.seconds is not None:
        train = min(train, limit.seconds_at_most or limit.seconds)
    elif limit.steps is not None:
        train = min(train, _seconds_of_steps(asked))
    return setup + train


def _length(asked: TrialRequest) -> Length | None:
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


def _seconds_of_steps(asked: TrialRequest) -> float:
    """What a trial takes that is limited to some steps; options make the work a smaller one."""
    variant, steps = asked.variant, asked.variant.limit.steps
    each = OF_STEPS.get((asked.workload, variant.precision)) if asked.device == "cpu" else None
    if each and steps and not variant.options:
        # One more is taken after the window, to count the memory.
        return each * (steps + 1)
    return FEW_STEPS_SECONDS if _is_short(variant.limit) else CAPPED_SECONDS


def _whole_seconds(item: Planned, speeds: Speeds) -> float:
    known = _known_seconds(item, speeds)
    if known is not None:
        return known
    asked = item.trial.asked
    # A processor takes an hour for what a card does in minutes.
    return UNKNOWN_FULL_SECONDS * (1.0 if asked.device == "cpu" else _share(asked))


def _known_seconds(item: Planned, speeds: Speeds) -> float | None:
    asked = item.trial.asked
    own, published = speeds.protocol_seconds.get(row(item)), speeds.published_seconds.get(row(item)[:4])
    if own is not None:
        return own
    if published is not None:
        return published * _share(asked)
    known = _length(asked) if asked.device == "cpu" else None
    return known.epoch_seconds * _epochs(asked) if known is not None else None


def _epochs(asked: TrialRequest) -> float:
    """How many a trial without a limit has."""
    options = asked.variant.options
    return 1.0 if options.get("lead_in") else float(options.get("epochs", _published_epochs(asked)))


def _published_epochs(asked: TrialRequest) -> int:
    known = _length(asked)
    return known.epochs if known else PUBLISHED_EPOCHS


def _share(asked: TrialRequest) -> float:
    """Of the published protocol."""
    return _epochs(asked) / _published_epochs(asked)


def warms_up(trial: TrialSpec) -> bool:
    """Whether a short unrecorded trial fills the compilers' caches before a variant's first.

    None does before a trial that is as short itself, nor before one that shows a path's first time, or has
    nothing that compiles: libraries of CUDA come compiled, those of ROCm tune.
    """
    variant, workload = trial.asked.variant, trial.asked.workload
    if workload in ("smoke", "card", "ceilings") or _is_short(variant.limit):
        return False
    compiles = variant.profile != "default" or bool(variant.options.get("compile"))
    own = trial.asked.file is not None and trial.asked.device != "cpu"
    return compiles or own or trial.asked.device == "rocm"


def _is_short(limit: Limit) -> bool:
    return limit.steps is not None and limit.steps <= WARM_UP_STEPS


def warm_up_seconds(planned: Iterable[Planned], speeds: Speeds) -> float:
    """What these short trials take together: a setup for each variant."""
    variants = {
        item.trial.id.rpartition("-")[2]: item.trial.asked for item in planned if warms_up(item.trial)
    }
    return sum(
        speeds.setup_seconds.get(asked.workload, DEVICE_KINDS[asked.device].setup_seconds)
        for asked in variants.values()
    )
