"""A published program's source at one commit: fetched by git, or brought, and kept among the data.

Files are written as git has them, without checkout filters, so that their tree has the id that was
published. Submodules and files that stand in for others (LFS) are refused: a tree's id does not hold them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.data.fetch import DataFolders, Resolved
from harness.data.folder import locked, writable
from harness.errors import DataError, NoNetwork, UserError

_SUBMODULE, _LINK, _RUNS = "160000", "120000", "100755"
_LFS = b"version https://git-lfs.github.com/spec/"
_FETCH_SECONDS = 600
_SAFE = (
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.file.allow=always",
    "safe.directory=*",
    "uploadpack.allowAnySHA1InWant=true",
    "credential.helper=",
)


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A folder of a repository at a commit; `tree` is git's id of it."""

    name: str
    forge: str
    commit: str
    path: str
    tree: str
    subfolder: str
    """Where it lies in a data folder."""


def resolve(source: SourceTree, folders: DataFolders) -> Resolved:
    """Where a program's source is, fetching it where it is in neither folder.

    Raises NoNetwork where the forge does not answer, DataError where it has not that commit or tree.
    """
    for folder in (folders.own, folders.cache):
        if folder is not None and (folder / source.subfolder).is_dir():
            return _found(source, folder, "fetched before; each trial checks its tree")
    for folder in (folders.own, folders.cache):
        if folder is not None and (folder / f"{source.subfolder}.tar").is_file():
            _unpack(source, folder / f"{source.subfolder}.tar", folders.cache)
            return _found(source, folders.cache, "unpacked; each trial checks its tree")
    bring(source, None, folders.cache)
    return _found(source, folders.cache, "fetched, its tree checked")


def _found(source: SourceTree, folder: Path, why: str) -> Resolved:
    return Resolved(source.subfolder, "real", folder, source.subfolder, source.tree, why)


def bring(source: SourceTree, given: Path | None, folder: Path) -> None:
    """Takes the source from a repository's folder or a bundle of the user's, or from its forge."""
    if given is not None and not given.exists():
        raise UserError(f"there is no '{given}'", remedy="name a repository's folder, or a git bundle")
    with _made(source, folder) as new:
        _fetch(source, given, new / "repository")
        _export(source, new / "repository", new / source.subfolder)


def packed(source: SourceTree, folder: Path, into: Path) -> Path:
    """The source that lies in a data folder as one tar file, which `resolve` finds in another."""

    def of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    out = into / f"{source.subfolder}.tar"
    with tarfile.open(out, "w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(folder / source.subfolder, source.subfolder, filter=of_nobody)
    return out


def _unpack(source: SourceTree, archive: Path, folder: Path) -> None:
    with _made(source, folder) as new:
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(new, filter="data")
        except (tarfile.TarError, EOFError, ValueError) as error:
            problem = f"'{archive.name}' cannot be unpacked ({type(error).__name__})"
            raise DataError(problem, remedy="copy it again") from None
        if not (new / source.subfolder).is_dir():
            raise DataError(f"'{archive.name}' does not hold '{source.subfolder}'", remedy="copy it again")


@contextmanager
def _made(source: SourceTree, folder: Path) -> Iterator[Path]:
    """A place in a data folder for what becomes the source there, if nothing goes wrong."""
    with writable(folder), locked(folder):
        new = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
        try:
            yield new
            final = folder / source.subfolder
            shutil.rmtree(final, ignore_errors=True)
            (new / source.subfolder).rename(final)
        finally:
            shutil.rmtree(new, ignore_errors=True)


def _git(repository: Path, *words: str, feed: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    settings = [word for setting in _SAFE for word in ("-c", setting)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    try:
        return subprocess.run(
            ["git", *settings, "-C", str(repository), *words],
            input=feed,
            capture_output=True,
            env=environ,
            timeout=_FETCH_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise UserError("git is not installed", remedy="install it: a program's source comes by it") from None
    except subprocess.TimeoutExpired:
        raise NoNetwork(f"git took longer than {_FETCH_SECONDS} s", remedy="try again") from None


def _fetch(source: SourceTree, given: Path | None, repository: Path) -> None:
    repository.mkdir()
    _git(repository, "init", "--quiet", "--bare")
    if given is not None and given.is_file():
        fetched = _git(repository, "fetch", "--quiet", str(given.resolve()), "+refs/*:refs/*")
    else:
        place = str(given.resolve()) if given is not None else source.forge
        pack = "git -c uploadpack.allowAnySHA1InWant=true -c safe.directory=* upload-pack"
        local = given is not None or source.forge.startswith("file:")
        more = ("--upload-pack", pack) if local else ()
        fetched = _git(repository, "fetch", "--quiet", "--depth", "1", *more, place, source.commit)
    if _git(repository, "cat-file", "-e", f"{source.commit}^{{commit}}").returncode == 0:
        return
    said = fetched.stderr.decode(errors="replace").strip().splitlines()
    last = said[-1][:200] if said else "no such commit"
    where = "what you gave" if given is not None else source.forge
    if fetched.returncode == 0 or any("not our ref" in line or "remote ref" in line for line in said):
        raise DataError(
            f"program '{source.name}': there is no commit {source.commit[:12]} in {where} ({last})",
            remedy="correct its commit",
        )
    raise NoNetwork(
        f"program '{source.name}' cannot be fetched from {where} ({last})",
        remedy=f"bring it: invoke build --only {source.name} --from FOLDER, a repository or a git bundle",
    )


def _export(source: SourceTree, repository: Path, target: Path) -> None:
    """Writes the files of the tree; raises DataError where it is another than was published."""
    found = _git(repository, "rev-parse", "--verify", f"{source.commit}:{source.path}")
    tree = found.stdout.decode().strip()
    if found.returncode or tree != source.tree:
        what = f"its tree is {tree[:12]}" if found.returncode == 0 else f"it has no folder '{source.path}'"
        raise DataError(
            f"program '{source.name}' at {source.commit[:12]}: {what}, where {source.tree[:12]} is asked for",
            remedy="correct the commit, the path or the tree",
        )
    entries = list(_entries(source, _git(repository, "ls-tree", "-r", "-z", "--full-tree", tree).stdout))
    wanted = "".join(f"{blob}\n" for _, blob, _ in entries).encode()
    bodies = _git(repository, "cat-file", "--batch", feed=wanted).stdout
    at = 0
    target.mkdir()
    for mode, _, path in entries:
        end_of_head = bodies.index(b"\n", at)
        size = int(bodies[at:end_of_head].split()[2])
        body = bodies[end_of_head + 1 : end_of_head + 1 + size]
        at = end_of_head + size + 2
        _write(source, target / path, mode, body, path)


def _entries(source: SourceTree, listing: bytes) -> Iterator[tuple[str, str, str]]:
    """Mode, blob and path of each file; raises DataError for one that may not be."""
    for line in listing.split(b"\0")[:-1]:
        head, _, name = line.partition(b"\t")
        mode, _, blob = head.decode().split()
        path = os.fsdecode(name)
        if mode == _SUBMODULE:
            raise DataError(f"program '{source.name}': '{path}' is a submodule, whose files no tree id holds")
        if any(part.lower() in ("", ".", "..", ".git") for part in path.split("/")):
            raise DataError(f"program '{source.name}': '{path}' is no path of a file")
        yield mode, blob, path


def _write(source: SourceTree, place: Path, mode: str, body: bytes, path: str) -> None:
    if body.startswith(_LFS):
        raise DataError(f"program '{source.name}': '{path}' stands in for a file kept elsewhere (LFS)")
    place.parent.mkdir(parents=True, exist_ok=True)
    if mode == _LINK:
        link = os.fsdecode(body)
        inside = PurePosixPath(os.path.normpath(PurePosixPath(path).parent / link))
        if inside.is_absolute() or ".." in inside.parts:
            raise DataError(f"program '{source.name}': '{path}' links to a place outside of it")
        place.symlink_to(link)
        return
    place.write_bytes(body)
    place.chmod(0o755 if mode == _RUNS else 0o644)
