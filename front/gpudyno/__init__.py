"""The way in without a clone: places the tree that the wheel carries, and runs verbs where the user is."""

import hashlib
import sys
import tarfile
from contextlib import suppress
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import platformdirs
from invoke.main import program

FILES = ("gpudyno.toml", "purchase.toml", "site.toml")
FOLDERS = (".venvs", "results/.state")
PATTERNS = ("plans/*.toml", "results/claims/*.toml", "workloads/programs/*.toml", "results/*-*/*")


def place_tree(archive: bytes, home: Path) -> Path:
    """Return the folder of an archive's read-only files, placed whole and named by its digest."""
    tree = home / hashlib.sha256(archive).hexdigest()[:16]
    if tree.is_dir():
        return tree
    home.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=home) as folder, tarfile.open(fileobj=BytesIO(archive)) as tar:
        unfinished = Path(folder) / "tree"
        tar.extractall(unfinished, filter="data")
        for path in unfinished.rglob("*"):
            if path.is_file():
                path.chmod(path.stat().st_mode & ~0o222)
        try:
            unfinished.rename(tree)
        except OSError:
            # Another process may have been first.
            if not tree.is_dir():
                raise
    return tree


def link_own_files(tree: Path, own: Path) -> None:
    """Link what is the user's own into a tree: it lies in `own`, in the same places, and outlives it."""
    for name in FOLDERS:
        (own / name).mkdir(parents=True, exist_ok=True)
    for gone in (path for pattern in PATTERNS for path in tree.glob(pattern) if not path.exists()):
        gone.unlink(missing_ok=True)
    found = (str(path.relative_to(own)) for pattern in PATTERNS for path in own.glob(pattern))
    for link, target in (
        (tree / ".own", own),
        *((tree / name, own / name) for name in (*FILES, *FOLDERS, *found)),
    ):
        link.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            link.symlink_to(target)


def main() -> None:
    """Run a line of verbs, as `gpudyno build run report`."""
    home = platformdirs.user_data_path("gpudyno")
    try:
        tree = place_tree((files(__name__) / "tree.tar.gz").read_bytes(), home)
        link_own_files(tree, home / "own")
    except OSError as error:
        sys.exit(
            f"gpudyno: '{error.filename or home}' cannot be written ({error.strerror}); look at its disk"
        )
    vars(program).update(_binary="gpudyno", _binary_names=["gpudyno"])
    sys.argv[:] = ["gpudyno", "-r", str(tree), *sys.argv[1:]]
    program.run(sys.argv)
