"""What happens to a run: something of it is killed, the disk or memory is refused, the clock is set.

Each fault hits a clone of stand-in trials; then the run goes on without one, and the records are counted.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import psutil

from harness.record import store
from harness.run import conclude, runner, session
from tests.campaign.attack import DOCUMENTED, Attack, Broken
from tests.campaign.forked import MOMENT_SECONDS, WRITTEN, begin
from tests.campaign.mutation import changed_bytes
from tests.helpers import clone

MEASURED_SECONDS = 30.0
"""No stand-in takes so long, whatever the clock on the wall says."""

LIMIT_SECONDS = 61.0
"""Its limit, and a little: where rubbish says when it began, nothing else is known."""


def _judge(code: int, said: str, *codes: int) -> None:
    if code not in codes or "Traceback" in said or (code > 0 and not said.startswith("gpudyno: ")):
        raise Broken("tracebacks", f"the run left code {code} and said {said[-500:]!r}")


def _whole(root: Path, most_seconds: float = MEASURED_SECONDS) -> None:
    """The run goes on without a fault: no record is another one, and each trial of it is measured."""
    before = {path: path.read_bytes() for path in root.glob("results/2*/*/*-r1-*.json")}
    _judge(*begin(root).ended(), 0)
    for path, content in before.items():
        if not path.exists() or path.read_bytes() != content:
            raise Broken("lost records", f"{path.name} was there before, and is gone or another one")
    if gone := [path.name for path in WRITTEN.get(root, ()) if not path.exists()]:
        raise Broken("lost records", f"{gone[0]} was written, and is gone")
    halves = [str(path.relative_to(root)) for path in root.rglob("*.part") if path.name[0] != "."]
    results = store.read_all(root)
    for problem in (*results.problems, *halves):
        raise Broken("lost records", problem)
    _counted(results, most_seconds)


def _counted(results: store.Results, most_seconds: float) -> None:
    """Of the session that goes on each trial once, and no time that cannot be."""
    records = [one.record for one in results.records]
    measured = Counter((record.session, record.trial.id) for record in records if record.measurement)
    newest = max(results.sessions, key=lambda session: session.number or 0)
    planned = {(newest.id, trial.id) for trial in newest.trials}
    if not planned <= measured.keys() or set(measured.values()) != {1}:
        raise Broken("lost records", f"{len(planned)} trials were planned, and measured {measured}")
    for record in records:
        if not 0 <= record.wall_seconds < most_seconds:
            raise Broken("silent wrong figures", f"a stand-in took {record.wall_seconds} s")


def _clone(root: Path) -> Path:
    return clone.make(root / "clone", options="step_seconds = 0.004", repeats=1)


def _moment(rng: Random, most: float = MOMENT_SECONDS) -> None:
    time.sleep(rng.uniform(0.0, most))


def _killed(rng: Random, folder: Path) -> None:
    """The harness is killed, ended or interrupted, once or twice; Ctrl-C leaves a sentence and code 130."""
    root = _clone(folder)
    for _ in range(rng.choice((1, 1, 2))):
        run = begin(root, lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        _moment(rng)
        sign = rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        run.kill(sign)
        _judge(*run.ended(), 0, 130 if sign == signal.SIGINT else -sign)
    _whole(root)


def _killed_inside(chosen: Callable[[psutil.Process], bool], *, watched: bool) -> Attack:
    def attack(rng: Random, folder: Path) -> None:
        root = _clone(folder)
        run = begin(root, watched=watched)
        _moment(rng, 3 * MOMENT_SECONDS if watched else MOMENT_SECONDS)
        for child in run.inside():
            with suppress(psutil.Error):
                if chosen(child):
                    child.kill()
        _judge(*run.ended(), 0)
        _whole(root)

    return attack


def _is_recorder(process: psutil.Process) -> bool:
    return any("sampler" in word for word in process.cmdline())


WRITES: tuple[tuple[Any, str], ...] = (
    *((os, "fsync"), (os, "link"), (tempfile, "mkstemp"), (os, "mkdir"), (os, "replace")),
    *((os, "open"), (shutil, "rmtree")),
)


def _refuse(writes: int, code: int) -> None:
    """From so many writes on each is refused, in this process, until it ends."""
    left = writes

    def refused(called: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*given: Any, **named: Any) -> Any:
            nonlocal left
            if called is os.open and not given[1] & (os.O_WRONLY | os.O_RDWR):
                return called(*given, **named)
            left -= 1
            if left < 0:
                raise OSError(code, os.strerror(code), str(given[0]) if given else None)
            return called(*given, **named)

        return guarded

    for holder, name in WRITES:
        setattr(holder, name, refused(getattr(holder, name)))


def _refused(rng: Random, folder: Path) -> None:
    """From some write on the disk is full or read-only, until the run ends."""
    root = _clone(folder)
    codes = (errno.EDQUOT, errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE, errno.EXDEV, errno.EINVAL)
    code = rng.choice((errno.ENOSPC, errno.EROFS, *codes))
    writes = rng.randrange(60)
    _judge(*begin(root, lambda: _refuse(writes, code)).ended(), 0, *DOCUMENTED)
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
        run = begin(root)
        _moment(rng)
        filler = disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            for _ in range(4096):
                file.write(bytes(4096))
        _judge(*run.ended(), 0, *DOCUMENTED)
        filler.unlink()
        _whole(root)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], capture_output=True, check=False)


def _two(rng: Random, folder: Path) -> None:
    """Of two runs at once one measures, and the other says so."""
    root = _clone(folder)
    first = begin(root)
    _moment(rng)
    second = begin(root)
    _judge(*second.ended(), 0, *DOCUMENTED)
    _judge(*first.ended(), 0, *DOCUMENTED)
    _whole(root)


def _set_clock(asked: int, by: timedelta) -> None:
    """After so many looks at it the clock on the wall is another one, in this process."""
    looks = asked

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            nonlocal looks
            looks -= 1
            return datetime.now(tz) + (by if looks < 0 else timedelta())

    for module in (runner, session, conclude):
        if hasattr(module, "datetime"):
            module.datetime = Clock  # type: ignore[attr-defined]
    real = time.time
    time.time = lambda: real() + (by.total_seconds() if looks < 0 else 0.0)


def _clock(rng: Random, folder: Path) -> None:
    """It is set back or forward while a run goes on, and sometimes the run is killed, too."""
    root = _clone(folder)
    by = timedelta(seconds=rng.choice((-1, 1)) * rng.choice((1, 60, 7200, 86400 * 30, 86400 * 400)))
    looks = rng.randrange(12)
    run = begin(root, lambda: _set_clock(looks, by))
    if rng.random() < 0.3:
        _moment(rng)
        run.kill(signal.SIGKILL)
    _judge(*run.ended(), 0, -signal.SIGKILL)
    _whole(root)


def _memory(rng: Random, folder: Path) -> None:
    """The harness may have hardly more memory than it has."""
    root = _clone(folder)
    more = rng.choice((0, 2**12, 2**16, 2**20, 2**22, 2**24, 2**26))

    def bound() -> None:
        most = psutil.Process().memory_info().vms + more
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))

    _judge(*begin(root, bound).ended(), 0, *DOCUMENTED)
    _whole(root)


STATE = ("sessions-begun", "started.json", "mine.txt", "run.lock", "trial.json", "events.jsonl")


def _half_written(rng: Random, folder: Path) -> None:
    """A machine goes down: of what a killed run kept for itself, some file is cut or holds rubbish."""
    root = _clone(folder)
    run = begin(root)
    _moment(rng)
    run.kill(signal.SIGKILL)
    run.ended()
    for child in psutil.process_iter():
        with suppress(psutil.Error):
            if str(root) in child.environ().get("GPUDYNO_OUT", ""):
                child.kill()
    kept = sorted(path for path in root.rglob("*") if path.name in STATE and path.is_file())
    for path in rng.sample(kept, min(len(kept), 2)):
        path.write_bytes(changed_bytes(path.read_bytes(), rng))
    _whole(root, LIMIT_SECONDS)


FAULTS: Mapping[str, Attack] = {
    "killed-run": _killed,
    "killed-trial": _killed_inside(lambda process: not _is_recorder(process), watched=False),
    "killed-recorder": _killed_inside(_is_recorder, watched=True),
    "refused-write": _refused,
    "full-disk": _full,
    "two-runs": _two,
    "clock": _clock,
    "memory": _memory,
    "half-written": _half_written,
}
