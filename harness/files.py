"""A machine's files under a root, so that a made-up tree can stand in for /proc and /sys."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Files:
    """Reads below `root`; what is missing, unreadable or of another form is None."""

    root: Path = Path("/")

    def text(self, path: str) -> str | None:
        """A file's text without the blanks around it."""
        try:
            return (self.root / path.lstrip("/")).read_bytes().decode(errors="replace").strip("\0 \n\t")
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        """A file that holds one decimal integer."""
        text = self.text(path)
        try:
            return int(text) if text else None
        except ValueError:
            return None

    def names(self, path: str) -> tuple[str, ...]:
        """The sorted names in a folder; none where there is no such folder."""
        try:
            return tuple(sorted(entry.name for entry in (self.root / path.lstrip("/")).iterdir()))
        except OSError:
            return ()

    def exists(self, path: str) -> bool:
        """Whether something is there."""
        try:
            return (self.root / path.lstrip("/")).exists()
        except OSError:
            return False

    def real(self, path: str) -> str | None:
        """Where a link leads, below the root; None where nothing is."""
        try:
            return str((self.root / path.lstrip("/")).resolve(strict=True))
        except OSError:
            return None

    def mode(self, path: str) -> int:
        """A file's permissions; 0 where there is none."""
        try:
            return (self.root / path.lstrip("/")).stat().st_mode & 0o777
        except OSError:
            return 0

    def may_open(self, path: str) -> bool:
        """Whether this user may read and write a file."""
        return os.access(self.root / path.lstrip("/"), os.R_OK | os.W_OK)

    def fields(self, path: str, separator: str) -> dict[str, str]:
        """The last value of every `key<separator>value` line of a file."""
        pairs = (line.partition(separator) for line in (self.text(path) or "").splitlines())
        return {key.strip(): value.strip() for key, mark, value in pairs if mark}


def unit_of(uuid: str | None) -> str | None:
    """The first 16 hex digits of SHA-256 over "gpudyno:" and the UUID as the driver writes it."""
    return hashlib.sha256(f"gpudyno:{uuid}".encode()).hexdigest()[:16] if uuid else None
