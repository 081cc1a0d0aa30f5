"""The wheel's own package: it places the tree that it carries, and what is the user's outlives that tree."""

from __future__ import annotations

import gzip
import importlib.util
import io
import runpy
import tarfile
import tomllib

import pytest

from harness.record import store
from tests.helpers import ROOT
from tests.helpers import records_builder as build

FRONT = ROOT / "front"


@pytest.fixture(scope="module")
def front():
    spec = importlib.util.spec_from_file_location("front", FRONT / "gpudyno" / "__init__.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def archive(**texts: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in texts.items():
            member = tarfile.TarInfo(name.replace("__", "/") + ".toml")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return gzip.compress(buffer.getvalue(), mtime=0)


def test_the_wheel_has_the_version_and_the_needs_of_the_project(monkeypatch):
    setuptools = pytest.importorskip("setuptools")
    said: dict[str, object] = {}
    monkeypatch.setattr(setuptools, "setup", said.update)
    runpy.run_path(str(FRONT / "setup.py"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (said["version"], said["install_requires"]) == (project["version"], project["dependencies"])


def test_a_tree_is_placed_once_by_its_digest_and_its_files_are_read_only(front, tmp_path):
    first, second = (front.place_tree(archive(plans__quick=text), tmp_path) for text in "ab")
    assert first != second and sorted(tmp_path.iterdir()) == sorted([first, second])
    plan = first / "plans" / "quick.toml"
    assert (plan.read_text(), plan.stat().st_mode & 0o222) == ("a", 0)
    assert front.place_tree(archive(plans__quick="a"), tmp_path) == first


def test_what_is_the_users_own_is_in_each_tree_and_lies_outside_of_all(front, tmp_path):
    carried = "results__2026-01-31__carried__other"
    old, new = (front.place_tree(archive(plans__quick=text, **{carried: ""}), tmp_path) for text in "ab")
    own = tmp_path / "own"
    front.link_own_files(old, own)
    (old / "purchase.toml").write_text("currency = 'EUR'")
    (own / "plans").mkdir()
    for name in ("mine", "quick"):
        (own / "plans" / f"{name}.toml").write_text("own")
    build.write(old, build.two_cards())
    written = store.read_results(old)
    front.link_own_files(new, own)
    assert (new / "purchase.toml").read_text() == "currency = 'EUR'"
    assert (new / "plans" / "mine.toml").read_text() == "own"
    assert (new / "plans" / "quick.toml").read_text() == "b"
    assert store.read_results(new) == written and len(written.records) > 1
    (own / "plans" / "mine.toml").unlink()
    front.link_own_files(new, own)
    assert not (new / "plans" / "mine.toml").is_symlink()
