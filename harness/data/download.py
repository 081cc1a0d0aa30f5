"""One file from the first mirror that gives it whole, checked by size and hash before it has its name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import requests
import urllib3

from harness.data.catalog import Download
from harness.data.check import fault
from harness.errors import DataError, MachineError, NoNetwork
from harness.files import authority

CONNECT_SECONDS = 3.0
SILENCE_SECONDS = 15.0
CHUNK_BYTES = 256 * 1024
MOST_REDIRECTS = 5

USER_AGENT = "gpudyno/0.1 (benchmark harness; requests)"
"""One mirror answers 403 to the default of Python's urllib."""

BROKEN = (requests.RequestException, urllib3.exceptions.HTTPError, ValueError)
"""What a transfer that ends early may raise."""


FetchProgress = Callable[[str, int, int | None], None]
"""Told a label, the bytes that have arrived, and those in all; null where no one knows them."""


def silent(label: str, done_bytes: int, total_bytes: int | None) -> None:
    """A progress that shows nothing."""


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
        """Raises NoNetwork once the time is over."""
        if self.left() <= 0:
            waited = f"did not arrive within {self.seconds:.0f} s" if self.seconds else "was not waited for"
            raise NoNetwork(
                f"'{label}' {waited}",
                remedy="`invoke build --only NAME` waits longer; or set GPUDYNO_DATA to a folder that has it",
            )


class _Refused(Exception):
    """A mirror did not give the file."""

    def __init__(self, why: str, *, wrong: bool = False, answered: bool = True) -> None:
        super().__init__(why)
        self.wrong, self.answered = wrong, answered


def download(item: Download, folder: Path, *, deadline: Deadline, progress: FetchProgress = silent) -> Path:
    """Fetches `item` into `folder` and returns its path, its hash having been checked.

    Raises NoNetwork when no mirror could give it in time (Offline: none answered), DataError when one gave
    something else, and OSError when the disk is full.
    """
    final, part = folder / item.name, folder / f"{item.name}.part"
    # Of each mirror, without the exception: its frames would hold the connection open.
    refusals: dict[str, tuple[str, bool, bool]] = {}
    try:
        for url in item.urls:
            try:
                _transfer(url, item, part, deadline, progress)
            except _Refused as refused:
                refusals[urlsplit(url).hostname or url] = (str(refused), refused.wrong, refused.answered)
                continue
            part.replace(final)
            return final
    finally:
        part.unlink(missing_ok=True)
    reasons = "; ".join(f"{mirror}: {why}" for mirror, (why, _, _) in refusals.items())
    remedy = "try again later, or set GPUDYNO_DATA to a folder that has the data"
    if any(wrong for _, wrong, _ in refusals.values()):
        raise DataError(f"'{item.name}' arrived corrupt and was not kept ({reasons})", remedy=remedy)
    kind = NoNetwork if any(answered for _, _, answered in refusals.values()) else Offline
    raise kind(f"'{item.name}' could not be fetched ({reasons})", remedy=remedy)


def _transfer(url: str, item: Download, part: Path, deadline: Deadline, progress: FetchProgress) -> None:
    deadline.hold(item.name)
    try:
        reply = _reply(url, deadline)
    except (requests.Timeout, requests.ConnectionError) as error:
        _see_settings(url, error)
        raise _Refused("cannot be reached", answered=False) from None
    except BROKEN as error:
        _see_settings(url, error)
        raise _Refused(f"failed ({type(error).__name__})") from None
    with closing(reply):
        if reply.status_code == requests.codes.proxy_authentication:
            raise _in_the_way(url, "the proxy on the way asks for a name and a password", _PROXY)
        if reply.status_code != requests.codes.ok:
            raise _Refused(f"answered {reply.status_code} {reply.reason}")
        try:
            _write(reply, item, part, deadline, progress)
        except BROKEN:
            deadline.hold(item.name)
            raise _Refused("cut the transfer off") from None
    if why := fault(item, part):
        raise _Refused(why, wrong=True)


_SIGNER = "name the file with that authority in SSL_CERT_FILE"
_PROXY = "correct HTTPS_PROXY, or name the host in NO_PROXY"


def _in_the_way(url: str, why: str, remedy: str) -> MachineError:
    """Something of this machine's settings, and no dead line: nothing stands in for data because of it."""
    return MachineError(f"{urlsplit(url).hostname}: {why}", remedy=remedy)


def _see_settings(url: str, error: Exception) -> None:
    """Raises MachineError where it is not the line that failed, but what leads to it."""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        raise _in_the_way(url, "its certificate is signed by an authority unknown here", _SIGNER) from None
    if isinstance(error, requests.exceptions.ProxyError):
        raise _in_the_way(url, "the proxy on the way gives no connection", _PROXY) from None
    if "SOCKS" in str(error):
        raise _in_the_way(url, "a SOCKS proxy is not supported", _PROXY) from None


def _reply(url: str, deadline: Deadline) -> requests.Response:
    left = max(0.1, deadline.left())
    with requests.Session() as session:
        session.max_redirects = MOST_REDIRECTS
        return session.get(
            url,
            stream=True,
            timeout=(min(CONNECT_SECONDS, left), min(SILENCE_SECONDS, left)),
            verify=_authority(),
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
        )


def _authority() -> str | bool:
    """The file of authorities that a user's variables name; raises MachineError where it is none."""
    given = authority(os.environ)
    if given and not Path(given).exists():
        raise MachineError(f"there is no file of authorities '{given}'", remedy="correct SSL_CERT_FILE")
    return given or True


def _write(
    reply: requests.Response, item: Download, part: Path, deadline: Deadline, progress: FetchProgress
) -> None:
    length = reply.headers.get("Content-Length", "")
    total = item.size if item.size is not None else int(length) if length.isdigit() else None
    done = 0
    with part.open("wb") as file:
        # Bytes as they come, not whole chunks, so that the deadline is looked at however slow they are.
        while piece := reply.raw.read1(CHUNK_BYTES):
            deadline.hold(item.name)
            done += len(piece)
            if item.size is not None and done > item.size:
                raise _Refused("gave more bytes than belong", wrong=True)
            file.write(piece)
            progress(item.name, done, total)
