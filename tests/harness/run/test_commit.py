"""The commit that records name: of git where the tree is a clone, of the archive's own file elsewhere."""

from __future__ import annotations

import subprocess

from harness.run.assemble import ARCHIVED_COMMIT, this_harness
from tests.helpers import ROOT


def git(folder, *words):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True)
    return done.stdout.decode().strip()


def clone_of(folder):
    """Make a clone of one commit, and return that."""
    folder.mkdir()
    (folder / ARCHIVED_COMMIT).write_bytes((ROOT / ARCHIVED_COMMIT).read_bytes())
    (folder / ".gitattributes").write_bytes((ROOT / ".gitattributes").read_bytes())
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", folder.name)
    return git(folder, "rev-parse", "HEAD")


def test_a_clone_has_the_commit_of_git_and_says_whether_it_was_changed(tmp_path):
    commit = clone_of(tmp_path / "clone")
    assert (this_harness(tmp_path / "clone").revision, this_harness(tmp_path / "clone").modified) == (
        commit,
        False,
    )
    (tmp_path / "clone" / ".gitattributes").write_text("")
    assert this_harness(tmp_path / "clone").modified is True


def test_an_archive_has_its_commit_also_within_someone_else_s_clone(tmp_path):
    commit = clone_of(tmp_path / "clone")
    clone_of(tmp_path / "dotfiles")
    (tmp_path / "dotfiles" / "tree").mkdir()
    packed = tmp_path / "tree.tar"
    git(tmp_path / "clone", "archive", "-o", packed, "HEAD")
    subprocess.run(["tar", "-x", "-f", packed, "-C", tmp_path / "dotfiles" / "tree"], check=True)
    found = this_harness(tmp_path / "dotfiles" / "tree")
    assert (found.revision, found.modified) == (commit, None)


def test_a_copy_without_git_and_without_an_archive_s_commit_has_none(tmp_path):
    (tmp_path / ARCHIVED_COMMIT).write_bytes((ROOT / ARCHIVED_COMMIT).read_bytes())
    assert this_harness(tmp_path).revision is None
