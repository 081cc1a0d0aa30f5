"""One file from the first mirror that gives it whole, resumed where a server allows it, checked in full.

A transfer grows a `.part` file; the final name appears only after size and hash agree. A transfer that is
cut off leaves its `.part` to go on from; one that is wrong leaves nothing.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pooch
import requests
import urllib3
from requests.utils import get_environ_proxies, select_proxy

from harness.data.catalog import Download
from harness.data.check import sha256_of
from harness.errors import DataError, NoNetwork

CONNECT_SECONDS = 3.0
SILENCE_SECONDS = 15.0
TRIES_PER_MIRROR = 3
CHUNK_BYTES = 32 * 1024
"""Small, so that a slow server is noticed in time: the deadline is looked at once per chunk."""

LEAST_BYTES_PER_SECOND = 1024
"""A mirror that sends less than this for SLOW_SECONDS is left for the next one."""

SLOW_SECONDS = 30.0
MOST_REDIRECTS = 5

USER_AGENT = "gpudyno/0.1 (benchmark harness; pooch)"
"""One mirror answers 403 to the default of Python's urllib."""


class FetchProgress(Protocol):
    """Called as bytes arrive. `total_bytes` is null where no one knows it."""

    def __call__(self, label: str, done_bytes: int, total_bytes: int | None) -> None: ...


def silent(label: str, done_bytes: int, total_bytes: int | None) -> None:
    """A progress that shows nothing."""


class TooSlow(NoNetwork):
    """The time allowed for downloading is over."""


class Offline(NoNetwork):
    """No mirror so much as answered."""


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
        """Raises TooSlow once the time is over."""
        if self.left() <= 0:
            waited = f"did not arrive within {self.seconds:.0f} s" if self.seconds else "was not waited for"
            raise TooSlow(
                f"'{label}' {waited}",
                remedy="run `invoke build`, which waits for it, or set GPUDYNO_DATA to a folder that has it",
            )


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a mirror did not give the file. `again` means a second try may go on where this one ended."""

    mirror: str
    why: str
    wrong: bool = False
    again: bool = False
    answered: bool = True

    def __str__(self) -> str:
        return f"{self.mirror}: {self.why}"


def download(item: Download, folder: Path, *, deadline: Deadline, progress: FetchProgress = silent) -> Path:
    """Fetches `item` into `folder` and returns its path, its hash having been checked.

    Raises NoNetwork when no mirror could give it (Offline: none answered; TooSlow: the deadline is over),
    DataError when one gave something else, and OSError when the disk is full.
    """
    final = folder / item.name
    if final.is_file() and _wrong(item, final) is None:
        return final
    part = _Part(folder / f"{item.name}.part", item, deadline, progress)
    refusals: list[_Refusal] = []
    for url in item.urls:
        refusal = _from_mirror(url, item, part)
        if refusal is None:
            part.path.replace(final)
            return final
        refusals.append(refusal)
    if part.size() == 0:
        part.path.unlink(missing_ok=True)
    raise _verdict(item, refusals)


def _verdict(item: Download, refusals: list[_Refusal]) -> NoNetwork | DataError:
    reasons = "; ".join(str(refusal) for refusal in refusals)
    remedy = "try again later, or set GPUDYNO_DATA to a folder that has the data"
    if any(refusal.wrong for refusal in refusals):
        return DataError(f"'{item.name}' arrived corrupt and was not kept ({reasons})", remedy=remedy)
    kind = NoNetwork if any(refusal.answered for refusal in refusals) else Offline
    return kind(f"'{item.name}' could not be fetched ({reasons})", remedy=remedy)


def _from_mirror(url: str, item: Download, part: _Part) -> _Refusal | None:
    mirror = urlsplit(url).hostname or url
    refusal = _Refusal(mirror, "not tried")
    part.path.touch()
    for _ in range(TRIES_PER_MIRROR):
        part.deadline.hold(item.name)
        start = part.size()
        if item.size is None or start < item.size:
            failed = _transfer(url, mirror, part, start)
            if failed:
                refusal = failed
                if failed.again and part.size() != start:
                    continue
                return refusal
        why = _wrong(item, part.path)
        if why is None:
            return None
        refusal = _Refusal(mirror, why, wrong=True)
        part.restart()
        if start == 0:
            return refusal
    return refusal


def _wrong(item: Download, path: Path) -> str | None:
    size = path.stat().st_size
    if item.size is not None and size != item.size:
        with path.open("rb") as file:
            page = file.read(1) == b"<"
        what = ", an error page" if page else ""
        return f"gave {size:,} bytes{what} where {item.size:,} belong"
    sha256 = sha256_of(path)
    if not sha256.startswith(item.sha256):
        return f"gave a file whose SHA-256 begins {sha256[:12]} where {item.sha256[:12]} belongs"
    return None


def _transfer(url: str, mirror: str, part: _Part, start: int) -> _Refusal | None:
    if not _name_resolves(url):
        return _Refusal(mirror, "its name is not found", answered=False)
    replies: list[requests.Response] = []
    try:
        with part:
            _downloader(part, start, mirror, replies)(url=url, output_file=part, pooch=None)
    except _Overlong:
        part.restart()
        return _Refusal(mirror, "gave more bytes than belong", wrong=True)
    except requests.HTTPError as error:
        return _answered_with(error.response, mirror, part)
    except (requests.RequestException, urllib3.exceptions.HTTPError, ValueError, _Trickle) as error:
        return _broken_off(error, mirror, begun=bool(replies))
    finally:
        for reply in replies:
            reply.close()
    return None


def _answered_with(reply: requests.Response, mirror: str, part: _Part) -> _Refusal:
    if reply.status_code == requests.codes.requested_range_not_satisfiable:
        part.restart()
        return _Refusal(mirror, "cannot resume", again=True)
    return _Refusal(mirror, f"answered {reply.status_code} {reply.reason}")


def _broken_off(error: Exception, mirror: str, *, begun: bool) -> _Refusal:
    if isinstance(error, _Trickle):
        return _Refusal(mirror, f"sends less than {LEAST_BYTES_PER_SECOND} bytes a second")
    if isinstance(error, (requests.exceptions.ChunkedEncodingError, urllib3.exceptions.ProtocolError)):
        return _Refusal(mirror, "cut the transfer off", again=True)
    if isinstance(error, (requests.Timeout, requests.ConnectionError, urllib3.exceptions.TimeoutError)):
        if begun:
            return _Refusal(mirror, "fell silent", again=True)
        return _Refusal(mirror, "cannot be reached", answered=False)
    return _Refusal(mirror, f"failed ({type(error).__name__})")


def _as_it_comes(reply: requests.Response, chunk_size: int) -> Iterator[bytes]:
    """A reply's bytes without waiting for a whole chunk, so that the deadline is looked at whatever comes."""
    while piece := reply.raw.read1(chunk_size):
        yield piece


def _downloader(part: _Part, start: int, mirror: str, replies: list[requests.Response]) -> Any:
    headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"

    def on_reply(reply: requests.Response, **_: Any) -> None:
        replies.append(reply)
        part.deadline.hold(mirror)
        if len(replies) > MOST_REDIRECTS:
            raise requests.TooManyRedirects
        if reply.is_redirect or not reply.ok:
            return
        reply.iter_content = partial(_as_it_comes, reply)  # type: ignore[method-assign]
        goes_on = reply.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        if start and not (reply.status_code == requests.codes.partial_content and goes_on):
            part.restart()
        length = reply.headers.get("Content-Length", "")
        part.expects(int(length) if length.isdigit() else None)

    silence = max(0.1, min(SILENCE_SECONDS, part.deadline.left()))
    connect = max(0.1, min(CONNECT_SECONDS, part.deadline.left()))
    return pooch.HTTPDownloader(
        chunk_size=CHUNK_BYTES, timeout=(connect, silence), headers=headers, hooks={"response": on_reply}
    )


def _name_resolves(url: str) -> bool:
    """False where the host's name is not found within a few seconds; a proxy looks names up itself."""
    if select_proxy(url, get_environ_proxies(url)):
        return True
    parts = urlsplit(url)
    addresses: list[Any] = []
    thread = threading.Thread(
        target=_look_up, args=(parts.hostname, parts.port or 443, addresses), daemon=True
    )
    thread.start()
    thread.join(CONNECT_SECONDS)
    return bool(addresses)


def _look_up(host: str, port: int, addresses: list[Any]) -> None:
    with suppress(OSError, UnicodeError):
        addresses += socket.getaddrinfo(host, port)


class _Overlong(Exception):
    """More bytes arrive than the file has."""


class _Trickle(Exception):
    """Bytes arrive, and too few to wait for."""


class _Part:
    """A growing `.part` file that pooch writes to: it counts, reports progress and keeps the deadline."""

    def __init__(self, path: Path, item: Download, deadline: Deadline, progress: FetchProgress) -> None:
        self.path = path
        self.deadline = deadline
        self._item = item
        self._progress = progress
        self._total = item.size
        self._done = self._begin = 0
        self._looked_at = 0.0
        self._file: Any = None

    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def __enter__(self) -> _Part:
        self._file = self.path.open("ab", buffering=0)
        self._done = self._begin = self.size()
        self._looked_at = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._file = None

    def expects(self, remaining_bytes: int | None) -> None:
        if self._item.size is None and remaining_bytes is not None:
            self._total = self._done + remaining_bytes

    def restart(self) -> None:
        self._done = 0
        if self.path.exists():
            with self.path.open("r+b") as file:
                file.truncate(0)

    def write(self, chunk: bytes) -> int:
        self.deadline.hold(self._item.name)
        if self._item.size is not None and self._done + len(chunk) > self._item.size:
            raise _Overlong
        rest = memoryview(chunk)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._done += len(chunk)
        self._look()
        self._progress(self._item.name, self._done, self._total)
        return len(chunk)

    def _look(self) -> None:
        """Raises _Trickle where too little arrived since the last look."""
        now = time.monotonic()
        if now - self._looked_at < SLOW_SECONDS:
            return
        if self._done - self._begin < LEAST_BYTES_PER_SECOND * SLOW_SECONDS:
            raise _Trickle
        self._begin, self._looked_at = self._done, now

    def flush(self) -> None:
        """Nothing is buffered."""
