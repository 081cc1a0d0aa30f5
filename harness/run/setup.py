"""From a line's settings to device, image, engine and data, on this machine or on cards by their names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.data import fetch
from harness.data.fetch import FetchProgress
from harness.device_kinds import BY_VENDOR
from harness.doctor.surroundings import device_files, older_rocm_warning
from harness.engine.choose import choose_engine
from harness.engine.container import DeviceRequest
from harness.engine.interface import Engine
from harness.engine.local import image_identity
from harness.errors import NoDevice, NoEngine, UserError
from harness.files import Files
from harness.image.images import ANOTHER_FRAMEWORK, Image, ImageFile, choose_image, load_images
from harness.machine.devices import VISIBILITY, Selection, card_notes, passed_variables, select_devices
from harness.machine.fingerprint import look_at_machine
from harness.plan import plan_file
from harness.plan.plan_file import Plan
from harness.record import Cpu, DeviceKind, Gpu, Machine
from harness.record.published.cards import Card, card_family, find_card, load_cards
from harness.record.published.claim_set import suggest_name
from harness.run import source_tree
from harness.run.second_stack import SecondStack, second_stack
from harness.settings import Settings, expand_path
from harness.units import GIB


@dataclass(frozen=True, slots=True)
class RunSetup:
    """What a line of `run` or `submit` works with, before anything is built or fetched."""

    root: Path
    settings: Settings
    machine: Machine
    selection: Selection
    image: Image
    engine: Engine
    plan: Plan
    passed: Mapping[str, str]
    """The user's variables that reach a trial; variables that choose cards do not.

    The runtimes filter one after the other, and what ROCR_VISIBLE_DEVICES leaves is counted again from 0.
    """
    notes: tuple[str, ...]
    """What a person should hear: cards not taken, and what is lost without a container."""
    lost: tuple[str, ...] = ()
    """What a person should hear of an engine that was not to be had; `notes` have it too."""
    older_rocm: str = ""
    against: SecondStack | None = None

    @property
    def images_used(self) -> tuple[Image, ...]:
        """Return the image of each stack, the first stack's first; one where variables alone differ."""
        other = self.against.image if self.against else self.image
        return (self.image,) if other == self.image else (self.image, other)


def look_at_devices(settings: Settings, environ: Mapping[str, str] = os.environ) -> tuple[Machine, Selection]:
    """Look at the machine and settle on its devices; raises NoDevice for one that is not there."""
    machine, uuids = look_at_machine(settings.label)
    machine = machine.model_copy(update={"declared": settings.declared})
    return machine, select_devices(machine, settings.device, uuids=uuids, environ=environ)


def prepare_run(
    root: Path,
    settings: Settings,
    environ: Mapping[str, str] = os.environ,
    seen: tuple[Machine, Selection] | None = None,
    plan: Plan | None = None,
) -> RunSetup:
    """Settle on device, image and engine; look at the machine unless it was `seen` already.

    `plan` is in place of the settings'. Raises NoDevice where no image serves the card, NoEngine where the
    engine named does not answer. Whether the line would work, obstacles.py judges.
    """
    run_plan = plan or plan_file.load_plan(root, settings.plan)
    if settings.blocks is not None:
        run_plan = run_plan.model_copy(update={"blocks": settings.blocks})
    machine, selection = seen or look_at_devices(settings, environ)
    images = load_images(root)
    image, unserved = _choose_image(images, selection, settings)
    passed = {name: text for name, text in passed_variables(environ).items() if name not in VISIBILITY}
    own = settings.python is not None or selection.kind != "rocm"
    older = "" if own else older_rocm_warning(Files(), image.base)

    def serving(name: str) -> Image:
        return _choose_image(images, selection, settings.model_copy(update={"image": name}))[0]

    against = second_stack(root, settings, image, serving)
    engine, lost = choose_engine(
        root,
        settings,
        image,
        environ,
        device=device_request(selection),
        architecture=machine.architecture,
    )
    if against is not None and against.image.lock != image.lock and engine.name == "here":
        raise NoEngine(
            "engine 'here' has the one environment around us", remedy="start this line outside of the image"
        )
    return RunSetup(
        root=root,
        settings=settings,
        machine=machine,
        selection=selection,
        image=image,
        engine=engine,
        plan=run_plan,
        passed=passed,
        notes=(
            *card_notes(selection, machine),
            *unserved,
            *lost,
            *(f"{problem}; {ANOTHER_FRAMEWORK}" for problem in (older,) if problem),
        ),
        lost=lost,
        older_rocm=older,
        against=against,
    )


def prepare_build(
    root: Path, settings: Settings, environ: Mapping[str, str] = os.environ
) -> tuple[tuple[Image, ...], Engine, tuple[str, ...]]:
    """Return the image of each stack that `build --image` works with, its engine, and what to tell of it.

    It takes no look at the machine's devices: on a login node, on a runner. Raises UserError for a name that
    no image has.
    """
    image = load_images(root).image(str(settings.image))
    against = second_stack(root, settings, image, load_images(root).image)
    engine, lost = choose_engine(root, settings, image, environ)
    return (image,) if against is None or against.image == image else (image, against.image), engine, lost


def _choose_image(
    images: ImageFile, selection: Selection, settings: Settings, *, on_paper: bool = False
) -> tuple[Image, tuple[str, ...]]:
    """Return the image named, or that we are in, if it serves every card taken; else the first that does.

    An interpreter of the user's brings its own framework, which may serve what no image of ours does. For
    cards on paper that none serves it is the first of their kind, so that the caller sees what it would run.
    """
    around = images.images.get(str(image_identity().get("image")))
    inside = settings.engine in ("auto", "here") and not on_paper
    inside = inside and around is not None and selection.kind in around.devices
    name = settings.image or (around.name if around is not None and inside else None)
    architectures = {card.architecture for card in selection.gpus if card.architecture}
    driver = next((card.driver for card in selection.gpus if card.driver), None)
    try:
        capability = tuple(sorted(architectures))
        return choose_image(images, selection.kind, capability=capability, driver=driver, name=name), ()
    except NoDevice as error:
        if name is not None or (settings.python is None and not on_paper):
            raise
        why = f"image: {error.problem}; your interpreter's own framework is taken"
        why = f"it cannot run there: {error.problem}; {ANOTHER_FRAMEWORK}" if on_paper else why
        return choose_image(images, selection.kind), (why,)


def data_folders(settings: Settings, root: Path) -> fetch.DataFolders:
    """Return the user's own data folder, else the clone's where it has one, and ours."""
    own = expand_path(settings.data).absolute() if settings.data else root / "data"
    return fetch.DataFolders(own if settings.data or own.is_dir() else None, cache=fetch.default_folder())


def data_names(run_plan: Plan, kind: DeviceKind) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a plan's data sets, and its pretrained weights."""
    weights = tuple(f"weights-{model}" for model in plan_file.pretrained_models(run_plan, kind))
    return tuple(plan_file.plan_datasets(run_plan, kind)), weights


def resolve_data(
    setup: RunSetup,
    progress: FetchProgress,
    *,
    fetching: bool = True,
) -> dict[str, fetch.Resolved]:
    """Fetch what is missing of the plan's data sets and weight files, and return where each is.

    Weights that cannot be had leave random ones, which the records say; data that cannot be had is
    generated where the plan allows it, else the error is raised. Without `fetching`, where it would be.
    """
    kind, folders = setup.selection.kind, data_folders(setup.settings, setup.root)
    seconds, (names, weights) = setup.settings.data_seconds, data_names(setup.plan, kind)
    resolve = partial(fetch.resolve_datasets, folders=folders, progress=progress, fetching=fetching)
    resolved = resolve(names, allow_generated=setup.plan.generated_data, deadline_seconds=seconds)
    # Weights are not waited for where data was not had.
    lacking = any(answer.source == "generated" for answer in resolved.values())
    resolved |= resolve(weights, allow_generated=True, deadline_seconds=0.0 if lacking else seconds)
    needed = {measure.file for measure in setup.plan.measure if measure.is_for(kind, setup.image.name)}
    for file, program in setup.plan.programs.items():
        if file in needed:
            resolved[program.folder] = source_tree.resolve_source(program, folders)
    return resolved


def device_request(selection: Selection) -> DeviceRequest:
    """Return what an engine is asked for; a trial on fewer cards takes a part of it."""
    nodes = device_files(Files()) if selection.kind == "rocm" else ()
    complete = len(selection.uuids) == len(selection.gpus)
    return DeviceRequest(
        selection.kind,
        ids=selection.uuids if complete else (),
        indices=tuple(gpu.index for gpu in selection.gpus),
        every=not selection.others,
        groups=tuple(sorted({node.group for node in nodes})),
    )


def prepare_for_cards(root: Path, settings: Settings, named: str) -> RunSetup:
    """Return what a line works with on cards by their names, as "4x RTX 4090"; without, on this machine.

    Raises UserError for a card that the table does not have, NoDevice where the image named does not serve
    it, and what load_plan raises.
    """
    if not named:
        return prepare_run(root, settings)
    count, card = parse_cards(named, load_cards(root))
    selection = Selection(BY_VENDOR[card.vendor], gpus=_card_devices(count, card))
    images = load_images(root)
    image, unserved = _choose_image(images, selection, settings, on_paper=True)
    _, engine, _ = prepare_build(root, settings.model_copy(update={"image": image.name}))
    processor = card.processor or "x86_64"
    machine = Machine(
        id="0" * 12, label="on-paper", system="Linux", architecture=processor, cpu=Cpu(), gpus=selection.gpus
    )
    where = f"{count} × {card.name}" + (f", {image.platform_on(processor)}" if card.processor else "")
    return RunSetup(
        root=root,
        settings=settings,
        machine=machine,
        selection=selection,
        image=image,
        engine=engine,
        plan=plan_file.load_plan(root, settings.plan),
        passed={},
        against=second_stack(root, settings, image, images.image),
        notes=(f"for {where}, by its figures on paper and published runs", *unserved),
    )


def parse_cards(named: str, cards: Sequence[Card]) -> tuple[int, Card]:
    """Return how many of which card, by its name or a driver's; raises UserError with the nearest names."""
    counted = re.fullmatch(r"\s*(?:([1-9]\d{0,2})\s*[x×]\s*)?(.+?)\s*", named, re.IGNORECASE)
    count, name = (int(counted[1] or 1), counted[2]) if counted else (1, named)
    known = {card.name.casefold(): card for card in cards}
    family = card_family(name, [card.name for card in cards])
    card = find_card(name, cards) or known.get((family[0] if len(family) == 1 else name).casefold())
    if card is not None:
        return count, card
    near = [card.name for key, card in known.items() if name.casefold() in key]
    remedy = f"name one, such as {', '.join(near)}" if near else "see its names there"
    meant = "" if near else suggest_name(name, [card.name for card in cards])
    raise UserError(f"'{name}' is no card of results/cards.toml{meant}", remedy=remedy)


def _card_devices(count: int, card: Card) -> tuple[Gpu, ...]:
    """Return what a framework would see."""
    gpu = Gpu(
        index=0,
        vendor=card.vendor,
        name=device_name(card),
        architecture=card.capability,
        memory_bytes=int(card.memory_gb * GIB / card.devices) if card.memory_gb else None,
    )
    return tuple(gpu.model_copy(update={"index": at}) for at in range(count * card.devices))


def device_name(card: Card) -> str:
    """Return what its driver may call it: the first name that its pattern matches, without optional parts."""
    return re.sub(r"\([^)]*\)\?|.\?", "", card.name_regex).partition("|")[0]
