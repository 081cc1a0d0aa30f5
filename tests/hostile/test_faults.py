"""What happens to a run: it is killed, the disk or memory is refused, the clock is set, another one begins.

Each fault hits a clone of stand-in trials, in a process forked from this one; then the run goes on without
one, and its records are counted.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invoke.context import Context
from invoke.exceptions import Exit

from commands.line import Line
from harness.record import store
from harness.run import runner, session
from harness.telemetry import recorder
from tests.helpers import clone
from tests.hostile.judging import DOCUMENTED, LONG, attacked, drawn
from tests.hostile.strategies import damaged

pytestmark = LONG

MEASURED_SECONDS, LIMIT_SECONDS = 30.0, 61.0
"""No stand-in takes so long; its limit, and a little, where rubbish says when it began."""
MOMENTS = st.floats(0, 0.8)
"""A run of the clone lasts about as long."""
CODES = (errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE)
INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
WRITES = ((os, "fsync"), (os, "link"), (tempfile, "mkstemp"), (os, "mkdir"), (os, "replace"), (os, "open"))
STATE = ("started.json", "mine.txt", "run.lock", "trial.json", "events.jsonl")


@dataclass(frozen=True)
class ForkedRun:
    """A run of the clone as a process of its own, and what it says to standard error."""

    pid: int
    stderr: Path

    def kill(self, sign: int = signal.SIGKILL) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, sign)

    def kill_inside(self, *, recorder: bool) -> None:
        """Kills its trial, or what records beside that."""
        with suppress(psutil.Error):
            for child in psutil.Process(self.pid).children(recursive=True):
                if any("sampler" in word for word in child.cmdline()) == recorder:
                    child.kill()

    def ends_with(self, *codes: int) -> None:
        _, status = os.waitpid(self.pid, 0)
        code, said = os.waitstatus_to_exitcode(status), self.stderr.read_text(errors="replace")
        assert code in codes and "Traceback" not in said, f"the run left code {code}: {said[-500:]!r}"
        assert code <= 0 or said.startswith("gpudyno: "), repr(said[-500:])


@Line(Path(), {}, {}).verb()
def go(root: str) -> None:
    os.environ[session.LOCK_VARIABLE] = f"{root}/run.lock"
    with session.run_lock():
        runner.run_session(clone.ready(Path(root)), clone.open_session(Path(root)), clone.Quiet())


def begin(root: Path, prepare: Callable[[], object] = lambda: None, *, watched: bool = False) -> ForkedRun:
    """Starts a run of the clone; `prepare` is called in its process, before anything else."""
    stderr = Path(tempfile.mkstemp(prefix="stderr-", dir=root.parent)[1])
    signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    if pid := os.fork():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
        return ForkedRun(pid, stderr)
    code = 1
    try:
        signal.alarm(0)
        for sign in (signal.SIGALRM, signal.SIGTERM):
            signal.signal(sign, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        sys.stdout, sys.stderr = (path.open("w") for path in (Path(os.devnull), stderr))
        os.dup2(sys.stdout.fileno(), 1)
        os.dup2(sys.stderr.fileno(), 2)
        runner.POLL_SECONDS = 0.02
        if not watched:
            recorder.start_sampling = lambda work, device, pids: None
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
        prepare()
        go(Context(), root=str(root))
        code = 0
    except Exit as end:
        sys.stderr.write(f"{end.message}\n")
        code = end.code
    except KeyboardInterrupt:
        sys.stderr.write("gpudyno: interrupted before it began\n")
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def goes_on(root: Path, most_seconds: float = MEASURED_SECONDS) -> None:
    """The run goes on without a fault: no record is another one, and each trial of it is measured once."""
    before = {path: path.read_bytes() for path in root.glob("results/2*/*/*-r1-*.json")}
    begin(root).ends_with(0)
    assert all(path.exists() and path.read_bytes() == content for path, content in before.items())
    results = store.read_results(root)
    assert not results.problems
    assert not [path for path in root.rglob("*.part") if path.name[0] != "."]
    records = [one.record for one in results.records]
    measured = Counter((record.session, record.trial.id) for record in records if record.measurement)
    newest = max(results.sessions, key=lambda session: (session.number or 0, session.started_at))
    assert {(newest.id, trial.id) for trial in newest.trials} <= measured.keys()
    assert set(measured.values()) == {1}
    assert all(0 <= record.wall_seconds < most_seconds for record in records)


def refuse(writes: int, code: int) -> None:
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

    for holder, name in (*WRITES, (shutil, "rmtree")):
        setattr(holder, name, refused(getattr(holder, name)))


def set_clock(looks: int, by: timedelta) -> None:
    """After so many looks at it the clock on the wall is another one, in this process."""

    class SetClock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            nonlocal looks
            looks -= 1
            return datetime.now(tz) + (by if looks < 0 else timedelta())

    runner.datetime = SetClock
    real = time.time
    time.time = lambda: real() + (by.total_seconds() if looks < 0 else 0.0)


def bound_memory(more: int) -> None:
    most = psutil.Process().memory_info().vms + more
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def killed(root, data):
    """Killed, ended or interrupted, once or twice; Ctrl-C leaves a sentence and code 130."""
    for sign in data.draw(st.lists(st.sampled_from((9, 9, 15, 2)), min_size=1, max_size=2)):
        run = begin(root)
        time.sleep(data.draw(MOMENTS))
        run.kill(sign)
        run.ends_with(0, 130 if sign == signal.SIGINT else -sign)


def killed_inside(root, data):
    of_recorder = data.draw(st.booleans())
    run = begin(root, watched=of_recorder)
    time.sleep(data.draw(MOMENTS) * (3 if of_recorder else 1))
    run.kill_inside(recorder=of_recorder)
    run.ends_with(0)


def refused_write(root, data):
    writes, code = data.draw(st.integers(0, 60)), data.draw(st.sampled_from(CODES))
    begin(root, lambda: refuse(writes, code)).ends_with(0, *DOCUMENTED)


def two_runs(root, data):
    """Of two runs at once one measures, and the other says so."""
    first = begin(root)
    time.sleep(data.draw(MOMENTS))
    begin(root).ends_with(0, *DOCUMENTED)
    first.ends_with(0, *DOCUMENTED)


def clock_set(root, data):
    """It is set back or forward while a run goes on, and sometimes the run is killed, too."""
    days = data.draw(st.sampled_from((1e-5, 1e-3, 0.1, 30, 400))) * data.draw(st.sampled_from((1, -1)))
    looks = data.draw(st.integers(0, 12))
    run = begin(root, lambda: set_clock(looks, timedelta(days=days)))
    if data.draw(st.booleans()):
        time.sleep(data.draw(MOMENTS))
        run.kill()
    run.ends_with(0, -signal.SIGKILL)


def little_memory(root, data):
    more = data.draw(st.sampled_from((0, 2**12, 2**16, 2**20, 2**22, 2**24, 2**26)))
    begin(root, lambda: bound_memory(more)).ends_with(0, *DOCUMENTED)


def half_written(root, data):
    """A machine goes down: of what a killed run kept for itself, some file is cut or holds rubbish."""
    run = begin(root)
    time.sleep(data.draw(MOMENTS))
    run.kill()
    run.ends_with(0, -signal.SIGKILL)
    for child in psutil.process_iter():
        with suppress(psutil.Error):
            if str(root) in child.environ().get("GPUDYNO_OUT", ""):
                child.kill()
    kept = sorted(path for path in root.rglob("*") if path.name in STATE and path.is_file())
    for path in data.draw(st.lists(st.sampled_from(kept), max_size=2, unique=True)) if kept else ():
        path.write_bytes(data.draw(damaged(path.read_bytes())))


FAULTS = (killed, killed_inside, refused_write, two_runs, clock_set, little_memory, half_written)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_run_that_something_happens_to_goes_on_and_loses_no_record(fault):
    @drawn(8, shrunk=False)
    @given(st.data())
    def attack(data):
        with attacked() as folder:
            root = clone.make(folder / "clone", options="step_seconds = 0.004", repeats=1)
            fault(root, data)
            goes_on(root, LIMIT_SECONDS if fault is half_written else MEASURED_SECONDS)

    attack()
