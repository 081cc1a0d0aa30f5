"""What a lock says: packages with their versions, and how what is installed differs from it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from harness.errors import PlanError

_PINNED = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.MULTILINE)
_TOOLS = frozenset({"pip", "setuptools", "wheel"})
"""What an environment is made with; they are the stack's only where a lock names them."""


def lock_text(root: Path, path: str) -> bytes:
    """A lock's bytes, `path` being below docker/; raises PlanError where it is missing."""
    try:
        return (root / "docker" / path).read_bytes()
    except FileNotFoundError:
        raise PlanError(
            f"docker/{path} is not there", remedy="write it with 'invoke lock --image NAME'"
        ) from None


def lock_sha256(root: Path, path: str) -> str:
    """The SHA-256 of a lock file below docker/."""
    return hashlib.sha256(lock_text(root, path)).hexdigest()


def lock_packages(path: Path) -> dict[str, str]:
    """Name → version of a hashed requirement file, names as PEP 503 normalises them."""
    text = path.read_text(encoding="utf-8")
    return {normal_name(found["name"]): found["version"] for found in _PINNED.finditer(text)}


def normal_name(name: str) -> str:
    """A package's name as PEP 503 normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def differences(
    locked: Mapping[str, str], installed: Mapping[str, str], *, over_base: bool = False
) -> tuple[str, ...]:
    """What keeps an environment from being its lock, one clause each; empty where they are equal.

    A build's local version satisfies its release (2.13.0+cpu is 2.13.0), not the other way round.
    `over_base` is for images whose base brings packages of its own.
    """
    found = {normal_name(name): version for name, version in installed.items()}
    wanted = {normal_name(name): version for name, version in locked.items()}
    clauses = []
    for name, version in sorted(wanted.items()):
        if name not in found:
            clauses.append(f"{name} {version} is locked and not installed")
        elif not _satisfies(found[name], version):
            clauses.append(f"{name} is {found[name]} where {version} is locked")
    if not over_base:
        extra = sorted(found.keys() - wanted.keys() - _TOOLS)
        clauses += [f"{name} {found[name]} is installed and not locked" for name in extra]
    return tuple(clauses)


def _satisfies(installed: str, locked: str) -> bool:
    return installed == locked or ("+" not in locked and installed.split("+")[0] == locked)
