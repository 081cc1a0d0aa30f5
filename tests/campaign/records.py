"""Records and sessions, and what the page and the gate make of one that was changed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from harness.bundle.validate import folder_problems
from harness.record import store
from harness.run.assemble import judged
from report.analysis import Analysis, Question, analyse, evidence_in
from report.page.build import page_of
from report.page.render import render
from report.trials.table import table_of
from tests.campaign.attack import Attack, Broken
from tests.campaign.mutation import MARK, Change, changed, changed_json
from tests.helpers import ROOT

NOW = datetime(2026, 12, 1, tzinfo=UTC)
SESSIONS = ("*-20261121-cb7a72", "*-20261121-e09923")
"""Two measured sessions of one machine, of ten trials each."""

FIGURES = ("samples_per_second", "step_seconds", "protocol_seconds")
"""A record has these more than once: in its samples, its window, its epochs, its summary."""

RENDERED_SHARE = 0.1
Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Stand:
    """What a reader is told: by each record's path its figures and its causes; and all that is named."""

    figures: Mapping[str, Values]
    causes: Mapping[str, tuple[str, ...]]
    named: tuple[str, ...]

    def names(self, path: str) -> bool:
        """Whether a sentence speaks of a file, or of one that was read in its place."""
        return any(path in sentence for sentence in self.named)


@cache
def _laid_out() -> Mapping[str, bytes]:
    """The sessions as a run of this version would have left them: judged by its method."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for pattern in SESSIONS:
            for folder in (ROOT / "results").glob(f"*/{pattern}"):
                there = root / folder.relative_to(ROOT)
                shutil.copytree(folder, there)
        for stored in store.read_all(root).records:
            (root / stored.path).write_text(store.dump(judged(stored.record)), encoding="utf-8")
        shutil.copy(ROOT / "results" / "cards.toml", root / "results")
        return {
            path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
        }


def lay_out(root: Path) -> list[Path]:
    """The two sessions, and their cards below a folder; the records' and sessions' paths."""
    for name, content in _laid_out().items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return sorted((root / "results").glob("*/*/*.json"))


def stand(root: Path) -> tuple[Stand, Analysis]:
    """What report and gate say of a folder."""
    evidence = evidence_in(root)
    analysis = analyse(evidence, Question(NOW))
    rows = table_of(analysis.on_record).to_dict("records")
    return Stand(
        {row["path"]: tuple(_plain(row[name]) for name in FIGURES) for row in rows},
        {row["path"]: (str(row["verdict"]), *map(str, row["causes"])) for row in rows},
        (*evidence.results.problems, *folder_problems(root)),
    ), analysis


def _plain(value: Any) -> float | None:
    try:
        return float(value)
    except TypeError:
        return None


@cache
def _untouched() -> Stand:
    with tempfile.TemporaryDirectory() as name:
        lay_out(Path(name))
        return stand(Path(name))[0]


def silent(before: Stand, after: Stand, touched: str) -> str:
    """What is wrong with figures that nobody speaks of; empty where nothing is."""
    for path, figures in before.figures.items():
        found = after.figures.get(path)
        if found == figures or after.names(path):
            continue
        if path != touched:
            return f"{path}, which nobody changed, had {figures} and has {found}"
        if found is None or before.causes[path] == after.causes[path]:
            return f"{path} had {figures}, has {found}, and nobody says so"
    return ""


def _attack(pattern: str, change: Change) -> Attack:
    """Changes a file, and raises Broken where a figure is silently another one or a page holds its markup."""

    def attack(rng: Random, root: Path) -> None:
        before = _untouched()
        lay_out(root)
        paths = sorted((root / "results").glob(pattern))
        path = rng.choice([path for path in paths if pattern != RECORDS or path.name != "session.json"])
        content = changed(path.read_bytes(), rng, change)
        path.unlink()
        path.write_bytes(content)
        touched = path.relative_to(root).as_posix()
        after, analysis = stand(root)
        if wrong := silent(before, after, touched):
            raise Broken("silent wrong figures", wrong)
        if rng.random() < RENDERED_SHARE:
            page = render(page_of(analysis), drawn=False)
            if f"<{MARK}" in page.html.lower() or f"<{MARK}" in page.markdown.lower():
                raise Broken("silent wrong figures", f"{touched} brought an element into the page")

    return attack


RECORDS = "*/*/*.json"
ATTACKS: Mapping[str, Attack] = {
    "record": _attack(RECORDS, changed_json),
    "session": _attack("*/*/session.json", changed_json),
}
