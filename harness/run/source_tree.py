"""A published program's source at one commit: fetched by git, or brought, and kept among the data.

Files are written as git has them, without checkout filters, so that their tree has the id that was
published. Submodules and files that replace others (LFS) are refused: a tree's id does not hold them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from harness.data.fetch import DataFolders, Resolved, hold_folder
from harness.errors import DataError, NoNetwork, UserError
from harness.files import last_line
from harness.network import failure_cause, program_variables
from harness.record.published.program import Program

_SUBMODULE = b"160000 "
_LFS = b"version https://git-lfs.github.com/spec/"
_AS_IT_IS = "* -text -filter -ident !working-tree-encoding\n"
"""Attributes that keep git from changing a file; they take precedence over a tree's own."""
_FETCH_SECONDS = 600
_SAFE = (
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.file.allow=always",
    "safe.directory=*",
    "uploadpack.allowAnySHA1InWant=true",
    "credential.helper=",
    "core.symlinks=true",
)


def resolve_source(program: Program, folders: DataFolders) -> Resolved:
    """Return where a program's source is; it is fetched where neither folder has it.

    Raises NoNetwork where the forge does not answer, DataError where it has not that commit or tree.
    """
    for folder in (folders.own, folders.cache):
        if folder is not None and (folder / program.folder).is_dir():
            return _resolved_source(program, folder, "fetched before; each trial checks its tree")
    bring_source(program, None, folders.cache)
    return _resolved_source(program, folders.cache, "fetched, its tree checked")


def _resolved_source(program: Program, folder: Path, why: str) -> Resolved:
    return Resolved(program.folder, "real", folder / program.folder, why)


def bring_source(program: Program, given: Path | None, folder: Path) -> None:
    """Take the source from a repository's folder or a bundle of the user's, or from its forge."""
    if given is not None and not given.exists():
        raise UserError(f"there is no '{given}'", remedy="name a repository's folder, or a git bundle")
    with hold_folder(folder) as new:
        _fetch(program, given, new / "repository")
        _export(program, new / "repository", new / program.folder)
        shutil.rmtree(folder / program.folder, ignore_errors=True)
        (new / program.folder).rename(folder / program.folder)


def is_repository(given: Path) -> bool:
    """Return whether what the user names is a repository's folder or a bundle."""
    if given.is_file():
        return given.read_bytes().startswith(b"# v")
    return (given / ".git").exists() or (given / "HEAD").is_file()


def _git(repository: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    settings = [word for setting in _SAFE for word in ("-c", setting)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= program_variables()
    environ |= {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    try:
        return subprocess.run(
            ["git", *settings, f"--git-dir={repository}", *words],
            capture_output=True,
            env=environ,
            timeout=_FETCH_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise UserError("git is not installed", remedy="install it: a program's source comes by it") from None
    except subprocess.TimeoutExpired:
        raise NoNetwork(f"git took longer than {_FETCH_SECONDS} s", remedy="try again") from None


def _fetch(program: Program, given: Path | None, repository: Path) -> None:
    _git(repository, "init", "--quiet", "--bare")
    if given is not None and given.is_file():
        fetched = _git(repository, "fetch", "--quiet", str(given.resolve()), "+refs/*:refs/*")
    else:
        place = str(given.resolve()) if given is not None else program.forge
        pack = "git -c uploadpack.allowAnySHA1InWant=true -c safe.directory=* upload-pack"
        local = given is not None or program.forge.startswith("file:")
        more = ("--upload-pack", pack) if local else ()
        fetched = _git(repository, "fetch", "--quiet", "--depth", "1", *more, place, program.commit)
    if _git(repository, "cat-file", "-e", f"{program.commit}^{{commit}}").returncode == 0:
        return
    known = fetched.returncode == 0 or any(sign in fetched.stderr for sign in (b"not our ref", b"remote ref"))
    if given is not None:
        kind = "bundle" if given.is_file() else "repository"
        lacks = f"This {kind} lacks commit {program.commit[:7]}"
        making = f"git bundle create {program.name}.bundle --all"
        raise DataError(
            lacks if known or is_repository(given) else f"'{given}' is no git repository or bundle",
            remedy=f"make one that has it, in a clone of {program.forge}: {making}",
        )
    last = last_line(fetched.stderr or b"no such commit")
    if known:
        raise DataError(
            f"program '{program.name}': there is no commit {program.commit[:12]} in {program.forge} ({last})",
            remedy="correct its commit",
        )
    why = failure_cause(fetched.stderr.decode(errors="replace").splitlines(), last, program.forge)
    bring = f"bring it: invoke build --only {program.name} --from FOLDER, a repository or a git bundle"
    raise type(why)(
        f"program '{program.name}' cannot be fetched from {program.forge} ({why.problem})",
        remedy=", or ".join(filter(None, (why.remedy, bring))),
    )


def _export(program: Program, repository: Path, target: Path) -> None:
    """Write the files of the tree; raises DataError where it is another than was published."""
    named = f"program '{program.name}'"
    answer = _git(repository, "rev-parse", "--verify", f"{program.commit}:{program.path}")
    tree = answer.stdout.decode().strip()
    if answer.returncode or tree != program.tree:
        what = f"its tree is {tree[:12]}" if answer.returncode == 0 else f"it has no folder '{program.path}'"
        raise DataError(
            f"{named} at {program.commit[:12]}: {what}, where {program.tree[:12]} is asked for",
            remedy="correct the commit, the path or the tree",
        )
    for entry in _git(repository, "ls-tree", "-r", "-z", "--full-tree", tree).stdout.split(b"\0"):
        if entry.startswith(_SUBMODULE):
            path = os.fsdecode(entry.partition(b"\t")[2])
            raise DataError(f"{named}: '{path}' is a submodule, whose files no tree id holds")
    target.mkdir()
    (repository / "info").mkdir(exist_ok=True)
    (repository / "info" / "attributes").write_text(_AS_IT_IS)
    for words in (("read-tree", tree), ("checkout-index", "--all")):
        done = _git(repository, f"--work-tree={target}", *words)
        if done.returncode:
            raise DataError(f"{named}: git does not write its files ({last_line(done.stderr)})")
    for file in target.rglob("*"):
        if problem := _missing_content(file, target):
            raise DataError(f"{named}: '{file.relative_to(target)}' {problem}")


def _missing_content(file: Path, target: Path) -> str:
    """Return what of a file is not in the tree, as a clause; empty where all is."""
    if file.is_symlink():
        leads_to = Path(os.path.normpath(file.parent / file.readlink()))
        return "" if leads_to.is_relative_to(target) else "links to a place outside of it"
    if file.is_file():
        with file.open("rb") as content:
            return "replaces a file kept elsewhere (LFS)" if content.read(len(_LFS)) == _LFS else ""
    return ""
