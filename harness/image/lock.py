"""`invoke lock`: the only way a version changes."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from harness.errors import MachineError, NoNetwork, PlanError, UserError
from harness.files import text_sha256, write_then_rename
from harness.image.images import Image

CommandRunner = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]

OWN_LOCK = "requirements.lock"
"""The lock of gpudyno itself, in the clone."""
_HASHED = ("--generate-hashes", "--no-header", "--no-annotate", "--quiet")
_UV_PLATFORMS = {"linux/amd64": "x86_64-manylinux_2_28", "linux/arm64": "aarch64-manylinux_2_28"}
"""A platform as uv calls it, of the oldest system that images serve."""


def run_quietly(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command and keep what it says."""
    return subprocess.run(command, capture_output=True, text=True, check=False)


def relock(
    image: Image, root: Path, *, run: CommandRunner = run_quietly, only: Sequence[str] = ()
) -> tuple[str, ...]:
    """Resolve an image's requirements again, or the packages of `only`, and give a clause for each change.

    Raises MachineError where uv is missing, NoNetwork where no index answers, and UserError where the
    requirements cannot be met.
    """
    lock = root / "docker" / image.lock
    before = lock_packages(lock) if lock.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        resolved = resolve_lock(image, root, Path(folder), run, only)
    header = (
        f"# The lock of image '{image.name}', written by: invoke lock --image {image.name}\n"
        f"# Python {', '.join(image.pythons)}, {image.platform}.\n"
        "# It is complete: install it with --no-deps --require-hashes.\n"
    )
    for package in image.channel.packages if image.channel else ():
        resolved += hashed_pin(f"{package.name}=={package.version}", package.sha256)
    changed = write_lock(image, root, package_blocks(resolved), header)
    return (*changed, *version_changes(before, lock_packages(lock)))


def relock_own(root: Path, *, run: CommandRunner = run_quietly, only: Sequence[str] = ()) -> tuple[str, ...]:
    """Resolve gpudyno's own requirements again, for every Python that it serves; `only` as in `relock`."""
    lock = root / OWN_LOCK
    before = lock_packages(lock) if lock.exists() else {}
    line = [find_uv(), "pip", "compile", str(root / "pyproject.toml"), "--extra", "test", "--universal"]
    line += ["--python-version", "3.11", *_HASHED, "--output-file", str(lock)]
    done = run([*line, *_upgrades(only)])
    if done.returncode:
        raise uv_error("pyproject.toml", "3.11", done.stderr)
    return version_changes(before, lock_packages(lock))


def version_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return a clause for each package whose version is another, or that came or went."""
    names = sorted(before.keys() | after.keys())
    return tuple(
        f"{name}: {before.get(name, 'not there')} → {after.get(name, 'gone')}"
        for name in names
        if before.get(name) != after.get(name)
    )


def _compile_line(image: Image, root: Path, only: Sequence[str]) -> list[str]:
    """Return what uv is asked for each Python: hashes of every file of a version, no address or path."""
    requirements = str(root / "docker" / image.requirements)
    line = ["env", *image.sources.settings()] if image.sources and image.sources.variables else []
    line += [*uv_line(image, requirements), *_upgrades(only)]
    if image.sources:
        line += ["--build-constraints", requirements]
    for name in image.sources.packages if image.sources else ():
        line += ["--no-binary", name]
    for package in image.channel.packages if image.channel else ():
        line += ["--no-emit-package", package.name]
    return line


def _upgrades(only: Sequence[str]) -> list[str]:
    return [part for pin in only for part in ("--upgrade-package", pin)] or ["--upgrade"]


def hashed_pin(pin: str, sha256: Iterable[str]) -> str:
    """Return one version of a package as a hashed requirement file has it."""
    return " \\\n".join((pin, *(f"    --hash=sha256:{digest}" for digest in sha256))) + "\n"


def uv_line(image: Image, requirements: str) -> list[str]:
    """Return what uv is asked for an image's platform: hashed wheels; raises MachineError without uv."""
    line = [find_uv(), "pip", "compile", requirements, "--python-platform", _UV_PLATFORMS[image.platform]]
    return [*line, "--only-binary", ":all:", *_HASHED]


def find_uv() -> str:
    """Return the program that makes locks; raises MachineError where it is not on the PATH."""
    program = shutil.which("uv")
    if program is None:
        raise MachineError("uv is not on the PATH, and it makes the locks", remedy="'pip install uv'")
    return program


_BLOCK = re.compile(r"^\S[^\n]*(?:\n[ \t][^\n]*)*", re.MULTILINE)


def package_blocks(text: str) -> dict[str, str]:
    """Return packages of a requirement file in the order of their names, each with its lines of hashes."""
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    found = _BLOCK.findall("\n".join(lines))
    return {canonicalize_name(block.partition("==")[0]): block + "\n" for block in sorted(found)}


def write_lock(image: Image, root: Path, blocks: Mapping[str, str], header: str) -> list[str]:
    """Write an image's lock after all of its parts, and give a clause for each that was another."""
    parts = {image.lock: list(blocks)}
    if image.sources:
        parts = {image.sources.lock: list(filter(image.sources.builds_with, blocks)), **parts}
    if image.channel:
        parts = {image.channel.lock: [canonicalize_name(one.name) for one in image.channel.packages], **parts}
    changed = []
    for path, names in parts.items():
        file, text = root / "docker" / path, header + "".join(blocks[name] for name in names)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            with write_then_rename(file) as part:
                part.write_text(text, encoding="utf-8")
            changed.append(f"docker/{path} is written again")
    return changed


def resolve_lock(image: Image, root: Path, folder: Path, run: CommandRunner, only: Sequence[str]) -> str:
    """Resolve for the image's own Python; its other Pythons have to come to the same packages."""
    excludes = folder / "excludes.txt"
    excludes.write_text("\n".join([*image.left_out, *image.from_base]) + "\n", encoding="utf-8")
    first = folder / f"{image.python}.txt"
    line = [*_compile_line(image, root, only), "--excludes", str(excludes)]
    for python in image.pythons:
        output = folder / f"{python}.txt"
        if only:
            # What uv finds in its output stays as it is, but for the package that is asked for.
            shutil.copyfile(root / "docker" / image.lock, output)
        other = [] if output == first else ["--constraints", str(first)]
        done = run([*line, "--python-version", python, "--output-file", str(output), *other])
        if done.returncode:
            raise uv_error(f"docker/{image.requirements}", python, done.stderr)
        if output.read_bytes() != first.read_bytes():
            raise UserError(
                f"docker/{image.requirements} gives Python {python} other packages than {image.python}",
                remedy=f"take {python} out of the pythons of '{image.name}'",
            )
    return first.read_text(encoding="utf-8")


def uv_error(requirements: str, python: str, stderr: str) -> MachineError | UserError:
    """Return why uv resolved nothing: no index, or versions that do not go together."""
    last = " ".join(stderr.split())[-400:]
    if re.search(r"dns|connect|timed out|fetch", stderr, re.IGNORECASE):
        return NoNetwork(
            f"to lock {requirements} a package index is needed: {last}", remedy="connect and retry"
        )
    return UserError(
        f"{requirements} cannot be resolved for Python {python}: {last}",
        remedy="change its versions; what needs each other moves by one line with several --package",
    )


_PINNED = re.compile(
    r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==(?P<version>[^\s;\\]+)", re.MULTILINE
)
_TOOLS = frozenset({"pip", "setuptools", "wheel"})
"""What an environment is made with; they are the stack's only where a lock names them."""


def lock_sha256(root: Path, path: str) -> str:
    """Return the SHA-256 of a lock or another file below docker/; raises PlanError where it is missing."""
    try:
        return text_sha256((root / "docker" / path).read_bytes())
    except FileNotFoundError:
        raise PlanError(
            f"docker/{path} is not there", remedy="write it with 'invoke lock --image NAME'"
        ) from None


def lock_packages(path: Path) -> dict[str, str]:
    """Return name → version of a hashed requirement file, name as PEP 503 normalises them.

    Raises PlanError where it is missing or no text.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError) as error:
        wrong = "is not there" if isinstance(error, FileNotFoundError) else "is not UTF-8"
        raise PlanError(f"'{path.name}' {wrong}", remedy="write it with 'invoke lock --image NAME'") from None
    return {canonicalize_name(pin["name"]): pin["version"] for pin in _PINNED.finditer(text)}


def lock_disagreements(image: Image, root: Path) -> tuple[str, ...]:
    """Return where an image's requirements, channel, base and lock name one package in two versions."""
    locked = lock_packages(root / "docker" / image.lock)
    packages = image.channel.packages if image.channel else ()
    channel = {canonicalize_name(package.name): package.version for package in packages}
    clauses = [
        f"docker/{image.lock} has {name} {locked.get(name)}, and {version} is pinned"
        for name, version in channel.items()
        if locked.get(name) != version
    ]
    over_base = {canonicalize_name(name): version for name, version in image.from_base.items()}
    pinned = locked | channel | over_base
    for name, version in lock_packages(root / "docker" / image.requirements).items():
        has = pinned.get(name, "none of it")
        if not _satisfies(has, version):
            clauses.append(f"docker/{image.requirements} asks for {name} {version}, and {has} is pinned")
    return tuple(clauses)


def lock_differences(
    locked: Mapping[str, str], installed: Mapping[str, str], *, over_base: bool = False
) -> tuple[str, ...]:
    """Return what keeps an environment from being its lock, one clause each; empty where they are equal.

    A build's local version satisfies its release (2.13.0+cpu is 2.13.0), not the other way round.
    `over_base` is for images whose base brings packages of its own.
    """
    installed = {canonicalize_name(name): version for name, version in installed.items()}
    locked = {canonicalize_name(name): version for name, version in locked.items()}
    clauses = []
    for name, version in sorted(locked.items()):
        if name not in installed:
            clauses.append(f"{name} {version} is locked and not installed")
        elif not _satisfies(installed[name], version):
            clauses.append(f"{name} is {installed[name]} where {version} is locked")
    if not over_base:
        extra = sorted(installed.keys() - locked.keys() - _TOOLS)
        clauses += [f"{name} {installed[name]} is installed and not locked" for name in extra]
    return tuple(clauses)


def _satisfies(installed: str, locked: str) -> bool:
    return SpecifierSet(f"=={locked}").contains(installed, prereleases=True)
