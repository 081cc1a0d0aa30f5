"""One archive with all that a plan needs at a site without internet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from commands.measure import data_progress
from commands.terminal import Screen
from harness.bundle import archive
from harness.engine.apptainer import ApptainerEngine
from harness.engine.base import Engine
from harness.engine.choose import WHEELHOUSE, own_wheels
from harness.engine.docker import DockerEngine
from harness.errors import NoNetwork, UserError
from harness.files import whole
from harness.image import packed
from harness.image.catalog import Image
from harness.image.packed import Packed
from harness.pack import contents, wheels
from harness.pack.contents import Files, beside, write
from harness.plan import plan
from harness.run import setup as run_setup
from harness.run import source_tree
from harness.run.setup import data_folders
from harness.settings import Settings
from harness.units import size


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an archive is asked for, before anything is fetched."""

    root: Path
    settings: Settings
    image: Image
    engine: Engine
    pythons: tuple[str, ...]


def pack(root: Path, settings: Settings, *, out: str, pythons: str) -> None:
    """Writes the archive, and lists what went into it."""
    if settings.python is not None:
        raise UserError("an interpreter of yours cannot be packed", remedy="leave --python out")
    image, engine, notes = run_setup.to_build(root, settings)
    wanted = Wanted(root, settings, image, engine, wheels.asked_pythons(pythons))
    top = f"gpudyno-{settings.plan}"
    path = Path(out).absolute()
    with Screen() as screen:
        for note in notes:
            screen.say(note)
        _write(wanted, top, path, screen)


def _write(wanted: Wanted, top: str, path: Path, screen: Screen) -> None:
    with beside(path) as scratch:
        resolved = run_setup.sets_and_weights(
            plan.load(wanted.root, wanted.settings.plan),
            wanted.image.device,
            data_folders(wanted.settings, wanted.root),
            data_progress(screen),
            seconds=None,
        )
        project = contents.project(wanted.root, wanted.settings.plan)
        host = _host_wheels(wanted, project, scratch, screen)
        title, environment, made = _environment(wanted, scratch, screen)
        programs, absent = _programs(wanted, scratch)
        data = (*contents.data(resolved), *programs)
        revision, modified = run_setup.revision(wanted.root)
        lacking = contents.lacking(resolved)
        about = made.model_copy(update={"revision": revision, "modified": modified, "lacking": lacking})
        notes = scratch / "notes"
        notes.mkdir()
        (notes / packed.FILE).write_text(about.model_dump_json(indent=1) + "\n")
        (notes / contents.SETTINGS).write_text(contents.settings_text(wanted.settings, about))
        own = tuple((item.name, item) for item in sorted(notes.iterdir()))
        groups = {
            "gpudyno and the plan": (*own, *project),
            "packages of gpudyno's own": host,
            title: environment,
            "data, weights and programs": data,
        }
        sizes = {kind: sum(path.stat().st_size for _, path in files) for kind, files in groups.items()}
        total, done = sum(sizes.values()), 0

        def wrote(count: int) -> None:
            nonlocal done
            done += count
            screen.move("packing", done, total, size(done))

        sha256 = write((*own, *project, *host, *environment, *data), top, path, scratch, wrote)
        screen.clear()
    for kind, files in groups.items():
        screen.say(f"  {kind}: {len(files)} files, {size(sizes[kind])}")
    for name in about.lacking:
        screen.say(f"  left out: {name}, which could not be had")
    for name in absent:
        screen.say(
            f"  left out: the source of '{name}'; there, from a repository or a git bundle: "
            f"invoke build --only {name} --from FOLDER"
        )
    screen.say(f"packed: {path} ({size(path.stat().st_size)})\nSHA-256: {sha256}")
    screen.say(f"there: tar -xOf {path.name} {top}/unpack.py > unpack.py && python3 unpack.py {path.name}")


def _programs(wanted: Wanted, scratch: Path) -> tuple[Files, tuple[str, ...]]:
    """The sources of the plan's programs, and the names of those that cannot be had."""
    folders, folder = data_folders(wanted.settings, wanted.root), scratch / "programs"
    folder.mkdir()
    lacking = []
    for program in plan.load(wanted.root, wanted.settings.plan).programs.values():
        try:
            found = source_tree.resolve(program, folders)
        except NoNetwork:
            lacking.append(program.name)
        else:
            assert found.folder is not None
            source_tree.packed(program, found.folder, folder)
    return contents.in_folder("data", folder), tuple(lacking)


def _saying(screen: Screen) -> Callable[..., None]:
    def say(line: str, done: int = 0, total: int | None = None) -> None:
        if line:
            screen.say(f"  {line.strip()}")

    return say


def _host_wheels(wanted: Wanted, project: Files, scratch: Path, screen: Screen) -> Files:
    folder, log = scratch / "wheels", scratch / "pip.log"
    folder.mkdir()
    python, say = wheels.interpreter_with_pip(scratch), _saying(screen)
    for name, path in project:
        # A copy, so that making a wheel leaves nothing in the clone.
        archive.copy_into(scratch / "source", name, path)
    wheels.own(scratch / "source", folder, python=python, log=log, say=say)
    wheels.host(
        wanted.root,
        folder,
        platform=wanted.image.platform,
        pythons=wanted.pythons,
        python=python,
        log=log,
        say=say,
    )
    (folder / wheels.REQUIREMENTS).write_text(wheels.requirements(folder), encoding="utf-8")
    return contents.in_folder("wheels", folder)


def _environment(wanted: Wanted, scratch: Path, screen: Screen) -> tuple[str, Files, Packed]:
    """The software stack in the form that the engine runs, and what pack.json says of it."""
    image, engine = wanted.image, wanted.engine
    about = Packed(plan=wanted.settings.plan, image=image.name, device=image.device, pythons=wanted.pythons)
    if isinstance(engine, DockerEngine):
        screen.say(f"saving image '{image.name}' from {engine.name}")
        tag = _built_tag(engine, image)
        path = packed.archive_of(scratch, tag)
        with whole(path) as unfinished, unfinished.open("wb") as file:
            engine.save(image, file)
        name = path.relative_to(scratch).as_posix()
        return "image", ((name, path),), about.model_copy(update={"tag": tag, "image_archive": name})
    if isinstance(engine, ApptainerEngine):
        tag = _built_tag(engine, image)
        sif = packed.sif_of(wanted.root, tag)
        name = sif.relative_to(wanted.root).as_posix()
        files = ((name, sif), (name.replace(".sif", ".json"), sif.with_suffix(".json")))
        return "image as a SIF", files, about.model_copy(update={"tag": tag, "sif": name})
    folder = scratch / WHEELHOUSE
    folder.mkdir()
    wheels.locked(
        image,
        wanted.root,
        folder,
        pythons=wheels.for_image(image, wanted.pythons),
        python=wheels.interpreter_with_pip(scratch),
        wheelhouse=own_wheels(wanted.root, wanted.settings),
        log=scratch / "pip.log",
        say=_saying(screen),
    )
    return f"packages of '{image.name}'", contents.in_folder(WHEELHOUSE, folder), about


def _built_tag(engine: Engine, image: Image) -> str:
    tag = engine.built(image).environment.tag
    assert tag is not None
    return tag
