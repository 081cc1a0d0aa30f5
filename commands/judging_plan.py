"""Which trials of a plan judge a claim: of the role that its file names beside the plan, those of its sides.

That the plans hold each side as often as its verdict needs is tested. How the runs will end is not foreseen:
a window may not settle, a batch may not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from harness.record import Claim, DeviceKind, Side, TrialRequest, TrialSpec
from harness.record.published.cards import Card
from harness.record.published.claim_set import applies_to, claim_sides
from report.claims.claimed_work import PARTS, asked_key
from report.metrics import CLAIMED
from report.trials.key import PartialKey, grouped_by, key_of_asked

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


def cards_of(claim: Claim) -> list[str]:
    """Return the cards that its sides name."""
    return sorted({side.card for side in claim_sides(claim) if side.card})


def is_own_card(claim: Claim, device: TargetDevice, cards: Sequence[Card]) -> bool:
    """Return whether a claim speaks of this device."""
    return bool(applies_to(claim, device.kind, device.name, device.capability, cards, device.memory_bytes))


def can_answer(device: TargetDevice, claim: Claim, cards: Sequence[Card]) -> bool:
    """Return whether a device can answer a claim: an absolute figure any, which the answer then names."""
    one_card = claim.card_class is not None or len(cards_of(claim)) < 2
    here = claim.kind == "absolute" or (one_card and is_own_card(claim, device, cards))
    # A count follows from data or code alone.
    return here and claim.can_be_judged and CLAIMED[claim.metric].kind != "count"


Variants = Mapping[PartialKey, Sequence[TrialSpec]]
"""The repeats of each variant, by its key with its epochs where an option says them."""


def variants_of(trials: Iterable[TrialSpec]) -> Variants:
    """Return the variants of trials of one role, in their order."""
    return grouped_by(trials, _asked_key)


def judging_trials(claim: Claim, variants: Variants) -> list[TrialSpec]:
    """Return the trials of a variant for each side of a claim; none where a side has no variant.

    All are in one data mode, unless modes are compared. An absolute figure takes what loads as published,
    else any. The search for the largest batch takes all that a side tries.
    """
    searched = ("batch_size",) if claim.metric == "batch_ratio" else ()
    learned = CLAIMED[claim.metric].of_one_length

    def meeting(side: Side, *less: str) -> list[Sequence[TrialSpec]]:
        asked = asked_key(claim, side).less(*PARTS, *searched, *less)
        if learned and claim.epochs:
            asked = PartialKey((*asked.fields, ("epochs", claim.epochs)), asked.options)
        met = [trials for key, trials in variants.items() if not asked.differences(key)]
        met = [trials for trials in met if _can_count(claim, trials[0].asked)]
        return [[one for trials in met for one in trials]] if searched and met else met

    of_sides = [meeting(side) for side in claim_sides(claim)]
    if claim.kind == "absolute" and not of_sides[0]:
        of_sides = [meeting(claim.of, "data_mode")]
    modes_differ = len({side.data_mode for side in claim_sides(claim)}) > 1
    for together in product(*of_sides):
        modes = {trials[0].asked.variant.data_mode for trials in together}
        if modes_differ or len(modes) == 1:
            return [trial for trials in together for trial in trials]
    return []


def _asked_key(trial: TrialSpec) -> PartialKey:
    """A trial's key with its epochs where an option says them. A lead-in is one epoch before all others."""
    key = key_of_asked(trial.asked)
    options, asked = dict(key.options), PartialKey.of(key)
    epochs = 1 if options.get("lead_in") is True else options.get("epochs")
    return asked if epochs is None else PartialKey((*asked.fields, ("epochs", epochs)), asked.options)


def _can_count(claim: Claim, asked: TrialRequest) -> bool:
    """Whether a trial's data, weights and device can give what a claim is of."""
    metric = CLAIMED[claim.metric]
    learns = metric.kind == "quality" or claim.target is not None
    if asked.data == "generated" and (learns or not metric.on_generated):
        return False
    if metric.kind == "memory" and asked.device == "cpu":
        return asked.workload in COUNT_BYTES_ON_A_CPU
    epochs = asked.variant.limit.epochs if metric.of_one_length else None
    return epochs in (None, claim.epochs) and not (learns and asked.weights == "random")
