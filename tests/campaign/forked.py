"""A run of stand-in trials as a process of its own, forked from one that has loaded everything already.

Harness, records and the trials' processes are the real ones. What makes no difference to a fault is
cheaper: polls follow sooner, and only who asks for `watched` has the recorder beside each trial.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from invoke.context import Context
from invoke.exceptions import Exit

from commands.line import Line
from harness.record import store
from harness.run import runner, session
from harness.telemetry import recorder
from tests.campaign.attack import MOST_SECONDS, Broken
from tests.helpers import clone

POLL_SECONDS = 0.02
MOMENT_SECONDS = 0.8
"""A run of the clone lasts about as long."""

Prepare = Callable[[], object]

WRITTEN: dict[Path, set[Path]] = {}
"""By clone, the records that its runs wrote, whatever became of the runs then."""


@dataclass(frozen=True, slots=True)
class Run:
    """A forked run: its process, and where what it says to standard error is kept."""

    pid: int
    said: Path
    root: Path
    written: int
    """The end of a pipe that names each record once it is written."""

    def kill(self, sign: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, sign)

    def inside(self) -> list[psutil.Process]:
        """Its trial and its recorder."""
        with suppress(psutil.Error):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def ended(self) -> tuple[int, str]:
        """Its exit code and what it said; raises Broken where it does not end."""
        until = time.monotonic() + MOST_SECONDS - 10
        while time.monotonic() < until:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                said = self.said.read_text(errors="replace")
                self.said.unlink()
                with suppress(BlockingIOError):
                    names = os.read(self.written, 2**16).decode().splitlines()
                    WRITTEN.setdefault(self.root, set()).update(map(Path, names))
                os.close(self.written)
                return os.waitstatus_to_exitcode(status), said
            time.sleep(0.005)
        self.kill(signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise Broken("hangs", "a run of stand-ins had not ended after a minute")


@Line(Path(), {}).verb()
def _go(root: str) -> None:
    with session.run_lock(Path(root) / "state"):
        runner.run(clone.job(Path(root)), clone.open_session(Path(root)), clone.Quiet())


def begin(root: Path, prepare: Prepare = lambda: None, *, watched: bool = False) -> Run:
    """Starts a run of the clone; `prepare` is called in its process, before anything else."""
    handle, name = tempfile.mkstemp(prefix="gpudyno-said-")
    os.close(handle)
    said = Path(name)
    written, witness = os.pipe()
    os.set_blocking(written, False)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _witnessed(witness)
            code = _child(root, said, prepare, watched)
        finally:
            os._exit(code)
    os.close(witness)
    return Run(pid, said, root, written)


def _witnessed(witness: int) -> None:
    """Names each record in the pipe once it is written, in this process."""
    write = store.write_record

    def told(*given: Any) -> Path:
        path = write(*given)
        os.write(witness, f"{path}\n".encode())
        return path

    store.write_record = told


def _child(root: Path, said: Path, prepare: Prepare, watched: bool) -> int:
    signal.alarm(0)
    for sign in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(sign, signal.SIG_DFL)
    os.setsid()
    with said.open("w") as stderr, Path(os.devnull).open("w") as stdout:
        os.dup2(stdout.fileno(), 1)
        os.dup2(stderr.fileno(), 2)
        sys.stdout, sys.stderr = stdout, stderr
        runner.POLL_SECONDS = POLL_SECONDS
        if not watched:
            recorder.start = lambda work, device, pid: None
        try:
            prepare()
            _go(Context(), root=str(root))
        except Exit as end:
            stderr.write(f"{end.message}\n")
            return end.code
        except BaseException:
            traceback.print_exc(file=stderr)
            return 1
    return 0
