"""Packages of a lock move, with their channel's hashes, and nothing else does."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomlkit

from harness.errors import UserError
from harness.image.catalog import Image, load_images
from harness.image.lock import (
    LockReport,
    Run,
    lock_packages,
    normal_name,
    relock,
    run_quietly,
    uv_failed,
    uv_line,
)

_ASKED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([0-9][A-Za-z0-9.!]*)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def repin(root: Path, image: str, asked: Sequence[str], *, run: Run = run_quietly) -> LockReport:
    """Moves packages, as `torch==2.14.1`, in an image's requirements, channel and lock, and not the base.

    Where none is named, everything is resolved again.
    Raises UserError for a package that the lock does not have or a version that its channel does not,
    NoNetwork where channel or index do not answer; every file is then as it was.
    """
    chosen = load_images(root).image(image)
    if not asked:
        return relock(chosen, root, run=run)
    pins = [_pin(words, chosen, root) for words in asked]
    folder = root / "docker"
    parts = [part.lock for part in (chosen.channel, chosen.sources) if part]
    files = [folder / path for path in ("images.toml", chosen.requirements, chosen.lock, *parts)]
    before = {path: path.read_bytes() for path in files if path.is_file()}
    try:
        for pin in pins:
            _pin_channel(chosen, root, pin, run)
            _pin_requirement(folder / chosen.requirements, pin)
        return relock(load_images(root).image(image), root, run=run, only=pins)
    except BaseException:
        for path, content in before.items():
            path.write_bytes(content)
        raise


def _pin(asked: str, image: Image, root: Path) -> str:
    """A package and the version that it moves to, as the lock writes it."""
    found = _ASKED.fullmatch(asked)
    if found is None:
        raise UserError(f"'{asked[:80]}' names no version of a package", remedy="write it as torch==2.14.1")
    name = normal_name(found[1])
    if name in map(normal_name, image.from_base):
        raise UserError(
            f"'{name}' of image '{image.name}' comes with its base {image.base}",
            remedy="name a base that has the version, and write that to from_base in docker/images.toml",
        )
    if name not in lock_packages(root / "docker" / image.lock):
        raise UserError(f"docker/{image.lock} has no package '{name}'", remedy="add it to the requirements")
    return f"{name}=={found[2]}"


def _pin_requirement(path: Path, pin: str) -> None:
    name, _, version = pin.partition("==")

    def pinned(line: str) -> str:
        own = re.match(r"(([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?)==[^\s;]+", line)
        same = own and normal_name(own[2]) == name
        return f"{own[1]}=={version}{line[own.end() :]}" if own and same else line

    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(map(pinned, lines)), encoding="utf-8")


def _pin_channel(image: Image, root: Path, pin: str, run: Run) -> None:
    """Writes a version and its hashes into images.toml, where a channel has the package."""
    name, _, version = pin.partition("==")
    packages = image.channel.packages if image.channel else ()
    for place, package in enumerate(packages):
        if normal_name(package.name) == name and image.channel is not None:
            # With the local part that the channel's package has.
            _, plus, local = package.version.partition("+")
            whole = f"{version}{plus}{local}"
            hashes = _hashes(image, f"{name}=={whole}", run, "--index-url", image.channel.address)
            if not local:
                # Where the channel does not answer, the index's own build is installed: it is pinned too.
                hashes += _hashes(image, pin, run)
            path = root / "docker" / "images.toml"
            document: Any = tomlkit.parse(path.read_text(encoding="utf-8"))
            entry = document["images"][image.name]["channel"]["packages"][place]
            entry["version"] = whole
            entry["sha256"] = tomlkit.array()
            for digest in dict.fromkeys(hashes):
                entry["sha256"].add_line(digest, indent="  ")
            entry["sha256"].add_line(indent="")
            path.write_text(tomlkit.dumps(document), encoding="utf-8")


def _hashes(image: Image, pin: str, run: Run, *index: str) -> list[str]:
    """The hashes that an index has of a version, as uv tells them; raises as uv_failed says.

    uv is asked for each of the Pythons, since a wheel has to be there for it.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked, output = Path(folder) / "asked.in", Path(folder) / "lock.txt"
        asked.write_text(f"{pin}\n", encoding="utf-8")
        command = [*uv_line(image, str(asked)), "--no-deps", *index, "--output-file", str(output)]
        for python in image.pythons:
            done = run([*command, "--python-version", python])
            if done.returncode:
                raise uv_failed(image, python, done.stderr)
        return _HASH.findall(output.read_text(encoding="utf-8"))
