"""What a bundle says that is not as it was packed. No figure here was measured."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands import bundle
from harness.errors import GateError, UserError
from tests.helpers import bundled
from tests.helpers.forged_bundles import differs, files_of, forged, judgement, replaced

RECORD = "results/*/*-a-*/word_lm-r1*.json"


def test_a_changed_file_a_missing_one_and_an_added_one_are_each_named(good, tmp_path, capsys):
    def change(work: Path) -> None:
        (work / "plans" / "constructed.toml").write_text("another plan")
        (work / "docker" / "cuda" / "lock.txt").unlink()
        (work / "results" / "more.json").write_text("{}")
        (work / "page").mkdir()
        (work / "page" / "index.html").write_text("10 times as fast")

    said = differs(forged(good, tmp_path, change, resealed=False), capsys)
    assert "plans/constructed.toml: its content was changed" in said
    assert "docker/cuda/lock.txt: is missing" in said
    assert "results/more.json: is no file of a bundle" in said
    assert "page/index.html: is no file of a bundle" in said


def test_a_forged_summary_is_packed_by_no_one_and_found_though_the_statement_fits(
    own_clone, good, tmp_path, capsys
):
    path = next(own_clone.glob(RECORD))
    raw = json.loads(path.read_text())
    raw["summary"]["throughput"] *= 1.1
    path.write_text(json.dumps(raw))
    named = f"{path.relative_to(own_clone)}: its raw samples do not give its summary's 'throughput'"
    with pytest.raises(UserError, match=re.escape(named)):
        bundle.pack(own_clone, bundle.Packing(out=tmp_path / "forged.tar.gz"))

    def change(work: Path) -> None:
        (work / path.relative_to(own_clone)).write_text(json.dumps(raw))

    assert named in differs(forged(good, tmp_path, change), capsys)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda work: (work / "page.html").write_text("gold"), "page.html: is no file of a bundle"),
        (replaced("plans/constructed.toml", "repeats = 3", "repeats = 9"), "is no plan that a session ran"),
        (replaced("docker/cuda/lock.txt", "==", "==9"), "docker/lock.txt: is the lock of no record"),
        (replaced(RECORD, bundled.LEAD, bundled.OTHER), "its content belongs into"),
    ],
)
def test_what_was_resealed_with_something_else_in_it_is_named(good, tmp_path, capsys, change, said):
    assert said in differs(forged(good, tmp_path, change), capsys)


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"session": "20990101-ffffff"}, "session 20990101-ffffff of machine"),
        ({"machine": "0" * 12}, f"session {bundled.LEAD} of machine 000000000000 is not in it"),
        ({"as_of": datetime(2031, 1, 1, tzinfo=UTC)}, "no trial ended at 2031"),
        ({"figures": {}}, "its figures are not those of 'results/"),
    ],
)
def test_a_statement_that_its_own_files_deny_is_named(good, tmp_path, capsys, stated, said):
    assert said in differs(forged(good, tmp_path, lambda work: None, **stated), capsys)


@pytest.mark.parametrize(
    ("old", "new"), [(b'"payload"', b' "payload"'), (b'"signatures": []', b'"signatures": [ ]')]
)
def test_a_statement_is_read_only_as_it_is_written(good, tmp_path, old, new):
    def change(work: Path) -> None:
        sealed = files_of(good, tmp_path / "good")["statement.json"]
        assert old in sealed
        (work / "statement.json").write_bytes(sealed.replace(old, new))

    with pytest.raises(GateError, match=r"statement.json: is not written as gpudyno writes it"):
        judgement(forged(good, tmp_path, change, resealed=False))


def test_what_a_hostile_bundle_says_reaches_the_terminal_as_text(good, tmp_path, capsys):
    change = replaced("results/*/*-a-*/session.json", '"label": "', '"label": "\\u001b[2J\\u202e')
    assert not {"\x1b", "\u202e"} & set(differs(forged(good, tmp_path, change), capsys))
