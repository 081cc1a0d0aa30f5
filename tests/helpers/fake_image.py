"""A root file system of this host's own Python and nothing else, so that a container needs no registry."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable
from pathlib import Path

import docker

NAME = "gpudyno-test-base"
_LEFT_OUT = ("site-packages", "dist-packages", "test", "idlelib", "tkinter", "ensurepip", "__pycache__")


def make(path: Path) -> Path:
    """Writes the root file system as a tar file: `python` on its PATH, no shell."""
    interpreter = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib")).resolve()
    extensions = sorted((library / "lib-dynload").glob("*.so"))
    with tarfile.open(path, "w") as tar:
        for folder in ("tmp", "in", "out", "data", "cache", "workloads", "etc", "proc", "sys", "dev", "run"):
            _add_folder(tar, folder)
        for file in sorted(_shared(interpreter, *extensions)):
            tar.add(file.resolve(), arcname=str(file).lstrip("/"))
        tar.add(library, arcname=str(library).lstrip("/"), filter=_wanted)
        _add_link(tar, "usr/bin/python", str(interpreter))
        tar.add(interpreter, arcname=str(interpreter).lstrip("/"))
    return path


def _wanted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = member.name.split("/")
    return None if any(part in _LEFT_OUT or part.startswith("config-") for part in parts) else member


def _add_folder(tar: tarfile.TarFile, name: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
    tar.addfile(entry)


def _add_link(tar: tarfile.TarFile, name: str, target: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    tar.addfile(entry)


def _shared(*files: Path) -> set[Path]:
    """The libraries that these files load, the loader included, by the paths that they are looked for at."""
    found: set[Path] = set()
    for file in files:
        listed = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False).stdout
        found |= {Path(path) for path in re.findall(r"(/\S+) \(0x", listed)}
    return found


def imported(api: docker.APIClient, rootfs: Path, *, podman: bool) -> str:
    """Imports the root file system under NAME and returns the name that a Dockerfile finds it by."""
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    lines = api.import_image_from_file(str(rootfs), repository=NAME, tag="1", changes=[f"ENV {path}"])
    image_id = re.findall(r"sha256:[0-9a-f]{64}", str(lines))[-1]
    if podman:
        name = f"localhost/{NAME}:1"
        api.tag(image_id.removeprefix("sha256:"), f"localhost/{NAME}", "1", force=True)
        return name
    return f"{NAME}:1"


def contents(api: docker.APIClient, image: str) -> Iterable[bytes]:
    """Everything that an image holds, layer by layer and unpacked, its configuration and history included."""
    saved = io.BytesIO(b"".join(api.get_image(image)))
    with tarfile.open(fileobj=saved) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isfile() else None
            if file is None:
                continue
            raw = file.read()
            yield raw
            if raw[:2] == b"\x1f\x8b":
                yield gzip.decompress(raw)
