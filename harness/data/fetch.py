"""Real data and pretrained weights: fetched once, checked by hash, or taken from a folder of the user's.

Nothing here reads a pickle. docs/data.md has the layout of a data folder.
"""

from __future__ import annotations

import gzip
import math
import os
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal
from urllib.parse import urlsplit

import platformdirs
import requests

from harness.data.datasets import (
    BRING_XRAYS,
    CHEST_XRAY,
    Dataset,
    Download,
    check_dataset,
    find_dataset,
    find_presence,
    first_fault,
    member_fault,
)
from harness.errors import Busy, DataError, MachineError, NoNetwork, UserError
from harness.files import free_bytes, hold_lock, need_room, user_folder
from harness.network import BROKEN, Offline, request_url

ELSEWHERE = "free some space there, or set GPUDYNO_CACHE to a folder on another disk"
_SPARE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class DataFolders:
    """The folders of data: the user's own, only ever read, and ours, which is fetched into."""

    own: Path | None
    cache: Path


@dataclass(frozen=True, slots=True)
class Resolved:
    """The folder in which a trial finds one data set; null where it is generated."""

    name: str
    source: Literal["real", "generated"]
    folder: Path | None
    why: str


def default_folder() -> Path:
    """Return the folder that data is fetched into: `data` in `GPUDYNO_CACHE` or the user's cache folder."""
    return user_folder("GPUDYNO_CACHE", lambda: platformdirs.user_cache_path("gpudyno")) / "data"


CONNECT_SECONDS = 3.0


SILENCE_SECONDS = 15.0


CHUNK_BYTES = 256 * 1024


FetchProgress = Callable[[str, int, int | None], None]
"""Called with a label, the bytes that have arrived, and the bytes in all; null where they are not known."""


def show_nothing(label: str, done_bytes: int, total_bytes: int | None) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock; without seconds it never comes."""

    seconds: float = math.inf
    began: float = field(default_factory=time.monotonic)

    def left(self) -> float:
        """Return the seconds left."""
        return self.began + self.seconds - time.monotonic()

    def hold(self, label: str) -> None:
        """Raise NoNetwork once the time is over."""
        if self.left() <= 0:
            waited = f"did not arrive within {self.seconds:.0f} s" if self.seconds else "was not waited for"
            raise NoNetwork(
                f"'{label}' {waited}",
                remedy="`invoke build --only NAME` waits longer; or set GPUDYNO_DATA to a folder that has it",
            )


def download_file(
    item: Download, folder: Path, *, deadline: Deadline, progress: FetchProgress = show_nothing
) -> Path:
    """Fetch `item` into `folder` and return its path, its hash having been checked.

    Raises NoNetwork when no mirror could give it in time (Offline: none answered), MachineError where a
    certificate or a proxy prevented it, DataError when a mirror gave something else, and OSError when
    the disk is full.
    """
    final, part = folder / item.name, folder / f"{item.name}.part"
    refusals: list[MachineError | DataError] = []
    try:
        for url in item.urls:
            try:
                _transfer(url, item, part, deadline, progress)
            except (DataError, MachineError) as refused:
                if isinstance(refused, NoNetwork):
                    deadline.hold(item.name)
                # A copy: the frames of the first would hold the connection open.
                refusals.append(type(refused)(refused.problem, remedy=refused.remedy))
                continue
            part.replace(final)
            return final
    finally:
        part.unlink(missing_ok=True)
    reasons = "; ".join(refused.problem for refused in refusals)
    worst = min(refusals, key=lambda refused: _GRAVITY.index(type(refused)))
    if isinstance(worst, DataError):
        raise DataError(f"'{item.name}' arrived corrupt and was not kept ({reasons})", remedy=_ELSEWHERE)
    remedy = f"{worst.remedy}, or {_ELSEWHERE}" if worst.remedy else f"try again later, or {_ELSEWHERE}"
    raise type(worst)(f"'{item.name}' could not be fetched ({reasons})", remedy=remedy)


_ELSEWHERE = "set GPUDYNO_DATA to a folder that has the data"


_GRAVITY = (DataError, MachineError, NoNetwork, Offline)
"""What is said where mirrors refuse for different reasons."""


def _transfer(url: str, item: Download, part: Path, deadline: Deadline, progress: FetchProgress) -> None:
    deadline.hold(item.name)
    host, left = urlsplit(url).hostname or url, max(0.1, deadline.left())
    seconds = {"connect_seconds": min(CONNECT_SECONDS, left), "read_seconds": min(SILENCE_SECONDS, left)}
    with closing(request_url(url, **seconds)) as reply:
        if reply.status_code != requests.codes.ok:
            raise NoNetwork(f"{host} answered {reply.status_code} {reply.reason}")
        try:
            whole = _write(reply, item, part, deadline, progress)
        except BROKEN:
            raise NoNetwork(f"{host} cut the transfer off") from None
    if why := member_fault(item, part) if whole else "gave more bytes than belong":
        raise DataError(f"{host}: {why}")


def _write(
    reply: requests.Response, item: Download, part: Path, deadline: Deadline, progress: FetchProgress
) -> bool:
    """Write what arrives; return false where it is more than belongs."""
    length = reply.headers.get("Content-Length", "")
    total = item.size if item.size is not None else int(length) if length.isdigit() else None
    done = 0
    with part.open("wb") as file:
        # Bytes as they come, not whole chunks, so that the deadline is looked at however slow they are.
        while piece := reply.raw.read1(CHUNK_BYTES):
            deadline.hold(item.name)
            done += len(piece)
            if item.size is not None and done > item.size:
                return False
            file.write(piece)
            progress(item.name, done, total)
    return True


def fetch_dataset(
    dataset: Dataset,
    folder: Path,
    *,
    progress: FetchProgress = show_nothing,
    deadline: Deadline = Deadline(),
) -> None:
    """Make the data set complete in `folder`; do nothing where it is already.

    Raises NoNetwork when no mirror could give it (or not within the deadline), DataError when a mirror gave
    something else, NoSpace when the disk is full, and Busy while another gpudyno fetches into that folder.
    """
    if check_dataset(dataset, folder).state == "complete":
        return
    _need_data_room([dataset], folder)
    with hold_folder(folder) as new:
        for item in dataset.downloads:
            _unpack(item, download_file(item, new, deadline=deadline, progress=progress), new)
        _put_into_place(dataset, new, folder, "as unpacked")


def find_members(dataset: Dataset, given: Path) -> dict[str, Path]:
    """Return where the user's folder or file has a data set's members, as in a data folder or flat."""
    places = {
        member.path: (given / member.path, given / Path(member.path).name, given)
        for member in dataset.members
    }
    found = {path: next(filter(Path.is_file, each), None) for path, each in places.items()}
    return {path: place for path, place in found.items() if place is not None}


def bring_dataset(dataset: Dataset, given: Path, folder: Path) -> None:
    """Take a data set out of a folder, or a file, of the user's, each member checked by its hash.

    Raises UserError for a member that is not there, DataError for one that is not what its hash says.
    """
    members = find_members(dataset, given)
    if absent := [member.path for member in dataset.members if member.path not in members]:
        problem = f"'{given}' has no '{Path(absent[0]).name}' of {dataset.name}"
        raise UserError(problem, remedy="name the folder that has all its files; docs/data.md lists them")
    with hold_folder(folder) as new:
        for path, place in members.items():
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(place, new / path)
        _put_into_place(dataset, new, folder, "as brought")


def _needed_bytes(datasets: Sequence[Dataset]) -> int:
    """Return the bytes that these take, their downloads beside them."""
    members = (member for dataset in datasets for member in dataset.members)
    fetched = sum(dataset.download_bytes for dataset in datasets)
    return fetched + sum(member.size or 0 for member in members) + _SPARE_BYTES


@contextmanager
def hold_folder(folder: Path) -> Iterator[Path]:
    """Hold the folder for this process, with a place in it for what is not whole yet.

    What a killed one left half unpacked is cleared away.
    """
    busy = Busy("another gpudyno is fetching data", remedy="wait until it is done")
    with hold_lock(folder / ".lock", busy):
        for left in folder.glob(".new-*"):
            shutil.rmtree(left, ignore_errors=True)
        new = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
        try:
            yield new
        finally:
            shutil.rmtree(new, ignore_errors=True)


def resolve_datasets(
    names: Sequence[str],
    *,
    folders: DataFolders,
    allow_generated: bool = False,
    deadline_seconds: float = 90.0,
    progress: FetchProgress = show_nothing,
    fetching: bool = True,
) -> dict[str, Resolved]:
    """Return where each data set is, fetching what is missing, the smallest first.

    The user's folder is asked first and then ours. With `allow_generated` a data set that cannot be had, at
    once without a network or after `deadline_seconds` of downloading in all, is answered as generated; else
    there is no limit and fetch's errors are raised. Raises DataError where a file in the user's folder is
    not what its hash says, and where a set that only its user can bring is not made ready. Without `fetching`
    each set that is missing is answered with the place that it will have.
    """
    datasets = {name: find_dataset(name) for name in names if name != CHEST_XRAY}
    resolved = {name: _resolve_present(dataset, folders) for name, dataset in datasets.items()}
    resolved |= {name: _resolve_xrays(folders) for name in names if name == CHEST_XRAY}
    missing = [datasets[name] for name, place in resolved.items() if place is None]
    if fetching:
        _need_data_room(missing, folders.cache)
    deadline = Deadline(deadline_seconds if allow_generated else math.inf)
    offline: Offline | None = None
    for dataset in sorted(missing, key=lambda dataset: dataset.download_bytes):
        try:
            if offline:
                untried = f"'{dataset.name}' was not tried, since {offline.problem}"
                raise Offline(untried, remedy=offline.remedy)
            if fetching:
                fetch_dataset(dataset, folders.cache, progress=progress, deadline=deadline)
            resolved[dataset.name] = _real_data(dataset, folders.cache, "fetched, its hashes checked")
        except NoNetwork as problem:
            if not allow_generated:
                raise
            offline = offline or (problem if isinstance(problem, Offline) else None)
            resolved[dataset.name] = Resolved(dataset.name, "generated", None, problem.problem)
    return {name: place for name, place in resolved.items() if place is not None}


def need_room_to_fetch(names: Iterable[str], folders: DataFolders) -> None:
    """Raise NoSpace where the disk does not hold those of the data sets whose files are not there."""
    places = [folder for folder in (folders.own, folders.cache) if folder is not None]
    datasets = [find_dataset(name) for name in names if name != CHEST_XRAY]
    absent = [
        dataset
        for dataset in datasets
        if not any(all((place / each.path).is_file() for each in dataset.members) for place in places)
    ]
    _need_data_room(absent, folders.cache)


def _need_data_room(datasets: Sequence[Dataset], folder: Path) -> None:
    if datasets:
        what = " and ".join(f"'{dataset.name}'" for dataset in datasets)
        need_room(what, _needed_bytes(datasets), free_bytes(folder), folder, ELSEWHERE)


def _resolve_xrays(folders: DataFolders) -> Resolved:
    """Return where the set is that only its user can bring; nothing is generated in its place."""
    name = CHEST_XRAY
    for folder in filter(None, (folders.own, folders.cache)):
        presence = find_presence(name, folder)
        if presence.state == "complete":
            return Resolved(name, "real", folder / name, "made ready before, all its files there")
        if presence.state == "corrupt":
            raise DataError(f"'{presence.file}' in '{folder}': {presence.why}", remedy=BRING_XRAYS)
    raise DataError(f"'{name}' is not made ready, and nothing can fetch it", remedy=BRING_XRAYS)


def _resolve_present(dataset: Dataset, folders: DataFolders) -> Resolved | None:
    if folders.own is not None:
        presence = check_dataset(dataset, folders.own)
        if presence.state == "corrupt":
            raise DataError(
                f"'{presence.file}' in your data folder is not what its hash says: {presence.why}",
                remedy="correct or remove it, or unset GPUDYNO_DATA",
            )
        if presence.state == "complete":
            return _real_data(dataset, folders.own, "your folder, its hashes checked")
    if check_dataset(dataset, folders.cache).state == "complete":
        return _real_data(dataset, folders.cache, "fetched before, its hashes checked")
    return None


def _real_data(dataset: Dataset, folder: Path, why: str) -> Resolved:
    return Resolved(dataset.name, "real", folder / dataset.subfolder, why)


def _put_into_place(dataset: Dataset, new: Path, folder: Path, how: str) -> None:
    if wrong := first_fault(dataset.members, new):
        raise DataError(f"'{wrong[0]}' {how} is not what its hash says: {wrong[1]}")
    for member in dataset.members:
        final = folder / member.path
        final.parent.mkdir(parents=True, exist_ok=True)
        (new / member.path).replace(final)


def _unpack(item: Download, archive: Path, folder: Path) -> None:
    """Write the files that the table names, and no other, under the names that the table gives them."""
    try:
        for name, stream in _streams(item, archive):
            target = folder / item.holds[name]
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                shutil.copyfileobj(stream, file, 1 << 20)
                file.flush()
                os.fsync(file.fileno())
    except (tarfile.TarError, zlib.error, EOFError, KeyError, gzip.BadGzipFile) as error:
        raise DataError(f"'{item.name}' cannot be unpacked ({error})") from None


def _streams(item: Download, archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    only = next(iter(item.holds))
    if item.kind != "tar":
        with archive.open("rb") if item.kind == "plain" else gzip.open(archive) as file:
            yield only, file  # type: ignore[misc]
        return
    with tarfile.open(archive, "r:gz") as box:
        # In the order of the archive: looking each one up would inflate it once per member.
        for entry in box:
            stream = box.extractfile(entry) if entry.name in item.holds and entry.isreg() else None
            if stream is not None:
                with stream:
                    yield entry.name, stream
