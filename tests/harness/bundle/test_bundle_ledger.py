"""A bundle's ledgers: packed whole, held against its sessions. No figure here was measured."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from commands import contribute, gate, offer
from harness.bundle import bundle
from harness.bundle.validate import folder_problems
from harness.errors import GateError
from harness.machine import own_folder
from harness.record import Session, store
from tests.helpers import bundled, programs

EARLY = "20260129-cccccc"


@pytest.fixture
def clone(tmp_path, monkeypatch) -> Path:
    """One machine's two sessions with their ledgers; another one is known by its number alone."""
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    own_folder(tmp_path / "state").mkdir(parents=True)
    (own_folder(tmp_path / "state") / "id").write_text("a" * 12)
    root = bundled.write(tmp_path / "clone", [*bundled.one_card(EARLY), *bundled.one_card()])
    for number, session in ((1, session_of(root, EARLY)), (3, session_of(root, bundled.LEAD))):
        numbered = session.model_copy(update={"number": number})
        store.write_session(root, numbered)
        bundled.entered(root, numbered, [stored.record for stored in store.session_records(root, numbered)])
    return root


def session_of(root: Path, name: str) -> Session:
    return next(session for session in store.read_sessions(root) if session.id == name)


def test_a_bundle_of_one_session_holds_the_machine_s_ledger_and_verify_says_what_it_lacks(
    clone, tmp_path, capsys
):
    path = offer.pack(clone, offer.Packing(out=tmp_path / "b.tar.gz", session=bundled.LEAD))
    (tmp_path / "b").mkdir()
    opened = bundle.open_bundle(path, tmp_path / "b")
    assert opened.problems == ()
    assert len([name for name in opened.names if name.endswith(".jsonl")]) == 2
    capsys.readouterr()
    offer.verify(path, None)
    said = capsys.readouterr().out
    assert "6 trials started: 3 shown, 3 measured, and the record is not here\n" in said
    assert "  2 × session that is not here\n" in said
    assert "every byte, record and figure is as it was packed" in said


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"number":3', '"number":2', "its machine, number or plan is not its session's"),
        ('"plan_sha256":"', '"plan_sha256":"0', "line 1: 'plan_sha256'"),
        ('"event":"end"', '"event":"fin"', "line 3:"),
        ('"plan":"constructed"', '"plan":"10.0.0.1"', "holds a network address"),
        (
            '"outcome":"measured"',
            '"outcome":"failed","reason":"out-of-memory"',
            "it was measured, and by its ledger it failed (out-of-memory)",
        ),
        ('"at":"2026-01-31', '"at":"2026-03-02', "it began on 2026-01-31, in its ledger on 2026-03-02"),
    ],
)
def test_a_ledger_that_was_changed_is_a_problem_by_its_place(clone, old, new, says):
    assert list(folder_problems(clone)) == []
    path = store.ledger_path(clone, session_of(clone, bundled.LEAD))
    path.write_text(path.read_text().replace(old, new))
    assert any(says in problem for problem in folder_problems(clone)), list(folder_problems(clone))


def test_a_contribution_brings_its_ledger_which_the_gate_takes_and_never_lets_change(clone, capsys):
    git = partial(programs.git, clone)
    git("init", "--quiet", "--initial-branch", "main")
    (clone / ".gitignore").write_text("report/out/\nresults/\n")
    git("add", "--all")
    git("commit", "--quiet", "--message", "as it is")
    contribute.publish(clone, bundled.LEAD)
    said = capsys.readouterr().out
    place = store.ledger_path(Path(), session_of(clone, bundled.LEAD)).as_posix()
    assert f"{place} && git commit" in said
    git("add", "--force", store.session_folder(Path(), session_of(clone, bundled.LEAD)).as_posix(), place)
    git("commit", "--quiet", "--message", "a record")
    assert gate.problems(clone, "main~1", "main") == ()
    gate.judge(clone, "main~1", "main", clone / "comment.md")
    assert "6 trials started: 6 shown\n  1 × session that is not here\n" in capsys.readouterr().out
    assert (clone / "comment.md").read_text().startswith("**The gate lets it pass.**")
    (clone / place).write_text((clone / place).read_text().splitlines(keepends=True)[0])
    git("add", "--all", "--force", place)
    git("commit", "--quiet", "--message", "another ledger")
    with pytest.raises(GateError):
        gate.judge(clone, "main~1", "main", None)
