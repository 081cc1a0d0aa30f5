"""A user's own program as trials: what is asked, its folder and one copy of it, what a record may keep."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from harness.errors import UserError
from harness.files import command_output, free_bytes, hash_file, need_room, text_sha256
from harness.machine.fingerprint import local_names
from harness.plan.plan_file import Measure, Plan
from harness.record.trial_spec import OwnProgram
from harness.redact import WITHHELD, redact_value
from harness.settings import expand_path

PLAN, WORKLOAD, PROTOCOL = "try", "own_program", "own/1"
MOST_REPEATS = 40
WINDOW_SECONDS = 20.0
"""How long a process goes on after its third row."""
NAME_LETTERS = 64
SECRET = re.compile(r"(?i)(key|token|secret|passw|pwd|auth|credential)")

MOST_BYTES = 200_000_000
NAMED_FOLDERS = 3
"""How many of its largest folders are named where a folder is too large."""
NOT_TAKEN = frozenset(
    (
        *(".git", ".venv", "venv", "env", "__pycache__"),
        *("node_modules", ".mypy_cache", ".ruff_cache", ".pytest_cache"),
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


@dataclass(frozen=True, slots=True)
class OwnAsked:
    """How a program is asked for on a line. Paths are as they were given."""

    command: str
    against_command: str = ""
    folder: str = ""
    keep: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    match: str = ""
    metric: str = ""
    per_step: tuple[float, ...] = ()
    steps: int = 0
    within: float = 0.05
    """The half-width of a range that is narrow enough, as a share."""
    minutes: float = 10.0


@dataclass(frozen=True, slots=True)
class OwnSide:
    """One command: its words as they are started, and what records may keep of them."""

    name: str
    words: tuple[str, ...]
    asked: OwnProgram


@dataclass(frozen=True, slots=True)
class KeptFolder:
    """A folder that the program is shown: below its own folder, below its home, or at its own path."""

    root: str
    path: str
    name: str
    where: Path


@dataclass(frozen=True, slots=True)
class OwnRun:
    """What a line of `try` runs: its sides, its folder's copy, and what only its processes see."""

    folder: OwnFolder
    sides: tuple[OwnSide, ...]
    kept: tuple[KeptFolder, ...]
    interpreter: str | None = None
    """The user's own, where the command begins with a path to one or to a program beside it."""

    def content(self, own: OwnProgram) -> str:
        """Return the JSON that goes beside a trial, with values that no record keeps."""
        side = next(side for side in self.sides if side.asked == own)
        return json.dumps(
            {
                "command": side.words,
                "folder": self.folder.name,
                "keep": [{"root": each.root, "path": each.path, "name": each.name} for each in self.kept],
                "environ": {name: os.environ[name] for name in own.env},
                "seconds": WINDOW_SECONDS,
                **own.model_dump(include={"at", "match", "metric", "per_step", "steps"}),
            }
        )

    def shown(self, copy: Path) -> tuple[tuple[str, Path], ...]:
        """Return the folders below /data that each of its trials sees."""
        return ((self.folder.name, copy), *((each.name, each.where) for each in self.kept))

    def plan(self, timeout_seconds: float) -> Plan:
        """Return its plan, which is in no file; its hash is of all that is asked, a process's limit aside."""
        measure = Measure(
            workload=WORKLOAD,
            protocol=PROTOCOL,
            model=[side.name for side in self.sides],
            precision="program",
            batch_size=1,
            data_mode="host",
        )
        return Plan(
            name=PLAN,
            title="A program of one's own",
            repeats=MOST_REPEATS,
            timeout_seconds=timeout_seconds,
            measure=(measure,),
            own={side.name: side.asked for side in self.sides},
            sha256=text_sha256("\n".join(side.asked.canonical() for side in self.sides).encode()),
            question={"is": "faster", "by": "model"} if len(self.sides) > 1 else None,
        )


def prepare_own_run(asked: OwnAsked, here: Path) -> OwnRun:
    """Return what a line asks for, given in the folder `here`.

    Raises UserError for a command that cannot be read, a folder that is too large or not there, a variable
    that is not set, and two commands that are one once their secrets are withheld.
    """
    given = [_split_words(text) for text in filter(None, (asked.command, asked.against_command))]
    folder, at = _find_folder(given[0], asked.folder, here)
    taken = read_folder(folder)
    inside = [tuple(_relative_word(word, folder, at) for word in words) for words in given]
    commands = [(first, *words) for (first, *_), (_, *words) in zip(given, inside, strict=True)]
    public = [_withhold_words(words) for words in inside]
    shown = tuple(_find_kept_folders(asked.keep, folder, here))
    if missing := next((name for name in asked.env if name not in os.environ), None):
        raise UserError(f"--env {missing}: the variable is not set here", remedy="set it, or leave it out")
    interpreter = _find_interpreter(commands[0], here)
    if len(asked.per_step) not in (0, 1, len(commands)):
        raise UserError("--per-step has more numbers than there are commands", remedy="give one for each")
    names = _name_commands(public)
    sides = []
    for place, words in enumerate(commands):
        per_step = asked.per_step[min(place, len(asked.per_step) - 1)] if asked.per_step else None
        kept_of_it = OwnProgram(
            command=public[place],
            folder_sha256=taken.sha256,
            at=at,
            keep=tuple(each.path if each.root != "none" else WITHHELD for each in shown),
            env=asked.env,
            match=asked.match or None,
            metric=asked.metric or None,
            per_step=per_step,
            steps=asked.steps or None,
        )
        sides.append(OwnSide(names[place], _start_words(words, interpreter, here, folder / at), kept_of_it))
    if len({side.asked.canonical() for side in sides}) < len(sides):
        raise UserError(
            "the two commands are equal once paths and secrets are withheld, and records would be too",
            remedy="let them differ in another word, such as a name",
        )
    return OwnRun(taken, tuple(sides), shown, interpreter)


def _relative_word(word: str, folder: Path, at: str) -> str:
    """Return a word whose path lies in the folder as one from where its copy is started."""
    option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
    path = Path(os.path.normpath(expand_path(value)))
    path = path.parent.resolve() / path.name
    if not value.startswith(("/", "~")) or not path.is_relative_to(folder):
        return word
    return f"{option}{equals}{os.path.relpath(path, folder / at)}"


def _split_words(command: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UserError(f"the command cannot be read ({error})", remedy="close its quotes") from None
    if not words:
        raise UserError("no command was given", remedy='write one, as invoke try "python train.py"')
    return words


def _find_folder(words: Sequence[str], given: str, here: Path) -> tuple[Path, str]:
    """Return the folder that is taken and where in it the program starts."""
    if given:
        start = (here / expand_path(given)).resolve()
        if not start.is_dir():
            raise UserError(f"--folder '{given}' is no folder", remedy="name the one that holds the program")
        return start, ""
    files = (here / expand_path(word) for word in words[1:] if not word.startswith("-"))
    script = next((path for path in files if path.is_file()), None)
    first = here / expand_path(words[0])
    script = script or (first if first.is_file() and "/" in words[0] else None)
    if script is None:
        raise UserError(
            f"no word of '{shlex.join(words)[:80]}' is a file here", remedy="name its folder with --folder"
        )
    inside = here.resolve() if script.resolve().is_relative_to(here.resolve()) else script.resolve().parent
    root = git_root(inside) or inside
    return root, inside.relative_to(root).as_posix().removeprefix(".")


def _find_kept_folders(given: Sequence[str], folder: Path, here: Path) -> Iterator[KeptFolder]:
    home = Path.home()
    for place, each in enumerate(given, 1):
        path = Path(os.path.normpath(here / expand_path(each)))
        if not path.exists():
            raise UserError(f"--keep '{each}' is not there", remedy="name a folder or file that is")
        roots = (("folder", folder), ("home", home))
        root, below = next(
            ((name, path.relative_to(top).as_posix()) for name, top in roots if path.is_relative_to(top)),
            ("none", str(path)),
        )
        yield KeptFolder(root, below, f"keep-{place}", path.resolve())


def _find_interpreter(words: Sequence[str], here: Path) -> str | None:
    """Return the interpreter that a path to one names, or that lies beside the program of an environment."""
    path = here / expand_path(words[0])
    beside = path.parent / "python"
    if "/" not in words[0] or not (path.name.startswith("python") or beside.is_file()):
        return None
    return str((path if path.name.startswith("python") else beside).absolute())


def _start_words(words: Sequence[str], interpreter: str | None, here: Path, start: Path) -> tuple[str, ...]:
    """Return the words as a process is started in the copy: `python` is the environment's own."""
    first = words[0]
    if interpreter is not None and Path(first).name.startswith("python"):
        first = "python"
    elif "/" in first:
        whole = Path(os.path.normpath(here / expand_path(first)))
        first = f"./{whole.relative_to(start)}" if whole.is_relative_to(start) else str(whole)
    return (first, *(str(expand_path(word)) if word.startswith("~") else word for word in words[1:]))


def _withhold_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command without paths, names of persons or machines, and values of secrets."""
    names, public, secret = local_names(), [], False
    for word in words:
        option, equals, value = word.partition("=")
        if secret and not word.startswith("-"):
            public.append(WITHHELD)
        elif equals and SECRET.search(option):
            public.append(f"{option}={WITHHELD}")
        elif (value if equals else word).startswith(("/", "~")) or redact_value(word, names) == WITHHELD:
            public.append(f"{option}={WITHHELD}" if equals and option.startswith("-") else WITHHELD)
        else:
            public.append(word[:1000])
        secret = word.startswith("-") and not equals and bool(SECRET.search(word))
    return tuple(public)


def _name_commands(public: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return what a page calls each command: its program, and the words from which on two of them differ.

    Where the program is withheld, it is the command as records have it.
    """
    scripts = [
        next((Path(word).name for word in words[1:] if not word.startswith("-")), words[0])
        for words in public
    ]
    same = len([*takewhile(lambda words: len({*words}) == 1, zip(*public, strict=False))])
    begin = same - 1 if same > 1 and public[0][same - 1].startswith("-") else same
    if WITHHELD in scripts:
        scripts = [" ".join(words) for words in public]
    elif len(public) > 1:
        scripts = [
            " ".join((script, *words[max(begin, 2) :])) for script, words in zip(scripts, public, strict=True)
        ]
    named = tuple(script[:NAME_LETTERS] for script in scripts)
    return named if len({*named}) == len(named) else ("first command", "second command")


def git_root(start: Path) -> Path | None:
    """Return the top of the git working tree that a folder lies in; null where it lies in none."""
    top = (command_output("git", "-C", str(start), "rev-parse", "--show-toplevel") or "").strip()
    return Path(top).resolve() if top else None


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
    return bytes.fromhex(hash_file(path))
