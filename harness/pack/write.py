"""Writes the archive: a plain tar file whose first two members say how to unpack it and what it must hold."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.bundle import archive
from harness.data.check import sha256_of
from harness.errors import UserError
from harness.files import whole
from harness.pack import contents
from harness.pack.contents import UNPACK, Files

SUMS = "SHA256SUMS"
FIRST = "unpack.py"


def write(files: Files, top: str, out: Path, scratch: Path, wrote: Callable[[int], None]) -> str:
    """Writes `out` under a temporary name and renames it; gives back its SHA-256.

    Its order and times are fixed, so the same files make the same bytes. Each is read twice, in pieces: for
    its hash, and into the archive. `wrote` hears how many bytes each had. Raises UserError where one changed
    meanwhile.
    """
    every = ((FIRST, UNPACK), *sorted(files))
    hashes = {name: sha256_of(path) for name, path in every}
    sums = scratch / SUMS
    sums.write_text(contents.sums(hashes.items()), encoding="utf-8")
    first, *rest = every
    with whole(out) as unfinished, tarfile.open(unfinished, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in (first, (SUMS, sums), *rest):
            size = path.stat().st_size
            archive.add(tar, top, name, path)
            if path.stat().st_size != size:
                raise UserError(f"'{name}' changed while it was packed", remedy="pack once more")
            wrote(size)
    return sha256_of(out)


@contextmanager
def beside(out: Path) -> Iterator[Path]:
    """A folder on the same disk for what is fetched and saved on the way; it is gone afterwards."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
        yield Path(scratch)
