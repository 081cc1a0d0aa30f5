"""One file from the first mirror that gives it whole, checked by size and hash before it has its name."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import requests

from harness.data.datasets import Download, member_fault
from harness.errors import DataError, MachineError, NoNetwork
from harness.network import BROKEN, Offline, request_url

CONNECT_SECONDS = 3.0
SILENCE_SECONDS = 15.0
CHUNK_BYTES = 256 * 1024


FetchProgress = Callable[[str, int, int | None], None]
"""Called with a label, the bytes that have arrived, and the bytes in all; null where they are not known."""


def show_nothing(label: str, done_bytes: int, total_bytes: int | None) -> None:
    """A progress that shows nothing."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock; null seconds never end."""

    seconds: float | None
    began: float = field(default_factory=time.monotonic)

    def left(self) -> float:
        """Seconds left; infinite without a limit."""
        if self.seconds is None:
            return float("inf")
        return self.began + self.seconds - time.monotonic()

    def hold(self, label: str) -> None:
        """Raises NoNetwork once the time is over."""
        if self.left() <= 0:
            waited = f"did not arrive within {self.seconds:.0f} s" if self.seconds else "was not waited for"
            raise NoNetwork(
                f"'{label}' {waited}",
                remedy="`invoke build --only NAME` waits longer; or set GPUDYNO_DATA to a folder that has it",
            )


def download_file(
    item: Download, folder: Path, *, deadline: Deadline, progress: FetchProgress = show_nothing
) -> Path:
    """Fetches `item` into `folder` and returns its path, its hash having been checked.

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
    """Writes what arrives; returns false where it is more than belongs."""
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
