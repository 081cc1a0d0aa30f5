"""Whether a card is as it should be: each measured thing beside what is known of it, and what a check shows.

What is known comes from other cards of this model on record, else from published figures of this card, else
from the share of its peak that cards of its architecture reach. A card under test never enters its own
expectation. Cards of one machine are held against each other, and their medians against what else is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import median
from typing import Literal, get_args

import numpy
from scipy import special

from harness.record import Finding, Gpu
from harness.record.measurement import CardCheck
from harness.record.published.cards import Card, find_card
from report.compare.card_units import ALPHA
from report.expected.published_speeds import (
    CardFigures,
    KnownSpeed,
    PublishedSpeeds,
    by_paper,
    known_network,
    known_of,
    network_name,
    peak_of,
)
from report.trials.ceilings import BUS, Device, device_of
from report.trials.key import grouped_by
from report.trials.trial import TrialResult

PLANS = ("card", "card-long", "quick")
"""Those that check a card; the first two train nothing else."""
WIDEST_LOSS = 0.75
"""What would not find a smaller loss is not known."""
GAP = 0.06
"""Two speeds are at least so far apart, and far more than each of them scatters."""
APART_SD = 5.0
BLOCK_SECONDS, HELD_BLOCKS = 1.0, 3
"""A state lasts at least so many blocks, of which each has its median speed."""
LEAST_RETURNS, LEAST_LOAD_SECONDS = 2, 60.0
"""A dip returns once; in a shorter load two speeds that are held for 10 s are mostly not seen."""
LINK = {"host_to_device_pinned_gb_per_second", "device_to_host_pinned_gb_per_second"}
LANE_GBS = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
"""What one lane of PCI Express moves each way, by generation."""
ORDER = ["gemm_fp32", "gemm_tf32", "gemm_bf16", "gemm_fp16", "gemm_fp8", "copy", "host", "device", "all"]
FAULTS = {"memory-error", "device-fault"}
SLOWING = {"pcie-link", "power-limit", "locked-clocks", "thermal-throttling", "chassis-limited"}
SLOWING |= {"hardware-slowdown", "power-brake"}
"""Findings of a trial that say why a card is slow."""
DISTURBED = {"foreign-process", "contradicts-itself", "impossible-figure", "clock"}

State = Literal["differs", "flips", "slow", "unknown", "sound"]
"""The worst first."""
FAULTY: tuple[State, ...] = ("differs", "flips", "slow")


@dataclass(frozen=True, slots=True)
class CheckedSpeed:
    """One measured thing: the median of its processes, and the range that holds a sound card."""

    name: str
    unit: str
    value: float
    runs: int
    paper: float | None
    known: KnownSpeed | None = None
    low: float | None = None
    high: float | None = None
    smallest_loss: float | None = None
    """What would be found in nine of ten cases."""

    @property
    def ratio(self) -> float | None:
        """Return its speed over the middle of what is known."""
        return self.value / self.known.middle if self.known else None

    @property
    def state(self) -> Literal["slow", "unknown", "sound"]:
        if self.low is None:
            return "unknown"
        return "slow" if self.value < self.low else "sound"


@dataclass(frozen=True, slots=True)
class TwoSpeeds:
    """Two levels that come back: how long one is held by the median."""

    fast: float
    slow: float
    held_seconds: float


@dataclass(frozen=True, slots=True)
class OtherBits:
    """A computation with other bits than promised, by what showed it."""

    by: Literal["replay", "process", "card", "memory", "driver"]
    computation: str
    arithmetic: str
    differing: int
    of: int


@dataclass(frozen=True, slots=True)
class CheckedCard:
    """One card's check. `load` are the median speeds of the longest window, one a block, in its unit."""

    unit: str
    speeds: tuple[CheckedSpeed, ...]
    flips: TwoSpeeds | None
    differences: tuple[OtherBits, ...]
    findings: tuple[Finding, ...]
    replays: int
    tested_bytes: int
    load: tuple[tuple[float, float], ...]
    longest: TrialResult
    box: tuple[CheckedSpeed, ...] = ()
    """The medians over all cards of its machine; empty where it is the only one."""

    @property
    def slow(self) -> tuple[CheckedSpeed, ...]:
        """Those that are too slow, the worst first."""
        return tuple(
            sorted((one for one in self.speeds if one.state == "slow"), key=lambda one: one.ratio or 1)
        )

    @property
    def known(self) -> tuple[CheckedSpeed, ...]:
        return tuple(one for one in self.speeds if one.low is not None)

    @property
    def link(self) -> Finding | None:
        """What the driver says of a link that is narrower or older than the slot's."""
        return next((one for one in self.findings if one.name == "pcie-link"), None)

    @property
    def state(self) -> State:
        """The worst of its states. A link at half its width is slow, whatever is known of its speed."""
        if self.differences:
            return "differs"
        if self.flips:
            return "flips"
        if self.slow or self.link or self.slow_box:
            return "slow"
        return "sound" if self.known else "unknown"

    @property
    def too_short(self) -> bool:
        """Whether two speeds that come back would not have been seen."""
        return not self.load or self.load[-1][0] < LEAST_LOAD_SECONDS

    @property
    def slow_box(self) -> tuple[CheckedSpeed, ...]:
        """What all cards of its machine together are too slow in."""
        return tuple(one for one in self.box if one.state == "slow")


def checked_cards(
    trials: Sequence[TrialResult],
    session: str | None,
    cards: Sequence[Card],
    published: PublishedSpeeds,
) -> tuple[CheckedCard, ...]:
    """Return what a session's check says of its cards, the worst first, then of others of the machine."""
    usable = [trial for trial in trials if trial.record.measurement and _measures(trial)]
    machines = {trial.machine for trial in usable if trial.session == session}
    by_device = grouped_by(
        (trial for trial in usable if trial.machine in machines), lambda trial: device_of(trial.record)
    )
    found: list[tuple[bool, CheckedCard]] = []
    for device, every in by_device.items():
        mine = [trial for trial in every if trial.session == session]
        if device and any(map(_check_of, mine or every)):
            links = _links(trial for trial in trials if trial.machine != device[0])
            found.append((not mine, _checked(device, mine or every, usable, cards, published, links)))
    worst = sorted(found, key=lambda one: (one[0], get_args(State).index(one[1].state), -len(one[1].slow)))
    return tuple(card for _, card in worst)


def _measures(trial: TrialResult) -> bool:
    checks = _check_of(trial) is not None or trial.record.plan in PLANS[:2]
    return checks and not any(one.name in DISTURBED and one.severity == "invalid" for one in trial.findings)


def _check_of(trial: TrialResult) -> CardCheck | None:
    return trial.record.measurement.card if trial.record.measurement else None


def _checked(
    device: Device,
    mine: Sequence[TrialResult],
    every: Sequence[TrialResult],
    cards: Sequence[Card],
    published: PublishedSpeeds,
    links: Sequence[float],
) -> CheckedCard:
    checks = [trial for trial in mine if _check_of(trial)]
    longest = max(checks, key=lambda trial: trial.record.measurement.window.seconds)  # type: ignore[union-attr]
    made = [check for check in map(_check_of, checks) if check]
    name = checks[0].device_name
    others = [
        trial
        for trial in every
        if trial.device_name == name
        and trial.stack.device != "cpu"
        and trial.model_mark == checks[0].model_mark
        and _powered_alike(trial, checks[0])
        and trial.verdict != "invalid"
        and device_of(trial.record) != device
        and (not trial.is_card_check or _taken(trial) == _taken(checks[0]))
    ]
    card = find_card(name, cards)
    measured = _figures(mine)
    beside = [_figures(one) for one in grouped_by(others, lambda trial: device_of(trial.record)).values()]
    here = [one for one in beside if next(iter(one.values()))[0][0] == device[0]]
    elsewhere = [one for one in beside if one not in here]
    reached = _by_model(every, cards)

    def judged(figures: CardFigures, others: Sequence[CardFigures]) -> tuple[CheckedSpeed, ...]:
        paper = {key: _paper(key, card, checks[0]) for key in figures}
        known = {
            key: known_of(
                key, [one[key] for one in others if key in one], device[0], card, published.products
            )
            or known_network(key, card, published.networks, reached)
            or by_paper(key, paper[key], card, links if key in LINK else ())
            for key in figures
        }
        return speeds_of(figures, known, paper, len(here) + 1 + bool(here))

    load = levels(longest)
    return CheckedCard(
        unit=device[1],
        speeds=judged(measured, here or elsewhere),
        box=judged(_medians([measured, *here]), elsewhere) if here else (),
        flips=two_speeds([speed for _, speed in load]),
        differences=(*_other_bits(checks), *_between(checks, others), *_faults(mine)),
        findings=tuple(
            {one.name: one for trial in mine for one in trial.findings if one.name in SLOWING}.values()
        ),
        replays=sum(one.replays for check in made for one in check.replays),
        tested_bytes=max(check.memory_pattern.tested_bytes for check in made),
        load=load,
        longest=longest,
    )


def _taken(trial: TrialResult) -> tuple[object, ...]:
    """Return how a check was made."""
    return trial.key.protocol, trial.key.options


def _links(trials: Iterable[TrialResult]) -> list[float]:
    """Return of each machine the share of the paper's that its link reached."""
    shares: dict[str, list[float]] = {}
    for trial in trials:
        found = trial.record.measurement.ceilings if trial.record.measurement else {}
        for name in LINK & found.keys():
            if paper := _paper(name, None, trial):
                shares.setdefault(trial.machine, []).append(found[name] / paper)
    return [median(of) for of in shares.values()]


def _by_model(trials: Iterable[TrialResult], cards: Sequence[Card]) -> Mapping[str, CardFigures]:
    """Return what each model of card on record reached."""
    valid = [trial for trial in trials if trial.verdict != "invalid"]
    found: dict[str, CardFigures] = {}
    for device, of in grouped_by(valid, lambda trial: trial.device_name).items():
        if card := find_card(device, cards):
            found[card.name] = _figures(of)
    return found


def _figures(trials: Iterable[TrialResult]) -> CardFigures:
    """Return by its name what was measured, with the machine: ceilings, and the speeds of networks."""
    found: CardFigures = {}
    for trial in trials:
        measured, summary = trial.record.measurement, trial.summary
        if measured is None or summary is None:
            continue
        key, gpus = trial.key, trial.record.trial.asked.variant.gpus
        rates = measured.ceilings if measured.card else {}
        if measured.all_reduce is not None and BUS in measured.ceilings:
            rates = {f"all_reduce:{gpus}": measured.ceilings[BUS]}
        elif not measured.ceilings:
            compiled = bool(dict(key.options).get("compile"))
            name = network_name(
                key.model, key.precision, key.batch_size, trial.sample_unit, compiled=compiled
            )
            rates = {name: summary.throughput}
        for name, rate in rates.items():
            found.setdefault(name, []).append((trial.machine, rate))
    return dict(sorted(found.items(), key=lambda one: _place(one[0])))


def _place(name: str) -> int:
    return next((place for place, start in enumerate(ORDER) if name.startswith(start)), len(ORDER))


def _medians(cards: Sequence[CardFigures]) -> CardFigures:
    """Return each thing's median of each card that measured it."""
    names = dict.fromkeys(name for one in cards for name in one)
    return {
        name: [(one[name][0][0], median(value for _, value in one[name])) for one in cards if name in one]
        for name in names
    }


def speeds_of(
    figures: CardFigures,
    known: Mapping[str, KnownSpeed | None],
    paper: Mapping[str, float | None],
    judged: int = 1,
) -> tuple[CheckedSpeed, ...]:
    """Return the measured things of a card with their ranges; so many cards are `judged` together.

    By Simes (1986): where the k slowest of n things all lie below the range at k ÷ n of a card's share of
    ALPHA, that range holds. It is no wider than the one by which one thing alone is slow.
    """
    rates = {key: [rate for _, rate in values] for key, values in figures.items()}
    chances = sorted(
        float(special.ndtr(math.log(median(rates[key]) / of.middle) / of.sd))
        for key, of in known.items()
        if of is not None and of.sd is not None
    )
    step = ALPHA / (judged * max(len(chances), 1))
    slow = max((k for k, chance in enumerate(chances, 1) if chance <= k * step), default=1)
    return tuple(speed_of(key, rates[key], known[key], ALPHA / (slow * step), paper[key]) for key in figures)


def speed_of(
    name: str, values: Sequence[float], known: KnownSpeed | None, judged: float, paper: float | None = None
) -> CheckedSpeed:
    """Return a measured thing with its range, by which all that are `judged` together call few cards slow."""
    unit = "TFLOP/s" if name.startswith("gemm_") else "GB/s"
    if name.count(":") > 1:
        unit = f"{name.rsplit(':')[-1]}s/s"
    of = CheckedSpeed(name, unit, median(values), len(values), paper)
    if known is None or known.sd is None:
        return replace(of, known=known)
    reach = -float(special.ndtri(ALPHA / judged)) * known.sd
    loss = -math.expm1(-reach - float(special.ndtri(0.9)) * known.sd)
    if loss > WIDEST_LOSS:
        return of
    low, high = known.middle * math.exp(-reach), min(known.middle * math.exp(reach), paper or math.inf)
    return replace(of, known=known, low=low, high=high, smallest_loss=loss)


def _paper(name: str, card: Card | None, trial: TrialResult) -> float | None:
    """Return what the paper says: a dense peak, the memory's bandwidth, or all lanes of the card's link."""
    gpu = gpu_of(trial)
    if name in LINK and gpu:
        lane = LANE_GBS.get(gpu.pcie_generation_of_card or gpu.pcie_generation_max or 0)
        return lane * gpu.pcie_width_max if lane and gpu.pcie_width_max else None
    if card is None:
        return None
    if name.startswith("copy"):
        return card.bandwidth_gbs and card.bandwidth_gbs / card.devices
    return peak_of(card, name.split("_")[1]) if name.startswith("gemm_") else None


def _powered_alike(one: TrialResult, other: TrialResult) -> bool:
    """Whether two cards of a name are sold with one power limit, where both tell it: laptops' are not."""
    limits = [gpu.power_limit_default_watts or 0 for trial in (one, other) if (gpu := gpu_of(trial))]
    return min(limits, default=0) == 0 or max(limits) < 1.1 * min(limits)


def gpu_of(trial: TrialResult) -> Gpu | None:
    """Return what the driver says of a trial's card; null where it says nothing."""
    device = device_of(trial.record)
    return next((gpu for gpu in trial.record.machine.gpus if device and gpu.unit == device[1]), None)


def levels(trial: TrialResult) -> tuple[tuple[float, float], ...]:
    """Return the end of each block of a load's window, in seconds, and its median speed in TFLOP/s."""
    measured = trial.record.measurement
    assert measured is not None
    series = measured.step_us
    seconds = numpy.asarray(series.values(), dtype=float) / 1e6
    work = (
        series.steps_per_value
        * measured.samples_per_step
        * ((measured.flops and measured.flops.per_sample) or 1.0)
    )
    return blocks(seconds, work / 1e12)


def blocks(seconds: numpy.ndarray, work: float = 1.0) -> tuple[tuple[float, float], ...]:
    """Return the end and the median speed of each block of steps that did equal work."""
    ends = numpy.cumsum(seconds)
    changes = numpy.flatnonzero(numpy.diff((ends - 1e-9) // BLOCK_SECONDS)) + 1
    return tuple(
        (float(last[-1]), work / float(numpy.median(own)) if own.all() else 0.0)
        for last, own in zip(numpy.split(ends, changes), numpy.split(seconds, changes), strict=True)
        if own.size
    )


def two_speeds(speeds: Sequence[float]) -> TwoSpeeds | None:
    """Return two speeds that come back, by blocks of a second; null for one speed, or a lasting change."""
    logs = numpy.log([speed for speed in speeds if speed > 0])
    if logs.size < 4 * HELD_BLOCKS:
        return None
    ordered = numpy.sort(logs)
    cuts = range(HELD_BLOCKS, logs.size - HELD_BLOCKS + 1)
    within = [ordered[:cut].var() * cut + ordered[cut:].var() * (logs.size - cut) for cut in cuts]
    cut = cuts[int(numpy.argmin(within))]
    slow, fast = float(numpy.median(ordered[:cut])), float(numpy.median(ordered[cut:]))
    scatter = 1.4826 * max(
        float(numpy.median(abs(ordered[:cut] - slow))), float(numpy.median(abs(ordered[cut:] - fast)))
    )
    if fast - slow < max(-math.log1p(-GAP), APART_SD * scatter):
        return None
    held = [(state, len(list(members))) for state, members in groupby(logs > (slow + fast) / 2)]
    lasting = [(state, count) for state, count in held if count >= HELD_BLOCKS]
    runs = [
        (state, sum(count for _, count in members))
        for state, members in groupby(lasting, key=lambda one: one[0])
    ]
    if len(runs) < 2 + LEAST_RETURNS:
        return None
    held_seconds = median(count for _, count in runs) * BLOCK_SECONDS
    return TwoSpeeds(math.exp(fast), math.exp(slow), held_seconds)


def _other_bits(checks: Sequence[TrialResult]) -> Iterable[OtherBits]:
    """Yield replays with other bits than promised, or beyond their bound, and words that were not kept."""
    for check in filter(None, map(_check_of, checks)):
        for one in check.replays:
            wrong = one.differing if one.bits_promised else int(one.largest_relative_difference > one.bound)
            if wrong:
                yield OtherBits("replay", one.computation, one.arithmetic, wrong, one.replays)
        pattern = check.memory_pattern
        if pattern.wrong_words:
            yield OtherBits(
                "memory", "pattern", "", pattern.wrong_words, pattern.tested_bytes // 8 * pattern.passes
            )


def _between(checks: Sequence[TrialResult], others: Sequence[TrialResult]) -> Iterable[OtherBits]:
    """Yield what differs from another process on this card, else from most other cards of the model."""
    own, beside = _hashes(checks), _hashes([trial for trial in others if _check_of(trial)])
    for key, hashes in own.items():
        _, computation, arithmetic = key
        most = max(set(beside.get(key, [])), key=beside.get(key, []).count, default=None)
        if len(set(hashes)) > 1:
            yield OtherBits("process", computation, arithmetic, len(set(hashes)) - 1, len(hashes))
        elif most and beside[key].count(most) > 1 and hashes[0] != most:
            yield OtherBits("card", computation, arithmetic, 1, len(beside[key]))


def _hashes(checks: Sequence[TrialResult]) -> Mapping[tuple[object, str, str], list[str]]:
    found: dict[tuple[object, str, str], list[str]] = {}
    for trial in checks:
        for one in _check_of(trial).replays:  # type: ignore[union-attr]
            if one.bits_promised:
                found.setdefault((trial.stack, one.computation, one.arithmetic), []).append(one.sha256)
    return found


def _faults(trials: Sequence[TrialResult]) -> Iterable[OtherBits]:
    """Yield what the driver counted meanwhile: errors that ECC did not correct, and faults of the device."""
    for name in sorted({one.name for trial in trials for one in trial.findings if one.name in FAULTS}):
        yield OtherBits("driver", name, "", 1, 1)
