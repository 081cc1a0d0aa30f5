"""What goes into an archive, by its name in it."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from harness.data.fetch import Resolved
from harness.doctor.surroundings import untrusted
from harness.errors import UserError
from harness.image.packed import Packed
from harness.pack import contents
from harness.settings import Settings


def clone(folder: Path, *names: str) -> Path:
    """A repository with these files, some of which it ignores."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / ".gitignore").write_text("/site.toml\n/plans/mine.toml\nignored*\n")
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    return folder


def test_the_user_s_own_files_the_plan_and_the_site_s_profile_go_in_and_records_and_tests_do_not(tmp_path):
    root = clone(
        tmp_path,
        "harness/units.py",
        "my model.py",
        "plans/mine.toml",
        "site.toml",
        "ignored.txt",
        "tests/test_a.py",
        "results/2026-01-01/a.json",
        "results/cards.toml",
        ".github/check.yml",
        "docs/.hidden",
    )
    names = [name for name, _ in contents.project(root, "mine")]
    assert names == ["harness/units.py", "my model.py", "plans/mine.toml", "results/cards.toml", "site.toml"]


def test_a_clone_without_a_site_s_profile_is_packed_without_one_and_no_clone_is_not(tmp_path):
    assert contents.project(clone(tmp_path / "clone", "a.py"), "mine") == (
        ("a.py", tmp_path / "clone" / "a.py"),
    )
    (tmp_path / "none").mkdir()
    with pytest.raises(UserError, match="this is no clone of gpudyno's"):
        contents.project(tmp_path / "none", "mine")


def test_of_a_data_folder_the_set_s_own_files_go_in_alone_and_what_is_not_there_is_named(tmp_path):
    there = Resolved("mnist", "real", tmp_path, "MNIST", "0" * 64, "")
    absent = Resolved("cifar-10", "generated", None, None, None, "no address answers")
    found = {"mnist": there, "cifar-10": absent}
    names = [name for name, _ in contents.data(found)]
    assert names and all(name.startswith("data/MNIST/raw/") for name in names)
    assert contents.lacking(found) == ("cifar-10",)


@pytest.mark.parametrize(
    ("form", "engine"),
    [
        ({}, "venv"),
        ({"tag": "gpudyno-cpu:0", "image_archive": "images/gpudyno-cpu-0.tar"}, None),
        ({"tag": "gpudyno-cpu:0", "sif": "images/gpudyno-cpu-0.sif"}, "apptainer"),
    ],
)
def test_the_site_s_settings_name_plan_base_and_engine_and_fetch_nothing(form, engine):
    about = Packed(plan="mine", image="cpu", device="cpu", pythons=("3.11",), **form)
    told = tomllib.loads(contents.settings_text(Settings(base="debian:bookworm-slim"), about))
    expected = {"plan": "mine", "data_seconds": 0.0, "base": "debian:bookworm-slim"}
    assert told == expected | ({"engine": engine} if engine else {})


def test_a_clone_that_git_does_not_trust_is_told_with_what_makes_it_trusted(tmp_path, monkeypatch):
    root = clone(tmp_path / "clone", "harness/units.py")
    assert untrusted(root) == "" == untrusted(tmp_path)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert "another user owns" in untrusted(root)
    with pytest.raises(UserError, match=r"another user owns.*safe\.directory"):
        contents.project(root, "mine")
