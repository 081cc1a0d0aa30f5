"""When a statement existed: a time stamp of RFC 3161, checked by `openssl ts`."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.errors import MachineError, UserError
from harness.files import last_line


def stamped_at(statement: bytes, stamp: bytes, authority: Path) -> str:
    """Return the moment that a time stamp gives, in OpenSSL's words; `authority` holds its service's root.

    Raises UserError where it is over other bytes or by another service, MachineError without OpenSSL.
    """
    with TemporaryDirectory() as folder:
        data, reply = Path(folder) / "statement", Path(folder) / "stamp"
        data.write_bytes(statement)
        reply.write_bytes(stamp)
        checked = _openssl("-verify", "-data", str(data), "-in", str(reply), "-CAfile", str(authority))
        said = _openssl("-reply", "-in", str(reply), "-text")
    moment = re.search(r"^Time stamp: ([\w :.]+)$", said.stdout, re.M)
    if checked.returncode or moment is None:
        raise UserError(
            f"the time stamp is no good one by '{authority.name}' ({last_line(checked.stderr)})",
            remedy="ask the service for its certificate, or for another stamp of this statement",
        )
    return moment[1]


def is_stamp_of(statement: bytes, stamp: bytes) -> bool:
    """Return whether a time stamp holds a digest of the statement; its signature is not looked at."""
    return any(hashlib.new(name, statement).digest() in stamp for name in ("sha256", "sha384", "sha512"))


def _openssl(*words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(["openssl", "ts", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise MachineError("there is no openssl", remedy="install OpenSSL") from None
