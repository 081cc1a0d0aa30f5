"""Is a data folder what its hashes say?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import platformdirs

from harness.data.catalog import DATASETS, Dataset, Download, Member
from harness.errors import UserError
from harness.files import users_folder


@dataclass(frozen=True, slots=True)
class Presence:
    """What a folder has of a data set. `file` and `why` name the first member that is not as it should be."""

    state: Literal["complete", "missing", "corrupt"]
    file: str | None = None
    why: str | None = None


def cache_folder() -> Path:
    """Where gpudyno keeps what it can fetch again: `GPUDYNO_CACHE`, or the user's cache folder."""
    return users_folder("GPUDYNO_CACHE", lambda: platformdirs.user_cache_path("gpudyno"))


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
    wrong = first_fault(dataset.members, folder)
    return Presence("corrupt", *wrong) if wrong else Presence("complete")


def first_fault(members: Iterable[Member], folder: Path) -> tuple[str, str] | None:
    """The first member whose size or hash is not the table's, and why; None where all agree."""
    faults = ((member.path, fault(member, folder / member.path)) for member in members)
    return next(((path, why) for path, why in faults if why), None)


def fault(wanted: Member | Download, path: Path) -> str | None:
    """Why a file is not of the size and hash that are wanted; None where it is."""
    try:
        size = path.stat().st_size
        if wanted.size is not None and size != wanted.size:
            return f"it has {size:,} bytes where {wanted.size:,} belong"
        sha256 = sha256_of(path)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    if not sha256.startswith(wanted.sha256):
        return f"its SHA-256 begins {sha256[:12]} where {wanted.sha256[:12]} belongs"
    return None


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
