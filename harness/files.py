"""A machine's files under a root, so that a made-up tree can stand in for /proc and /sys; locks; commands."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from harness.errors import MachineError

T = TypeVar("T")

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
"""What a file system without locks answers: NFS without its daemon, Lustre without `flock`, some of FUSE."""


@dataclass(frozen=True)
class Files:
    """Reads below `root`; what is missing, unreadable or of another form is None."""

    root: Path = Path("/")

    def _of(self, path: str, tell: Callable[[Path], T]) -> T | None:
        """What there is to tell of a path; None where the system does not say."""
        try:
            return tell(self.root / path.lstrip("/"))
        except OSError:
            return None

    def text(self, path: str) -> str | None:
        """A file's text without the blanks around it."""
        content = self._of(path, Path.read_bytes)
        return None if content is None else content.decode(errors="replace").strip("\0 \n\t")

    def number(self, path: str) -> int | None:
        """A file that holds one decimal integer."""
        text = self.text(path)
        try:
            return int(text) if text else None
        except ValueError:
            return None

    def names(self, path: str) -> tuple[str, ...]:
        """The sorted names in a folder; none where there is no such folder."""
        return self._of(path, lambda place: tuple(sorted(entry.name for entry in place.iterdir()))) or ()

    def exists(self, path: str) -> bool:
        """Whether something is there."""
        return self._of(path, Path.exists) or False

    def real(self, path: str) -> str | None:
        """Where a link leads, below the root; None where nothing is."""
        return self._of(path, lambda place: str(place.resolve(strict=True)))

    def mode(self, path: str) -> int:
        """A file's permissions; 0 where there is none."""
        return self._of(path, lambda place: place.stat().st_mode & 0o777) or 0

    def may_open(self, path: str) -> bool:
        """Whether this user may read and write a file."""
        return os.access(self.root / path.lstrip("/"), os.R_OK | os.W_OK)

    def fields(self, path: str, separator: str) -> dict[str, str]:
        """The last value of every `key<separator>value` line of a file."""
        pairs = (line.partition(separator) for line in (self.text(path) or "").splitlines())
        return {key.strip(): value.strip() for key, mark, value in pairs if mark}


def printed(*command: str) -> str | None:
    """What a command of this machine's printed; None where it is not here, fails, or does not end."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def unit_of(uuid: str | None) -> str | None:
    """The first 16 hex digits of SHA-256 over "gpudyno:" and the UUID as the driver writes it."""
    return hashlib.sha256(f"gpudyno:{uuid}".encode()).hexdigest()[:16] if uuid else None


def hold(file: IO[str], remedy: str, *, wait: bool = False) -> bool:
    """Locks an open file until it is closed; False where another process has it, unless to `wait` for that.

    Raises MachineError with `remedy` where its file system has no locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        error.filename = file.name
        if error.errno not in _NO_LOCKS:
            raise
        raise MachineError(
            f"the file system of '{file.name}' has no locks ({error.strerror})", remedy=remedy
        ) from None
    return True
