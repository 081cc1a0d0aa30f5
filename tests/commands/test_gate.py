"""What a contribution may hold: each record here is constructed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from commands import gate
from harness.errors import GateError, UserError
from harness.record import store
from harness.summary.statistics import judge_trial
from tests.helpers import bundled
from tests.helpers.programs import git, refused
from tests.helpers.records_builder import two_cards


def commit(root: Path) -> str:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "as it is")
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "README.md").write_text("a clone\n")
    commit(tmp_path)
    return tmp_path


def contribute(clone: Path) -> Path:
    """The folder of one session of one card, as a run leaves it; two measured trials."""
    records = [
        record.model_copy(update={"summary": judge_trial(record), "order": place})
        for place, record in enumerate(two_cards()[:2])
    ]
    session = bundled.session_of(records, "f" * 64)
    store.write_session(clone, session)
    for record in records:
        store.write_record(clone, session, record)
    return store.session_folder(clone, session)


def a_record(folder: Path) -> Path:
    return next(path for path in sorted(folder.glob("*.json")) if path.name != "session.json")


def judged(clone: Path) -> tuple[str, ...]:
    base = git(clone, "rev-parse", "HEAD")
    return refused(clone, base, commit(clone))


def changed(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_gate_reads_each_record_once(clone, monkeypatch):
    contribute(clone)
    read: list[Path] = []
    read_record = store.read_record
    monkeypatch.setattr(
        store, "read_record", lambda path, *more: read.append(path) or read_record(path, *more)
    )
    assert judged(clone) == ()
    assert len(read) == len(set(read)) == 4, "two that are brought, and what the clone has"


def test_a_contribution_without_a_record_is_told_so(clone):
    head = git(clone, "rev-parse", "HEAD")
    assert refused(clone, head, head) == ("results: no record is added",)


def with_fields(path: Path, **fields: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


SAID = {"what": "read /srv/maren/sets/train.bin", "before": "a", "after": "b"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder.parents[2] / "tasks.py").write_text(""), "tasks.py: is no record's place"),
        (lambda folder: (folder / "trial.json").symlink_to("/etc/hostname"), "json: is not a plain file"),
        (lambda folder: (folder / "session.json").unlink(), "has no session.json"),
        (lambda folder: with_fields(folder / "session.json", machine="b" * 12), "is not its session's"),
        (
            lambda folder: with_fields(folder / "session.json", notes=["read /srv/maren/sets/train.bin"]),
            "session.json: 'notes' holds a path",
        ),
        (
            lambda folder: folder.rename(folder.with_name(f"another-{folder.name[-15:]}")),
            "session.json: its content belongs into 'results/2026-01-31/",
        ),
        (lambda folder: a_record(folder).write_text(a_record(folder).read_text()[:200]), "cut short"),
        (
            lambda folder: with_fields(
                a_record(folder), warnings=[{"name": "changed", "severity": "warn", "data": SAID}]
            ),
            "holds a path",
        ),
        (
            lambda folder: a_record(folder).write_text(a_record(folder).read_text() + " " * 300_000),
            "bytes, where a file has at most 300000",
        ),
        (lambda folder: changed(a_record(folder), '"order": ', f'"order": {"9" * 5000}'), "out of range"),
    ],
)
def test_a_contribution_that_holds_anything_else_is_refused_by_its_path(clone, change, words):
    change(contribute(clone))
    found = judged(clone)
    assert all(one.startswith(("results/2026-01-31/", "tasks.py")) for one in found)
    assert any(words in one for one in found), found


def test_a_record_that_is_there_is_never_changed_or_removed(clone):
    folder = contribute(clone)
    commit(clone)
    path = a_record(folder)
    changed(path, '"plan": "constructed"', '"plan": "another"')
    (found,) = judged(clone)
    assert "is there already" in found
    path.unlink()
    (found,) = judged(clone)
    assert "is there already" in found


def test_a_file_whose_content_no_clone_has_is_named(clone):
    base = git(clone, "rev-parse", "HEAD")
    name = "results/2026-01-31/a-20260131-aaaaaa/a.json"
    git(clone, "update-index", "--add", "--info-only", "--cacheinfo", f"100644,{'1' * 40},{name}")
    tree = git(clone, "write-tree", "--missing-ok")
    head = git(clone, "commit-tree", tree, "-p", base, "-m", "without its content")
    with pytest.raises(UserError, match=r"a\.json' has no content in this clone"):
        refused(clone, base, head)


def test_what_has_come_to_the_main_branch_since_is_not_held_against_a_contribution(clone):
    fork = git(clone, "rev-parse", "HEAD")
    contribute(clone)
    head = commit(clone)
    git(clone, "checkout", "--quiet", fork)
    (clone / "README.md").write_text("another clone\n")
    base = commit(clone)
    assert refused(clone, base, head) == ()


def test_a_session_that_takes_the_id_of_one_that_is_here_is_refused(clone):
    folder = contribute(clone)
    commit(clone)
    other = folder.with_name(f"another-{folder.name[-15:]}")
    shutil.copytree(folder, other)
    for path in other.glob("*.json"):
        path.write_text(path.read_text().replace("constructed-card-a", "another"))
    (found,) = judged(clone)
    assert f"session '{folder.name[-15:]}' is in '{folder.relative_to(clone).as_posix()}' already" in found


def test_a_commit_that_is_not_there_is_a_sentence(clone):
    with pytest.raises(UserError, match="git rev-parse says"):
        refused(clone, "HEAD", "0" * 40)


def answered(clone: Path) -> None:
    """Judges what has come to the clone since its last commit."""
    base, head = git(clone, "rev-parse", "HEAD"), commit(clone)
    git(clone, "checkout", "--quiet", base)
    gate.judge_commit(clone, base, head)


def test_a_refused_contribution_is_answered_with_what_is_wrong_and_no_figure(clone, capsys):
    folder = contribute(clone)
    changed(a_record(folder), '"throughput": ', '"throughput": 1')
    with pytest.raises(GateError, match="1 problem"):
        answered(clone)
    said = capsys.readouterr()
    assert "its raw samples do not give its summary's 'throughput'" in said.err
    assert said.out == ""


def test_a_clone_of_another_user_is_named_as_such_and_trusting_it_is_the_remedy(clone, monkeypatch):
    head = git(clone, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(UserError, match=r"another user owns; git config --global --add safe\.directory"):
        refused(clone, head, head)
