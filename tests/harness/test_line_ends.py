"""A clone that git for Windows made, and one of Linux, are one clone."""

from __future__ import annotations

import shutil
import subprocess

from harness.image.lock import lock_sha256
from harness.plan import own_file, plan_file
from tests.helpers import ROOT


def test_plans_locks_and_own_files_have_one_hash_with_either_line_end(tmp_path):
    for name in ("plans/quick.toml", "docker/cpu/lock.txt", "workloads/programs/nanogpt.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes().replace(b"\n", b"\r\n"))
    assert plan_file.load_plan(tmp_path, "quick").sha256 == plan_file.load_plan(ROOT, "quick").sha256
    assert lock_sha256(tmp_path, "cpu/lock.txt") == lock_sha256(ROOT, "cpu/lock.txt")
    name = "workloads/programs/nanogpt.toml"
    here, there = (own_file.own_file_sha256("program", name, root, "") for root in (ROOT, tmp_path))
    assert here == there


def test_a_clone_with_windows_settings_has_the_line_ends_that_containers_need(tmp_path):
    for name in (".gitattributes", "docker/steps.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    git = ["git", "-C", str(tmp_path), "-c", "core.autocrlf=true"]
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    (tmp_path / "docker" / "steps.sh").unlink()
    subprocess.run([*git, "checkout", "--", "docker/steps.sh"], check=True, capture_output=True)
    assert b"\r" not in (tmp_path / "docker" / "steps.sh").read_bytes()
