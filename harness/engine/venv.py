"""The embedded engine: a virtual environment from the same lock as the image."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from packaging.version import Version

from harness.engine.interface import Built, Say
from harness.engine.local import Processes, user_variables
from harness.engines import EngineName
from harness.errors import MachineError, NoEngine, NoSpace, NotBuilt
from harness.files import command_output, free_bytes, last_line, need_room, read_object, run_streamed
from harness.image.images import Image
from harness.image.lock import lock_packages, lock_sha256
from harness.image.spec import ENGINE_NEEDED, venv_name, venv_refusal, venv_steps
from harness.machine.devices import inherited_variables, other_libraries
from harness.machine.fingerprint import local_names
from harness.network import KnownCause, failure_cause, program_variables
from harness.record import Environment
from harness.settings import expand_path

STAMP = "gpudyno.json"
"""Written last into a whole environment: what it was made from."""

_PIP_ELSEWHERE = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_PYTHON", "PIP_DRY_RUN")
"""pip's settings by which nothing would come into the environment."""
_GLIBC_MINIMUM = Version("2.28")
_COLLECTS = re.compile(r"^\s*Collecting (\S+)")
_SHOWN = re.compile(r"^\s*(Downloading|Installing collected)")


@dataclass(frozen=True, slots=True)
class VenvEngine(Processes):
    """Environments under .venvs/, named by their lock; or an interpreter of the user's, as it is."""

    root: Path
    python: str | None = None
    wheelhouse: Path | None = None
    passed: Mapping[str, str] = field(default_factory=user_variables)
    name: EngineName = "venv"

    def _folder(self, image: Image) -> Path:
        return self.root / ".venvs" / venv_name(image, root=self.root)

    def check(self, image: Image) -> None:
        """Raise NoEngine without an interpreter, NoSpace without room, unless the environment is made."""
        if self.python:
            self._own_interpreter(image)
        elif problem := venv_refusal(image):
            raise NoEngine(problem, remedy=ENGINE_NEEDED)
        elif _unpinned_reasons(folder := self._folder(image)) is None:
            self._find_interpreter(image)
            what, remedy = f"image '{image.name}' as a virtual environment", "make room, or move the clone"
            need_room(what, image.build_bytes, free_bytes(folder), folder.parent, remedy)

    def build(self, image: Image, say: Say) -> Built:
        """Make the environment, or find it whole; raises MachineError naming the step that failed."""
        folder = self._folder(image)
        self.check(image)
        if not self.python and _unpinned_reasons(folder) is None:
            self._make(image, folder, say)
        return self.built_environment(image)

    def expected_environment(self, image: Image) -> Built:
        """Return the environment as `build` would make it."""
        if self.python:
            return self._own_interpreter(image)
        return Built(
            self._environment(image, _platform_reasons(image)), self._folder(image) / "bin" / "python"
        )

    def built_environment(self, image: Image) -> Built:
        """Return the environment of an image; raises NotBuilt where it is missing or was left half made."""
        if self.python:
            return self._own_interpreter(image)
        folder = self._folder(image)
        reasons = _unpinned_reasons(folder)
        if reasons is None:
            raise NotBuilt(
                f"the environment of image '{image.name}' is not built",
                remedy=f"run `invoke build --image {image.name} --engine venv`",
            )
        interpreter = folder / "bin" / "python"
        return Built(self._environment(image, reasons), interpreter)

    def _environment(self, image: Image, reasons: tuple[str, ...]) -> Environment:
        reasons = (*reasons, *other_libraries(os.environ))
        return Environment(
            image=image.name,
            device=image.device,
            engine=self.name,
            engine_version=platform.python_version(),
            pinned=not reasons,
            unpinned_because=reasons,
            lock_sha256=lock_sha256(self.root, image.lock),
            passed_variables=dict(self.passed),
            inherited_variables=inherited_variables(os.environ, local_names()),
        )

    def _own_interpreter(self, image: Image) -> Built:
        interpreter = shutil.which(expand_path(self.python or ""))
        if interpreter is None:
            raise NoEngine(
                f"there is no interpreter '{self.python}'",
                remedy="name one with --python PATH, or leave it out",
            )
        environment = self._environment(image, ("an interpreter of the user's was taken as it is",))
        return Built(environment.model_copy(update={"lock_sha256": None}), Path(interpreter).absolute())

    def _find_interpreter(self, image: Image) -> str:
        """Return an interpreter that the lock is resolved for; raises NoEngine where none is here."""
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        if here in image.pythons and find_spec("ensurepip") is not None:
            return sys.executable
        interpreter = next(filter(None, map(find_python, image.pythons)), None)
        if interpreter is None and here not in image.pythons:
            versions = " or ".join(image.pythons)
            raise NoEngine(
                f"image '{image.name}' is locked for Python {versions}, and none of it runs here",
                remedy=f"put a working python{image.python} on the PATH, or get it by `uv python install`",
            )
        return interpreter or sys.executable

    def _make(self, image: Image, folder: Path, say: Say) -> None:
        interpreter = self._find_interpreter(image)
        if folder.exists():
            shutil.rmtree(folder)
        folder.parent.mkdir(exist_ok=True)
        steps = venv_steps(
            image, root=self.root, venv=folder, interpreter=interpreter, wheelhouse=self.wheelhouse
        )
        log = folder.parent / f"{folder.name}.log"
        log.unlink(missing_ok=True)
        packages = len(lock_packages(self.root / "docker" / image.lock))
        for number, step in enumerate(steps, 1):
            say(f"{number}/{len(steps)} {step.label}", 0, packages if step.label == "packages" else None)
            run_alternatives(
                step.label, step.alternatives, log, partial(say, total=packages), programs=folder / "bin"
            )
        (folder / STAMP).write_text(
            json.dumps({"image": image.name, "unpinned_because": _platform_reasons(image)})
        )


def _unpinned_reasons(folder: Path) -> tuple[str, ...] | None:
    """Return why a whole environment is unpinned; null of one that was left half made, its stamp among it."""
    reasons = read_object(folder / STAMP).get("unpinned_because")
    return None if reasons is None else tuple(map(str, reasons))


def find_python(version: str) -> str | None:
    """Return an interpreter of that version on PATH that runs, or one that uv finds."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    uv = (command_output("uv", "python", "find", version) or "").strip()
    candidates = (*(shutil.which(f"python{version}", path=folder) for folder in folders), uv)
    code = "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"
    versions = ((path, command_output(path, "-c", code)) for path in candidates if path)
    return next((path for path, found in versions if (found or "").strip() == version), None)


def _platform_reasons(image: Image) -> tuple[str, ...]:
    name, version = platform.libc_ver()
    if platform.system() == "Linux" and image.platform_on(platform.machine()) and name == "glibc":
        if Version(version) >= _GLIBC_MINIMUM:
            return ()
        return (f"the lock is for glibc {_GLIBC_MINIMUM} or newer, and this machine has {version}",)
    places = " and ".join((image.platform, *image.also_platforms))
    return (f"the lock is for {places}, and this is {platform.system()} {platform.machine()}",)


_NO_ENSUREPIP = "this Python has no ensurepip"


def run_alternatives(
    label: str,
    alternatives: tuple[tuple[str, ...], ...],
    log: Path,
    say: Callable[..., None],
    *,
    programs: Path | None = None,
) -> None:
    """Run one command after the other until one ends well; raises NoNetwork or MachineError.

    Programs in the folder of that name come before the machine's own, as what builds a source expects.
    """
    path = os.environ.get("PATH", os.defpath)
    # An environment has no user's site, whatever pip's own settings say.
    own = {"PIP_USER": "0", "PATH": f"{programs}{os.pathsep}{path}" if programs else path}
    inherited = {name: value for name, value in os.environ.items() if name not in _PIP_ELSEWHERE}
    environ = {**inherited, **program_variables(), **own}
    for number, argv in enumerate(alternatives, 1):
        if _run_logged(argv, log, say, environ) == 0:
            return
        if number < len(alternatives):
            say(f"{label}: source {number} of {len(alternatives)} did not have it; trying the next")
    said = re.split(r"^\$ ", log.read_text(errors="replace"), flags=re.MULTILINE)[-len(alternatives) :]
    found = [_installing_cause(one) for one in said]
    # uv needs no ensurepip: where it was tried too, it alone says what is in the way.
    causes = [why for why in found if why.problem != _NO_ENSUREPIP] or found[-1:]
    problems, remedies = dict.fromkeys(why.problem for why in causes), {why.remedy: None for why in causes}
    if not any(isinstance(why, NoSpace | KnownCause) for why in causes):
        remedies["put the wheels into a folder and name it with --wheelhouse"] = None
    raise type(causes[-1])(
        f"{label} could not be installed: {'; then: '.join(problems)}",
        remedy=f"{', or '.join(filter(None, remedies))}; the whole log is {log.parent.name}/{log.name}",
    )


def _installing_cause(said: str) -> MachineError:
    """Return why one way of installing failed, by what it alone printed, else its own error line."""
    lines = said.splitlines()
    errors = [line for line in lines if re.match(r"\s*error\b", line, re.IGNORECASE)]
    why = failure_cause(lines, last_line(errors[-1] if errors else said), "the package index")
    if not why.remedy and "ensurepip" in said:
        remedy = "install what brings it (Debian and Ubuntu: python3-venv), or uv"
        return KnownCause(_NO_ENSUREPIP, remedy=remedy)
    return why


def _run_logged(
    argv: tuple[str, ...], log: Path, say: Callable[..., None], environ: Mapping[str, str]
) -> int:
    """Run a command, show what it fetches, and keep the whole of its output."""
    collected = 0

    def show(line: str) -> None:
        nonlocal collected
        if _COLLECTS.match(line):
            collected += 1
            say("", collected)
        elif _SHOWN.match(line):
            say(line.strip()[:90], collected)

    with log.open("a") as log_file:
        log_file.write(f"$ {shlex.join(argv)}\n")
        return run_streamed(argv, log_file, environ, show)
