"""A container's output, appended to the trial's own log as it grows."""

from __future__ import annotations

from pathlib import Path


def append_new(output: bytes, path: Path) -> None:
    """Appends what `path` does not hold yet of the whole output so far.

    The file's size says how much is known, so that a new process goes on where another stopped.
    """
    known = path.stat().st_size if path.is_file() else 0
    with path.open("ab") as file:
        file.write(output[known:])
