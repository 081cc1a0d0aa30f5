"""Records, sessions and ledgers, and what the page and the gate make of one that was changed."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
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
from tests.campaign.mutation import MARK, changed, changed_json, changed_lines
from tests.helpers import ROOT, bundled

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
    not_shown: tuple[tuple[tuple[str, int], ...], ...]
    """Of each machine, how many trials it started that no record shows, by what became of them."""

    def names(self, path: str) -> bool:
        """Whether a sentence speaks of a file, or of one that was read in its place."""
        return any(path in sentence for sentence in self.named)


@cache
def _laid_out() -> Mapping[str, bytes]:
    """The sessions as a run of this version would have left them: judged by its method, with ledgers."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for pattern in SESSIONS:
            for folder in (ROOT / "results").glob(f"*/{pattern}"):
                there = root / folder.relative_to(ROOT)
                shutil.copytree(folder, there)
        for session in store.read_sessions(root):
            numbered = session.model_copy(update={"number": session.number or 1})
            ran = [stored.record for stored in store.session_records(root, session)]
            bundled.entered(root, numbered, ran)
        for stored in store.read_all(root).records:
            (root / stored.path).write_text(store.dump(judged(stored.record)), encoding="utf-8")
        shutil.copy(ROOT / "results" / "cards.toml", root / "results")
        return {
            path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
        }


def lay_out(root: Path) -> list[Path]:
    """The two sessions, their cards and ledgers below a folder; the records' and sessions' paths."""
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
        tuple(tuple(each for each in account.fates if each[0] != "shown") for account in analysis.accounts),
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


def _attack(pattern: str, change: Callable[[bytes, Random], bytes]) -> Attack:
    def attack(rng: Random, root: Path) -> None:
        before = _untouched()
        lay_out(root)
        paths = sorted((root / "results").glob(pattern))
        path = rng.choice([path for path in paths if pattern != RECORDS or path.name != "session.json"])
        content = change(path.read_bytes(), rng)
        path.unlink()
        path.write_bytes(content)
        hold(before, root, path.relative_to(root).as_posix(), rendered=rng.random() < RENDERED_SHARE)

    return attack


def hold(before: Stand, root: Path, touched: str, *, rendered: bool) -> None:
    """Raises Broken where a figure is silently another one, or the page holds what a record brought."""
    after, analysis = stand(root)
    if wrong := silent(before, after, touched):
        raise Broken("silent wrong figures", wrong)
    if rendered:
        page = render(page_of(analysis), drawn=False)
        if f"<{MARK}" in page.html.lower() or f"<{MARK}" in page.markdown.lower():
            raise Broken("silent wrong figures", f"{touched} brought an element into the page")


RECORDS = "*/*/*.json"


def _removed(rng: Random, root: Path) -> None:
    """A record that is gone is counted by the page, or named by the gate."""
    path = rng.choice([path for path in lay_out(root) if path.name != "session.json"])
    path.unlink()
    after, _ = stand(root)
    if not after.named and after.not_shown == _untouched().not_shown:
        raise Broken("silent wrong figures", f"{path.name} is gone, and nobody says so")


def _scaled(raw: dict[str, Any], rng: Random, *path: str) -> None:
    inner = raw
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] *= rng.choice((0.5, 0.8, 1.2, 3))


def _of_before(raw: dict[str, Any], rng: Random) -> None:
    raw["started_at"] = f"2026-11-{rng.randrange(1, 20):02d}T10:00:00Z"


CONTRADICTIONS: Mapping[str, Callable[[dict[str, Any], Random], None]] = {
    "it began before its session": _of_before,
    "its window is longer than its life": lambda raw, rng: raw.update(wall_seconds=rng.random()),
    "its samples a step are others": lambda raw, rng: raw["measurement"].update(
        samples_per_step=raw["measurement"]["samples_per_step"] * rng.choice((2, 3)) + 1
    ),
    "its window's seconds are others": lambda raw, rng: _scaled(raw, rng, "measurement", "window", "seconds"),
    "its seed is another": lambda raw, rng: raw["trial"].update(seed=rng.randrange(1 << 30)),
    "its plan is another": lambda raw, rng: raw.update(plan=rng.choice(("quick-2", "mine"))),
    "its machine is another": lambda raw, rng: raw["machine"].update(id=f"{rng.getrandbits(48):012x}"),
    "its speed is another": lambda raw, rng: _scaled(raw, rng, "summary", "throughput"),
    "its lock is another": lambda raw, rng: raw["environment"].update(
        lock_sha256=f"{rng.getrandbits(256):064x}"
    ),
    "its device is another": lambda raw, rng: raw["environment"].update(device=rng.choice(("cuda", "rocm"))),
    "its epochs trained for longer": lambda raw, rng: _longer_epochs(raw, rng),
    "its session is another": lambda raw, rng: raw.update(session="20261120-abcdef"),
}


def _longer_epochs(raw: dict[str, Any], rng: Random) -> None:
    for epoch in raw["measurement"]["epochs"]:
        epoch["train_seconds"] *= rng.choice((2, 3))


def _contradiction(rng: Random, root: Path) -> None:
    """A record that contradicts itself or its session is named, by its path."""
    path = rng.choice([path for path in lay_out(root) if path.name != "session.json"])
    raw = json.loads(path.read_bytes())
    what = rng.choice(sorted(CONTRADICTIONS))
    CONTRADICTIONS[what](raw, rng)
    path.unlink()
    path.write_text(json.dumps(raw))
    where = path.relative_to(root).as_posix()
    if not any(where in sentence for sentence in folder_problems(root)):
        raise Broken("silent wrong figures", f"{where}: {what}, and nobody says so")


def _copied(rng: Random, root: Path) -> None:
    """A record that stands a second time, as another attempt or repeat of its trial."""
    path = rng.choice([path for path in lay_out(root) if path.name != "session.json"])
    raw = json.loads(path.read_bytes())
    raw["attempt"] = rng.randrange(2, 9)
    there = path.with_name(store.record_name(raw["trial"]["id"], raw["attempt"]))
    there.write_text(json.dumps(raw))
    if not any(there.name in sentence for sentence in folder_problems(root)):
        raise Broken("silent wrong figures", f"{there.name} is a copy, and nobody says so")


ATTACKS: Mapping[str, Attack] = {
    "record": _attack(RECORDS, lambda content, rng: changed(content, rng, changed_json)),
    "session": _attack("*/*/session.json", lambda content, rng: changed(content, rng, changed_json)),
    "ledger": _attack("ledger/*/*.jsonl", lambda content, rng: changed(content, rng, changed_lines)),
    "removed": _removed,
    "contradiction": _contradiction,
    "copied": _copied,
}
