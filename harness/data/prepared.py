"""Data sets that are made ready here from a folder of the user's, since nothing may fetch them: is one there?

Its array is too large to be hashed before each session. What is looked at is that its sums are there, that
its table is theirs, and that its array is there; the verb that made it hashes both.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.data import chest_xray
from harness.data.check import Presence, sha256_of

PREPARED = (chest_xray.NAME,)
SUMS, TABLE, IMAGES = "SHA256SUMS", "table.csv", "images.npy"
HOW = "unpack ChestX-ray14, then `invoke build --only chestxray --from FOLDER`"


def present(name: str, folder: Path) -> Presence:
    """What a data folder has of it."""
    ours = folder / name
    if not (ours / SUMS).is_file():
        return Presence(name, "missing", folder)
    sums = dict(_sums(ours))
    for file in (TABLE, IMAGES):
        if file not in sums or not (ours / file).is_file():
            return Presence(name, "corrupt", folder, f"{name}/{file}", "it is not there")
    if sha256_of(ours / TABLE) != sums[TABLE]:
        return Presence(name, "corrupt", folder, f"{name}/{TABLE}", "it is not the one of its sums")
    return Presence(name, "complete", folder)


def sha256(name: str, folder: Path) -> str:
    """What a record calls this data: the SHA-256 of its sums."""
    return sha256_of(folder / name / SUMS)


def files(name: str, folder: Path) -> tuple[str, ...]:
    """All files of it, by their paths below the data folder."""
    return (*(f"{name}/{path}" for path, _ in _sums(folder / name)), f"{name}/{SUMS}")


def _sums(ours: Path) -> Iterator[tuple[str, str]]:
    for line in (ours / SUMS).read_text(encoding="utf-8").splitlines():
        digest, _, path = line.partition("  ")
        yield path, digest
