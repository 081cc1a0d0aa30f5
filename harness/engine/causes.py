"""Why an environment could not be made: read from what pip or an image's builder printed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.errors import MachineError, NoNetwork, NoSpace

_FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
_UNREACHED = re.compile(
    r"name or service not known|name resolution|no such host|failed to resolve '|too ?many ?requests|"
    r"connection refused|no route to host|network is unreachable|timed? ?out|deadline exceeded|"
    r"connection reset|rate limit|unexpected eof|certificate",
    re.IGNORECASE,
)
_HOST = re.compile(r"host='([^']+)'|lookup ([\w.-]+)|https?://(?:[^@/\s]*@)?([\w.-]+)")


def cause(lines: Sequence[str], otherwise: str, source: str) -> tuple[str, type[MachineError]]:
    """Return one clause and the error that it is; `source` is what is not reached where no line names it."""
    if any(map(_FULL.search, lines)):
        return "the disk is full", NoSpace
    # The last line with a sign, since earlier ones may have been tried again.
    for line in filter(_UNREACHED.search, reversed(lines)):
        named = _HOST.search(line)
        return f"{next(filter(None, named.groups())) if named else source} cannot be reached", NoNetwork
    return otherwise[:200], MachineError
