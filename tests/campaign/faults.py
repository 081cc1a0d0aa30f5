"""What happens to a run: it or its trial is killed, the disk fills up or is read-only, a second run begins.

Each fault hits a clone of stand-in trials; then the run goes on without one, and the records are counted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random

import psutil

from harness.record import store
from tests.campaign.attack import DOCUMENTED, MOST_SECONDS, Attack, Broken
from tests.helpers import ROOT, clone

DRIVER = """
import errno, os, pathlib, sys, tempfile
sys.path.insert(0, {tests!r})
from commands.line import verb
from harness.record import store
from harness.run import runner, session
from tests.helpers import clone

root, left, code = pathlib.Path({root!r}), {writes}, {code}

def refused(called):
    def guarded(*given, **named):
        global left
        left -= 1
        if left < 0:
            raise OSError(code, os.strerror(code), str(given[0]) if given else None)
        return called(*given, **named)
    return guarded

@verb()
def go(c):
    with session.run_lock(root / "state"):
        runner.run(clone.job(root), clone.open_session(root), clone.Quiet())

from invoke.context import Context
from invoke.exceptions import Exit
if code:
    for holder, name in ((os, "fsync"), (os, "link"), (tempfile, "mkstemp"), (os, "mkdir"), (os, "replace")):
        setattr(holder, name, refused(getattr(holder, name)))
try:
    go(Context())
except Exit as end:
    print(end.message, file=sys.stderr)
    sys.exit(end.code)
"""
MOMENT_SECONDS = 6.0
"""A run of the clone lasts about as long."""


def _begun(root: Path, *, writes: int = 0, code: int = 0) -> subprocess.Popen[str]:
    script = DRIVER.format(tests=str(ROOT), root=str(root), writes=writes, code=code)
    return subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        _, said = process.communicate(timeout=MOST_SECONDS - 10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Broken("hangs", "a run of stand-ins had not ended after a minute") from None
    return process.returncode, said


def _judge(code: int, said: str, *codes: int) -> None:
    if code not in codes or "Traceback" in said or (code > 0 and not said.startswith("gpudyno: ")):
        raise Broken("tracebacks", f"the run left code {code} and said {said[-500:]!r}")


def _whole(root: Path) -> None:
    """The run goes on without a fault: each trial is measured once, and nothing half lies there."""
    _judge(*_ended(_begun(root)), 0)
    results = store.read_all(root)
    measured = Counter(
        (one.record.session, one.record.trial.id) for one in results.records if one.record.measurement
    )
    planned = {(session.id, trial.id) for session in results.sessions for trial in session.trials}
    for problem in results.problems:
        raise Broken("lost records", problem)
    if measured.keys() != planned or set(measured.values()) != {1}:
        raise Broken("lost records", f"{len(planned)} trials were planned, and measured {measured}")
    halves = [path.name for path in root.rglob("*.part") if ".state" not in path.parts]
    if halves:
        raise Broken("lost records", f"half of a file is left: {halves}")


def _clone(root: Path) -> Path:
    return clone.make(root / "clone", options="step_seconds = 0.02", repeats=1)


def _killed(rng: Random, folder: Path) -> None:
    root = _clone(folder)
    for _ in range(rng.choice((1, 1, 2))):
        process = _begun(root)
        time.sleep(rng.uniform(0.2, MOMENT_SECONDS))
        with suppress(ProcessLookupError):
            os.kill(process.pid, rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
        _judge(*_ended(process), 0, -signal.SIGKILL, -signal.SIGTERM)
    _whole(root)


def _killed_inside(rng: Random, folder: Path) -> None:
    """A trial or its recorder is killed."""
    root = _clone(folder)
    process = _begun(root)
    time.sleep(rng.uniform(0.2, MOMENT_SECONDS))
    with suppress(psutil.Error):
        inside = psutil.Process(process.pid).children(recursive=True)
        for child in rng.sample(inside, min(1, len(inside))):
            child.kill()
    _judge(*_ended(process), 0)
    _whole(root)


def _refused(rng: Random, folder: Path) -> None:
    """From some write on the disk is full or read-only, until the run ends."""
    import errno

    root = _clone(folder)
    code = rng.choice((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES))
    _judge(*_ended(_begun(root, writes=rng.randrange(80), code=code)), 0, *DOCUMENTED)
    _whole(root)


def _full(rng: Random, folder: Path) -> None:
    """A disk of its own is filled up at some moment; where none may be mounted, writes are refused."""
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        return _refused(rng, folder)
    try:
        root = _clone(disk)
        process = _begun(root)
        time.sleep(rng.uniform(0.2, MOMENT_SECONDS))
        filler = disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        _judge(*_ended(process), 0, *DOCUMENTED)
        filler.unlink()
        _whole(root)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], capture_output=True, check=False)


def _two(rng: Random, folder: Path) -> None:
    """Of two runs at once one measures, and the other says so."""
    root = _clone(folder)
    first = _begun(root)
    time.sleep(rng.uniform(0.0, MOMENT_SECONDS))
    second = _begun(root)
    _judge(*_ended(second), 0, *DOCUMENTED)
    _judge(*_ended(first), 0, *DOCUMENTED)
    _whole(root)


FAULTS: Mapping[str, Attack] = {
    "killed-run": _killed,
    "killed-trial": _killed_inside,
    "refused-write": _refused,
    "full-disk": _full,
    "two-runs": _two,
}
