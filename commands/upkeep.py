"""What `invoke check` finds wrong: by the tools, and in every file that the product reads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import docker

from harness.bundle.validate import record_problems
from harness.data.fetch import default_folder
from harness.engine.base import TITLES
from harness.engine.connection import Connection, answered
from harness.engine.find import search
from harness.errors import GateError, GpudynoError, UserError
from harness.image.catalog import load_images
from harness.image.lock import relock
from harness.plan import plan
from harness.record import store
from harness.record.cards import load_cards
from harness.record.claims import load_claims

TOOLS = (("ruff", "format", "--check", "."), ("ruff", "check", "."), ("mypy",))


def tools(root: Path) -> Iterator[str]:
    """A sentence for each tool that is not content; raises UserError where the extra `test` is missing."""
    for command in TOOLS:
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=root, capture_output=True, text=True, check=False
        )
        if "No module named" in done.stderr:
            raise UserError(
                f"{command[0]} is not installed", remedy="install the extra: pip install -e '.[test]'"
            )
        if done.returncode:
            yield f"{' '.join(command)}:\n{done.stdout}{done.stderr}".rstrip()


def files(root: Path) -> Iterator[str]:
    """A sentence for each plan, pin, claim, card or record that cannot be used as it is."""
    readers: list[Callable[[], object]] = [partial(plan.load, root, name) for name in plan.names(root)]
    readers += [partial(read, root) for read in (load_images, load_claims, load_cards)]
    for read in readers:
        try:
            read()
        except GpudynoError as error:
            yield str(error)
    yield from record_problems(root, store.read_all(root))


IMAGE_LABEL = "dev.gpudyno.image"


@dataclass(frozen=True, slots=True)
class Removable:
    """One thing that can go, its size, and how it goes."""

    name: str
    size_bytes: int
    remove: Callable[[], None]


def removable(root: Path, *, data: bool) -> list[Removable]:
    """All that can go; the records in results/ never can. An open session's work goes too."""
    folders = [root / ".venvs", store.state_folder(root), root / "report" / "out"]
    if data:
        folders.append(default_folder())
    on_disk = [
        Removable(str(folder), _size_bytes(folder), partial(shutil.rmtree, folder))
        for folder in folders
        if folder.exists()
    ]
    return on_disk + [image for connection in search(os.environ).connections for image in _images(connection)]


def _images(connection: Connection) -> Iterator[Removable]:
    """The images that carry our label; Podman's list is its own."""
    with answered(TITLES[connection.kind], "list images"):
        client = docker.DockerClient(base_url=connection.host, version="auto")
        for image in client.images.list(filters={"label": IMAGE_LABEL}):
            tag = image.tags[0] if image.tags else image.short_id
            remove = partial(client.images.remove, str(image.id), force=True)
            yield Removable(f"image {tag} in {TITLES[connection.kind]}", image.attrs["Size"], remove)


def _size_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def lock(root: Path, image: str) -> None:
    """Resolves one image's lock anew, and says what could not be reached."""
    chosen = load_images(root).image(image)
    report = relock(chosen, root)
    for line in report.changed or (f"{image}: nothing changed",):
        print(line)
    for line in report.unreachable:
        print(f"not reached: {line}", file=sys.stderr)


def clean(root: Path, *, yes: bool, data: bool) -> None:
    """Lists what can go, asks, and removes it."""
    removables = removable(root, data=data)
    if not removables:
        print("nothing to remove")
        return
    for item in removables:
        print(f"{item.size_bytes / 1e6:10.1f} MB  {item.name}")
    if not yes and input("remove all of it? [y/N] ").strip().lower() not in ("y", "yes"):
        print("nothing was removed")
        return
    for item in removables:
        item.remove()
    print("removed")


def check(root: Path) -> None:
    """Lints, type-checks and validates; raises GateError naming how many things are wrong."""
    problems = [*tools(root), *files(root)]
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        raise GateError(f"{len(problems)} problems", remedy="mend what is listed above")
    print("all is well")
