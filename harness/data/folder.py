"""A data folder while it is written to: by one process alone, and what a disk or a right that lacks means."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import Busy, NoSpace, UserError
from harness.files import hold

ELSEWHERE = "free some space there, or set GPUDYNO_CACHE to a folder on another disk"


@contextmanager
def writable(folder: Path) -> Iterator[None]:
    """Says in one sentence what a full disk or a folder that may not be written means."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace("the disk is full while fetching data", remedy=ELSEWHERE) from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
            problem = f"the data folder '{folder}' cannot be written ({error.strerror})"
            raise UserError(problem, remedy=ELSEWHERE) from None
        raise


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the folder for this process, and clears away what a killed one left half unpacked."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as lock:
        if not hold(lock, "set GPUDYNO_CACHE to a folder on a disk of this machine"):
            raise Busy("another gpudyno is fetching data", remedy="wait until it is done")
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
