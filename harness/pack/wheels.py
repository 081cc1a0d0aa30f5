"""The wheels that a site installs from: gpudyno's own, those it needs, and those of an image's lock."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from importlib.metadata import distributions
from pathlib import Path

from harness.data.check import sha256_of
from harness.engine.base import Say
from harness.engine.venv import first_that_works
from harness.errors import MachineError, UserError
from harness.image.catalog import Image
from harness.image.lock import hashed, normal_name
from harness.image.spec import locked_steps, wheel_options

REQUIREMENTS = "requirements.txt"
OLDEST = (3, 11)
_VERSION = re.compile(r"3\.([0-9]{1,2})")
_1980 = "315532800"
"""The first moment that a wheel's file names can carry: the same bytes whenever it is made."""


def asked_pythons(words: str) -> tuple[str, ...]:
    """The versions of Python that a site may have, as '3.11,3.12'; this one's where none is named.

    Raises UserError for what gpudyno does not run on.
    """
    versions = tuple(dict.fromkeys(word.strip() for word in words.split(",") if word.strip()))
    for version in versions:
        match = _VERSION.fullmatch(version)
        if match is None or (3, int(match[1])) < OLDEST:
            raise UserError(f"'{version}' is no Python that gpudyno runs on", remedy="give 3.11 or newer")
    return versions or (f"{sys.version_info.major}.{sys.version_info.minor}",)


def for_image(image: Image, pythons: Sequence[str]) -> tuple[str, ...]:
    """Those of the versions that an image's lock is for; where there are none, the image's own."""
    return tuple(version for version in pythons if version in image.pythons) or (image.python,)


def interpreter_with_pip(scratch: Path) -> str:
    """This interpreter where it has pip, else an environment of its kind that has."""
    if importlib.util.find_spec("pip") is not None:
        return sys.executable
    subprocess.run([sys.executable, "-m", "venv", str(scratch / "pip")], check=True, capture_output=True)
    return str(scratch / "pip" / "bin" / "python")


def own(source: Path, folder: Path, *, python: str, log: Path, say: Say) -> None:
    """Makes gpudyno's own wheel of a copy of its sources."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", _1980)
    line = (python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
    first_that_works("gpudyno's wheel", (line,), log, say)


def host(
    root: Path, folder: Path, *, platform: str, pythons: Iterable[str], python: str, log: Path, say: Say
) -> None:
    """Fetches what gpudyno needs, in the versions that are installed here, for each version of Python."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    needed = project["project"]["dependencies"] + project["build-system"]["requires"]
    builds = {normal_name(re.split(r"[^\w.-]", each)[0]) for each in project["build-system"]["requires"]}
    constraints = log.with_name("constraints.txt")
    here = {normal_name(each.name): each.version for each in distributions() if each.name}
    pins = (f"{name}=={found}\n" for name, found in sorted(here.items()) if name not in builds)
    constraints.write_text("".join(pins))
    for version in pythons:
        say(f"gpudyno's own packages for Python {version}")
        line = (python, "-m", "pip", "download", *wheel_options(platform, version), "--no-input")
        line += ("--dest", str(folder), "--constraint", str(constraints), *needed)
        first_that_works("gpudyno's packages", (line,), log, say)


def locked(
    image: Image,
    root: Path,
    folder: Path,
    *,
    pythons: Iterable[str],
    python: str,
    wheelhouse: Path | None,
    log: Path,
    say: Say,
) -> None:
    """Fetches the wheels of an image's lock, each checked by the lock's hashes."""
    why = f"takes {' and '.join(image.from_base)} from its base" if image.from_base else ""
    if image.sources:
        why = f"builds {' and '.join(image.sources.packages)} from source"
    if why:
        raise MachineError(
            f"image '{image.name}' {why}, not from wheels",
            remedy="pack it as an image, where Docker or Podman is",
        )
    for version in pythons:
        fetch = (python, "-m", "pip", "download", *wheel_options(image.platform, version))
        fetch += ("--no-deps", "--require-hashes", "--no-input", "--dest", str(folder))
        for step in locked_steps(image, root, fetch, wheelhouse):
            label = f"{image.name} for Python {version}: {step.label}"
            say(label)
            first_that_works(label, step.alternatives, log, say)


def requirements(folder: Path) -> str:
    """The wheels in a folder as a hashed requirement file: each version with the hashes of all its wheels.

    gpudyno itself is not in it: it is installed where it lies.
    """
    hashes: dict[str, list[str]] = {}
    for wheel in sorted(folder.glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        if normal_name(name) != "gpudyno":
            hashes.setdefault(f"{normal_name(name)}=={version}", []).append(sha256_of(wheel))
    return "".join(hashed(pin, found) for pin, found in hashes.items())
