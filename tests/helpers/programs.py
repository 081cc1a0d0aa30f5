"""A made-up training program in a repository of its own, and the file that says how it is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest
import tomlkit

from commands import gate
from harness.plan import own_file
from harness.record import TrialSpec
from harness.record.published.program import Program
from harness.record.trial_spec import OwnFile
from tests.helpers.workload_runner import Ended, run, trial

TRAINS = """
import sys, time
steps, each = int(sys.argv[1]), float(sys.argv[2])
begin = time.time()
for step in range(steps):
    time.sleep(each)
    now = time.time()
    print('step %d/%d: %.2f ms, loss %.3f' % (step + 1, steps, 1000 * (now - begin), 5 / (step + 1)))
    begin = now
print('through, accuracy 0.75')
"""
"""A program that does as it should: constructed, it trains nothing."""

PLAN = """
name = "mine"
title = "a program"
repeats = 3
timeout_seconds = 60
[[measure]]
workload = "program"
file = "mine/toy.toml"
protocol = "toy/1"
model = "m"
precision = "program"
batch_size = 4
data_mode = "host"
"""
"""A plan that runs it."""

LINES = r"^step (?P<step>\d+)/(?P<steps>\d+): (?P<milliseconds>[\d.]+) ms, loss (?P<loss>[\d.]+)"
OPTIONS = {"steps": 12, "each": 0.01}
READ = {"lines": LINES, "seconds_are": "step", "done": r"^through, accuracy (?P<quality>[\d.]+)"}


def refused(root: Path, base: str, head: str) -> tuple[str, ...]:
    """What the gate says of a commit."""
    with TemporaryDirectory() as folder:
        return gate.lay_out_contribution(root, base, head, Path(folder))


def marked(mark: object) -> list[str]:
    """The commands of this machine's processes that have a mark as their comment."""
    commands = (" ".join(each.info["cmdline"] or []) for each in psutil.process_iter(["cmdline"]))
    return [words for words in commands if f"# {mark}" in words]


def git(folder: Path, *words: str) -> str:
    """One of git's commands as somebody without settings."""
    who = ["-c", "user.name=a", "-c", "user.email=a@b.invalid", "-c", "init.defaultBranch=main"]
    more = ["-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *more, "-C", str(folder), *words], capture_output=True, check=True)
    return done.stdout.decode().strip()


def repository(folder: Path, source: str = TRAINS, **more: str) -> Path:
    """A repository with one commit, the program in a folder of it."""
    (folder / "code").mkdir(parents=True)
    (folder / "README").write_text("constructed\n")
    for name, text in {"train.py": source, **more}.items():
        (folder / "code" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "code" / name).write_text(text)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "one")
    return folder


def fields(folder: Path, **told: Any) -> dict[str, Any]:
    """A program's file as a table; what is not told is that of the program above."""
    return {
        "name": "toy",
        "title": "A toy",
        "about": "It sleeps.",
        "forge": f"file://{folder}",
        "commit": git(folder, "rev-parse", "HEAD"),
        "path": "code",
        "tree": git(folder, "rev-parse", "HEAD:code"),
        "licence": "MIT",
        "images": ["cpu"],
        "data": "synthetic",
        "command": ["python", "train.py", "{steps}", "{each}"],
        "options": OPTIONS,
        "samples_per_step": ["batch_size"],
        "sample_unit": "sample",
        "figure": "step",
        **told,
        "read": {**READ, "quality": "accuracy", **told.pop("read", {})},
    }


def clone_with(folder: Path, table: dict[str, Any]) -> tuple[Path, OwnFile]:
    """A folder as a clone's, with the program's file in it, and the file as a trial asks for it."""
    place = folder / "mine" / "toy.toml"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(tomlkit.dumps(table))
    sha256 = own_file.own_file_sha256("program", "mine/toy.toml", folder, "plans/x.toml")
    return folder, OwnFile(name="mine/toy.toml", sha256=sha256 or "")


def asked(file: OwnFile, data: str = "synthetic", **told: Any) -> TrialSpec:
    """A trial of the program."""
    told = {"limit": {}, "precision": "program", "data_mode": "host", "model": "m", "batch_size": 4, **told}
    spec = trial("program", protocol="toy/1", data=data, **told)
    request = spec.asked.model_copy(update={"file": file})
    return TrialSpec.from_request(request, 1, seed=spec.seed, timeout_seconds=spec.timeout_seconds)


def ran(
    folder: Path, table: dict[str, Any], source: Path, by: dict[str, Any] | None = None, **told: Any
) -> Ended:
    """A trial of the program whose files lie in `source`, by this interpreter unless `by` says another."""
    root, file = clone_with(folder, table)
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / "program.json").write_text(own_file.own_file_text(root, file))
    data = folder / "data"
    data.mkdir(exist_ok=True)
    (data / Program.model_validate(table).folder).symlink_to(source)
    # Temporary files of a trial lie in a folder that is looked into afterwards.
    (folder / "tmp").mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder / "tmp"))
        return run(folder, asked(file, **told), data=str(data), **(by or {"python": sys.executable}))
