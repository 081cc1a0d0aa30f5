"""What goes into the archive for a site without internet, by its name in it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import tomlkit

from harness.data import prepared
from harness.data.catalog import DATASETS
from harness.data.fetch import Resolved
from harness.doctor.surroundings import TRUST, untrusted
from harness.engine.slurm import site
from harness.errors import UserError
from harness.image.packed import Packed
from harness.plan.plan import files
from harness.settings import Settings

Files = tuple[tuple[str, Path], ...]
"""Files by their names below the archive's top folder."""

UNPACK = Path(__file__).with_name("unpack.py")
SETTINGS = "gpudyno.toml"
_LEFT_OUT = ("tests/", "benchmarks/", "results/2", "results/ledger/")
"""What a site needs none of: the tests, and what other machines have measured."""


@dataclass(frozen=True, slots=True)
class Group:
    """Files of one kind, with what a person reads of them."""

    title: str
    files: int
    size_bytes: int


def group(title: str, files: Files) -> Group:
    """The group of files that are there."""
    return Group(title, len(files), sum(path.stat().st_size for _, path in files))


def project(root: Path, plan: str) -> Files:
    """gpudyno as it lies in this clone, the user's own files in it among it; raises UserError outside of one.

    What git ignores stays here, but for the plan and the profile of the site.
    """
    line = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(line, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        if problem := untrusted(root):
            raise UserError(problem, remedy=TRUST)
        raise UserError("this is no clone of gpudyno's, which alone can be packed", remedy="pack in a clone")
    held = files(root).get(plan)
    own = {site.FILE, f"plans/{held.name}"} if held else {site.FILE}
    names = {name for name in listed.stdout.split("\0") if name} | own
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
    if name in prepared.PREPARED:
        return prepared.files(name, folder)
    return tuple(member.path for member in DATASETS[name].members)


def lacking(resolved: Mapping[str, Resolved]) -> tuple[str, ...]:
    """The data sets and weights that could not be had."""
    return tuple(sorted(name for name, found in resolved.items() if found.folder is None))


def in_folder(prefix: str, folder: Path) -> Files:
    """The files that lie directly in a folder."""
    return tuple((f"{prefix}/{path.name}", path) for path in sorted(folder.iterdir()) if path.is_file())


def settings_text(settings: Settings, packed: Packed) -> str:
    """gpudyno.toml for the site: the plan, what decides the image, and that nothing is to be fetched."""
    values: dict[str, object] = {"plan": packed.plan, "data_seconds": 0.0}
    if settings.image:
        values["image"] = settings.image
    if packed.sif:
        values["engine"] = "apptainer"
    elif packed.image_archive is None:
        values["engine"] = "venv"
    if settings.base:
        values["base"] = settings.base
    if settings.apex != "python":
        values["apex"] = settings.apex
    return tomlkit.dumps(values)


def sums(files: Iterable[tuple[str, str]]) -> str:
    """SHA256SUMS of names and hashes, as `sha256sum --check` reads it."""
    return "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(files))
