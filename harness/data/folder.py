"""A data folder while it is written to: by one process alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import Busy, NoSpace
from harness.files import alone

ELSEWHERE = "free some space there, or set GPUDYNO_CACHE to a folder on another disk"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the folder for this process, and clears away what a killed one left half unpacked."""
    busy = Busy("another gpudyno is fetching data", remedy="wait until it is done")
    with alone(folder / ".lock", "set GPUDYNO_CACHE to a folder on a disk of this machine", busy):
        for left in (*folder.glob(".new-*"), *folder.glob(".old-*")):
            shutil.rmtree(left, ignore_errors=True)
        yield


def check_free_space(name: str, needed_bytes: int, folder: Path) -> None:
    """Raises NoSpace where the disk has less than what is needed."""
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise NoSpace(
            f"'{name}' needs {needed_bytes >> 20} MiB of disk and {free >> 20} MiB are free", remedy=ELSEWHERE
        )
