"""A program's source: from its forge, a repository or a bundle, as git has it, or refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.data.fetch import DataFolders
from harness.errors import DataError, MachineError, NoNetwork, UserError
from harness.record.published.program import Program
from harness.run import source_tree
from tests.helpers.programs import TRAINS, fields, git, repository

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"


def source_in(there: Path, forge: str = "") -> Program:
    return Program.model_validate(fields(there, forge=forge or f"file://{there}"))


def test_a_source_is_fetched_once_and_written_as_git_has_it(tmp_path):
    attributes = "* text eol=crlf ident\n*.txt export-ignore filter=lfs\n"
    there = repository(tmp_path / "r", **{".gitattributes": attributes, "a.txt": "one $Id$\n", "b/run": ""})
    (there / "code" / "b" / "run").chmod(0o755)
    (there / "code" / "link").symlink_to("b/run")
    git(there, "add", "--all")
    git(there, "commit", "--quiet", "--message", "two")
    folders = DataFolders(None, tmp_path / "cache")
    found = source_tree.resolve_source(source_in(there), folders)
    written = tmp_path / "cache" / source_in(there).folder
    assert (found.source, found.folder) == ("real", written)
    assert (written / "a.txt").read_bytes() == b"one $Id$\n"
    assert (written / "train.py").read_text() == TRAINS
    assert (written / "b" / "run").stat().st_mode & 0o111
    assert (written / "link").readlink() == Path("b/run")
    assert not (written.parent / "README").exists()
    git(there, "branch", "--move", "gone")
    assert source_tree.resolve_source(source_in(there, "file:///nowhere"), folders).folder == written
    own = DataFolders(tmp_path / "cache", tmp_path / "other")
    assert source_tree.resolve_source(source_in(there, "file:///nowhere"), own).folder == written


@pytest.mark.parametrize("kind", ["folder", "bare", "bundle"])
def test_a_source_can_be_brought_where_there_is_no_network(tmp_path, kind):
    there = repository(tmp_path / "r")
    given = {"folder": there, "bare": tmp_path / "r.git", "bundle": tmp_path / "r.bundle"}[kind]
    if kind == "bare":
        git(tmp_path, "clone", "--quiet", "--bare", str(there), str(given))
    if kind == "bundle":
        git(there, "bundle", "create", "--quiet", str(given), "--all")
    program = source_in(there, "https://forge.invalid/a/b")
    source_tree.bring_source(program, given, tmp_path / "cache")
    assert (tmp_path / "cache" / program.folder / "train.py").is_file()
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.is_dir()] == [program.folder]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"commit": "1" * 40}, DataError, "there is no commit 111111111111 in file://"),
        ({"tree": "2" * 40}, DataError, "where 222222222222 is asked for"),
        ({"path": "nowhere"}, DataError, "it has no folder 'nowhere'"),
        ({"forge": "file:///nowhere"}, MachineError, "bring it: invoke build --only toy --from FOLDER"),
        ({"forge": "https://127.0.0.1:9/a"}, NoNetwork, "cannot be fetched from https://127.0.0.1:9/a"),
        ({"forge": "ext::sh -c true"}, MachineError, "cannot be fetched"),
    ],
)
def test_a_source_that_is_not_what_was_published_is_refused(tmp_path, changes, error, words):
    source = source_in(repository(tmp_path / "r")).model_copy(update=changes)
    with pytest.raises(error, match=words) as refused:
        source_tree.resolve_source(source, DataFolders(None, tmp_path / "cache"))
    assert "\n" not in str(refused.value)
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]


def test_what_is_brought_has_to_be_there(tmp_path):
    source = source_in(repository(tmp_path / "r"))
    with pytest.raises(UserError, match="there is no '/nowhere'"):
        source_tree.bring_source(source, Path("/nowhere"), tmp_path / "cache")
    other = repository(tmp_path / "other", "print('another')")
    bundle, empty = tmp_path / "other.bundle", tmp_path / "empty"
    git(other, "bundle", "create", "--quiet", str(bundle), "--all")
    empty.mkdir()
    lacks = f"lacks commit {source.commit[:7]}; make one that has it, in a clone of file"
    for given, words in ((other, f"This repository {lacks}"), (bundle, f"This bundle {lacks}")):
        with pytest.raises(DataError, match=words) as refused:
            source_tree.bring_source(source, given, tmp_path / "cache")
        assert str(refused.value).endswith(": git bundle create toy.bundle --all")
    with pytest.raises(DataError, match="empty' is no git repository or bundle; make one that has it"):
        source_tree.bring_source(source, empty, tmp_path / "cache")


@pytest.mark.parametrize("kind", ["submodule", "lfs", "link"])
def test_a_tree_that_does_not_hold_its_files_is_refused(tmp_path, kind):
    there = repository(tmp_path / "r")
    if kind == "submodule":
        inner = git(there, "rev-parse", "HEAD")
        git(there, "update-index", "--add", "--cacheinfo", f"160000,{inner},code/inner")
    if kind == "lfs":
        (there / "code" / "weights").write_text(LFS)
    if kind == "link":
        (there / "code" / "out").symlink_to("../../elsewhere")
    if kind != "submodule":
        git(there, "add", "--all")
    git(there, "commit", "--quiet", "--message", "two")
    words = {"submodule": "is a submodule", "lfs": "(LFS)", "link": "links to a place outside"}[kind]
    with pytest.raises(DataError) as refused:
        source_tree.resolve_source(source_in(there), DataFolders(None, tmp_path / "cache"))
    assert words in str(refused.value)
