"""Records, sessions and bundles of which one place was changed: a figure that changes is spoken of."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.bundle import Packing, pack
from harness.bundle.judgement import Demand, judge
from harness.bundle.validate import folder_problems
from harness.errors import GateError
from harness.record import Record, Session, store
from harness.summary.statistics import judge_trial
from report.analysis import Analysis, AnalysisRequest, analyse, evidence_in
from report.page.render import render
from report.page.whole_page import page_of
from report.trials.table import table_of
from tests.helpers import ROOT, bundled
from tests.helpers.forged_bundles import files_of, forged
from tests.hostile.judging import LONG, attacked, drawn
from tests.hostile.strategies import MARK, TEXTS, damaged, json_files

pytestmark = LONG

NOW = datetime(2026, 12, 1, tzinfo=UTC)
SESSIONS = ("*-20261121-cb7a72", "*-20261121-e09923")
"""Two measured sessions of one machine, of ten trials each: five repeats of two works."""
FIGURES = ("samples_per_second", "step_seconds", "protocol_seconds")
"""A record has these more than once: in its samples, its window, its epochs, its summary."""


@dataclass(frozen=True)
class Reading:
    """What a reader learns: by each record's path its figures and its causes; and all that is named."""

    figures: dict[str, tuple[Any, ...]]
    causes: dict[str, tuple[str, ...]]
    named: tuple[str, ...]

    def silent(self, after: Reading, touched: str) -> str:
        """What is wrong with figures that changed and that nobody speaks of; empty where nothing is."""
        for path, figures in self.figures.items():
            found = after.figures.get(path)
            if found == figures or any(path in sentence for sentence in after.named):
                continue
            if path != touched:
                return f"{path}, which nobody changed, had {figures} and has {found}"
            if found is None or self.causes[path] == after.causes[path]:
                return f"{path} had {figures}, has {found}, and nobody says so"
        return ""


@cache
def laid_out() -> dict[str, bytes]:
    """The first three repeats as a run of this version would have left them: judged by its method."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for pattern in SESSIONS:
            for folder in (ROOT / "results").glob(f"*/{pattern}"):
                shutil.copytree(folder, root / folder.relative_to(ROOT))
        for path in root.rglob("*-r[45]-*.json"):
            path.unlink()
        for stored in store.read_results(root).records:
            judged = stored.record.model_copy(update={"summary": judge_trial(stored.record)})
            (root / stored.path).write_text(store.dump_json(judged), encoding="utf-8")
        shutil.copy(ROOT / "results" / "cards.toml", root / "results")
        return {
            path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
        }


def lay_out(root: Path) -> None:
    for name, content in laid_out().items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def reading(root: Path) -> tuple[Reading, Analysis]:
    evidence = evidence_in(root)
    analysis = analyse(evidence, AnalysisRequest(NOW))
    rows = table_of(analysis.on_record).to_dict("records")
    figures = {row["path"]: tuple(str(row[name]) for name in FIGURES) for row in rows}
    causes = {row["path"]: (str(row["verdict"]), *map(str, row["causes"])) for row in rows}
    return Reading(figures, causes, (*evidence.results.problems, *folder_problems(root, root))), analysis


@cache
def untouched() -> Reading:
    with tempfile.TemporaryDirectory() as name:
        lay_out(Path(name))
        return reading(Path(name))[0]


def paths(model: type) -> list[str]:
    """The files that hold a record, or a session."""
    found = (name for name in laid_out() if name.endswith(".json"))
    return sorted(name for name in found if name.endswith("session.json") == (model is Session))


@st.composite
def scaled_windows(draw: st.DrawFn, content: bytes) -> bytes:
    """A record whose window is longer or shorter by one of its numbers, as a forger would have it."""
    document = json.loads(content)
    window = document["measurement"]["window"]
    key = draw(st.sampled_from(sorted(window)))
    window[key] = type(window[key])(window[key] * draw(st.sampled_from((0.5, 0.9, 1.1, 2, 3))))
    return json.dumps(document).encode()


@pytest.mark.parametrize("model", [Record, Session])
def test_a_figure_that_changes_is_named_or_has_its_cause_and_no_markup_reaches_the_page(model, undrawn):
    @drawn(60)
    @given(st.data())
    def attack(data):
        touched = data.draw(st.sampled_from(paths(model)))
        good = laid_out()[touched]
        forged_window = model is Record and data.draw(st.integers(0, 3)) == 0
        content = data.draw(scaled_windows(good) if forged_window else json_files(good, model))
        with attacked() as root:
            lay_out(root)
            (root / touched).write_bytes(content)
            after, analysis = reading(root)
            assert not untouched().silent(after, touched)
            if data.draw(st.integers(0, 9)) == 0:
                page = render(page_of(analysis))
                assert f"<{MARK}" not in page.html.lower() + page.markdown.lower()

    attack()


def test_a_figure_that_changes_is_silent_unless_a_sentence_or_a_cause_names_it():
    before = Reading({"a": (1.0,), "b": (2.0,)}, {"a": ("valid",), "b": ("valid",)}, ())
    after = replace(before, figures={"a": (1.0,), "b": (3.0,)})
    assert "nobody says so" in before.silent(after, "b")
    assert "which nobody changed" in before.silent(after, "a")
    assert before.silent(replace(after, named=("b: is odd",)), "b") == ""
    assert before.silent(replace(after, causes={"a": ("valid",), "b": ("warn", "x")}), "b") == ""


@cache
def bundle() -> bytes:
    with tempfile.TemporaryDirectory() as name:
        other = bundled.one_card(bundled.OTHER, digits="b", seconds=0.009, card="Constructed Card B")
        clone = bundled.write(Path(name) / "clone", [*bundled.one_card(), *other])
        (clone / "results" / "claims").mkdir()
        return pack(clone, Packing(out=Path(name) / "offer.tar.gz")).read_bytes()


@cache
def packed() -> tuple[bytes, dict[str, bytes]]:
    """The bundle before it is squeezed, and the files in it."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "offer.tar.gz")
        path.write_bytes(bundle())
        assert not judge(path, ROOT, Demand()).problems
        return gzip.decompress(bundle()), files_of(path, Path(name, "out"))


@st.composite
def other_members(draw: st.DrawFn, archive: bytes) -> bytes:
    """One member of an archive has another name, kind or content."""
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as old, tarfile.open(fileobj=out, mode="w") as new:
        chosen = draw(st.sampled_from(range(len(old.getmembers()))))
        for at, info in enumerate(old.getmembers()):
            file = old.extractfile(info)
            content = file.read() if file else b""
            how = draw(st.sampled_from(("name", "kind", "content"))) if at == chosen else ""
            if how == "name":
                info.name = draw(st.sampled_from(TEXTS)).replace("\0", "") or "x"
            elif how == "kind":
                info.type = draw(st.sampled_from((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, b"S")))
                info.linkname = draw(st.sampled_from(("/etc/passwd", "../../outside", "x")))
            elif how == "content":
                content = draw(damaged(content))
            info.size = len(content) if info.type == tarfile.REGTYPE else 0
            new.addfile(info, io.BytesIO(content))
    return out.getvalue()


@drawn(80)
@given(st.data())
def test_a_bundle_that_is_said_to_be_whole_holds_what_was_packed_byte_for_byte(data):
    with attacked() as root:
        path, (archive, whole) = root / "offer.tar.gz", packed()
        path.write_bytes(gzip.compress(data.draw(other_members(archive)), 1))
        if data.draw(st.integers(0, 9)) == 0:
            path.write_bytes(data.draw(damaged(bundle())))
        with suppress(GateError):
            assert judge(path, ROOT, Demand()).problems or files_of(path, root / "out") == whole


@drawn(40)
@given(st.data())
def test_a_bundle_whose_statement_a_forger_made_fit_is_read_or_refused_in_one_sentence(data):
    def change(work: Path) -> None:
        path = data.draw(st.sampled_from(sorted(work.rglob("*.json"))))
        path.write_bytes(data.draw(json_files(path.read_bytes(), Record)))

    with attacked() as root:
        (root / "offer.tar.gz").write_bytes(bundle())
        judge(forged(root / "offer.tar.gz", root, change), ROOT, Demand())
