"""A published program, run as it is: what it trains and how is its own, and so is the clock of its steps.

`program.json` beside the trial says which program at which commit, how it is started and how its output is
read (`workloads/programs/`). Its source is copied again for each trial and must have git's own id of the tree
that was published. It runs in that copy as a child of this process, which reads its lines as they come, ends
whatever it left behind, and looks whether it wrote anywhere else. Its precision is "program": as it says.

Standard library and Python 3.7 syntax only: the program's framework is its own.
"""

from __future__ import annotations

from parts.trial import Failed, TrialProcess, main  # isort: skip  (its clock starts here)

import contextlib
import hashlib
import os
import random
import re
import stat
import string
import sys
from typing import Any

from parts.program import child
from parts.program.reading import Figures, Reader, figures

TITLE = "A published program, run as it is"
ABOUT = "Another's program at one commit, unchanged; what it trains, and how fast, is as it says."


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run the program, to its own end or to the trial's limit."""
    return child.run_in_place(trial, _run_copy)


def _run_copy(trial: TrialProcess, program: dict, place: str) -> dict[str, Any]:
    names = _names(trial, program)
    with trial.phase("data"):
        copy, files = _copy_source(trial, program, place)
        own = child.own_environment(place)
        watched = _watch_files(trial)
        _prepare(trial, program, names, copy, own)
    # An option that is an empty word adds none.
    given = (*program["command"], *(_device_part(program, trial).get("arguments") or ()))
    command = [word for word in (_fill(word, names) for word in given) if word]
    hearing = Hearing(trial, Reader(program["read"]), names)
    trial.stage("train")
    ended = _run_words(trial, command, copy, own, hearing)
    trial.stage("collect")
    _wrote_outside(trial, watched)
    hearing.check_end(copy, ended)
    changed = files != read_blobs(copy, files)
    if program["read"].get("file"):
        hearing.reader.read_file(os.path.join(copy, program["read"]["file"]))
    found = figures(hearing.reader, _product(program["samples_per_step"], names))
    return _make_measurement(trial, program, command, found, hearing, ended, changed)


def _device_part(program: dict, trial: TrialProcess) -> dict[str, Any]:
    return program["on"].get(trial.asked["device"]) or {}


def _names(trial: TrialProcess, program: dict) -> dict[str, Any]:
    """Return what the program's command may have in braces, by name; null is what the plan does not say."""
    options = trial.options({**program["options"], **(_device_part(program, trial).get("options") or {})})
    return {**trial.variant, "seed": trial.seed, **options}


def _fill(word: str, names: dict) -> str:
    def value(found: Any) -> str:
        if found[1] == "data":
            return found[0]
        if names.get(found[1]) is None:
            raise Failed("unsupported", f"its command needs '{found[1]}', and the plan has none")
        return str(names[found[1]])

    return re.sub(r"\{(\w+)\}", value, word)


def _product(factors: list, names: dict) -> int:
    product = 1
    for name in factors:
        product *= int(_fill(f"{{{name}}}", names))
    return product


def _run_words(trial: TrialProcess, words: list, copy: str, own: dict, hearing: Hearing) -> child.Ended:
    """Run a command in the copy: `python` is the image's own, and `{data}` the data folder."""
    words = [word.replace("{data}", trial.data_folder) for word in words]
    words[:1] = [sys.executable] if words[0] == "python" else words[:1]
    return child.run(words, copy, own, child.seconds_left(trial), hearing.hear)


def _copy_source(trial: TrialProcess, program: dict, place: str) -> tuple:
    copy = child.copy_program(trial, program["folder"], place)
    files = read_blobs(copy)
    found = tree_id(files)
    if found != program["tree"]:
        trees = f"is tree {found[:12]} where {program['tree'][:12]} was published"
        raise Failed("bad-data", f"its source {trees}: remove '{program['folder']}' from the data folder")
    # What was read-only stays so for no program.
    for folder, _, _ in os.walk(copy):
        os.chmod(folder, 0o755)
    return copy, files


def _prepare(trial: TrialProcess, program: dict, names: dict, copy: str, own: dict) -> None:
    """Put the input to its place, and runs what the program asks for before its training."""
    given = program.get("input")
    if given is not None:
        target = os.path.join(copy, given["at"])
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if trial.asked["data"] == "generated":
            if not given["generated_letters"]:
                raise Failed("bad-data", f"no data can replace '{given['data']}': it has to be fetched")
            _generate(target, given["generated_letters"], trial.seed)
        else:
            os.symlink(os.path.join(trial.data_folder, given["file"]), target)
    for words in program["prepare"]:
        heard = Hearing(trial, Reader({}), names)
        filled = [_fill(word, names) for word in words]
        ended = _run_words(trial, filled, copy, own, heard)
        if ended.code != 0:
            what = f"'{' '.join(filled)}' ended with code {ended.code}"
            raise Failed("error", f"{what}; its last line: {child.without_folders(heard.last, trial, copy)}")


def _generate(path: str, letters: int, seed: int) -> None:
    """A text of words without meaning, of as many letters."""
    random.seed(seed)
    alphabet = string.ascii_letters + ",.;:!?-'&$3" + "     \n"
    with open(path, "w", encoding="ascii") as file:
        file.write("".join(random.choices(alphabet, k=letters)))


Blobs = dict
"""By path, with "/" between its parts: a file's mode as git writes it, and its blob's id."""


def read_blobs(folder: str, paths: object = None) -> Blobs:
    """Return all files and links of a folder, or those of some paths that are there."""
    found = {}
    for path in _walked(folder) if paths is None else paths:
        place = os.path.join(folder, path)
        if os.path.lexists(place) and not (os.path.isdir(place) and not os.path.islink(place)):
            found[path] = _blob(place)
    return found


def tree_id(files: Blobs) -> str:
    """Return the id that git gives a tree of these files."""
    entries = []
    folders = {}
    for path, (mode, blob) in files.items():
        name, _, rest = path.partition("/")
        if rest:
            folders.setdefault(name, {})[rest] = (mode, blob)
        else:
            entries.append((name.encode(), mode, blob))
    below = [(name.encode() + b"/", "40000", tree_id(inner)) for name, inner in folders.items()]
    body = b"".join(
        b"%s %s\0%s" % (mode.encode(), name.rstrip(b"/"), bytes.fromhex(blob))
        for name, mode, blob in sorted(entries + below)
    )
    return _object("tree", body)


def _walked(folder: str) -> list:
    paths = []
    for place, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in files + links:
            paths.append(os.path.relpath(os.path.join(place, name), folder).replace(os.sep, "/"))
    return paths


def _blob(path: str) -> tuple:
    if os.path.islink(path):
        return "120000", _object("blob", os.fsencode(os.readlink(path)))
    with open(path, "rb") as file:
        blob = _object("blob", file.read())
        runs = os.fstat(file.fileno()).st_mode & stat.S_IXUSR
    return "100755" if runs else "100644", blob


def _object(kind: str, body: bytes) -> str:
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(body)) + body).hexdigest()


class Hearing(child.ProgramLog):
    """The program's lines: to the log, to the reader, and against the trial's limit."""

    def __init__(self, trial: TrialProcess, reader: Reader, names: dict) -> None:
        super().__init__(trial)
        self.reader, self.names = reader, names
        self.stopped_by = "protocol"

    def hear(self, line: str, at: float) -> bool:
        """Take a line and return whether the program may go on."""
        self.write(line)
        before = len(self.reader.rows)
        self.reader.hear(line, at)
        if len(self.reader.rows) == before:
            return True
        self.report(at, before + 1, unit="line")
        return self._within_limit(at - self.reader.rows[0][1])

    def _within_limit(self, seconds: float) -> bool:
        limit, reader = self.trial.limit, self.reader
        first, last = reader.rows[0][0], reader.rows[-1][0]
        done = {
            "seconds": seconds,
            "epochs": len([1 for at, _ in reader.evaluations if at]),
            "steps": last.get("step", len(reader.rows)) - first.get("step", 1),
        }
        for name, value in done.items():
            if limit.get(name) is not None and value >= limit[name]:
                self.stopped_by = name
                return False
        return True

    def check_end(self, copy: str, ended: child.Ended) -> None:
        """Raise Failed where the program did not end as it should."""
        last = self.end(ended, copy)
        reading, why = self.reader.reading, ""
        if not self.reader.rows and not reading.get("file"):
            why = f"none of its {self.lines} lines is of a step" if self.lines else "it printed nothing"
        elif ended.code == 0 and reading.get("done") and self.reader.done is None:
            why = "it did not say that it was through"
        if why:
            raise Failed("error", f"the program ended with code 0, and {why}; its last line: {last}")


def _watch_files(trial: TrialProcess) -> dict[str, tuple]:
    """Return what a program could reach and must not write, by path: size and time of each file."""
    found = {}
    for name, folder in (("out", trial.out_folder), ("data", trial.data_folder)):
        for place, _, files in os.walk(folder, followlinks=True):
            for file in files:
                path = os.path.join(place, file)
                with contextlib.suppress(OSError):
                    state = os.stat(path)
                    found[name + path[len(folder) :]] = (state.st_size, state.st_mtime_ns)
    return found


def _wrote_outside(trial: TrialProcess, before: dict) -> None:
    now = _watch_files(trial)
    changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    wrong = sorted(name for name in changed if name != "out/events.jsonl")
    if wrong:
        for name in wrong:
            if name.startswith("out/") and name not in before:
                with contextlib.suppress(OSError):
                    os.remove(os.path.join(trial.out_folder, name[4:]))
        raise Failed("error", f"the program wrote outside its copy: {', '.join(wrong[:3])}")


def _make_measurement(
    trial: TrialProcess,
    program: dict,
    command: list,
    found: Figures,
    hearing: Hearing,
    ended: child.Ended,
    changed: bool,
) -> dict[str, Any]:
    given = program.get("input") or {}
    epochs, done = len(found.epochs), hearing.reader.done or {}
    whole = program.get("steps") and int(hearing.names[program["steps"]])
    to_evaluation = found.epochs[0]["steps"] if found.epochs[0]["complete"] else None
    an_epoch = found.steps_per_epoch or to_evaluation or whole or max(1, round(found.steps / epochs))
    return child.make_program_measurement(
        trial,
        ended,
        found.step_us,
        found.samples_per_step,
        found.stretches,
        title=program["title"],
        about=program["about"],
        data={
            "name": given.get("data") or program["name"],
            "sha256": given.get("sha256") if trial.asked["data"] == "real" else None,
        },
        protocol={
            "steps_per_epoch": an_epoch,
            "epochs": -(-whole // an_epoch) if whole else int(hearing.names.get("epochs", epochs)),
            "stopped_by": hearing.stopped_by,
        },
        sample_unit=program["sample_unit"],
        steps_together=found.steps_together,
        epochs=found.epochs,
        losses=found.losses,
        quality_name=program["read"].get("quality"),
        test_quality=done.get("quality"),
        program={
            "name": program["name"],
            "commit": program["commit"],
            "tree": program["tree"],
            "command": command,
            "figure": program["figure"],
            "clock_ratio": found.witness,
            "changed_itself": changed,
            "processes_left": ended.left,
        },
    )


if __name__ == "__main__":
    main(run)
