"""One run per machine: two would disturb each other's measurements."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import Busy


@contextmanager
def only_run(state: Path) -> Iterator[None]:
    """One run per machine: raises Busy while another process holds the lock."""
    state.mkdir(parents=True, exist_ok=True)
    with (state / "run.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise Busy(
                f"another run (process {holder}) measures on this machine, and two would disturb each other",
                remedy="wait for it to end, or stop it",
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
