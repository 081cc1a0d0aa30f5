"""What `clean` removes, and what it leaves."""

from __future__ import annotations

from commands.upkeep import clean


def test_a_question_that_nobody_answers_is_a_no(monkeypatch, tmp_path, capsys):
    def ended(question: str = "") -> str:
        raise EOFError

    removed: list[str] = []
    item = clean.Removable("a folder", 1, lambda: removed.append("it"))
    monkeypatch.setattr(clean, "removable", lambda root, data: [item])
    monkeypatch.setattr("builtins.input", ended)
    clean.clean(tmp_path, yes=False, data=False)
    assert removed == [] and "nothing was removed" in capsys.readouterr().out
