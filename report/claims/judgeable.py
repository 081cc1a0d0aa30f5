"""Which claims the trials of a plan could judge: its variants hold every side that is compared, often enough.

A side is met by a variant whose key has what the claim names. How the runs will end is not foreseen: a window
may not settle, a batch may not fit, a workload may not count what is asked of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from harness.record import Claim, DeviceKind, Limit, TrialSpec
from harness.record.published.cards import Card
from harness.record.published.claim_set import sides, speaks_of
from report.claims.matching import PARTS, asked_by, nth_epoch
from report.compare.batch_sweeps import FEWEST_BATCHES
from report.compare.key import PartialKey
from report.metrics import CLAIMED
from report.trials.key import DATA, FRAMEWORK, Key, Value, grouped_by, key_of_asked

SETTLED_SECONDS = 60.0
"""A window of less is taken to be unproven."""


COUNT_BYTES_ON_A_CPU = ("tensorcore_mlp",)
"""Workloads that report there how much memory their tensors take; a card's allocator reports it for all."""


@dataclass(frozen=True, slots=True)
class TargetDevice:
    """The device of a plan: a card by the name and the capability that its driver reports, or a CPU."""

    kind: DeviceKind
    name: str
    capability: str | None = None
    memory_bytes: int | None = None
    count: int = 1
    """Devices of it; a CPU's are processes, of which there may be any number."""


@dataclass(frozen=True, slots=True)
class JudgingPlan:
    """A plan that would judge a claim here, and how long each of the trials takes that its verdict needs."""

    plan: str
    seconds_by_trial: Mapping[str, float]
    image: str | None = None
    """The image that has to be asked for by name; null where the device's own serves."""
    at_most: bool = False
    """Whether a trial of unknown time counts with its time-out."""

    @property
    def line(self) -> str:
        """Return the value of `--plan`, with the option that has to follow it."""
        return f"{self.plan} --image {self.image}" if self.image else self.plan

    @property
    def seconds(self) -> float:
        """The seconds of all its trials."""
        return sum(self.seconds_by_trial.values())


@dataclass(frozen=True)
class _Variant:
    """The repeats of one variant of a plan, with its key and its epochs where an option says them."""

    key: Key
    asked: PartialKey
    limit: Limit
    trials: tuple[TrialSpec, ...]

    @property
    def options(self) -> dict[str, Value]:
        return dict(self.key.options)

    @property
    def epochs(self) -> Value:
        """As an option says them; null where its protocol alone does."""
        return dict(self.asked.fields).get("epochs")

    @cached_property
    def whole(self) -> bool:
        """Whether it trains the whole protocol."""
        return self.limit == Limit()

    @property
    def settles(self) -> bool:
        """Whether its window is long enough to show a steady speed."""
        timed = self.limit.steps is None and (self.limit.seconds or 0.0) >= SETTLED_SECONDS
        return self.whole or self.limit.epochs is not None or timed

    def trains(self, epochs: int) -> bool:
        """Whether it trains so many epochs, as far as its limit or an option says how many it does.

        A whole protocol is taken for one of several epochs.
        """
        if self.limit.steps is not None or self.limit.seconds is not None:
            return False
        known = self.limit.epochs or self.epochs
        return epochs > 1 if known is None else known == epochs

    @cached_property
    def validates(self) -> bool:
        """Whether its quality is of the real validation split, all of it."""
        real = self.options.get(DATA, "real") == "real" and self.key.data_source != "generated"
        full = self.limit.valid_batches is None and self.key.weights != "random"
        return real and full and self.key.data_mode != "cached"


def askable(claims: Iterable[Claim], device: TargetDevice, cards: Sequence[Card]) -> list[Claim]:
    """The claims that need a run, and that a run on this device could judge.

    An absolute figure is answered on any card and software, which the answer then names.
    """

    def can_be(claim: Claim) -> bool:
        here = claim.kind == "absolute" or (
            own_card(claim, device, cards) and (claim.card_class is not None or len(cards_of(claim)) < 2)
        )
        return bool(CLAIMED[claim.metric].needs_run and claim.can_be_judged and here)

    return [claim for claim in claims if can_be(claim)]


def cards_of(claim: Claim) -> list[str]:
    """The cards that its sides name."""
    return sorted({side.card for side in sides(claim) if side.card})


def own_card(claim: Claim, device: TargetDevice, cards: Sequence[Card]) -> bool:
    """Whether a claim speaks of this device."""
    return bool(speaks_of(claim, device.kind, device.name, device.capability, cards, device.memory_bytes))


def judgeable(
    claims: Iterable[Claim], planned: Iterable[TrialSpec], device: TargetDevice, cards: Sequence[Card]
) -> dict[str, frozenset[str]]:
    """Return, by the ids of the claims that a plan's trials can judge, the ids of the trials for the verdict.

    Each side is there in as many repeats as a verdict needs.
    """
    repeats = grouped_by(planned, lambda trial: (key_of_asked(trial.asked), trial.asked.variant.limit))
    of_model = grouped_by(
        (_Variant(key, _asked(key), limit, tuple(trials)) for (key, limit), trials in repeats.items()),
        lambda variant: (variant.key.workload, variant.key.model.casefold()),
    )
    found = {}
    for claim in askable(claims, device, cards):
        models = dict.fromkeys(side.model.casefold() for side in sides(claim))
        variants = [one for model in models for one in of_model.get((claim.workload, model), ())]
        if not variants:
            continue
        sweeps = claim.metric == "batch_ratio"
        trials = _sweeps(claim, variants) if sweeps else _trials(claim, variants, device)
        if trials:
            found[claim.id] = frozenset(trial.id for trial in trials)
    return found


def differing(claim: Claim, planned: Iterable[Key]) -> tuple[tuple[str, ...], frozenset[Value]]:
    """What the nearest planned variant of its model has otherwise, by name, and all frameworks planned."""
    asked = asked_by(claim, claim.of).less("data_mode", "epochs")
    same = [key for key in planned if key.workload == claim.workload]
    alike = [key for key in same if key.model.casefold() == claim.of.model.casefold()]
    found = [tuple(each.field for each in asked.differences(PartialKey.of(key))) for key in alike]
    frameworks = frozenset(dict(key.options).get(FRAMEWORK) for key in same)
    return min(found, key=len, default=("model",) if same else ("workload",)), frameworks


def _trials(claim: Claim, variants: Sequence[_Variant], device: TargetDevice) -> list[TrialSpec]:
    """Return the trials of a variant for each side, in one setting; none where a side has no variant.

    An absolute figure takes variants that load as published, else any: one run of them gives a first look.
    """
    usable = [one for one in variants if _fits(claim, one, device)]
    often = [one for one in usable if len(one.trials) >= _runs_needed(claim)]
    of_sides = [_meeting(asked_by(claim, side).less(*PARTS), often) for side in sides(claim)]
    if claim.kind == "absolute" and not of_sides[0]:
        asked = asked_by(claim, claim.of)
        of_sides = [_meeting(asked, usable) or _meeting(asked.less("data_mode"), usable)]
    together = [each for each in product(*of_sides) if _one_setting(claim, each)]
    if not together:
        return []
    # A window shows a steady speed as well as a whole protocol does, and much sooner.
    steady = CLAIMED[claim.metric].steady
    chosen = max(
        together,
        key=lambda each: (min(len(one.trials) for one in each), all(one.whole for one in each) != steady),
    )
    return [trial for one in chosen for trial in one.trials]


def _meeting(asked: PartialKey, variants: Iterable[_Variant]) -> list[_Variant]:
    return [one for one in variants if not asked.differences(one.asked)]


def _asked(key: Key) -> PartialKey:
    """A key with its epochs where an option says them. A lead-in is one epoch before all others."""
    options, asked = dict(key.options), PartialKey.of(key)
    epochs = 1 if options.get("lead_in") is True else options.get("epochs")
    return asked if epochs is None else PartialKey((*asked.fields, ("epochs", epochs)), asked.options)


def _fits(claim: Claim, variant: _Variant, device: TargetDevice) -> bool:
    """Return whether runs of a variant have the claim's metric, over the claim's epochs."""
    metric = CLAIMED[claim.metric]
    if claim.target is not None:
        return variant.validates and (variant.whole or variant.limit.epochs is not None)
    if not metric.path or (variant.key.data_source == "generated" and not metric.on_generated):
        return False
    if metric.kind == "quality":
        epochs = metric.least_epochs or claim.epochs
        trained = variant.whole if epochs is None else variant.trains(epochs)
        longer = metric.least_epochs is not None and variant.whole
        return variant.validates and (trained or longer)
    if nth_epoch(claim.of) is not None:
        return variant.whole
    if metric.kind == "duration" and (metric.steady or not variant.whole):
        return variant.settles
    return metric.kind != "memory" or device.kind != "cpu" or claim.workload in COUNT_BYTES_ON_A_CPU


def _runs_needed(claim: Claim) -> int:
    """Two show a spread; bytes have none, and a published spread of seeds replaces that of one run."""
    exact = CLAIMED[claim.metric].kind == "memory" and (claim.kind == "structure" or claim.over is not None)
    return 1 if exact or claim.seeds is not None else 2


def _one_setting(claim: Claim, variants: Sequence[_Variant]) -> bool:
    """Whether variants may be compared: in one data mode, unless modes are compared, and of one length."""
    modes = {side.data_mode for side in sides(claim)}
    one_mode = len(modes) > 1 or len({one.key.data_mode for one in variants}) == 1
    one_length = len({one.whole for one in variants}) == 1
    return one_mode and (one_length or CLAIMED[claim.metric].steady)


def _sweeps(claim: Claim, variants: Sequence[_Variant]) -> list[TrialSpec]:
    """All trials of the search of each side for the largest batch that fits."""
    stepped = [one for one in variants if one.limit.steps is not None]
    found: list[TrialSpec] = []
    for side in sides(claim):
        asked = asked_by(claim, side).less("batch_size")
        sweeps = grouped_by(
            _meeting(asked, stepped), lambda one: (PartialKey.of(one.key).less("batch_size"), one.limit)
        )
        sweep = next((each for each in sweeps.values() if len(each) >= FEWEST_BATCHES), None)
        if sweep is None:
            return []
        found += [trial for one in sweep for trial in one.trials]
    return found
