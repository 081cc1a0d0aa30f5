from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commands import check
from harness.errors import GateError
from tests.helpers import ROOT, copied


def test_a_script_of_the_user_s_is_not_among_the_files_that_are_linted(tmp_path):
    for name in ("harness/ours.py", "workloads/ours.py", "helper.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "add", "."], check=True)
    (tmp_path / "workloads" / "mine.py").write_text("import os,sys\n")
    assert check.product_files(tmp_path) == ("harness/ours.py", "workloads/ours.py")


def test_the_product_s_own_files_are_found():
    found = check.product_files(ROOT)
    assert "tasks.py" in found and len(found) > 300


def test_a_problem_of_one_s_own_file_is_said_before_any_tool_runs(monkeypatch, capsys):
    said: list[str] = []

    def lint(root: Path):
        said.append(capsys.readouterr().err)
        yield "ruff check: something"

    monkeypatch.setattr(check, "file_problems", lambda root: iter(["plans/mine.toml: 'repeats': too many"]))
    monkeypatch.setattr(check, "tool_problems", lint)
    with pytest.raises(GateError, match="2 problems"):
        check.check_clone(ROOT)
    assert said == ["plans/mine.toml: 'repeats': too many\n"]


def test_a_setting_of_one_s_own_that_is_none_is_a_problem(tmp_path):
    (tmp_path / "gpudyno.toml").write_text("devise = '0'\n")
    assert any("devise" in problem for problem in check.file_problems(tmp_path))


def test_a_program_s_mistake_is_said_once_however_many_plans_run_it(tmp_path):
    clone = copied(
        tmp_path, "plans", "docker", "workloads", "examples", "results/claims", "results/cards.toml"
    )
    path = clone / "workloads" / "programs" / "nanogpt.toml"
    path.write_text(f"mistake = 1\n{path.read_text()}")
    assert len([problem for problem in check.file_problems(clone) if "mistake" in problem]) == 1


def test_a_published_table_is_checked_row_by_row_with_line_and_column(tmp_path):
    parts = ("results/claims", "results/cards.toml", "results/tables")
    clone = copied(tmp_path, "plans", "docker", "workloads", "examples", *parts)
    name = "results/tables/published/flagperf.csv"
    assert not [problem for problem in check.file_problems(clone) if problem.startswith("results/tables")]
    head, first, *rows = (clone / name).read_text().splitlines()
    wrong = [first.rpartition(",")[0] + ",fast", first.replace("A100 SXM4 40GB", "A100 SXM4 40")]
    wrong.append(first.replace("images/s", "images/h"))
    (clone / name).write_text("\n".join([head, first, "garbage,row,abc", "", *wrong, *rows]))
    found = [problem for problem in check.file_problems(clone) if problem.startswith("results/tables")]
    assert len(found) == 4
    assert found[0] == f"{name}, line 3, column 4: 3 cells for 13 columns"
    assert found[1].startswith(f"{name}, line 5, column 13: 'value': Input should be a valid number")
    assert found[2].startswith(
        f"{name}, line 6, column 'card': 'A100 SXM4 40' is in no table of cards; is 'A1"
    )
    assert found[3].startswith(f"{name}, line 7, column 12: 'unit': Input should be 'images/s'")
