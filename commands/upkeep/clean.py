"""What can be removed: environments, open sessions, the page, data and images."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import docker
from rich.prompt import Confirm

from harness.data.fetch import default_folder
from harness.engine.connection import Connection, answered
from harness.engine.find import search
from harness.engines import ENGINES
from harness.record import store

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
        Removable(
            str(folder),
            sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()),
            partial(shutil.rmtree, folder),
        )
        for folder in folders
        if folder.exists()
    ]
    return on_disk + [image for connection in search(os.environ).connections for image in _images(connection)]


def _images(connection: Connection) -> Iterator[Removable]:
    """The images that carry our label; Podman's list is its own."""
    with answered(ENGINES[connection.kind].title, "list images"):
        client = docker.DockerClient(base_url=connection.host, version="auto")
        for image in client.images.list(filters={"label": IMAGE_LABEL}):
            tag = image.tags[0] if image.tags else image.short_id
            remove = partial(client.images.remove, str(image.id), force=True)
            yield Removable(f"image {tag} in {ENGINES[connection.kind].title}", image.attrs["Size"], remove)


def clean(root: Path, *, yes: bool, data: bool) -> None:
    """Lists what can go, asks, and removes it."""
    removables = removable(root, data=data)
    if not removables:
        print("nothing to remove")
        return
    for item in removables:
        print(f"{item.size_bytes / 1e6:10.1f} MB  {item.name}")
    agreed = yes
    with suppress(EOFError):
        agreed = yes or Confirm.ask("remove all of it", default=False)
    if not agreed:
        print("nothing was removed")
        return
    for item in removables:
        item.remove()
    print("removed")
