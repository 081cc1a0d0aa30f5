"""The lock of a second stack: an image's own lock with some packages moved, kept below docker/against/."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess

from packaging.utils import canonicalize_name, parse_wheel_filename

from harness.errors import NoNetwork, UserError
from harness.files import hash_file, text_sha256
from harness.image.images import Image, load_images
from harness.image.lock import (
    CommandRunner,
    hashed_pin,
    lock_packages,
    lock_sha256,
    package_blocks,
    resolve_lock,
    run_quietly,
    uv_line,
    write_lock,
)
from harness.record import short_hash

FOLDER = "against"
_CUDA_OF_TORCH = re.compile(r"(nvidia|cuda)-|triton$")
"""What the index's build of torch names, and the CPU build does not need."""


def moved_image(
    image: Image,
    root: Path,
    pins: Sequence[str],
    *,
    wheelhouse: Path | None = None,
    run: CommandRunner = run_quietly,
) -> Image:
    """Return the image with another lock, in which `pins` hold and only what has to move is moved besides.

    It is resolved once and kept. Raises UserError for a package that the lock has not, or a version that does
    not go with the rest; NoNetwork where no index answers.
    """
    locked = lock_packages(root / "docker" / image.lock)
    moving = {canonicalize_name(name): version for name, version in (pin.split("==") for pin in pins)}
    for name in moving:
        if name not in locked:
            base = f": it comes with its base, {image.base}" if name in image.from_base else ""
            raise UserError(
                f"the lock of image '{image.name}' has no package '{name}'{base}",
                remedy=f"take a package of docker/{image.lock}, or --against image:NAME",
            )
    if moving.items() <= locked.items():
        return image
    moved = _second_image(
        image, f"{image.name}-{short_hash([lock_sha256(root, image.lock), sorted(pins)], 8)}"
    )
    if not (root / "docker" / moved.lock).is_file():
        _write_second_lock(
            root, moved, image, _resolve_blocks(image, root, pins, wheelhouse, run), f"with {', '.join(pins)}"
        )
    return moved


def given_image(image: Image, root: Path, path: Path) -> Image:
    """Return the image with a lock of the user's; raises UserError where it is not hashed throughout."""
    packages, text = lock_packages(path), path.read_text(encoding="utf-8")
    blocks = package_blocks(text)
    if not packages or any("--hash=sha256:" not in block for block in blocks.values()):
        raise UserError(
            f"'{path.name}' is no lock: each package needs its version and hashes",
            remedy="write it with uv pip compile --generate-hashes",
        )
    moved = _second_image(image, f"{image.name}-{text_sha256(text.encode())[:8]}")
    _write_second_lock(root, moved, image, blocks, "given")
    return moved


def known_locks(root: Path) -> dict[str, Image]:
    """Return the image of each lock of a clone by the lock's SHA-256, second stacks' locks included."""
    images = load_images(root).images if (root / "docker" / "images.toml").is_file() else {}
    images_with_locks = [*images.values()]
    for folder in sorted((root / "docker" / FOLDER).glob("*-*")):
        image = images.get(folder.name.rpartition("-")[0])
        images_with_locks += [_second_image(image, folder.name)] if image else []
    there = [image for image in images_with_locks if (root / "docker" / image.lock).is_file()]
    return {lock_sha256(root, image.lock): image for image in reversed(there)}


def locked_packages(root: Path, image: Image) -> tuple[Mapping[str, str], bool]:
    """Return what an image's lock and base pin, and whether the base brings packages that no lock names."""
    return lock_packages(root / "docker" / image.lock) | image.from_base, bool(image.from_base)


def _second_image(image: Image, name: str) -> Image:
    """Return the image as its second stack's folder has it."""
    folder = f"{FOLDER}/{name}"
    own_dockerfile = Path(image.dockerfile).parent == Path(image.lock).parent
    changes = {
        "lock": f"{folder}/lock.txt",
        "dockerfile": f"{folder}/Dockerfile" if own_dockerfile else image.dockerfile,
        "channel": image.channel and image.channel.model_copy(update={"lock": f"{folder}/channel.txt"}),
        "sources": image.sources and image.sources.model_copy(update={"lock": f"{folder}/tools.txt"}),
    }
    return image.model_copy(update=changes)


def _write_second_lock(root: Path, moved: Image, image: Image, blocks: Mapping[str, str], how: str) -> None:
    """Write the lock last, so that it is there only with all of its parts."""
    docker = root / "docker"
    folder = Path(moved.lock).parent.as_posix()
    (docker / folder).mkdir(parents=True, exist_ok=True)
    header = f"# The lock of image '{image.name}', {how}. Install it with --no-deps --require-hashes.\n"
    if moved.dockerfile != image.dockerfile:
        text = (docker / image.dockerfile).read_text(encoding="utf-8")
        own = Path(image.lock).parent.as_posix()
        (docker / moved.dockerfile).write_text(text.replace(f"docker/{own}/", f"docker/{folder}/"))
    write_lock(moved, root, blocks, header)


def _resolve_blocks(
    image: Image, root: Path, pins: Sequence[str], wheelhouse: Path | None, run: CommandRunner
) -> dict[str, str]:
    versions = {canonicalize_name(pin.partition("==")[0]): pin for pin in pins}
    channel = {package.name: package for package in image.channel.packages} if image.channel else {}
    text = (root / "docker" / image.requirements).read_text(encoding="utf-8")
    asked = {}
    for line in (line for line in text.splitlines() if line and not line.startswith("#")):
        name = canonicalize_name(re.split(r"[^\w.-]", line)[0])
        # What was pinned may move where it has to; the lock says what it was, and uv keeps that where it can.
        kept = line if not channel.keys() & versions.keys() and name in channel else line.partition("==")[0]
        asked[name] = versions.get(name, kept)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        requirements = folder / "requirements.in"
        requirements.write_text("".join(f"{line}\n" for line in (asked | versions).values()))
        plain = {"channel": None, "requirements": str(requirements), "pythons": (image.python,)}
        first = image.model_copy(update=plain)
        try:
            blocks = package_blocks(resolve_lock(first, root, folder, _prefer_wheels(run, wheelhouse), pins))
        except UserError as error:
            why = error.problem.partition(": ")[2]
            raise UserError(
                f"no lock of image '{image.name}' has {', '.join(pins)}: {why}", remedy="take another version"
            ) from None
        if image.device == "cpu" and channel:
            own = lock_packages(root / "docker" / image.lock)
            blocks = {
                name: block for name, block in blocks.items() if name in own or not _CUDA_OF_TORCH.match(name)
            }
        for package in channel.values():
            version = blocks[package.name].partition("==")[2].split()[0]
            release, _, build = package.version.partition("+")
            wheels = _find_wheels(wheelhouse, package.name, version.partition("+")[0], build)
            if version.partition("+")[0] == release:
                blocks[package.name] = hashed_pin(f"{package.name}=={package.version}", package.sha256)
            elif wheels:
                version = str(parse_wheel_filename(wheels[0].name)[1])
                blocks[package.name] = hashed_pin(f"{package.name}=={version}", map(hash_file, wheels))
            elif "+" not in version:
                blocks[package.name] = _channel_block(image, f"{package.name}=={version}", folder, run)
    return blocks


def _find_wheels(wheelhouse: Path | None, name: str, release: str, build: str) -> list[Path]:
    """Return the wheels of one build of a release in a folder; the index may hold another, for CUDA."""
    found = []
    for wheel in sorted(wheelhouse.glob("*.whl")) if wheelhouse else ():
        own, version, *_ = parse_wheel_filename(wheel.name)
        if (own, version.public, version.local or "") == (name, release, build):
            found.append(wheel)
    return found


def _channel_block(image: Image, pin: str, folder: Path, run: CommandRunner) -> str:
    """Return one version of a package with the hashes of its vendor's own channel."""
    assert image.channel is not None
    path = folder / "channel.in"
    path.write_text(pin + "\n")
    line = [*uv_line(image, str(path)), "--no-deps", "--python-version", image.python]
    done = run([*line, "--index-url", image.channel.address])
    last = " ".join(done.stderr.split())[-200:]
    if done.returncode or "--hash" not in done.stdout:
        raise NoNetwork(
            f"{image.channel.address} did not give {pin} for Python {image.python}: {last}",
            remedy="put that channel's wheel into a folder and name it with --wheelhouse",
        )
    return next(iter(package_blocks(done.stdout).values()))


def _prefer_wheels(run: CommandRunner, wheelhouse: Path | None) -> CommandRunner:
    """Take the wheelhouse alone where it has everything, else the index and the wheelhouse."""
    if wheelhouse is None:
        return run

    def either(line: Sequence[str]) -> CompletedProcess[str]:
        wheels = [*line, "--find-links", str(wheelhouse)]
        alone = run([*wheels, "--no-index"])
        return alone if alone.returncode == 0 else run(wheels)

    return either
