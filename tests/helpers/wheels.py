"""Constructed wheels in a folder, and a clone whose one image is made of them."""

from __future__ import annotations

import base64
import hashlib
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.helpers import ROOT

PINS = """
[images.tiny]
device = "cpu"
dockerfile = "tiny/Dockerfile"
base = "debian:bookworm-slim"
base_digest = "sha256:abd67ffcfa541b485a3dff59865ab629aa048a6c613e639d36e7456b0b229241"
base_digest_verified = false
platform = "linux/amd64"
pythons = ["3.11", "3.12", "3.13"]
requirements = "tiny/requirements.in"
lock = "tiny/lock.txt"
"""


def wheel(
    folder: Path, name: str, version: str, *, needs: str = "", body: str = "", tag: str = "py3-none-any"
) -> Path:
    """A wheel of one module, by default with nothing but its version in it."""
    path = folder / f"{name}-{version}-{tag}.whl"
    info = f"{name}-{version}.dist-info"
    needed = f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        f"{name}.py": body or f"VERSION = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        rows = []
        for each, text in files.items():
            archive.writestr(each, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
            rows.append(f"{each},sha256={digest},{len(text)}\n")
        archive.writestr(f"{info}/RECORD", "".join([*rows, f"{info}/RECORD,,\n"]))
    return path


def pinned(path: Path, package: str, version: str) -> str:
    """One package of a lock."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{package}=={version} \\\n    --hash=sha256:{digest}\n"


def tiny_image(root: Path, locked: Mapping[str, str]) -> Path:
    """Gives a clone the one image 'tiny' with these packages, whose wheels lie in its wheelhouse."""
    if shutil.which("uv") is None:
        pytest.skip("uv makes the locks")
    folder = root / "docker" / "tiny"
    folder.mkdir(parents=True)
    (folder.parent / "images.toml").write_text(PINS)
    (folder / "requirements.in").write_text("".join(f"{name}=={v}\n" for name, v in locked.items()))
    (folder / "Dockerfile").write_text("RUN sh steps.sh pip python /context/docker/tiny/lock.txt\n")
    shutil.copy(ROOT / "docker" / "steps.sh", folder.parent / "steps.sh")
    wheels = root / "wheelhouse"
    lines = [pinned(wheels / f"{name}-{v}-py3-none-any.whl", name, v) for name, v in locked.items()]
    (folder / "lock.txt").write_text("".join(lines))
    return root
