"""Images made smaller once, in parallel, each written whole or not at all, so that a killed run can go on."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from harness.data.check import sha256_of
from harness.errors import DataError

CHUNK = 16
"""Images that a process takes at a time."""


@dataclass(frozen=True, slots=True)
class Resize:
    """One image to make. `sha256` is what was written of it before, null where nothing was."""

    source: Path
    target: Path
    pixels: int
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Resized:
    """One image that is there. `made` is false where it was before."""

    name: str
    sha256: str
    made: bool


def resize_all(jobs: Iterable[Resize], *, processes: int | None = None) -> Iterator[Resized]:
    """Makes each image that is not yet what its hash says, and gives them in their order.

    Raises DataError naming an image that cannot be read. The processes end with this one, however it ends.
    """
    pool = ProcessPoolExecutor(
        processes or available_processors(),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_end_with_the_parent,
    )
    try:
        yield from pool.map(resize, jobs, chunksize=CHUNK)
    finally:
        pool.shutdown(cancel_futures=True)


def resize(job: Resize) -> Resized:
    """As Karmanov 2018 did: bilinear to a square, then to RGB."""
    if job.sha256 and job.target.is_file() and sha256_of(job.target) == job.sha256:
        return Resized(job.target.name, job.sha256, made=False)
    try:
        with Image.open(job.source) as image:
            small = image.resize((job.pixels, job.pixels), Image.Resampling.BILINEAR).convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(
            f"the image '{job.source.name}' cannot be read ({error})", remedy="unpack its archive again"
        ) from None
    # What the original says of itself would be written along.
    small.info.clear()
    part = job.target.with_suffix(".part")
    with part.open("wb") as file:
        small.save(file, "PNG", compress_level=6)
        file.flush()
        os.fsync(file.fileno())
    sha256 = sha256_of(part)
    part.replace(job.target)
    return Resized(job.target.name, sha256, made=True)


def available_processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end_with_the_parent() -> None:
    threading.Thread(target=_wait_for_the_parent, daemon=True).start()


def _wait_for_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
