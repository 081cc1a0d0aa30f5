"""What `check` holds against each other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from commands.upkeep import check, names
from harness.errors import PlanError
from harness.image.catalog import load_images
from tests.helpers import ROOT


@pytest.fixture
def clone(tmp_path) -> Path:
    """All that names stand in, as it is here."""
    for name in ("plans", "docker", "workloads", "examples", "results/claims"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "results" / "cards.toml", tmp_path / "results")
    return tmp_path


def changed(clone: Path, name: str, old: str, new: str) -> str:
    path = clone / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return "\n".join(check.files(clone))


def test_all_that_is_shipped_agrees(clone):
    assert list(names.problems(clone)) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (
            "plans/quick.toml",
            'workload = "word_lm"',
            'workload = "word_ml"',
            "plans/quick.toml: 'word_ml' is no workload; is 'word_lm' meant?",
        ),
        (
            "plans/quick.toml",
            'data = "wikitext-2"',
            'data = "wikitext-3"',
            "'wikitext-3' is no data set; is 'wikitext-2' meant?",
        ),
        (
            "docker/cpu/requirements.in",
            "torch==2.13.0",
            "torch==2.14.1",
            "docker/cpu/requirements.in asks for torch 2.14.1, and 2.13.0+cpu is pinned",
        ),
        (
            "docker/cpu/lock.txt",
            "torch==2.13.0+cpu",
            "torch==2.12.0+cpu",
            "docker/cpu/lock.txt has torch 2.12.0+cpu, and 2.13.0+cpu is pinned",
        ),
        (
            "results/claims/s001.toml",
            'workload = "mnist_cnn"',
            'workload = "mnist_cn"',
            "is 'mnist_cnn' meant?",
        ),
        ("results/claims/s001.toml", 'card = "T4"', 'card = "T4O"', "is 'T4' meant?"),
    ],
)
def test_a_name_that_nothing_else_has_is_told_with_the_nearest(clone, name, old, new, said):
    assert said in changed(clone, name, old, new)


def test_two_images_never_write_one_lock(clone):
    path = clone / "docker" / "images.toml"
    path.write_text(path.read_text().replace('lock = "cpu/channel.txt"', 'lock = "cpu/lock.txt"', 1))
    with pytest.raises(PlanError, match=r"both name the lock cpu/lock\.txt"):
        load_images(clone)
