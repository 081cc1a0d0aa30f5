"""Is a data folder what its hashes say? Files are hashed once; a change of size or time hashes them again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import platformdirs

from harness.data.catalog import DATASETS, Dataset, Download, Member
from harness.errors import UserError
from harness.files import whole

Stamps = dict[str, Any]
"""Hashes already computed, by path: the file's size, times and inode as they were, and its hash."""


@dataclass(frozen=True, slots=True)
class Presence:
    """What a folder has of a data set. `file` and `why` name the first member that is not as it should be."""

    state: Literal["complete", "missing", "corrupt"]
    file: str | None = None
    why: str | None = None


def cache_folder() -> Path:
    """Where gpudyno keeps what it can fetch again: `GPUDYNO_CACHE`, or the user's cache folder."""
    return Path(os.environ.get("GPUDYNO_CACHE") or platformdirs.user_cache_path("gpudyno"))


def dataset_named(name: str) -> Dataset:
    """The data set of that name; raises UserError listing those there are."""
    if name not in DATASETS:
        raise UserError(f"no data set is called '{name}'", remedy=f"take one of {', '.join(DATASETS)}")
    return DATASETS[name]


def check(dataset: Dataset, folder: Path) -> Presence:
    """What `folder` has of it: complete (every hash agrees), missing (nothing of it), or corrupt."""
    absent = [member.path for member in dataset.members if not (folder / member.path).is_file()]
    if len(absent) == len(dataset.members):
        return Presence("missing")
    if absent:
        return Presence("corrupt", absent[0], "it is not there, though others are")
    file = cache_folder() / "data-stamps.json"
    stamps = read_stamps(file)
    before = dict(stamps)
    wrong = first_fault(dataset.members, folder, stamps)
    if stamps != before:
        # A cache that cannot be written only costs time.
        with contextlib.suppress(OSError), whole(file) as part:
            part.write_text(json.dumps(stamps), encoding="utf-8")
    if wrong:
        return Presence("corrupt", *wrong)
    return Presence("complete")


def first_fault(
    members: Iterable[Member], folder: Path, stamps: Stamps | None = None
) -> tuple[str, str] | None:
    """The first member whose size or hash is not the table's, and why; None where all agree."""
    faults = ((member.path, fault(member, folder / member.path, stamps)) for member in members)
    return next(((path, why) for path, why in faults if why), None)


def fault(wanted: Member | Download, path: Path, stamps: Stamps | None = None) -> str | None:
    """Why a file is not of the size and hash that are wanted; None where it is."""
    try:
        size = path.stat().st_size
        if wanted.size is not None and size != wanted.size:
            return f"it has {size:,} bytes where {wanted.size:,} belong"
        sha256 = sha256_of(path) if stamps is None else _stamped(path, stamps)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    if not sha256.startswith(wanted.sha256):
        return f"its SHA-256 begins {sha256[:12]} where {wanted.sha256[:12]} belongs"
    return None


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamped(path: Path, stamps: Stamps) -> str:
    """A file's hash, computed again unless its size, both times and inode are those of the stamp."""
    stat = path.stat()
    stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
    key = str(path.resolve())
    entry = stamps.get(key)
    if not isinstance(entry, list) or entry[:-1] != stamp:
        entry = stamps[key] = [*stamp, sha256_of(path)]
    return str(entry[-1])


def read_stamps(file: Path) -> Stamps:
    """The hashes already computed; none where the file cannot be read."""
    try:
        stamps = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return stamps if isinstance(stamps, dict) else {}
