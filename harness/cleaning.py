"""What a clone leaves on a machine besides its records: environments, images, logs, pages, fetched data."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness import store
from harness.data import default_folder
from harness.engine.build import build_settings
from harness.engine.docker import DockerEngine
from harness.engine.find import find
from harness.errors import GpudynoError
from harness.settings import Settings


@dataclass(frozen=True, slots=True)
class Removable:
    """One thing that can go, its size, and how it goes."""

    name: str
    size_bytes: int
    remove: Callable[[], None]


def removable(root: Path, settings: Settings, *, data: bool) -> list[Removable]:
    """All that can go; the records in results/ never can. An open session's work goes too."""
    folders = [root / ".venvs", store.state_folder(root), root / "report" / "out"]
    if data:
        folders.append(default_folder())
    found = [
        Removable(str(folder), _size_bytes(folder), partial(shutil.rmtree, folder))
        for folder in folders
        if folder.exists()
    ]
    engine = _engine(root, settings)
    if engine is not None:
        found += [
            Removable(f"image {image.tag}", image.size_bytes, partial(engine.remove_image, image.id))
            for image in engine.images()
        ]
    return found


def _engine(root: Path, settings: Settings) -> DockerEngine | None:
    building = build_settings(
        settings, root=root, logs=store.state_folder(root) / "logs", revision=None, environ=os.environ
    )
    try:
        return find("auto", building)
    except GpudynoError:
        return None


def _size_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
