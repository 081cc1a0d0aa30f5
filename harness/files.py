"""A machine's files under a root, so that a made-up tree can stand in for /proc and /sys; locks; commands."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from harness.errors import MachineError, NoSpace

T = TypeVar("T")


@dataclass(frozen=True)
class Files:
    """Reads below `root`; what is missing, unreadable or of another form is None."""

    root: Path = Path("/")

    def _of(self, path: str, tell: Callable[[Path], T]) -> T | None:
        """Return what `tell` reports of a path; None where the system does not say."""
        try:
            return tell(self.root / path.lstrip("/"))
        except OSError:
            return None

    def content(self, path: str) -> bytes | None:
        """Return what a file holds."""
        return self._of(path, Path.read_bytes)

    def text(self, path: str) -> str | None:
        """Return a file's text without the blanks around it."""
        content = self.content(path)
        return None if content is None else content.decode(errors="replace").strip("\0 \n\t")

    def number(self, path: str) -> int | None:
        """Return the one decimal integer that a file holds."""
        text = self.text(path)
        try:
            return int(text) if text else None
        except ValueError:
            return None

    def names(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a folder; none where there is no such folder."""
        return self._of(path, lambda place: tuple(sorted(entry.name for entry in place.iterdir()))) or ()

    def exists(self, path: str) -> bool:
        """Return whether something is there."""
        return self._of(path, Path.exists) or False

    def real(self, path: str) -> str | None:
        """Return where a link leads, below the root; None where nothing is."""
        return self._of(path, lambda place: str(place.resolve(strict=True)))

    def link(self, path: str) -> str | None:
        """Return what a link says, whether or not something is there."""
        return self._of(path, lambda place: str(place.readlink()))

    def mode(self, path: str) -> int:
        """Return a file's permissions; 0 where there is none."""
        return self._of(path, lambda place: place.stat().st_mode & 0o777) or 0

    def may_open(self, path: str) -> bool:
        """Return whether this user may read and write a file."""
        return os.access(self.root / path.lstrip("/"), os.R_OK | os.W_OK)

    def fields(self, path: str, separator: str) -> dict[str, str]:
        """Return the last value of every `key<separator>value` line of a file."""
        pairs = (line.partition(separator) for line in (self.text(path) or "").splitlines())
        return {key.strip(): value.strip() for key, mark, value in pairs if mark}

    def counts(self, path: str, separator: str) -> dict[str, int]:
        """Return the same of those values that are decimal integers."""
        return {key: int(value) for key, value in self.fields(path, separator).items() if value.isdecimal()}


@contextmanager
def name_in_errors(path: Path) -> Iterator[None]:
    """Name a file in the errors of what is written meanwhile: a full disk's has no name of its own."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def write_then_rename(path: Path, put: Callable[[Path, Path], object] = Path.replace) -> Iterator[Path]:
    """Give a temporary file beside `path`, which is `put` there once all is written, else removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    unfinished = Path(name)
    try:
        with name_in_errors(path):
            yield unfinished
            with unfinished.open("rb") as file:
                os.fsync(file.fileno())
            with suppress(PermissionError):
                # exFAT and FAT know no such permissions.
                unfinished.chmod(0o644)
            put(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def command_output(*command: str) -> str | None:
    """Return what a command of this machine's printed; None where it is not here, fails, or do not end."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def run_streamed(
    command: Sequence[str], log: IO[str], environ: Mapping[str, str], show: Callable[[str], None]
) -> int:
    """Run a command whose every line goes into a log and is shown, and return its exit code."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environ,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            for line in process.stdout or ():
                log.write(line)
                if line.strip():
                    show(line.rstrip())
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.wait()


def free_bytes(path: Path) -> int | None:
    """Return what is free on the disk of `path`, by the nearest folder that this user may see."""
    for folder in (path, *path.parents):
        with suppress(OSError):
            return shutil.disk_usage(folder).free
    return None


def is_writable(path: Path) -> bool:
    """Return whether this user may write there, or make it: on no disk that is read-only."""
    return os.access(next((folder for folder in (path, *path.parents) if folder.exists()), path), os.W_OK)


def need_room(what: str, needed_bytes: int, free: int | None, where: str | Path, remedy: str) -> None:
    """Raise NoSpace where less is free than is needed; what is unknown refuses nothing."""
    if free is not None and free < needed_bytes:
        raise NoSpace(
            f"{what} needs {needed_bytes >> 20} MiB of disk and {free >> 20} MiB are free in '{where}'",
            remedy=remedy,
        )


def user_folder(variable: str, usual: Callable[[], Path]) -> Path:
    """Return the folder that a variable names, else the usual one; raises MachineError without a home."""
    try:
        return Path(os.environ.get(variable) or usual().expanduser())
    except RuntimeError:
        refusal = MachineError("HOME is not set, and this user has none", remedy=f"set HOME, or {variable}")
        raise refusal from None


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object that a file holds; empty where it holds none."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def unix_line_ends(text: bytes) -> bytes:
    """Return a text as a clone without Windows' line ends has it."""
    return text.replace(b"\r\n", b"\n")


def text_sha256(text: bytes) -> str:
    """Return the SHA-256 of a text, the same whichever line ends its clone was made with."""
    return hashlib.sha256(unix_line_ends(text)).hexdigest()


def last_line(said: str | bytes) -> str:
    """Return what a command said last, at most 200 letters of it."""
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it printed nothing"


def unit_hash(uuid: str | None) -> str | None:
    """Return the first 16 hex digits of SHA-256 over "gpudyno:" and the UUID as the driver writes it."""
    return hashlib.sha256(f"gpudyno:{uuid}".encode()).hexdigest()[:16] if uuid else None


@contextmanager
def hold_lock(path: Path, busy: MachineError | None = None) -> Iterator[None]:
    """Hold a lock as long as it lasts; raises `busy` where another process has it, else waits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        if not lock_file(file, wait=busy is None) and busy is not None:
            raise busy
        yield


def lock_file(file: IO[str], *, wait: bool = False) -> bool:
    """Lock an open file until it is closed; return False where another process has it, unless to `wait`."""
    with name_in_errors(Path(file.name)):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
    return True
