"""Roughly how long a trial takes: by records of its card's model, published runs, or other cards' records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.device_kinds import BY_VENDOR, DEVICE_KINDS, DeviceKind
from harness.plan.order import Planned
from harness.record import Limit, Machine, Record, TrialRequest, TrialSpec
from harness.record.published.cards import Card, card_family, find_card, peak_tflops
from harness.record.published.claim_set import read_claims
from harness.record.vocabulary.workload import read_workload

CAPPED_SECONDS = 30.0
"""A trial capped by steps alone, on a card nobody has timed."""
FEW_STEPS_SECONDS = 5.0
"""A trial of no more steps than a warm-up has."""
WARM_UP_STEPS = 5
SCALED_OPTIONS = ("epochs", "lead_in", "train_images")
"""Options of workloads by which a protocol's length is scaled."""
IDLE_OPTIONS = ("tied", "loss_scale", "side")
"""Options that hardly change it."""
TRAIN_IMAGES = {"cifar_resnet44": 50_000}

REFERENCE = "RTX 2080 Ti"
"""The card whose published durations are known for every depth."""

PUBLISHED = "published/1"

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """A model of card or processor; `power` is a card's peak, or a processor's cores, where it is known."""

    kind: DeviceKind
    name: str
    power: float | None = None

    @classmethod
    def from_machine(cls, machine: Machine, kind: DeviceKind, cards: Sequence[Card]) -> DeviceModel:
        """Return the model of a machine's first device of a kind."""
        if kind == "cpu":
            name = f"{machine.cpu.model} of {machine.cpu.cores} cores" if machine.cpu.model else ""
            return cls(kind, name, machine.cpu.cores)
        name = next((gpu.name for gpu in machine.gpus if BY_VENDOR[gpu.vendor] == kind), "")
        card = find_card(name, cards)
        return cls(kind, card.name, peak_tflops(card, "fp16-master")) if card else cls(kind, name)


@dataclass(frozen=True, slots=True)
class Length:
    """The seconds of a whole protocol, validation included, of its epochs, and of one sample.

    Those of records are of one pixel and one training image.
    """

    seconds: float | None
    epochs: float | None = None
    sample_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Speeds:
    """What is known of durations on one model of device, in seconds."""

    device: DeviceModel | None = None
    cards: tuple[Card, ...] = ()
    own: Mapping[Row, Length] = field(default_factory=dict)
    """By records of the same model."""
    published: Mapping[Row, Length] = field(default_factory=dict)
    """Already scaled to this card, where its peak is known."""
    others: Mapping[Row, Length] = field(default_factory=dict)
    """By records of other models of its kind, scaled in the same way."""
    loader_seconds: Mapping[Row, float] = field(default_factory=dict)
    """By workload and protocol: the quickest epoch that a host's loader is known to feed."""
    setup_seconds: Mapping[str, float] = field(default_factory=dict)
    """By workload."""
    epochs: Mapping[Row, float] = field(default_factory=dict)
    """By workload and protocol, of a trial that asks for no other number."""


def duration_row(asked: TrialRequest) -> Row:
    """Return what a duration depends on, without what it is scaled by."""
    variant, without = asked.variant, (*SCALED_OPTIONS, *IDLE_OPTIONS)
    options = sorted((name, str(value)) for name, value in variant.options.items() if name not in without)
    return (*published_row(asked), variant.data_mode, *options)


def published_row(asked: TrialRequest) -> Row:
    """Return what a published duration is known by."""
    variant = asked.variant
    precision = "fp32-ieee" if variant.precision == "fp32-default" else variant.precision
    return asked.workload, asked.protocol, variant.model, precision, variant.gpus


def _epoch_size(asked: TrialRequest) -> float:
    """Return the pixels of all training images, as far as they are known: how much work an epoch is."""
    itself, images = read_workload(asked.workload), TRAIN_IMAGES.get(asked.workload, 1)
    pixels = asked.variant.image_size or (itself.image_size if itself else None) or 1
    return pixels**2 * float(asked.variant.options.get("train_images", images))


def learn_speeds(prior: Speeds, records: Iterable[Record]) -> Speeds:
    """Return the same with what records say: those of the same model go before all that was known."""
    own_lengths, others, setup = dict(prior.own), dict(prior.others), dict(prior.setup_seconds)
    fed, epochs = dict[Row, float](), dict(prior.epochs)
    for record in records:
        asked, measured, ours = record.trial.asked, record.measurement, prior.device
        if measured is not None and not any(name in asked.variant.options for name in SCALED_OPTIONS):
            epochs[duration_row(asked)[:2]] = measured.protocol.epochs
        if ours is None or asked.device != ours.kind or measured is None:
            continue
        theirs = DeviceModel.from_machine(record.machine, ours.kind, prior.cards)
        if not ours.name or theirs.name != ours.name:
            if theirs.power and ours.power:
                others[duration_row(asked)] = _record_length(record, theirs.power / ours.power)
            continue
        length = _record_length(record)
        if length.seconds is not None or duration_row(asked) not in own_lengths:
            own_lengths[duration_row(asked)] = length
        if asked.variant.data_mode == "host" and length.seconds and length.epochs:
            epoch = length.seconds / length.epochs * _epoch_size(asked)
            fed[duration_row(asked)[:2]] = min(epoch, fed.get(duration_row(asked)[:2], epoch))
        trained = sum(epoch.train_seconds + (epoch.valid_seconds or 0.0) for epoch in measured.epochs)
        setup[asked.workload] = max(0.0, record.wall_seconds - trained)
    loaders = {**prior.loader_seconds, **fed}
    return replace(
        prior, own=own_lengths, others=others, loader_seconds=loaders, setup_seconds=setup, epochs=epochs
    )


def _record_length(record: Record, slower: float = 1.0) -> Length:
    """Return a record's length on a device `slower` times as slow; time in which the device waits stays."""
    asked, summary, measured = record.trial.asked, record.summary, record.measurement
    if summary is None or measured is None:
        return Length(None)
    idle = summary.host_bound_share or 0.0
    factor = (idle + (1.0 - idle) * slower) / _epoch_size(asked)
    whole = summary.protocol_seconds
    sample = factor / summary.throughput if summary.throughput else None
    return Length(whole and whole * factor, measured.protocol.epochs, sample)


def estimate_seconds(item: Planned, speeds: Speeds) -> float:
    """Return a trial's estimated duration in seconds: its setup, and the most that its limits allow."""
    asked = item.trial.asked
    limit = asked.variant.limit
    before = DEVICE_KINDS[asked.device].card_seconds if asked.workload == "card" else 0.0
    setup = speeds.setup_seconds.get(asked.workload, DEVICE_KINDS[asked.device].setup_seconds + before)
    known = _known_seconds(asked, speeds)
    train = item.trial.timeout_seconds if known is None else known
    if limit.seconds is not None:
        train = min(train, limit.seconds_at_most or limit.seconds)
    if limit.steps is not None:
        train = min(train, _limited_seconds(asked, speeds, limit.steps))
    return min(item.trial.timeout_seconds, setup + train)


def is_time_out(item: Planned, speeds: Speeds) -> bool:
    """Return whether a trial's estimate is its time-out, since nothing is known of how long it takes."""
    limit = item.trial.asked.variant.limit
    return limit.seconds is None and limit.steps is None and _known_seconds(item.trial.asked, speeds) is None


def _limited_seconds(asked: TrialRequest, speeds: Speeds, steps: int) -> float:
    """Return what a trial takes that is limited to some steps; one more is taken to count the memory."""
    length = speeds.own.get(duration_row(asked)) or speeds.others.get(duration_row(asked))
    if length is None or length.sample_seconds is None:
        return FEW_STEPS_SECONDS if _is_short(asked.variant.limit) else CAPPED_SECONDS
    samples = (steps + 1) * asked.variant.batch_size * asked.variant.gpus
    return samples * length.sample_seconds * _epoch_size(asked)


def _known_seconds(asked: TrialRequest, speeds: Speeds) -> float | None:
    """Return what its epochs take; null where nothing is known of it. A loader bounds what it feeds."""
    for similar, share in _similar_requests(asked):
        key, size = duration_row(similar), _epoch_size(asked)
        epochs = _asked_epochs(asked) or speeds.epochs.get(key[:2])
        own = _scaled_seconds(speeds.own.get(key), epochs, size)
        if own is not None:
            return own * share
        known = _scaled_seconds(speeds.published.get(published_row(similar)), epochs)
        if known is None:
            known = _scaled_seconds(speeds.others.get(key), epochs, size)
        if known is not None:
            fed = speeds.loader_seconds.get(key[:2]) if asked.variant.data_mode == "host" else None
            return max(known, fed * epochs) * share if fed and epochs else known * share
    return None


def _similar_requests(asked: TrialRequest) -> Iterator[tuple[TrialRequest, float]]:
    """Yield what a duration may be known by, nearest first, and the trial's share of it.

    Several devices share what one does, and every protocol of a workload is as long as the published one.
    """
    options = {name: value for name, value in asked.variant.options.items() if name != "parallel"}
    alone = asked.variant.model_copy(update={"gpus": 1, "options": options})
    for protocol in dict.fromkeys((asked.protocol, PUBLISHED)):
        yield asked.model_copy(update={"protocol": protocol}), 1.0
        yield asked.model_copy(update={"protocol": protocol, "variant": alone}), 1.0 / asked.variant.gpus


def _scaled_seconds(length: Length | None, epochs: float | None, size: float = 1.0) -> float | None:
    if length is None or length.seconds is None:
        return None
    return length.seconds * size * (epochs / length.epochs if epochs and length.epochs else 1.0)


def _asked_epochs(asked: TrialRequest) -> float | None:
    """Return how many it trains; null for those of its protocol."""
    options = asked.variant.options
    own = 1 if options.get("lead_in") else options.get("epochs")
    said = [float(count) for count in (own, asked.variant.limit.epochs) if count is not None]
    return min(said, default=None)


def warms_up(trial: TrialSpec) -> bool:
    """Return whether a short unrecorded trial fills the compilers' caches before a variant's first.

    None does before a trial that is as short itself, or has nothing that compiles: libraries of CUDA come
    compiled, those of ROCm tune.
    """
    variant, workload = trial.asked.variant, trial.asked.workload
    if workload in ("card", "ceilings", "own_program") or _is_short(variant.limit):
        return False
    compiles = variant.profile != "default" or bool(variant.options.get("compile"))
    own = trial.asked.file is not None and trial.asked.device != "cpu"
    return compiles or own or trial.asked.device == "rocm"


def _is_short(limit: Limit) -> bool:
    return limit.steps is not None and limit.steps <= WARM_UP_STEPS


def warm_up_seconds(planned: Iterable[Planned], speeds: Speeds) -> float:
    """Return the seconds of all warm-ups together: a setup for each variant."""
    variants = {item.trial.digest_on_any_card: item.trial.asked for item in planned if warms_up(item.trial)}
    return sum(
        speeds.setup_seconds.get(asked.workload, DEVICE_KINDS[asked.device].setup_seconds)
        for asked in variants.values()
    )


def published_speeds(root: Path, device: DeviceModel, cards: tuple[Card, ...]) -> Speeds:
    """Return what was published of cards' durations, as a rough guide and no more; nothing of a processor's.

    They are this card's, else the reference card's, else another's, scaled by what both can do on paper. An
    unknown card is taken for the reference card. What a loader fed is not scaled.
    """
    lengths: dict[Row, Length] = {}
    fed: dict[Row, float] = {}
    rows = {card.name: card for card in cards}
    own_card = rows.get(device.name) or rows.get(REFERENCE)
    if own_card is None or device.kind == "cpu":
        return Speeds(device, cards)
    order = {REFERENCE: 1, own_card.name: 2}
    for claim in sorted(read_claims(root).claims, key=lambda claim: order.get(claim.of.card or "", 0)):
        side, name = claim.of, claim.of.card or ""
        epochs = 1 if claim.metric == "epoch_seconds" else claim.epochs
        theirs = rows.get(next(iter(card_family(name, rows)), name))
        timed = claim.kind == "absolute" and claim.metric in ("protocol_seconds", "epoch_seconds")
        if theirs is None or not (timed and claim.value and side.precision):
            continue
        row = (claim.workload, claim.protocol, side.model, side.precision, side.gpus)
        lengths[row] = Length(claim.value * _slowness(own_card, theirs), epochs)
        if side.data_mode == "host" and epochs:
            fed[row[:2]] = min(claim.value / epochs, fed.get(row[:2], claim.value))
    return Speeds(device, cards, published=lengths, loader_seconds=fed)


def _slowness(card: Card, other: Card) -> float:
    """Return how many times as long a card takes as another does, on paper."""
    peaks = ((peak_tflops(card, unit), peak_tflops(other, unit)) for unit in ("fp16-master", "fp32-ieee"))
    return next((theirs / ours for ours, theirs in peaks if ours and theirs), 1.0)
