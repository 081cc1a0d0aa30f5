"""`invoke lock --package`: one package moves, its channel's hashes with it, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import requests
import tomlkit

from harness.errors import NoNetwork, UserError
from harness.image.catalog import ChannelPackage, Image, load_images
from harness.image.lock import LockReport, Run, lock_packages, normal_name, relock, run_quietly

Page = Callable[[str], str]

_ASKED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([0-9][A-Za-z0-9.!]*)")
_WHEEL = re.compile(r'href="(?:[^"#]*/)?(?P<file>[^"#/]+\.whl)#sha256=(?P<sha256>[0-9a-f]{64})"')
_SECONDS = 30


def repin(
    root: Path, image: str, asked: str, *, run: Run = run_quietly, page: Page | None = None
) -> LockReport:
    """Moves a package, as `torch==2.14.1`, in an image's requirements, channel and lock, and not the base.

    Raises UserError for a package that the lock does not have or a version that its channel does not,
    NoNetwork where channel or index do not answer; every file is then as it was.
    """
    chosen = load_images(root).image(image)
    found = _ASKED.fullmatch(asked)
    if found is None:
        raise UserError(f"'{asked[:80]}' names no version of a package", remedy="write it as torch==2.14.1")
    name, version = normal_name(found[1]), found[2]
    folder = root / "docker"
    if name not in lock_packages(folder / chosen.lock):
        raise UserError(f"docker/{chosen.lock} has no package '{name}'", remedy="add it to the requirements")
    channels = (chosen.channel.lock,) if chosen.channel else ()
    files = [folder / path for path in ("images.toml", chosen.requirements, chosen.lock, *channels)]
    before = {path: path.read_bytes() for path in files if path.is_file()}
    try:
        _pin_channel(chosen, root, name, version, page or _read)
        _pin_requirement(folder / chosen.requirements, name, version)
        return relock(load_images(root).image(image), root, run=run, only=f"{name}=={version}")
    except BaseException:
        for path, content in before.items():
            path.write_bytes(content)
        raise


def _pin_requirement(path: Path, name: str, version: str) -> None:
    def pinned(line: str) -> str:
        own = re.match(r"([A-Za-z0-9][A-Za-z0-9._-]*)==[^\s;]+", line)
        return f"{own[1]}=={version}{line[own.end() :]}" if own and normal_name(own[1]) == name else line

    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(map(pinned, lines)), encoding="utf-8")


def _pin_channel(image: Image, root: Path, name: str, version: str, page: Page) -> None:
    """Writes a version and its hashes into images.toml, where a channel has the package."""
    packages = image.channel.packages if image.channel else ()
    for place, package in enumerate(packages):
        if normal_name(package.name) == name and image.channel is not None:
            text = page(f"{image.channel.address}/{name}/")
            whole, hashes = _wheels(text, image, package, version)
            path = root / "docker" / "images.toml"
            document: Any = tomlkit.parse(path.read_text(encoding="utf-8"))
            entry = document["images"][image.name]["channel"]["packages"][place]
            entry["version"] = whole
            entry["sha256"] = tomlkit.array().multiline(True)
            entry["sha256"].extend(hashes)
            path.write_text(tomlkit.dumps(document), encoding="utf-8")


def _wheels(text: str, image: Image, package: ChannelPackage, version: str) -> tuple[str, tuple[str, ...]]:
    """The version with the local part that the channel's package has, and hashes for each of the Pythons."""
    _, plus, local = package.version.partition("+")
    whole = f"{version}{plus}{local}"
    hashes = []
    for python in image.pythons:
        tags = (f"cp{python.replace('.', '')}", "py3")
        of_python = [
            wheel["sha256"]
            for wheel in _WHEEL.finditer(text)
            if _fits(unquote(wheel["file"]), whole, tags, image.platform)
        ]
        if not of_python:
            raise UserError(
                f"the channel of '{image.name}' has no wheel of {package.name} {whole} for Python {python}",
                remedy="choose a version that it has",
            )
        hashes += of_python
    return whole, tuple(dict.fromkeys(hashes))


def _fits(file: str, version: str, tags: tuple[str, ...], platform: str) -> bool:
    parts = file.removesuffix(".whl").split("-")
    if len(parts) < 5 or parts[1] != version or not set(parts[-3].split(".")) & set(tags):
        return False
    abi, built_for = parts[-2], parts[-1]
    machine = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}[platform]
    threads_free = abi.endswith("t") and abi.startswith("cp")
    return not threads_free and (built_for == "any" or ("linux" in built_for and built_for.endswith(machine)))


def _read(address: str) -> str:
    try:
        reply = requests.get(address, timeout=_SECONDS)
        reply.raise_for_status()
    except requests.RequestException as error:
        raise NoNetwork(
            f"the channel did not give '{address}' ({type(error).__name__})", remedy="connect and retry"
        ) from None
    return reply.text
