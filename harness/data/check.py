"""Is a data folder what its hashes say? Files are hashed once; a change of size or time hashes them again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import platformdirs

from harness.data.catalog import DATASETS, Dataset, Member
from harness.errors import UserError
from harness.files import whole


@dataclass(frozen=True, slots=True)
class Presence:
    """What a folder has of a data set. `file` and `why` name the first member that is not as it should be."""

    name: str
    state: Literal["complete", "missing", "corrupt"]
    folder: Path
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
        return Presence(dataset.name, "missing", folder)
    if absent:
        return Presence(dataset.name, "corrupt", folder, absent[0], "it is not there, though others are")
    stamps = _Stamps.read(cache_folder() / "data-stamps.json")
    fault = first_fault(dataset.members, folder, stamps)
    stamps.write()
    if fault:
        return Presence(dataset.name, "corrupt", folder, *fault)
    return Presence(dataset.name, "complete", folder)


def first_fault(
    members: Iterable[Member], folder: Path, stamps: _Stamps | None = None
) -> tuple[str, str] | None:
    """The first member whose size or hash is not the table's, and why; None where all agree."""
    for member in members:
        why = _fault(member, folder / member.path, stamps)
        if why:
            return member.path, why
    return None


def _fault(member: Member, path: Path, stamps: _Stamps | None) -> str | None:
    try:
        size = path.stat().st_size
        if member.size is not None and size != member.size:
            return f"it has {size:,} bytes where {member.size:,} belong"
        sha256 = stamps.sha256(path) if stamps else sha256_of(path)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    if not sha256.startswith(member.sha256):
        return f"its SHA-256 begins {sha256[:12]} where {member.sha256[:12]} belongs"
    return None


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Stamps:
    """Hashes already computed, each valid while size, both times and inode of its file are the same."""

    def __init__(self, file: Path, entries: dict[str, list[int | str]]) -> None:
        self._file = file
        self._entries = entries
        self._changed = False

    @classmethod
    def read(cls, file: Path) -> _Stamps:
        try:
            entries = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            entries = {}
        return cls(file, entries if isinstance(entries, dict) else {})

    def sha256(self, path: Path) -> str:
        stat = path.stat()
        stamp: list[int | str] = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
        key = str(path.resolve())
        entry = self._entries.get(key)
        if isinstance(entry, list) and entry[:-1] == stamp:
            return str(entry[-1])
        sha256 = sha256_of(path)
        self._entries[key] = [*stamp, sha256]
        self._changed = True
        return sha256

    def write(self) -> None:
        """Keeps what is new. A cache that cannot be written only costs time, so that is no error."""
        if not self._changed:
            return
        with contextlib.suppress(OSError), whole(self._file) as part:
            part.write_text(json.dumps(self._entries), encoding="utf-8")
