"""What a contribution of records is told: the gate's answer, and its comparison as a comment below it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import gate, store
from harness.cards import FILE as CARDS
from harness.cards import load_cards
from harness.claims import load_claims
from harness.errors import GateError
from report import render, words
from report.page import look
from report.view import PageView


def judge(root: Path, base: str, head: str, comment: Path | None) -> None:
    """Judges the records that a commit adds; raises GateError naming how many things are wrong.

    Writes into `comment` what a code host may show below the contribution, whatever the answer.
    """
    with TemporaryDirectory() as folder:
        found = gate.laid_out(root, base, head, Path(folder))
        if comment is not None:
            view = None if found else _beside(root, Path(folder))
            comment.write_text(render.comment(view, found), encoding="utf-8")
    _say(found)


def _say(found: Sequence[str]) -> None:
    for problem in found:
        print(words.clean(problem, 500), file=sys.stderr)
    if found:
        raise GateError(f"{len(found)} problems", remedy="mend what is listed above")
    print("the records are good")


def _beside(root: Path, contributed: Path) -> PageView:
    """The contribution's newest session as the page shows it beside this clone's records; no buyer's file."""
    lead = max(store.read_all(contributed).sessions, key=lambda session: session.started_at).id
    ours = store.results_folder(root)
    if ours.is_dir():
        shutil.copytree(
            ours,
            store.results_folder(contributed),
            ignore=shutil.ignore_patterns(".*"),
            dirs_exist_ok=True,
        )
    cards = load_cards(contributed) if (contributed / CARDS).exists() else ()
    shelf, claims = store.read_all(contributed), load_claims(contributed)
    return look(shelf, claims, cards, session=lead, now=datetime.now(UTC))
