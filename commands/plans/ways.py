"""What plans can do for published figures on a device: the quickest way to each, else the one obstacle."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.device_kinds import BY_VENDOR
from harness.errors import NoDevice, UserError
from harness.image.images import ImageFile, load_images
from harness.image.images import choose as choose_image
from harness.machine import Selection, look, select
from harness.plan import estimate, plan_file
from harness.plan.order import Planned
from harness.plan.plan_file import Plan, PlanContext
from harness.plan.selection import supported
from harness.record import Claim, Cpu, DataSource, DeviceKind, Gpu, Machine, TrialSpec
from harness.record.published.cards import Card, family
from harness.record.published.claim_set import sides
from report.analysis import Analysis
from report.claims.answers import WAYS, Obstacle, of_itself
from report.claims.judgeable import (
    JudgingPlan,
    TargetDevice,
    askable,
    cards_of,
    differing,
    judgeable,
    own_card,
)
from report.trials.key import FRAMEWORK, Key, key_of_asked

UNRANKED = ("selfcheck", "ceilings", "card", "card-long")
"""Plans that compare nothing with anything published."""


def shipped(root: Path) -> list[str]:
    """The plans whose records may be held against publications."""
    return [name for name in plan_file.files(root) if name not in UNRANKED]


def images_of(asked: Plan, kind: DeviceKind, images: ImageFile) -> tuple[str | None, ...]:
    """The images that a plan runs in on a kind of device: its own as null, and those asked for by name."""
    named = dict.fromkeys(
        name
        for part in asked.measure
        for name in part.images
        if kind in part.devices and name in images.images
    )
    by_name = (images.images[name] for name in named)
    return (None, *(image.name for image in by_name if image.by_name_alone and kind in image.devices))


def planned_on(asked: Plan, device: TargetDevice, image: str | None, cpu: Cpu) -> tuple[Planned, ...]:
    """The trials of a plan that such devices can do in an image, its own where none is named."""
    environment = image or device.kind
    if not any(part.is_for(device.kind, environment) for part in asked.measure):
        return ()
    sources: dict[str, DataSource] = dict.fromkeys(plan_file.datasets(asked, device.kind), "real")
    weights = dict.fromkeys(plan_file.pretrained_models(asked, device.kind), True)
    context = PlanContext(device.kind, environment, None, sources, weights)
    planned = plan_file.trials(asked, context, seed=0)
    card = None
    if device.kind != "cpu":
        card = Gpu(index=0, vendor="NVIDIA", name=device.name, architecture=device.capability)
    able, _ = supported(planned, device.kind, card, device.count, cpu=cpu)
    return able


@dataclass(frozen=True, slots=True)
class Prospects:
    """For each figure that met no record, by its id, the quickest way to it or the one obstacle."""

    ways: Mapping[str, JudgingPlan]
    barred: Mapping[str, Obstacle]


def prospects(root: Path, analysis: Analysis) -> Prospects:
    """Return how to judge each claim that no record of the leading session's device meets, or its barrier.

    Where nothing was measured, the device is the one that this machine would take. Only records and plans are
    read, and all data counts as there. A plan that cannot be read is left out.
    """
    first = next((trial for trial in analysis.own if trial.record.measurement), None)
    if first is None:
        machine, uuids = look()
        device = device_of(machine, select(machine, None, uuids=uuids, environ=os.environ))
    else:
        machine = first.record.machine
        of_kind = sum(BY_VENDOR[gpu.vendor] == first.environment.device for gpu in machine.gpus)
        device = TargetDevice(
            first.environment.device,
            first.device_name,
            first.device_capability,
            first.device_memory_bytes,
            max(1, of_kind),
        )
    cards = analysis.evidence.cards
    met = {answer.claim.id for answer in analysis.answers if answer.cell or answer.state not in WAYS}
    unmet = [claim for claim in analysis.evidence.claims.claims if claim.id not in met]
    records = [stored.record for stored in analysis.evidence.results.records]
    model = estimate.DeviceModel.of(machine, device.kind, cards)
    speeds = estimate.learned(estimate.published_speeds(root, model, cards), records)
    return quickest(unmet, offers(root, unmet, device, machine.cpu, cards, speeds), device, cards)


OfferedPlan = tuple[dict[str, JudgingPlan], list[TrialSpec]]
"""The claims that one plan in one image can judge, by their ids, and all its trials."""


def offers(
    root: Path,
    claims: Sequence[Claim],
    device: TargetDevice,
    cpu: Cpu,
    cards: Sequence[Card],
    speeds: estimate.Speeds,
    only: str | None = None,
) -> Iterator[OfferedPlan]:
    """What each plan of their workloads that can be read judges on a device, in each image or in that one."""
    can, images = askable(claims, device, cards), load_images(root)
    workloads = {claim.workload for claim in claims}
    for name in shipped(root):
        with suppress(UserError):
            asked = plan_file.load(root, name)
            if workloads.isdisjoint(part.workload for part in asked.measure):
                continue
            for image in (only,) if only else images_of(asked, device.kind, images):
                planned = planned_on(asked, device, image, cpu) if serves(images, device, image) else ()
                trials = [item.trial for item in planned]
                yield by_claim(name, image, judgeable(can, trials, device, cards), planned, speeds), trials


def quickest(
    claims: Sequence[Claim], offered: Iterable[OfferedPlan], device: TargetDevice, cards: Sequence[Card]
) -> Prospects:
    """Return the quickest way to each claim; where a claim has none, its one obstacle."""
    found: dict[str, JudgingPlan] = {}
    planned: dict[Key, None] = {}
    for offer, trials in offered:
        planned |= dict.fromkeys(key_of_asked(trial.asked) for trial in trials)
        for claim, way in offer.items():
            if claim not in found or way.seconds < found[claim].seconds:
                found[claim] = way
    left = (claim for claim in claims if claim.id not in found)
    return Prospects(found, {claim.id: _barrier(claim, planned, device, cards) for claim in left})


def serves(images: ImageFile, device: TargetDevice, name: str | None) -> bool:
    """Whether an image, or any where none is named, has code for a device."""
    with suppress(NoDevice):
        return bool(choose_image(images, device.kind, capability=device.capability, name=name))
    return False


def _barrier(claim: Claim, planned: Iterable[Key], device: TargetDevice, cards: Sequence[Card]) -> Obstacle:
    if (itself := of_itself(claim)).kind != "plan":
        return itself
    gpus = max(side.gpus for side in sides(claim))
    named = cards_of(claim)
    known = [card.name for card in cards]
    of_gpus = any(name in known or family(name, known) for name in named)
    if device.kind == "cpu" and (of_gpus or claim.card_class not in (None, "any")):
        return Obstacle("gpu")
    if claim.kind != "absolute" and len(named) > 1:
        return Obstacle("cards", " and ".join(named))
    if claim.kind != "absolute" and not own_card(claim, device, cards):
        return Obstacle("card", claim.card_class or named[0] if named or claim.card_class else None)
    if device.kind != "cpu" and gpus > device.count:
        return Obstacle("devices", gpus)
    names, frameworks = differing(claim, planned)
    framework = claim.of.options.get(FRAMEWORK)
    if framework is not None and framework not in frameworks:
        return Obstacle("framework", str(framework))
    return Obstacle("plan", names=names or ("length",))


def by_claim(
    name: str,
    image: str | None,
    can: Mapping[str, Iterable[str]],
    planned: Sequence[Planned],
    speeds: estimate.Speeds,
) -> dict[str, JudgingPlan]:
    """Return, by id, how to judge each claim that one plan in one image can judge."""
    seconds = {item.trial.id: estimate.seconds(item, speeds) for item in planned}
    unknown = {item.trial.id for item in planned if estimate.is_time_out(item, speeds)}
    timed = {claim: {trial: seconds[trial] for trial in sorted(trials)} for claim, trials in can.items()}
    return {
        claim: JudgingPlan(name, each, image, bool(unknown & each.keys())) for claim, each in timed.items()
    }


def device_of(machine: Machine, selection: Selection) -> TargetDevice:
    """This machine's first device of the kind that is taken."""
    kind: DeviceKind = selection.kind
    if not selection.gpus:
        return TargetDevice(kind, machine.cpu.model or "a CPU")
    card = selection.gpus[0]
    return TargetDevice(
        kind,
        card.name,
        (card.architecture or "").removeprefix("sm_") or None,
        card.memory_bytes,
        len(selection.gpus),
    )
