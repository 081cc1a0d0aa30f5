"""The environments that a plan needs, built, and its data fetched or brought."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from commands.terminal import Screen
from harness.data.datasets import CHEST_XRAY, DATASETS, find_dataset
from harness.data.fetch import (
    FetchProgress,
    Resolved,
    bring_dataset,
    default_folder,
    fetch_dataset,
    find_members,
)
from harness.engine.choose import fall_back_to_venv
from harness.engine.interface import Built, Engine
from harness.errors import MachineError, NotBuilt, UserError
from harness.image.images import Image
from harness.plan import own_file
from harness.record.published.program import Program
from harness.run import setup as run_setup
from harness.run import source_tree
from harness.run.obstacles import prepare_line
from harness.settings import Settings, expand_path
from report.text import count

MOST_OF_A_STEP = 24
"""Letters of what a builder prints, in the line that moves."""


def build_data_set(root: Path, name: str, source: str = "") -> None:
    """Fetch one data set or a program's source, or take it from `source`, a folder or file of the user's.

    With a program goes its data, where `source` has that. Raises NoNetwork where it cannot be had.
    """
    folder = default_folder()
    program, given = _find_program(root, name), expand_path(source) if source else None
    with Screen() as screen:
        if program is not None:
            data = DATASETS.get(program.input.data) if program.input else None
            is_source = given is None or source_tree.is_repository(given)
            if data and given and not (is_source and given.is_file()) and find_members(data, given):
                bring_dataset(data, given, folder)
                screen.say(f"{data.name}: complete in {folder}")
                if not is_source:
                    return
            source_tree.bring_source(program, given, folder)
            screen.say(f"{name}: complete in {folder / program.folder}")
        elif name == CHEST_XRAY:
            _prepare_xrays(name, source, screen)
        else:
            if given:
                bring_dataset(find_dataset(name), given, folder)
            else:
                fetch_dataset(find_dataset(name), folder, progress=data_progress(screen))
            screen.say(f"{name}: complete in {folder}")


def _find_program(root: Path, name: str) -> Program | None:
    """Return a program of this clone by its name, or by the path of its file; null where that is none."""
    path = name if name.endswith(".toml") else f"workloads/programs/{name}.toml"
    there = (root / path).is_file()
    return own_file.read_program((root / path).read_bytes(), path) if there else None


def _prepare_xrays(name: str, source: str, screen: Screen) -> None:
    if not source:
        raise UserError(
            "ChestX-ray14 is behind a form of its makers, so it cannot be fetched",
            remedy="unpack it, then name its folder with --from FOLDER",
        )
    # Loads Pillow, which no other verb needs.
    import PIL

    from harness.data.chest_xray import WHOLE, prepare_xrays

    sha256 = prepare_xrays(
        expand_path(source),
        default_folder(),
        expected=WHOLE,
        watch=lambda there, of: screen.move(name, there, of, f"{there}/{count(of, 'image')}"),
    )
    for part, size in WHOLE.items():
        screen.say(f"{part}: {count(size.patients, 'patient')}, {count(size.images, 'image')}")
    screen.say(
        f"{name}: complete in {default_folder() / name}\n"
        f"SHA-256 {sha256}, by Pillow {PIL.__version__}; its makers give no hash to check against"
    )


def say_data(resolved: dict[str, Resolved], screen: Screen) -> None:
    """Say what each data set and weight file is, and what is not published of random weights."""
    for name, data_set in resolved.items():
        if data_set.source == "real":
            screen.say(f"data: {name}: {data_set.why}")
        elif name.startswith("weights-"):
            weights = f"weights: {name.removeprefix('weights-')}: using RANDOM WEIGHTS ({data_set.why})"
            screen.say(f"{weights}: no published accuracy is of what is trained from them")
        else:
            screen.say(f"data: {name}: using GENERATED data ({data_set.why})")


def data_progress(screen: Screen) -> FetchProgress:
    def show(label: str, done_bytes: int, total_bytes: int | None) -> None:
        total = f" of {total_bytes / 1e6:.0f}" if total_bytes else ""
        screen.move(f"fetching {label}", done_bytes, total_bytes, f"{done_bytes / 1e6:.0f}{total} MB")

    return show


def build_plan(root: Path, settings: Settings, *, with_data: bool) -> None:
    """Make the environment that the plan needs here, or say that it is made.

    `with_data` also fetches the plan's data, unless the image alone was named.
    """
    setup = prepare_line(root, settings) if settings.image is None else None
    if setup is not None:
        images, engine, notes = setup.images_used, setup.engine, setup.notes
    else:
        images, engine, notes = run_setup.prepare_build(root, settings)
    with Screen() as screen:
        resolved: dict[str, Resolved] = {}
        if with_data and setup is not None:
            resolved = run_setup.resolve_data(setup, data_progress(screen))
        # Before the build, which takes longer than to type another line.
        say_data(resolved, screen)
        for note in notes:
            screen.say(note)
        made, engine, _ = build_environments(root, settings, images, engine, screen)
        for built in made:
            what = built.environment.tag or built.environment.image
            pinned = "pinned" if built.environment.pinned else "UNPINNED"
            reasons = "; ".join(built.environment.unpinned_because)
            screen.say(f"environment: {what} ({engine.name}, {pinned}{': ' + reasons if reasons else ''})")


_failed_builds: dict[tuple[str, str], MachineError] = {}
"""By image and engine, what a `build` of this line met: the `run` behind it does not try that again."""


def build_environments(
    root: Path, settings: Settings, images: Sequence[Image], engine: Engine, screen: Screen
) -> tuple[tuple[Built, ...], Engine, tuple[str, ...]]:
    """Return the environments, the one engine that holds them, and what is to be noted of a session in them.

    Virtual environments take the place of a container engine that cannot build and was not asked for by name.
    """
    made: list[Built] = []
    for image in images:
        place = (image.name, engine.name)
        try:
            if place in _failed_builds:
                raise _failed_builds[place]
            made.append(_build_image(image, engine, screen))
        except MachineError as error:
            venv, note = fall_back_to_venv(root, settings, image, engine, error)
            screen.clear()
            screen.say(note)
            _failed_builds[place] = error
            return tuple(_build_image(each, venv, screen) for each in images), venv, (note,)
    return tuple(made), engine, ()


def _build_image(image: Image, engine: Engine, screen: Screen) -> Built:
    try:
        return engine.built_environment(image)
    except NotBuilt:
        screen.say(f"building environment '{image.name}' with {engine.name}")

    def say(line: str, done: int = 0, total: int | None = None) -> None:
        screen.move(f"building {image.name}", done, total, line.strip()[:MOST_OF_A_STEP])

    built = engine.build(image, say)
    screen.clear()
    return built
