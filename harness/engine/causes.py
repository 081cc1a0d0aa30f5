"""Why an environment could not be made: read from what pip or an image's builder printed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import MachineError, NoNetwork, NoSpace
from harness.files import last_line


@dataclass(frozen=True, slots=True)
class Cause:
    """One clause, and the error that it is."""

    words: str
    kind: type[MachineError] = MachineError


_SIGNS: tuple[tuple[str, str, type[MachineError]], ...] = (
    (r"no space left on device|disk quota exceeded", "the disk is full", NoSpace),
    (r"toomanyrequests|too many requests|rate limit", "{host} has reached its rate limit", NoNetwork),
    (
        r"name or service not known|name resolution|no such host|failed to resolve '|nodename nor servname",
        "the name of {host} was not found",
        NoNetwork,
    ),
    (
        r"connection refused|no route to host|network is unreachable|i/o timeout|timed out|timeout exceeded|"
        r"handshake timeout|deadline exceeded|connection reset|unexpected eof|proxyconnect|certificate",
        "{host} cannot be reached",
        NoNetwork,
    ),
    (
        r"manifest unknown|manifest for .* not found|failed to resolve source metadata.*not found|"
        r"(?:pull access denied|llb definition|@sha256:).*not found",
        "the registry does not have it any more",
        MachineError,
    ),
    (r"do not match the hashes", "a package has another hash than the lock", MachineError),
    (
        r"no matching distribution found for (?P<name>[^\s(;]+)|cannot install (?P<other>[^\s,]+)",
        "{host} has no {name} for this Python",
        MachineError,
    ),
)

_HOST = re.compile(r"host='([^']+)'|lookup ([\w.-]+)|https?://(?:[^@/\s]*@)?([\w.-]+)")
_INDEX = re.compile(r"--index-url (?:'|\")?https?://(?:[^@/\s]*@)?([\w.-]+)")


def install_cause(log: str, commands: int) -> Cause:
    """Why packages could not be installed, by the last commands of a log; each stands behind `$ `."""
    parts = re.split(r"^\$ ", log, flags=re.MULTILINE)[-commands:]
    found: dict[str, type[MachineError]] = {}
    for part in parts:
        command, _, output = part.partition("\n")
        index = _INDEX.search(command)
        cause = _cause(output.splitlines(), index[1] if index else "the package index")
        if cause is not None:
            found[cause.words] = cause.kind
    if not found:
        return Cause(last_line(parts[-1].partition("\n")[2]))
    return Cause("; ".join(found), next(iter(found.values())))


def image_cause(lines: Sequence[str], telling: str) -> Cause:
    """Why a builder made no image; `telling` is its own last word, taken where no sign is known."""
    return _cause(lines[-200:], "the registry") or Cause(telling[:200])


def _cause(lines: Sequence[str], source: str) -> Cause | None:
    for sign, words, kind in _SIGNS:
        pattern = re.compile(sign, re.I)
        # The last line with it, since earlier ones may have been tried again.
        for line in reversed(lines):
            if match := pattern.search(line):
                named = _HOST.search(line) if "{host} has no" not in words else None
                host = next(filter(None, named.groups()), source) if named else source
                name = next(filter(None, match.groupdict().values()), "")
                return Cause(words.format(host=host, name=name), kind)
    return None
