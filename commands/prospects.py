"""What plans can do for published figures on a device: the plan that judges each, else the one obstacle."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from commands.judging_plan import (
    TargetDevice,
    Variants,
    can_answer,
    cards_of,
    is_own_card,
    judging_trials,
    variants_of,
)
from harness.device_kinds import BY_VENDOR
from harness.errors import NoDevice, UserError
from harness.image.images import ImageFile, choose_image, load_images
from harness.machine.devices import Selection, select_devices
from harness.machine.fingerprint import look_at_machine
from harness.plan import estimate, plan_file
from harness.plan.capability import split_supported
from harness.plan.order import Planned
from harness.plan.plan_file import Plan, PlanContext
from harness.record import Claim, Cpu, DataSource, DeviceKind, Gpu, Machine, Role
from harness.record.published.cards import Card, card_family
from harness.record.published.claim_set import claim_sides
from report.analysis import Analysis
from report.claims.answers import WAYS, JudgingPlan, Obstacle, Prospects, own_obstacle
from report.trials.key import FRAMEWORK


def plan_images(asked: Plan, kind: DeviceKind, images: ImageFile) -> tuple[str | None, ...]:
    """Return the images a plan runs in on a kind of device: its own as null, and those asked for by name."""
    named = dict.fromkeys(name for part in asked.measure if kind in part.devices for name in part.images)
    serving = (image for image in images.images.values() if kind in image.devices)
    by_name = {image.name for image in serving if image.by_name_alone}
    return (None, *(name for name in named if name in by_name))


def find_prospects(root: Path, analysis: Analysis) -> Prospects:
    """Return how to judge each claim that no record of the leading session's device meets, or its barrier.

    Where nothing was measured, the device is the one that this machine would take. Only records and plans are
    read, and all data counts as there. A plan that cannot be read is left out.
    """
    first = next((trial for trial in analysis.own if trial.record.measurement), None)
    if first is None:
        machine, uuids = look_at_machine()
        device = target_device(machine, select_devices(machine, None, uuids=uuids, environ=os.environ))
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
    model = estimate.DeviceModel.from_machine(machine, device.kind, cards)
    speeds = estimate.learn_speeds(estimate.published_speeds(root, model, cards), records)
    return device_prospects(device, root, unmet, machine.cpu, cards, speeds)


@dataclass(frozen=True, slots=True)
class _Rows:
    """What a plan has on a device in an image, of one role: its trials by their ids, and as variants."""

    image: str | None
    items: Mapping[str, Planned]
    variants: Variants


def device_prospects(
    device: TargetDevice,
    root: Path,
    claims: Iterable[Claim],
    cpu: Cpu,
    cards: Sequence[Card],
    speeds: estimate.Speeds,
    image: str | None = None,
) -> Prospects:
    """Return how to judge each claim on a device by the first of its plans that can, or its one barrier.

    A plan is looked at in each of its images, or in `image` alone.
    """
    images = load_images(root)

    @cache
    def rows_of(name: str, role: Role) -> list[_Rows]:
        rows: list[_Rows] = []
        with suppress(UserError):
            asked = plan_file.load_plan(root, name)
            for image_name in (image,) if image else plan_images(asked, device.kind, images):
                planned = (
                    plan_on_device(asked, device, image_name, cpu)
                    if _serves(images, device, image_name)
                    else ()
                )
                items = {item.trial.id: item for item in planned if item.role == role}
                rows.append(_Rows(image_name, items, variants_of(item.trial for item in items.values())))
        return rows

    def way_to(claim: Claim) -> JudgingPlan | None:
        for name, role in claim.plans.items():
            for rows in rows_of(name, role):
                items = [rows.items[trial.id] for trial in judging_trials(claim, rows.variants)]
                if items:
                    seconds = {item.trial.id: estimate.estimate_seconds(item, speeds) for item in items}
                    at_most = any(estimate.is_time_out(item, speeds) for item in items)
                    return JudgingPlan(name, seconds, rows.image, at_most)
        return None

    ways, barred = {}, {}
    for claim in claims:
        if can_answer(device, claim, cards) and (way := way_to(claim)):
            ways[claim.id] = way
        else:
            barred[claim.id] = _barrier(claim, device, cards, images)
    return Prospects(ways, barred)


def plan_on_device(asked: Plan, device: TargetDevice, image: str | None, cpu: Cpu) -> tuple[Planned, ...]:
    """Return the trials of a plan that such devices can do in an image, its own where none is named."""
    environment = image or device.kind
    if not any(part.is_for(device.kind, environment) for part in asked.measure):
        return ()
    sources: dict[str, DataSource] = dict.fromkeys(plan_file.plan_datasets(asked, device.kind), "real")
    weights = dict.fromkeys(plan_file.pretrained_models(asked, device.kind), True)
    context = PlanContext(device.kind, environment, None, sources, weights)
    planned = plan_file.plan_trials(asked, context, seed=0)
    card = None
    if device.kind != "cpu":
        card = Gpu(index=0, vendor="NVIDIA", name=device.name, architecture=device.capability)
    able, _ = split_supported(planned, device.kind, card, device.count, cpu=cpu)
    return able


def _serves(images: ImageFile, device: TargetDevice, name: str | None) -> bool:
    """Return whether an image, or any where none is named, has code for a device."""
    with suppress(NoDevice):
        return bool(choose_image(images, device.kind, capability=device.capability, name=name))
    return False


def _barrier(claim: Claim, device: TargetDevice, cards: Sequence[Card], images: ImageFile) -> Obstacle:
    if (itself := own_obstacle(claim)).kind != "plan":
        return itself
    gpus = max(side.gpus for side in claim_sides(claim))
    named = cards_of(claim)
    known = [card.name for card in cards]
    of_gpus = any(name in known or card_family(name, known) for name in named)
    if device.kind == "cpu" and (of_gpus or claim.card_class not in (None, "any")):
        return Obstacle("gpu")
    if claim.kind != "absolute" and len(named) > 1:
        return Obstacle("cards", " and ".join(named))
    if claim.kind != "absolute" and not is_own_card(claim, device, cards):
        return Obstacle("card", claim.card_class or named[0] if named or claim.card_class else None)
    if device.kind != "cpu" and gpus > device.count:
        return Obstacle("devices", gpus)
    framework = claim.of.options.get(FRAMEWORK)
    if framework is not None and not _has_framework(images, device, str(framework)):
        return Obstacle("framework", str(framework))
    return Obstacle("plan")


def _has_framework(images: ImageFile, device: TargetDevice, framework: str) -> bool:
    """Return whether an image with workloads of a framework serves a device; PyTorch needs no folder."""
    serving = (image for name, image in images.images.items() if _serves(images, device, name))
    return any(Path(image.workloads or "pytorch").name in framework for image in serving)


def target_device(machine: Machine, selection: Selection) -> TargetDevice:
    """Return this machine's first device of the kind that is taken."""
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
