"""From a line's settings to all that its verbs need: device, image, engine, data and trials."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.data import fetch
from harness.data.download import FetchProgress
from harness.doctor.surroundings import device_files, older_rocm_warning
from harness.engine.choose import choose_engine as choose_engine
from harness.engine.container import DeviceRequest
from harness.engine.interface import Engine
from harness.engine.local import image_identity
from harness.errors import NoDevice, NoEngine
from harness.files import Files
from harness.image.images import ANOTHER_FRAMEWORK, Image, ImageFile, choose_image, load_images
from harness.machine import VISIBILITY, Selection, look_at_machine, passed_variables, select_devices
from harness.machine.devices import card_notes
from harness.plan import plan_file
from harness.plan.plan_file import Plan
from harness.record import DeviceKind, Machine
from harness.run import source_tree
from harness.run.second_stack import SecondStack, second_stack
from harness.settings import Settings, expand_path

DATA = "data"
"""The clone's own data folder, where it has one."""


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
    older_rocm: str = ""
    against: SecondStack | None = None

    @property
    def images_used(self) -> tuple[Image, ...]:
        """Return the image of each stack, the first stack's first; one where variables alone differ."""
        other = self.against.image if self.against else self.image
        return (self.image,) if other == self.image else (self.image, other)


def look_at_devices(
    settings: Settings, environ: Mapping[str, str] = os.environ, *, refuse: bool = True
) -> tuple[Machine, Selection]:
    """Looks at the machine and settles on its devices; raises NoDevice for one that is not there.

    It raises NoDevice too, unless `refuse` is false, where the processor would be taken unasked in place of a
    card that does not answer.
    """
    machine, uuids = look_at_machine(settings.label)
    machine = machine.model_copy(update={"declared": settings.declared})
    taken = select_devices(machine, settings.device, uuids=uuids, environ=environ)
    if refuse and machine.silent_cards and taken.kind == "cpu" and not taken.asked:
        raise NoDevice(
            f"a card is in this machine and does not answer: {machine.silent_cards[0]}",
            remedy="`invoke doctor` says what to do, and --device cpu measures the processor in its place",
        )
    return machine, taken


def prepare_run(
    root: Path,
    settings: Settings,
    environ: Mapping[str, str] = os.environ,
    seen: tuple[Machine, Selection] | None = None,
    *,
    refuse: bool = True,
) -> RunSetup:
    """Settles on device, image and engine; looks at the machine unless it was `seen` by devices() already.

    Raises NoDevice where no image serves the card, NoEngine where the engine named does not answer. An engine
    asked for by name that gives no such card raises NoDevice too, unless `refuse` is false.
    """
    run_plan = plan_file.load_plan(root, settings.plan)
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
        refuse=refuse,
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
        older_rocm=older,
        against=against,
    )


def prepare_build(
    root: Path, settings: Settings, environ: Mapping[str, str] = os.environ
) -> tuple[tuple[Image, ...], Engine, tuple[str, ...]]:
    """The image of each stack that `build` works with, its engine, and what a person should hear.

    An image that is named is built without a look at the machine's devices: on a login node, on a runner.
    Raises UserError for a name that no image has, and what prepare() raises where none is named.
    """
    if settings.image is None:
        setup = prepare_run(root, settings, environ)
        return setup.images_used, setup.engine, setup.notes
    image = load_images(root).image(settings.image)
    against = second_stack(root, settings, image, load_images(root).image)
    engine, lost = choose_engine(root, settings, image, environ)
    return (image,) if against is None or against.image == image else (image, against.image), engine, lost


def _choose_image(
    images: ImageFile, selection: Selection, settings: Settings
) -> tuple[Image, tuple[str, ...]]:
    """The image that is named, or that we are in, if it serves every card taken; else the first that does.

    An interpreter of the user's brings its own framework, which may serve what no image of ours does.
    """
    around = images.images.get(str((image_identity() or {}).get("image")))
    inside = settings.engine in ("auto", "here") and around is not None and selection.kind in around.devices
    name = settings.image or (around.name if around is not None and inside else None)
    architectures = {card.architecture for card in selection.gpus if card.architecture}
    driver = next((card.driver for card in selection.gpus if card.driver), None)
    try:
        capability = tuple(sorted(architectures))
        return choose_image(images, selection.kind, capability=capability, driver=driver, name=name), ()
    except NoDevice as error:
        if settings.python is None or name is not None:
            raise
        image = next(image for image in images.images.values() if image.device == selection.kind)
        return image, (f"image: {error.problem}; your interpreter's own framework is taken",)


def data_folders(settings: Settings, root: Path) -> fetch.DataFolders:
    """The user's own data folder, else the clone's where it has one, and ours."""
    own = expand_path(settings.data).absolute() if settings.data else root / DATA
    return fetch.DataFolders(own if settings.data or own.is_dir() else None, cache=fetch.default_folder())


def data_names(run_plan: Plan, kind: DeviceKind) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A plan's data sets, and its pretrained weights."""
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
    """What an engine is asked for; a trial on fewer cards takes the first of them."""
    nodes = device_files(Files()) if selection.kind == "rocm" else ()
    complete = len(selection.uuids) == len(selection.gpus)
    return DeviceRequest(
        selection.kind,
        ids=selection.uuids if complete else (),
        indices=tuple(gpu.index for gpu in selection.gpus),
        every=not selection.others,
        groups=tuple(sorted({node.group for node in nodes})),
    )
