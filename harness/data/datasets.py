"""The data sets and weights gpudyno knows: what they hold, their hashes, and whether a folder has them.

Hashes of the archives are as torchvision, Keras and Hugging Face publish them; hashes of the members were
computed from files with those archives' hashes. A size that no source gives is null. They stand in
`workloads/datasets.json`, by which a trial checks what it reads.

Their terms: CIFAR states no licence; cite Krizhevsky, Learning Multiple Layers of Features from Tiny Images,
2009. MNIST is usually quoted as CC BY-SA 3.0; LeCun and Cortes hold the copyright. WikiText-2 is CC BY-SA,
from Wikipedia. Shakespeare is in the public domain; char-rnn, which has the text, is MIT. torchvision is
BSD-3-Clause; ImageNet, on which its weights were trained, is for research only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.errors import UserError
from harness.files import hash_file

TABLE = Path(__file__).resolve().parents[2] / "workloads" / "datasets.json"

CHEST_XRAY = "chestxray"
"""The one that only its user can bring."""
SUMS, LABEL_TABLE, IMAGES = "SHA256SUMS", "table.csv", "images.npy"
"""What is made ready of it, below a folder of its name."""
BRING_XRAYS = "unpack ChestX-ray14, then `invoke build --only chestxray --from FOLDER`"


@dataclass(frozen=True, slots=True)
class Member:
    """One file of a data folder: its path below the folder, its size in bytes and its hash.

    Of a hash its makers may have published the first digits alone.
    """

    path: str
    size: int | None
    sha256: str
    trained_on: bool = True
    """False for a file that only names the classes."""


@dataclass(frozen=True, slots=True)
class Download:
    """One file as the mirrors have it. `holds` maps a name inside an archive to a path in the data folder."""

    name: str
    kind: Literal["plain", "gzip", "tar"]
    size: int | None
    sha256: str
    urls: tuple[str, ...]
    holds: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set: its downloads together give all its members."""

    name: str
    members: tuple[Member, ...]
    downloads: tuple[Download, ...]
    items: int | None = None
    """Its pictures or words in all parts together; null where nobody trains on it."""

    @property
    def subfolder(self) -> str:
        """Return the part of a data folder that holds it."""
        return self.members[0].path.split("/")[0]

    @property
    def sha256(self) -> str:
        """Return how a record calls this data: the SHA-256 over sorted `path sha256` of its files."""
        lines = sorted(f"{member.path} {member.sha256}\n" for member in self.members if member.trained_on)
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def download_bytes(self) -> int:
        """Return what is downloaded, as far as its sizes are known."""
        return sum(download.size or 0 for download in self.downloads)


def _read_row(name: str, row: Mapping[str, Any]) -> Dataset:
    files, class_names = row["files"], row.get("class_names", {})
    members = tuple(
        Member(path, size, sha256, trained_on=path in files)
        for path, (size, sha256) in (files | class_names).items()
    )
    whole = {member.path: member.path for member in members}
    downloads = tuple(
        Download(**{"holds": whole, **each, "urls": tuple(each["urls"])}) for each in row["downloads"]
    )
    return Dataset(name, members, downloads, row.get("items"))


def _weights(model: str, size: int | None, sha256: str) -> Dataset:
    name = f"{model}-{sha256[:8]}.pth"
    member = Member(f"weights/{name}", size, sha256)
    url = f"https://download.pytorch.org/models/{name}"
    fetched = Download(name, "plain", size, sha256, (url,), {name: member.path})
    return Dataset(f"weights-{model}", (member,), (fetched,))


_ALL = (
    *(_read_row(name, row) for name, row in json.loads(TABLE.read_bytes()).items()),
    _weights("resnet18", 46830571, "f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec"),
    _weights("resnet34", 87319819, "b627a593bcbe140c234610266fe4f8ae95ea42fc881d091c9b6052e6b1d0590f"),
    _weights("resnet50", 102530333, "0676ba61b6795bbe1773cffd859882e5e297624d384b6993f7c9e683e722fb8a"),
    _weights("resnet101", None, "63fe2227b86e8f1f2063f43a75c84d195911b6a0eace650907dd3dc62dd49a0a"),
    _weights("resnet152", None, "394f9c45966e3651a89bbb78a48410a6755854ce4a5ab64927cf1c7247f85e58"),
    # All that its name says, and what PyTorch's own download checks: no public file has more of it.
    _weights("densenet121", None, "a639ec97"),
)

DATASETS: Mapping[str, Dataset] = {dataset.name: dataset for dataset in _ALL}
"""Every data set by its name; weights are `weights-<model>`."""


def check_name(name: str) -> str:
    """Return the name of a data set; raises ValueError listing those there are."""
    if name in DATASETS or name == CHEST_XRAY:
        return name
    raise ValueError(f"no data set is called '{name[:80]}'; take one of {', '.join((*DATASETS, CHEST_XRAY))}")


@dataclass(frozen=True, slots=True)
class Presence:
    """What a folder has of a data set. `file` and `why` name the first member that is not as it should be."""

    state: Literal["complete", "missing", "corrupt"]
    file: str | None = None
    why: str | None = None


def find_dataset(name: str) -> Dataset:
    """Return the data set of that name; raises UserError listing those there are."""
    if name not in DATASETS:
        raise UserError(f"no data set is called '{name}'", remedy=f"take one of {', '.join(DATASETS)}")
    return DATASETS[name]


def check_dataset(dataset: Dataset, folder: Path) -> Presence:
    """Return what `folder` has of it: complete (every hash agrees), missing (nothing of it), or corrupt."""
    absent = [member.path for member in dataset.members if not (folder / member.path).is_file()]
    if len(absent) == len(dataset.members):
        return Presence("missing")
    if absent:
        return Presence("corrupt", absent[0], "it is not there, though others are")
    wrong = first_fault(dataset.members, folder)
    return Presence("corrupt", *wrong) if wrong else Presence("complete")


def first_fault(members: Iterable[Member], folder: Path) -> tuple[str, str] | None:
    """Return the first member whose size or hash is not the table's, and why; None where all agree."""
    faults = ((member.path, member_fault(member, folder / member.path)) for member in members)
    return next(((path, why) for path, why in faults if why), None)


def member_fault(wanted: Member | Download, path: Path) -> str | None:
    """Return why a file is not of the size and hash that are wanted; None where it is."""
    try:
        size = path.stat().st_size
        if wanted.size is not None and size != wanted.size:
            return f"it has {size:,} bytes where {wanted.size:,} belong"
        sha256 = hash_file(path)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    if not sha256.startswith(wanted.sha256):
        return f"its SHA-256 begins {sha256[:12]} where {wanted.sha256[:12]} belongs"
    return None


def find_presence(name: str, folder: Path) -> Presence:
    """Return what `folder` has of the data set of that name."""
    return _xray_presence(folder) if name == CHEST_XRAY else check_dataset(DATASETS[name], folder)


def _xray_presence(folder: Path) -> Presence:
    """Return what a data folder has of the X-rays made ready.

    Their array is too large to be hashed before each session: what is looked at is that its sums are there,
    that its table is theirs, and that its array is there.
    """
    ours = folder / CHEST_XRAY
    if not (ours / SUMS).is_file():
        return Presence("missing")
    lines = (line.partition("  ") for line in (ours / SUMS).read_text(encoding="utf-8").splitlines())
    sums = {path: digest for digest, _, path in lines}
    for file in (LABEL_TABLE, IMAGES):
        if file not in sums or not (ours / file).is_file():
            return Presence("corrupt", f"{CHEST_XRAY}/{file}", "it is not there")
    if hash_file(ours / LABEL_TABLE) != sums[LABEL_TABLE]:
        return Presence("corrupt", f"{CHEST_XRAY}/{LABEL_TABLE}", "it is not the one of its sums")
    return Presence("complete")
