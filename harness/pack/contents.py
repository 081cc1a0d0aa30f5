"""The archive for a site without internet: what goes into it, by its name in it, and how it is written.

A plain tar file whose first two members say how to unpack it and what it must hold.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import tomlkit

from harness.bundle import archive
from harness.data import chest_xray
from harness.data.catalog import DATASETS
from harness.data.check import sha256_of
from harness.data.fetch import Resolved
from harness.doctor.surroundings import TRUST, untrusted
from harness.engine.slurm import site
from harness.errors import UserError
from harness.files import printed, whole
from harness.image.packed import Packed
from harness.plan.plan import files
from harness.settings import Settings

Files = tuple[tuple[str, Path], ...]
"""Files by their names below the archive's top folder."""

SUMS = "SHA256SUMS"
UNPACK = Path(__file__).with_name("unpack.py")
SETTINGS = "gpudyno.toml"
_LEFT_OUT = ("tests/", "benchmarks/", "results/2")
"""What a site needs none of: the tests, and what other machines have measured."""


def project(root: Path, plan: str) -> Files:
    """gpudyno as it lies in this clone, the user's own files in it among it; raises UserError outside of one.

    What git ignores stays here, but for the plan and the profile of the site.
    """
    listed = printed("git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is None:
        if problem := untrusted(root):
            raise UserError(problem, remedy=TRUST)
        raise UserError("this is no clone of gpudyno's, which alone can be packed", remedy="pack in a clone")
    held = files(root).get(plan)
    own = {site.FILE, f"plans/{held.name}"} if held else {site.FILE}
    names = {name for name in listed.split("\0") if name} | own
    wanted = sorted(name for name in names if not (name.startswith((".", *_LEFT_OUT)) or "/." in name))
    return tuple((name, root / name) for name in wanted if (root / name).is_file())


def data(resolved: Mapping[str, Resolved]) -> Files:
    """The files of the data sets and weights that are at hand, and no other files of their folders."""
    return tuple(
        (f"data/{path}", found.folder / path)
        for name, found in sorted(resolved.items())
        if found.folder is not None
        for path in _paths(name, found.folder)
    )


def _paths(name: str, folder: Path) -> tuple[str, ...]:
    if name == chest_xray.NAME:
        return chest_xray.files(folder)
    return tuple(member.path for member in DATASETS[name].members)


def lacking(resolved: Mapping[str, Resolved]) -> tuple[str, ...]:
    """The data sets and weights that could not be had."""
    return tuple(sorted(name for name, found in resolved.items() if found.folder is None))


def in_folder(prefix: str, folder: Path) -> Files:
    """The files that lie directly in a folder."""
    return tuple((f"{prefix}/{path.name}", path) for path in sorted(folder.iterdir()) if path.is_file())


def settings_text(settings: Settings, packed: Packed) -> str:
    """gpudyno.toml for the site: the plan, what decides the image, and that nothing is to be fetched."""
    values = {
        "plan": packed.plan,
        "data_seconds": 0.0,
        "image": settings.image,
        "engine": "apptainer" if packed.sif else None if packed.image_archive else "venv",
        "base": settings.base,
        "apex": None if settings.apex == "python" else settings.apex,
    }
    return tomlkit.dumps({name: value for name, value in values.items() if value is not None})


def write(files: Files, top: str, out: Path, scratch: Path, wrote: Callable[[int], None]) -> str:
    """Writes `out` under a temporary name and renames it; gives back its SHA-256.

    Its order and times are fixed, so the same files make the same bytes. Each is read twice, in pieces: for
    its hash, and into the archive. `wrote` hears how many bytes each had. Raises UserError where one changed
    meanwhile.
    """
    every = ((UNPACK.name, UNPACK), *sorted(files))
    hashes = {name: sha256_of(path) for name, path in every}
    sums = scratch / SUMS
    listed = (f"{sha256}  {name}\n" for name, sha256 in sorted(hashes.items()))
    sums.write_text("".join(listed), encoding="utf-8")
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
