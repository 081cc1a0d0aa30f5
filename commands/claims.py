"""The published figures at a terminal: all of them, what can be judged where, and the trials for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from commands import measure
from commands.plans.matrix import wrapped
from harness.errors import UserError
from harness.image.catalog import ImageFile, load_images
from harness.machine import Selection
from harness.plan import estimate, plan, selection
from harness.plan.plan import Plan, PlanContext, Planned
from harness.plan.selection import supported
from harness.record import DEEP, Claim, Cpu, DataSource, DeviceKind, Gpu, Machine, TrialSpec
from harness.record.published.cards import load_cards
from harness.record.published.claims import ClaimSet, load_claims
from harness.run import on_paper
from harness.run import setup as run_setup
from harness.run.choice import choose, speeds_of
from harness.run.setup import RunSetup
from harness.settings import Settings
from harness.units import duration, seconds_of
from report import text
from report.analysis import Analysis
from report.claims.judgeable import Judgeable, JudgingPlan, TargetDevice, askable, judgeable

UNRANKED = (DEEP, "selfcheck", "ceilings", "card", "card-long")
"""Plans that compare nothing with anything published."""


def listed(root: Path, study: str = "") -> None:
    """Prints the claims of all studies, or of one by its name or id; raises UserError for an unknown one."""
    print("\n".join(lines(load_claims(root).of(study) if study else load_claims(root))))
    print("`invoke claims --here` says what this machine can judge, `--card` what that card")


def lines(claim_set: ClaimSet) -> list[str]:
    """Lines for each claim by study and workload, a source below the first that has it; and their number."""
    out: list[str] = []
    group: tuple[str, str] | None = None
    source = ""
    titled: set[str] = set()
    for claim in sorted(claim_set.claims, key=lambda claim: (claim.study, claim.workload)):
        if (claim.study, claim.workload) != group:
            group = (claim.study, claim.workload)
            source = ""
            name = claim_set.name_of(claim.study)
            out += ([""] if out else []) + [f"{name}, {claim.workload} {claim.protocol}"]
            study = claim_set.study(claim.study)
            if study and claim.study not in titled:
                titled.add(claim.study)
                out += wrapped(f"“{study.title}”, {study.source}", "  ", "  ")
        out.append(f"  {claim.id}")
        out += wrapped(f"{claim.kind}: {_figure(claim)}", "    ", "    ")
        if claim.source != source:
            source = claim.source
            out += wrapped(f"from {source}", "    ", "    ")
    claims, curves = len(claim_set.claims), len(claim_set.curves)
    epochs = sum(len(curve.epochs) for curve in claim_set.curves)
    return [*out, "", f"{claims} claims, {curves} curves of {epochs} epochs in all"]


def _figure(claim: Claim) -> str:
    metric = claim.metric.replace("_", " ") + (f" {claim.target:g}" if claim.target is not None else "")
    if claim.value is not None:
        sign = {"equal": "", "less": "less than ", "greater": "more than "}[claim.relation]
        value = f"{claim.value:g}" if claim.value < 1e6 else f"{claim.value:,.0f}"
        return f"{metric} {sign}{value} {claim.unit}"
    if claim.is_direction:
        return f"{metric} {claim.relation}: {claim.words}"
    return f"{metric} without a figure: {claim.words}"


def shipped(root: Path) -> list[str]:
    """The plans whose records may be held against publications."""
    return [name for name in plan.names(root) if name not in UNRANKED]


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


def _planned(asked: Plan, device: TargetDevice, image: str | None, cpu: Cpu) -> tuple[Planned, ...]:
    environment = image or device.kind
    if not any(part.is_for(device.kind, environment) for part in asked.measure):
        return ()
    sources: dict[str, DataSource] = dict.fromkeys(plan.datasets(asked, device.kind), "real")
    weights = dict.fromkeys(plan.pretrained_models(asked, device.kind), True)
    context = PlanContext(device.kind, environment, None, sources, weights)
    planned = plan.trials(asked, context, seed=0)
    card = None
    if device.kind != "cpu":
        card = Gpu(index=0, vendor="NVIDIA", name=device.name, architecture=device.capability)
    able, _ = supported(planned, device.kind, card, 1, cpu=cpu)
    return tuple(selection.one_full_each(able))


def ways(root: Path, analysis: Analysis) -> dict[str, JudgingPlan]:
    """What would judge the claims that no record of the leading session's device meets: by the quickest plan.

    Where nothing was measured, by the device that this machine would take. Told from records and plans alone,
    with all data at hand. A plan that cannot be read is no way.
    """
    first = next((trial for trial in analysis.own if trial.record.measurement), None)
    if first is None:
        machine, selection = run_setup.devices(Settings(), refuse=False)
        device = device_of(machine, selection)
    else:
        machine = first.record.machine
        device = TargetDevice(
            first.environment.device, first.device_name, first.device_capability, first.device_memory_bytes
        )
    cards = analysis.evidence.cards
    unmet = askable((result.claim for result in analysis.verdicts if not result.compared), device, cards)
    workloads = {claim.workload for claim in unmet}
    records = [stored.record for stored in analysis.evidence.results.records]
    speeds = estimate.learned(estimate.Speeds(), records, machine.id)
    found: dict[str, JudgingPlan] = {}
    images = load_images(root)
    for name in shipped(root):
        try:
            asked = plan.load(root, name)
            if workloads.isdisjoint(part.workload for part in asked.measure):
                continue
            named = images_of(asked, device.kind, images)
            each = {image: _planned(asked, device, image, machine.cpu) for image in named}
        except UserError:
            continue
        for image, planned in each.items():
            can = judgeable(unmet, [item.trial for item in planned], device, cards)
            for claim, way in _by_claim(name, image, can, planned, speeds).items():
                if claim not in found or way.seconds < found[claim].seconds:
                    found[claim] = way
    return found


def _by_claim(
    name: str,
    image: str | None,
    can: Iterable[Judgeable],
    planned: Iterable[Planned],
    speeds: estimate.Speeds,
) -> dict[str, JudgingPlan]:
    """By its id, the way to judge each claim that one plan in one image can."""
    seconds = {item.trial.id: estimate.seconds(item, speeds) for item in planned}
    timed = {one.claim.id: {trial: seconds[trial] for trial in sorted(one.trials)} for one in can}
    return {claim: JudgingPlan(name, each, image) for claim, each in timed.items()}


def _all_seconds(offer: Mapping[str, JudgingPlan]) -> float:
    """How long all take that a claim needs."""
    each: dict[str, float] = {}
    for way in offer.values():
        each |= way.seconds_by_trial
    return sum(each.values())


def here(root: Path, settings: Settings, card: str = "") -> None:
    """Prints which claims this machine or that card can judge, in which plan, and in how many hours."""
    setup = on_paper.prepare(root, settings, card)
    offers = _offers(setup, load_claims(root).claims)
    if not offers:
        print("No shipped plan can judge a claim here.")
        return
    for offer in sorted(offers, key=_all_seconds):
        line, whole = next(iter(offer.values())).line, duration(_all_seconds(offer))
        print(f"`invoke run --plan {line}`: {text.count(len(offer), 'claim')}, about {whole}")
        cheapest_first = sorted(offer.items(), key=lambda one: (one[1].seconds, one[0]))
        each = (f"{claim} ({duration(way.seconds)})" for claim, way in cheapest_first)
        print("\n".join(wrapped(", ".join(each), "  ", "  ")))
        print()
    every = {claim for offer in offers for claim in offer}
    print(f"judgeable here: {len(every)}; `invoke run --claim ID` runs what one needs")


def _offers(setup: RunSetup, claims: Sequence[Claim]) -> list[dict[str, JudgingPlan]]:
    """By claim, what each plan can judge here, in the image of the line, or in all where it names none."""
    cards, speeds = load_cards(setup.root), speeds_of(setup)
    offers = []
    for name in shipped(setup.root):
        asked = replace(setup, plan=plan.load(setup.root, name))
        images = images_of(asked.plan, setup.selection.kind, setup.images)
        for image in images if setup.settings.image is None else (None,):
            taken = setup.images.image(image) if image else setup.image
            if any(part.is_for(setup.selection.kind, taken.name) for part in asked.plan.measure):
                in_image = replace(asked, image=taken)
                # One of whose trials the device can do none judges nothing.
                with suppress(UserError):
                    planned = choose(in_image, speeds=speeds).planned
                    device = device_of(in_image.machine, in_image.selection)
                    can = judgeable(claims, [item.trial for item in planned], device, cards)
                    offers.append(_by_claim(name, image, can, planned, speeds))
    return [offer for offer in offers if offer]


def device_of(machine: Machine, selection: Selection) -> TargetDevice:
    """This machine's first device of the kind that is taken."""
    kind: DeviceKind = selection.kind
    if not selection.gpus:
        return TargetDevice(kind, machine.cpu.model or "a CPU")
    card = selection.gpus[0]
    return TargetDevice(
        kind, card.name, (card.architecture or "").removeprefix("sm_") or None, card.memory_bytes
    )


def run_asked(root: Path, settings: Settings, ids: Sequence[str], where: str, how: measure.How) -> None:
    """Runs what `--claim` and `--claims` ask for, or the whole plan where they ask for nothing.

    Raises UserError for another `where` than 'here', which stands for all that can be judged.
    """
    if where not in ("", "here"):
        raise UserError(f"'--claims {where}' is not known", remedy="write `--claims here`, or `--claim ID`")
    if where and ids:
        raise UserError("--claims here stands for all of them", remedy="leave out --claim, or --claims")
    if ids or where:
        run(root, settings, ids, how)
    else:
        measure.run(root, settings, how)


def run(root: Path, settings: Settings, ids: Sequence[str], how: measure.How) -> None:
    """Runs the trials that some claims need, each in the plan that takes the least time for it.

    Without ids, as many claims as the settings' budget holds, those first that cost the least more. Raises
    UserError for an id that there is not, and for a claim that no shipped plan can judge here.
    """
    claims = load_claims(root).claims
    unknown = sorted(set(ids) - {claim.id for claim in claims})
    if unknown:
        raise UserError(f"there is no claim '{unknown[0]}'", remedy="`invoke claims` lists them")
    setup = on_paper.prepare(root, settings, how.card)
    asked = [claim for claim in claims if claim.id in ids] if ids else list(claims)
    offers = _offers(setup, asked)
    budget = seconds_of(settings.budget) if settings.budget else None
    chosen = cheapest(offers, budget)
    beyond = sorted(set(ids) - {claim for taken in chosen.values() for claim in taken})
    if beyond:
        raise UserError(
            f"no shipped plan can judge '{beyond[0]}' here{' within the budget' if budget else ''}",
            remedy="`invoke claims --here` lists what can be judged",
        )
    if not chosen:
        raise UserError("no claim can be judged here", remedy="`invoke claims --here` says what can")
    for offer in offers:
        way = next(iter(offer.values()))
        taken = chosen.get(way.line, ())
        if not taken:
            continue
        print(f"plan {way.line}: for {text.count(len(taken), 'claim')}")
        image = way.image or settings.image
        of_plan = settings.model_copy(update={"plan": way.plan, "image": image, "budget": None})
        keep = partial(_needed, claims=[claim for claim in claims if claim.id in taken], setup=setup)
        measure.run(root, of_plan, replace(how, keep=keep, at_most_seconds=budget))


def _needed(trials: Sequence[TrialSpec], claims: Sequence[Claim], setup: RunSetup) -> frozenset[str]:
    found = judgeable(claims, trials, device_of(setup.machine, setup.selection), load_cards(setup.root))
    return frozenset[str]().union(*(one.trials for one in found))


def cheapest(
    offers: Sequence[Mapping[str, JudgingPlan]], budget_seconds: float | None
) -> dict[str, tuple[str, ...]]:
    """The claims of each offer's line: always the one next that takes the least time more, while it fits."""
    taken: dict[str, list[str]] = {}
    trials: dict[str, set[str]] = {way.line: set() for offer in offers for way in offer.values()}
    left = {claim for offer in offers for claim in offer}
    spent = 0.0
    while left:
        more, line, claim, way = min(
            (
                (_more(way, trials[way.line]), way.line, claim, way)
                for offer in offers
                for claim, way in offer.items()
                if claim in left
            ),
            key=lambda choice: choice[:3],
        )
        if budget_seconds is not None and spent + more > budget_seconds:
            break
        spent += more
        trials[line] |= way.seconds_by_trial.keys()
        taken.setdefault(line, []).append(claim)
        left.remove(claim)
    return {name: tuple(claims) for name, claims in taken.items()}


def _more(way: JudgingPlan, run: Collection[str]) -> float:
    """The seconds of those of its trials that are not run anyway."""
    return sum(seconds for trial, seconds in way.seconds_by_trial.items() if trial not in run)
