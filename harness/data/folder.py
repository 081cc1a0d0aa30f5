"""A data folder while it is written to: by one process alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import Busy
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
