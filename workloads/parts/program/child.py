"""A foreign program in a trial: its copy, its lines as they come, its end, and that of all that it started.

Standard library and Python 3.7 syntax only.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import math
import os
import pty
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple

from parts.trial import Failed, TrialProcess, processor_name, versions

DEATH_SIGNAL, SUBREAPER = 1, 36
"""Options of prctl(2): the signal for a child whose parent dies; an orphan below us becomes our child."""
LINE_LETTERS = 4000
"""The longest line; a longer one is cut."""
POLL_SECONDS = 0.1
POLITE_SECONDS = 3.0
"""After SIGTERM, until SIGKILL."""
TERMINAL_COLUMNS = 200
STANDING_SECONDS = 0.02
"""After SIGSTOP, until all threads stand still."""
LEAVING_SECONDS = 0.5
"""What helpers of the program may live on after it."""

LOG_BYTES = 1000000
"""How much of its lines the trial's log has."""
PROGRESS_SECONDS = 1.0
MARGIN_SECONDS = 15.0
"""The part of a trial's time that is kept for its end."""
FACTS = (
    "import json, sys, torch; sys.path.insert(0, sys.argv[1]); from parts import device; "
    "torch.version.hip = getattr(torch.version, 'hip', None); "  # torch 1.0 has none
    "chosen = device.choose(sys.argv[2], 1); "
    "print(json.dumps([device.facts(sys.argv[2], chosen), device.software()]))"
)

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_LIBC = ctypes.CDLL(None)
"""Loaded before any fork."""

Heard = Callable[[str, float], bool]
"""Takes a line and the moment at which its end was read; answers whether the program may go on."""
Patience = Callable[[], float]
"""Answers for how many seconds the program may print nothing now."""


class Lines:
    """Bytes cut at \\r and \\n into lines without terminal commands; empty ones are left out."""

    def __init__(self) -> None:
        self._rest = b""

    def cut(self, chunk: bytes) -> list:
        """Return the lines that this chunk ends."""
        *whole, rest = re.split(rb"[\r\n]", self._rest + chunk)
        self._rest = rest[: 4 * LINE_LETTERS]
        return self._shown(whole)

    def last(self) -> list:
        """Return the line that nothing ended, if there is one."""
        rest, self._rest = self._rest, b""
        return self._shown([rest])

    @staticmethod
    def _shown(whole: Sequence[bytes]) -> list:
        texts = [line[: 4 * LINE_LETTERS].decode("utf-8", "replace") for line in whole]
        clean = [_CONTROLS.sub("", _ESCAPES.sub("", text))[:LINE_LETTERS] for text in texts]
        return [line for line in clean if line.strip()]


class Ended(NamedTuple):
    """How a program ended."""

    code: int | None
    """Null where its trial stopped it."""
    left: int
    """How many processes lived on, and were ended."""


def run(
    argv: Sequence[str],
    folder: str,
    environ: Mapping[str, str],
    seconds: float,
    heard: Heard,
    *,
    terminal: bool = False,
    patience: Patience = lambda: math.inf,
    turns: Any = None,
) -> Ended:
    """Run a program until it ends or `heard` says no; raises Failed where it takes too long or cannot start.

    With `terminal` it prints to a terminal, else to a pipe. It is stopped too where it is silent for longer
    than `patience` allows. Once `turns.over` it is paused until `turns.pause()` says whether it goes on.
    Nothing that it started is left, however this returns.
    """
    _ask_kernel(SUBREAPER, 1)
    ours, theirs = _opened_terminal() if terminal else os.pipe()
    try:
        child = subprocess.Popen(
            argv,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: _ask_kernel(DEATH_SIGNAL, signal.SIGKILL),
        )
    except OSError as error:
        os.close(ours)
        raise Failed("error", f"'{argv[0]}' cannot be started ({error.strerror})") from None
    finally:
        os.close(theirs)
    left = 0
    try:
        code = _followed(child, ours, seconds, patience, heard, turns)
    finally:
        left = _end_all(child)
        os.close(ours)
    return Ended(code, left)


def _opened_terminal() -> tuple:
    """Return both ends of a terminal that is wide enough for any bar."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, TERMINAL_COLUMNS, 0, 0))
    return ours, theirs


def _read(pipe: int) -> bytes:
    """Return what has come; empty at the end, which a terminal reports as an error."""
    try:
        return os.read(pipe, 1 << 16)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""


def _followed(
    child: subprocess.Popen,
    pipe: int,
    seconds: float,
    patience: Patience,
    heard: Heard,
    turns: Any,
) -> int | None:
    lines, began = Lines(), time.perf_counter()
    until, spoke = began + seconds, began
    os.set_blocking(pipe, False)
    at_end = False
    while True:
        over = child.poll() is not None
        away = _stand_still(pipe, lines, heard, turns) if turns and turns.over and not over else 0.0
        if away is None:
            return None
        until, spoke = until + away, spoke + away
        if over:
            # A process that it left may hold the pipe open and go on printing: it is not waited for.
            until = min(until, time.perf_counter() + LEAVING_SECONDS)
        ready = not at_end and select.select([pipe], [], [], 0.0 if over else POLL_SECONDS)[0]
        if ready:
            chunk = _read(pipe)
            said = lines.cut(chunk)
            at_end, spoke = not chunk, time.perf_counter() if said else spoke
            if not _all_heard(said, heard):
                return None
        elif at_end and not over:
            time.sleep(POLL_SECONDS)
        if time.perf_counter() > spoke + patience():
            return None
        late = time.perf_counter() > until
        if over and (late or not ready):
            return child.returncode if _all_heard(lines.last(), heard) else None
        if late:
            raise Failed("timeout", f"the program ran past its limit of {seconds:g} s and was stopped")


def _stand_still(pipe: int, lines: Lines, heard: Heard, turns: Any) -> float | None:
    """Stop all that came of the program until its next turn; return the seconds, null where there is none."""
    began, chunk = time.perf_counter(), b"?"
    signal_tree(signal.SIGSTOP)
    # What it printed until it stood still is heard before the pause.
    while chunk and select.select([pipe], [], [], STANDING_SECONDS)[0]:
        chunk = _read(pipe)
        _all_heard(lines.cut(chunk), heard)
    goes_on = turns.pause()
    signal_tree(signal.SIGCONT)
    return time.perf_counter() - began if goes_on else None


def _all_heard(lines: Sequence[str], heard: Heard) -> bool:
    now = time.perf_counter()
    return all(heard(line, now) for line in lines)


def _ask_kernel(option: int, value: int) -> None:
    with contextlib.suppress(AttributeError, OSError):
        _LIBC.prctl(option, int(value), 0, 0, 0)


def _end_all(child: subprocess.Popen) -> int:
    """End the program and every process that came of it; how many it left when it had ended by itself."""
    by_itself = child.poll() is not None
    if not by_itself:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        signal_tree(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(POLITE_SECONDS)
    left = set()
    until = time.monotonic() + POLITE_SECONDS
    patient = time.monotonic() + (LEAVING_SECONDS if by_itself else 0.0)
    while time.monotonic() < until:
        living = [pid for pid, above in _parents().items() if above == os.getpid() and not _reaped(pid)]
        if not living:
            break
        if time.monotonic() >= patient:
            left.update(living)
            for pid in living:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    child.poll()
    return len(left - {child.pid}) if by_itself else 0


def _parents() -> dict:
    """Return the parent of each process, as Linux lists them."""
    found = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{name}/stat") as file:
                found[int(name)] = int(file.read().rpartition(")")[2].split()[1])
    return found


def signal_tree(number: int) -> None:
    """Send a signal to all that came of the program, parents first, until nothing new is below it."""
    reached = set()
    while True:
        parents, above, found = _parents(), {os.getpid()}, []
        while above:
            above = {pid for pid, parent in parents.items() if parent in above}
            found += sorted(above - reached)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        reached.update(found)


def _reaped(pid: int) -> bool:
    """Return whether it has ended, and is a process no more."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def own_environment(place: str) -> dict[str, str]:
    """Return what the program finds: nothing of ours, and a home of its own."""
    ours = [name for name in os.environ if name.startswith("GPUDYNO_") or name == "PYTHONPATH"]
    own = {name: value for name, value in os.environ.items() if name not in ours}
    for name, folder in (("HOME", "home"), ("TMPDIR", "tmp")):
        own[name] = os.path.join(place, folder)
        os.mkdir(own[name])
    path = [os.path.dirname(sys.executable), own.get("PATH", os.defpath)]
    return {**own, "PATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}


def without_folders(line: str, trial: TrialProcess, copy: str) -> str:
    """Return a line of the program's without the folders that are this trial's own."""
    for folder in (copy + os.sep, os.path.dirname(copy) + os.sep, trial.data_folder + os.sep):
        line = line.replace(folder, "")
    return line[:300]


def seconds_left(trial: TrialProcess) -> float:
    """Return how long the program may still run."""
    return max(1.0, trial.seconds_left() - MARGIN_SECONDS)


def used_device(trial: TrialProcess) -> tuple:
    """Return device and software as torch reports them in another process, where the image has torch."""
    kind, workloads = trial.asked["device"], os.path.dirname(os.path.abspath(sys.argv[0]))
    argv = [sys.executable, "-c", FACTS, workloads, kind]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    try:
        facts, software = json.loads(done.stdout.decode())
        return dict(facts, count=trial.variant["gpus"]), software
    except ValueError:
        return {"kind": kind, "name": processor_name() if kind == "cpu" else "unknown"}, versions()


def run_in_place(trial: TrialProcess, work: Callable) -> dict[str, Any]:
    """Return what `work` makes of what `program.json` says, in a folder that is removed afterwards."""
    with open(os.path.join(os.environ.get("GPUDYNO_IN", "/in"), "program.json"), encoding="utf-8") as file:
        given = json.load(file)
    trial.choose("precision", trial.variant["precision"], ("program",))
    place = tempfile.mkdtemp(prefix="program-")
    trial.stage("data")
    try:
        return work(trial, given, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def copy_program(trial: TrialProcess, folder: str, place: str) -> str:
    """Return the path of a fresh copy of a folder of the data; raises Failed where that is not there."""
    source, copy = os.path.join(trial.data_folder, folder), os.path.join(place, "program")
    if not os.path.isdir(source):
        raise Failed("bad-data", f"its source '{folder}' is not in the data folder")
    shutil.copytree(os.path.realpath(source), copy, symlinks=True)
    return copy


class ProgramLog:
    """A program's lines: to the trial's log as far as they fit, and how far it is as events."""

    def __init__(self, trial: TrialProcess) -> None:
        self.trial = trial
        self.lines = 0
        self.last = ""
        self._bytes = 0
        self._reported_at = 0.0

    def write(self, line: str) -> None:
        """Take the next line."""
        self.lines, self.last = self.lines + 1, line
        self._bytes += len(line) + 1
        if self._bytes < LOG_BYTES:
            print(line, flush=True)

    def report(self, at: float, done: int, **more: str) -> None:
        """Say how far it is, once a second."""
        if at - self._reported_at > PROGRESS_SECONDS:
            self._reported_at = at
            self.trial.event("progress", done=done, total=None, **more)

    def end(self, ended: Ended, copy: str) -> str:
        """Return the last line without the trial's folders; raises Failed where the program failed."""
        if self._bytes >= LOG_BYTES:
            print(f"… {self.lines} lines in all; the last: {self.last}", flush=True)
        last = without_folders(self.last, self.trial, copy) or "none"
        if ended.code:
            words = last.lower()
            memory = "out of memory" in words or "outofmemory" in words or "memoryerror" in words
            how = f"ended with code {ended.code}" if ended.code > 0 else f"was killed by signal {-ended.code}"
            raise Failed("out-of-memory" if memory else "error", f"the program {how}; its last line: {last}")
        return last


def make_program_measurement(
    trial: TrialProcess,
    ended: Ended,
    step_us: list,
    samples_per_step: int,
    stretches: list,
    *,
    data: dict[str, Any],
    protocol: dict[str, Any],
    **known: Any,
) -> dict[str, Any]:
    """Return a measurement of microseconds of steps, with what else is `known`; reports the stretches."""
    for begin, end in stretches:
        trial.event("segment", begin=begin, end=end)
    device, software = used_device(trial)
    return {
        "device": device,
        "versions": software,
        "precision": {
            "label": "program",
            "output_dtypes": {},
            "parameter_dtypes": {},
            "method": "the program's own",
        },
        "data": {"source": trial.asked["data"], **data},
        "protocol": {"valid_batches": 0, "complete": ended.code == 0, **protocol},
        "samples_per_step": samples_per_step,
        "window": {
            "seconds": sum(step_us) / 1e6,
            "steps": len(step_us),
            "samples": len(step_us) * samples_per_step,
        },
        "step_us": step_us,
        "memory": {"process_peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024},
        **known,
    }
