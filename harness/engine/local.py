"""Trials as plain processes that outlive the harness: the common half of the venv and here engines."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from harness.engine import container
from harness.engine.container import RunSpec, User
from harness.engine.interface import Built, Exit, Handle, Say
from harness.engines import EngineName
from harness.errors import MachineError, NoEngine
from harness.files import read_object
from harness.image.images import Image
from harness.image.lock import lock_sha256
from harness.machine.devices import INHERITED, inherited_variables, passed_variables, recorded_variables
from harness.machine.fingerprint import local_names
from harness.record import Environment, short_hash

LOG = "log.txt"
LOG_TAIL_BYTES = 8000
_STOP_SECONDS = 10.0

_children: dict[int, subprocess.Popen[bytes]] = {}
"""Children of this very process, whose exit code can be read; others are only looked at."""


def _temporary_folder(work: Path) -> Path:
    """Return an attempt's folder of temporary files; the path of a loader's socket has up to 107 letters."""
    return Path(tempfile.gettempdir()) / f"gpudyno-{short_hash(str(work.resolve()))}"


def _living_process(handle: Handle) -> psutil.Process | None:
    """Return the handle's process, if it still runs; a reused process id has another start time."""
    if handle.pid is None or handle.process_started is None:
        return None
    try:
        process = psutil.Process(handle.pid)
        same = abs(process.create_time() - handle.process_started) < 1.0
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def _work_processes(work: Path) -> Iterator[psutil.Process]:
    """Yield the processes whose GPUDYNO_OUT is this work folder's: a trial, and all that it started."""
    output = str(work / "out")
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get("GPUDYNO_OUT") == output:
                yield process


def log_tail(path: Path, most_bytes: int = LOG_TAIL_BYTES) -> str:
    """Return the end of a log as text; empty where there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - most_bytes))
        return file.read().decode("utf-8", "replace")


class Processes:
    """What engines without containers share: a trial is a process, looked for and ended as such."""

    name: EngineName

    def user(self) -> User:
        """Return the caller: a process has no other user inside."""
        return User()

    def start(self, spec: RunSpec) -> Handle:
        """Start the trial in a session of its own, its output in a log file."""
        argv, inside = container.process_command(spec)
        work = spec.folders.output.parent
        Path(inside["HOME"]).mkdir(parents=True, exist_ok=True)
        inside["TMPDIR"] = str(_temporary_folder(work))
        _temporary_folder(work).mkdir(mode=0o700, exist_ok=True)
        # A folder of links, as a container's mounts would show it; the clone's file system may have none.
        data = _temporary_folder(work) / "data"
        data.mkdir(exist_ok=True)
        for name, target in spec.folders.data:
            (data / name).unlink(missing_ok=True)
            (data / name).symlink_to(target.resolve(), target_is_directory=True)
        inside["GPUDYNO_DATA"] = str(data)
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        with (work / LOG).open("wb") as log:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=work,
                env={**inherited, **inside},
                start_new_session=True,
            )
        _children[process.pid] = process
        started = psutil.Process(process.pid).create_time()
        return Handle(engine=self.name, pid=process.pid, process_started=started)

    def pid(self, handle: Handle) -> int | None:
        """Return the trial's own process."""
        return handle.pid

    def find(self, name: str, work: Path) -> Handle | None:
        """Return the process that leads those of this work folder."""
        for process in _work_processes(work):
            with suppress(psutil.Error, OSError):
                if process.pid == os.getpgid(process.pid):
                    started = process.create_time()
                    return Handle(engine=self.name, pid=process.pid, process_started=started)
        return None

    def poll(self, handle: Handle, work: Path) -> Exit | None:
        """Return how the process ended, null while it runs; its code is null where it was not our child."""
        child = _children.get(handle.pid or -1)
        code = child.poll() if child else None
        if (code is None) if child is not None else _living_process(handle):
            return None
        return Exit(code=code, log=log_tail(work / LOG))

    def stop(self, handle: Handle, work: Path) -> None:
        """End the whole process group: politely, then at once."""
        process = _living_process(handle)
        if process is None:
            return
        group = [process, *process.children(recursive=True)]
        for sign in (signal.SIGTERM, signal.SIGKILL):
            for member in group:
                try:
                    member.send_signal(sign)
                except psutil.NoSuchProcess:
                    continue
                except psutil.AccessDenied:
                    problem = f"a trial of another user runs here (process {member.pid})"
                    raise MachineError(problem, remedy="wait for it to end") from None
            _, group = psutil.wait_procs(group, timeout=_STOP_SECONDS)
            if not group:
                break
        child = _children.pop(handle.pid or -1, None)
        if child is not None:
            child.wait()

    def forget(self, handle: Handle, work: Path) -> None:
        """End what an ended attempt left running, in whichever session, and remove its temporary files."""
        left = list(_work_processes(work))
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=_STOP_SECONDS)
        shutil.rmtree(_temporary_folder(work), ignore_errors=True)


def user_variables() -> dict[str, str]:
    """Return the variables of this process that trials see as well, as records name them."""
    return recorded_variables(passed_variables(os.environ), local_names())


IDENTITY = Path("/etc/gpudyno/environment.json")
"""The file in each of our images that names its lock and base."""


def image_identity() -> dict[str, Any]:
    """Return the image's own description of itself; empty outside of an image."""
    return read_object(IDENTITY)


@dataclass(frozen=True, slots=True)
class HereEngine(Processes):
    """Runs trials with the interpreter of the image that the harness itself was started in."""

    root: Path
    name: EngineName = "here"

    def check(self, image: Image) -> None:
        """Raise NoEngine unless this is the image."""
        self.built_environment(image)

    def build(self, image: Image, say: Say) -> Built:
        """Return the image around us."""
        return self.built_environment(image)

    def expected_environment(self, image: Image) -> Built:
        """Return the image around us."""
        return self.built_environment(image)

    def built_environment(self, image: Image) -> Built:
        """Return the image around us, if it is the image of that name; raises NoEngine."""
        description = image_identity()
        if not description:
            raise NoEngine(
                "engine 'here' works inside one of gpudyno's own images, and this is none",
                remedy="leave --engine out",
            )
        if description.get("image") != image.name:
            raise NoEngine(
                f"image '{image.name}' is needed, and this is inside '{description.get('image')}'",
                remedy=f"start the image '{image.name}', or choose --device to fit this one",
            )
        lock = lock_sha256(self.root, image.lock)
        reasons = []
        if description.get("lock_sha256") != lock:
            reasons.append("the image was built from another lock than this clone's")
        if description.get("base_substituted"):
            reasons.append(f"the base was substituted by {description.get('base')}")
        python = shutil.which("python")
        if python is None:
            raise NoEngine("no 'python' is on PATH in this image", remedy="start it with its own environment")
        environment = Environment(
            **{**description, "device": image.device},
            engine=self.name,
            pinned=not reasons,
            unpinned_because=tuple(reasons),
            passed_variables=user_variables(),
            inherited_variables=inherited_variables(os.environ, local_names()),
        )
        return Built(environment, Path(python))
