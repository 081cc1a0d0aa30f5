"""The folder of a user's own program: its files, their hash, and one copy for all trials."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError
from harness.files import free_bytes, need_room

MOST_BYTES = 200_000_000
NAMED_FOLDERS = 3
"""How many of its largest folders are named where a folder is too large."""
NOT_TAKEN = frozenset(
    (
        ".git",
        ".venv",
        "venv",
        "env",
        "__pycache__",
        "node_modules",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
    )
)
"""Folders that are left out where no git says what belongs to a program."""


@dataclass(frozen=True, slots=True)
class OwnFolder:
    """A program's folder as it is now. Paths are relative to it, `sha256` is of names, modes and contents."""

    root: Path
    files: tuple[Path, ...]
    sha256: str

    @property
    def name(self) -> str:
        """Return the name of its copy among the data."""
        return f"own-{self.sha256[:12]}"


def git_root(start: Path) -> Path | None:
    """Return the top of the git working tree that a folder lies in; null where it lies in none."""
    done = subprocess.run(
        ["git", "-C", str(start), "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=False
    )
    top = done.stdout.strip()
    return Path(top).resolve() if done.returncode == 0 and top else None


def read_folder(root: Path) -> OwnFolder:
    """Return the folder with what git tracks or do not ignore; without git all but environments and caches.

    Raises UserError where that is more than 200 MB, naming its largest folders.
    """
    files = tuple(sorted(_git_files(root) if git_root(root) else _walk_files(root)))
    sizes = Counter({path: (root / path).lstat().st_size for path in files})
    if sizes.total() > MOST_BYTES:
        raise _size_error(root, sizes)
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.as_posix()}\0{_file_kind(root / path)}\0".encode())
        digest.update(_content_hash(root / path))
    return OwnFolder(root, files, digest.hexdigest())


def copy_folder(folder: OwnFolder, into: Path) -> Path:
    """Copy a folder's files below `into` once, under a name of its hash; return the copy."""
    copy = into / folder.name
    if copy.is_dir():
        return copy
    size = sum((folder.root / path).lstat().st_size for path in folder.files)
    into.mkdir(parents=True, exist_ok=True)
    need_room("a copy of the program's folder", size, free_bytes(into), into, "make room there")
    unfinished = into / f".{folder.name}.{os.getpid()}"
    for path in folder.files:
        (unfinished / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder.root / path, unfinished / path, follow_symlinks=False)
    unfinished.mkdir(exist_ok=True)
    unfinished.rename(copy)
    return copy


def _git_files(root: Path) -> Iterator[Path]:
    """Yield tracked and not ignored files, of submodules too."""
    for flags in (["--cached", "--recurse-submodules"], ["--others", "--exclude-standard"]):
        argv = ["git", "-C", str(root), "ls-files", "-z", *flags]
        listed = subprocess.run(argv, capture_output=True, check=True).stdout
        for name in filter(None, listed.decode("utf-8", "surrogateescape").split("\0")):
            if os.path.lexists(root / name) and not (root / name).is_dir():
                yield Path(name)


def _walk_files(root: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(root):
        here = Path(place)
        folders[:] = [
            name for name in folders if name not in NOT_TAKEN and not (here / name / "pyvenv.cfg").exists()
        ]
        links = [name for name in folders if (here / name).is_symlink()]
        for name in (*files, *links):
            if not stat.S_ISSOCK((here / name).lstat().st_mode):
                yield (here / name).relative_to(root)


def _size_error(root: Path, sizes: Counter[Path]) -> UserError:
    folders: Counter[str] = Counter()
    for path, size in sizes.items():
        folders[path.parts[0] if len(path.parts) > 1 else "."] += size
    largest = ", ".join(f"{name} ({size / 1e6:,.0f} MB)" for name, size in folders.most_common(NAMED_FOLDERS))
    return UserError(
        f"the program's folder has {sizes.total() / 1e6:,.0f} MB, and 200 are copied for each process; "
        f"its largest: {largest}",
        remedy="show what holds data with --keep DIR and let git ignore it, or name a smaller --folder",
    )


def _file_kind(path: Path) -> str:
    mode = path.lstat().st_mode
    return "link" if stat.S_ISLNK(mode) else "program" if mode & stat.S_IXUSR else "file"


def _content_hash(path: Path) -> bytes:
    if path.is_symlink():
        return hashlib.sha256(os.fsencode(path.readlink())).digest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
