"""A container's output, appended to the trial's own log as it grows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def append_new(output: Iterable[bytes], path: Path) -> None:
    """Appends what `path` does not hold yet; `output` is the whole output so far, in chunks.

    The file's size says how much is known, so that a new process goes on where another stopped.
    """
    known = path.stat().st_size if path.is_file() else 0
    with path.open("ab") as file:
        for chunk in output:
            if known >= len(chunk):
                known -= len(chunk)
                continue
            file.write(chunk[known:])
            known = 0
