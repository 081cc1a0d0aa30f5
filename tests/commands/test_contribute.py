"""From a session to what a pull request needs: every record here is constructed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from commands import gate
from harness.machine.fingerprint import machine_folder
from tests.helpers import ROOT, bundled
from tests.helpers.programs import git, refused


@pytest.fixture
def clone(tmp_path) -> Path:
    """A clone with one session that is not committed."""
    root = tmp_path / "clone"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch", "main")
    (root / ".gitignore").write_text("report/out/\n")
    bundled.write(root, bundled.one_card())
    git(root, "add", "--", ".", ":!results/2*")
    git(root, "commit", "--quiet", "--message", "as it is")
    return root


def test_results_are_judged_and_the_line_that_is_printed_makes_a_commit_for_the_gate(clone, capsys):
    gate.judge_mine(clone)
    said = capsys.readouterr().out
    assert "the records are good\nNothing was sent" in said
    line = next(one for one in said.splitlines() if one.strip().startswith("git switch"))
    for command in line.strip().split(" && "):
        git(clone, *shlex.split(command)[1:])
    assert refused(clone, "main", "HEAD") == ()


def test_nothing_of_the_clone_s_branches_index_or_files_is_changed(clone):
    questions = (("status", "--porcelain"), ("for-each-ref",), ("rev-parse", "HEAD"))
    before = [git(clone, *words) for words in questions]
    gate.judge_mine(clone)
    assert [git(clone, *words) for words in questions] == before


IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "a"), ("EMAIL", "a@b.example"))
}


def shell(folder: Path, line: str, state: Path) -> str:
    """What a line of the page prints in a clone; its `.venv` is this interpreter."""
    invoke = folder / ".venv" / "bin" / "invoke"
    if not invoke.is_file():
        invoke.parent.mkdir(parents=True)
        invoke.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m invoke "$@"\n')
        invoke.chmod(0o755)
    environ = {**os.environ, **IDENTITY, "GPUDYNO_STATE": str(state)}
    done = subprocess.run(
        ["sh", "-e", "-c", line], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.whole
def test_the_three_commands_lead_from_a_clone_to_a_contribution_that_the_gate_lets_pass(tmp_path):
    """All but the measuring: a constructed session stands for what the first command leaves."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git clone")
    seed, host, clone, gate_keeper = (tmp_path / name for name in ("seed", "host.git", "clone", "gate"))
    git(tmp_path, "clone", "--quiet", str(ROOT), str(seed))
    # Without the records of others, each of which the report and the gate would judge.
    git(seed, "rm", "--quiet", "-r", "results/2*")
    git(seed, "commit", "--quiet", "--message", "no records")
    git(tmp_path, "clone", "--quiet", "--bare", str(seed), str(host))
    git(tmp_path, "clone", "--quiet", str(host), str(clone))
    page = (clone / "CONTRIBUTING.md").read_text()
    section = page.split("## Add a card's record")[1]
    measure, show, send = re.findall(r"```sh\n(.*?)```", section, re.S)[0].strip().splitlines()
    assert re.fullmatch(r"\.venv/bin/invoke build --plan \w+ run --budget \w+ report", measure)

    measured = bundled.write(tmp_path / "measured", bundled.one_card())
    for day in (measured / "results").glob("2026-*"):
        shutil.copytree(day, clone / "results" / day.name)
    state = tmp_path / "state"
    machine_folder(state).mkdir(parents=True)
    (machine_folder(state) / "id").write_text("a" * 12)
    said = shell(clone, f"{measure.split(' build ')[0]} report && {show}", state)
    assert "Nothing was sent" in said
    shell(clone, send, state)

    git(tmp_path, "clone", "--quiet", str(host), str(gate_keeper))
    branch = send.split("switch -c ")[1].split(" ")[0]
    line = f".venv/bin/invoke gate --base HEAD --head origin/{branch}"
    assert shell(gate_keeper, line, state).endswith("the records are good\n")
    assert git(gate_keeper, "status", "--porcelain", "--", "results") == ""
