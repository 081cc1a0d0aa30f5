"""Packages of a lock move, with their channel's hashes, and nothing else does."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import requests
import tomlkit

from harness.errors import NoNetwork, UserError
from harness.image.catalog import ChannelPackage, Image, load_images
from harness.image.lock import (
    LockReport,
    Run,
    lock_packages,
    normal_name,
    relock,
    run_quietly,
    satisfies,
    uv_failed,
    uv_platform,
    uv_program,
)

Page = Callable[[str], str]

_ASKED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([0-9][A-Za-z0-9.!]*)")
_WHEEL = re.compile(r'href="(?:[^"#]*/)?(?P<file>[^"#/]+\.whl)#sha256=(?P<sha256>[0-9a-f]{64})"')
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_SECONDS = 30
_MOST_BYTES = 64 * 2**20
"""Of a channel's page; a framework's has one or two million."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A package and the version that it moves to."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"


def repin(
    root: Path, image: str, asked: Sequence[str], *, run: Run = run_quietly, page: Page | None = None
) -> LockReport:
    """Moves packages, as `torch==2.14.1`, in an image's requirements, channel and lock, and not the base.

    Raises UserError for a package that the lock does not have or a version that its channel does not,
    NoNetwork where channel or index do not answer; every file is then as it was.
    """
    chosen = load_images(root).image(image)
    pins = [_pin(words, chosen, root) for words in asked]
    folder = root / "docker"
    parts = [part.lock for part in (chosen.channel, chosen.sources) if part]
    files = [folder / path for path in ("images.toml", chosen.requirements, chosen.lock, *parts)]
    before = {path: path.read_bytes() for path in files if path.is_file()}
    try:
        for pin in pins:
            _pin_channel(chosen, root, pin, run, page or read_page)
            _pin_requirement(folder / chosen.requirements, pin)
        return relock(load_images(root).image(image), root, run=run, only=[str(pin) for pin in pins])
    except BaseException:
        for path, content in before.items():
            path.write_bytes(content)
        raise


def _pin(asked: str, image: Image, root: Path) -> Pin:
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
    return Pin(name, found[2])


def _pin_requirement(path: Path, pin: Pin) -> None:
    def pinned(line: str) -> str:
        own = re.match(r"(([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?)==[^\s;]+", line)
        same = own and normal_name(own[2]) == pin.name
        return f"{own[1]}=={pin.version}{line[own.end() :]}" if own and same else line

    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(map(pinned, lines)), encoding="utf-8")


def _pin_channel(image: Image, root: Path, pin: Pin, run: Run, page: Page) -> None:
    """Writes a version and its hashes into images.toml, where a channel has the package."""
    packages = image.channel.packages if image.channel else ()
    for place, package in enumerate(packages):
        if normal_name(package.name) == pin.name and image.channel is not None:
            whole, hashes = _wheels(page(f"{image.channel.address}/{pin.name}/"), image, package, pin.version)
            if "+" not in whole:
                # Where the channel does not answer, the index's own build is installed: it is pinned too.
                hashes += _of_the_index(image, pin, run)
            path = root / "docker" / "images.toml"
            document: Any = tomlkit.parse(path.read_text(encoding="utf-8"))
            entry = document["images"][image.name]["channel"]["packages"][place]
            entry["version"] = whole
            entry["sha256"] = tomlkit.array()
            for digest in dict.fromkeys(hashes):
                entry["sha256"].add_line(digest, indent="  ")
            entry["sha256"].add_line(indent="")
            path.write_text(tomlkit.dumps(document), encoding="utf-8")


def _of_the_index(image: Image, pin: Pin, run: Run) -> tuple[str, ...]:
    """The hashes that the package index has of a version, as uv tells them; none for one that it has not."""
    with tempfile.TemporaryDirectory() as folder:
        asked, output = Path(folder) / "asked.in", Path(folder) / "lock.txt"
        asked.write_text(f"{pin}\n", encoding="utf-8")
        command = [uv_program(), "pip", "compile", str(asked), "--python-version", image.python]
        command += ["--python-platform", uv_platform(image.platform), "--no-deps", "--generate-hashes"]
        command += ["--no-header", "--no-annotate", "--quiet", "--output-file", str(output)]
        done = run(command)
        if done.returncode:
            raise uv_failed(image, image.python, done.stderr)
        return tuple(_HASH.findall(output.read_text(encoding="utf-8")))


def _wheels(text: str, image: Image, package: ChannelPackage, version: str) -> tuple[str, tuple[str, ...]]:
    """The version with the local part that the channel's package has, and hashes for each of the Pythons."""
    _, plus, local = package.version.partition("+")
    whole = f"{version}{plus}{local}"
    hashes: list[str] = []
    for python in image.pythons:
        of_python = list(_hashes(text, whole, python, image.platform))
        if not of_python:
            raise UserError(
                f"the channel of '{image.name}' has no wheel of {package.name} {whole} with a SHA-256 for "
                f"Python {python}",
                remedy="choose a version that it has",
            )
        hashes += of_python
    return whole, tuple(hashes)


def _hashes(text: str, version: str, python: str, platform: str) -> Iterator[str]:
    tags = (f"cp{python.replace('.', '')}", "py3")
    for wheel in _WHEEL.finditer(text):
        if _fits(unquote(wheel["file"]), version, tags, platform):
            yield wheel["sha256"]


def _fits(file: str, version: str, tags: tuple[str, ...], platform: str) -> bool:
    parts = file.removesuffix(".whl").split("-")
    if len(parts) < 5 or not satisfies(parts[1], version) or not set(parts[-3].split(".")) & set(tags):
        return False
    abi, built_for = parts[-2], parts[-1]
    machine = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}[platform]
    threads_free = abi.endswith("t") and abi.startswith("cp")
    return not threads_free and (built_for == "any" or ("linux" in built_for and built_for.endswith(machine)))


def read_page(address: str) -> str:
    """A page of a channel; raises NoNetwork where it is not given."""
    try:
        with requests.get(address, timeout=_SECONDS, stream=True) as reply:
            reply.raise_for_status()
            content: bytes = reply.raw.read(_MOST_BYTES, decode_content=True)
    except (requests.RequestException, OSError) as error:
        raise NoNetwork(
            f"the channel did not give '{address}' ({type(error).__name__})", remedy="connect and retry"
        ) from None
    return content.decode("utf-8", errors="replace")
