from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commands.upkeep import check
from harness.errors import GateError
from tests.helpers import ROOT


def test_a_script_of_the_user_s_is_not_among_the_files_that_are_linted(tmp_path):
    for name in ("harness/ours.py", "workloads/ours.py", "helper.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "add", "."], check=True)
    (tmp_path / "workloads" / "mine.py").write_text("import os,sys\n")
    assert check.product(tmp_path) == ("harness/ours.py", "workloads/ours.py")


def test_the_product_s_own_files_are_found():
    found = check.product(ROOT)
    assert "tasks.py" in found and len(found) > 300


def test_a_problem_of_one_s_own_file_is_said_before_any_tool_runs(monkeypatch, capsys):
    said: list[str] = []

    def lint(root: Path):
        said.append(capsys.readouterr().err)
        yield "ruff check: something"

    monkeypatch.setattr(check, "files", lambda root: iter(["plans/mine.toml: 'repeats': too many"]))
    monkeypatch.setattr(check, "tools", lint)
    with pytest.raises(GateError, match="2 problems"):
        check.check(ROOT)
    assert said == ["plans/mine.toml: 'repeats': too many\n"]


def test_a_setting_of_one_s_own_that_is_none_is_a_problem(tmp_path):
    (tmp_path / "gpudyno.toml").write_text("devise = '0'\n")
    assert any("devise" in problem for problem in check.files(tmp_path))
