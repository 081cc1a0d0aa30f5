"""What a bundle says that is not as it was packed. No figure here was measured."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import offer
from harness.bundle import archive, bundle
from harness.errors import UserError
from tests.helpers import bundled
from tests.helpers.forged_bundles import differs, forged, opened, replaced


def test_a_changed_file_a_missing_one_and_an_added_one_are_each_named(good, tmp_path, capsys):
    def change(work: Path) -> None:
        (work / "page" / "report.md").write_text("another page")
        (work / "results" / "cards.toml").unlink()
        (work / "results" / "more.json").write_text("{}")

    said = differs(forged(good, tmp_path, change, sums=False), capsys)
    assert "page/report.md: its content was changed" in said
    assert "results/cards.toml: is missing" in said
    assert "results/more.json: was added" in said


@settings(max_examples=25)
@given(st.data())
def test_a_changed_byte_in_any_file_is_found_and_the_file_is_named(good, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("flip")
    source = folder / "source"
    source.mkdir()
    archive.unpack(good, source)
    name = data.draw(st.sampled_from(bundle.names_in(source)))
    content = bytearray((source / name).read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))

    def change(work: Path) -> None:
        (work / name).write_bytes(content)

    path = forged(good, folder, change, sums=False)
    assert f"{name}: its content was changed" in opened(path, folder / "b").problems


@settings(max_examples=25)
@given(st.data())
def test_a_changed_byte_of_the_file_on_disk_is_found_or_changes_nothing_that_is_read(
    good, tmp_path_factory, data
):
    folder = tmp_path_factory.mktemp("bytes")
    content = bytearray(good.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path = folder / "changed.tar.gz"
    path.write_bytes(content)
    opened(good, folder / "good")
    try:
        sums, of_good = folder / "b" / bundle.SUMS, folder / "good" / bundle.SUMS
        assert opened(path, folder / "b").problems or sums.read_bytes() == of_good.read_bytes()
    except UserError as error:
        assert "archive" in str(error)


@pytest.mark.parametrize("name", ["page/index.html", "page/report.md"])
def test_a_retouched_figure_of_the_page_is_found_with_what_the_records_give(good, tmp_path, capsys, name):
    opened(good, tmp_path / "b")
    text = (tmp_path / "b" / name).read_text()
    shown = next(figure for figure in ("1,670", "2,227") if figure in text)
    said = differs(forged(good, tmp_path, replaced(name, shown, "9,999")), capsys)
    assert said.count("DIFFERS") == 1
    assert f"{name}:" in said and "9,999" in said and shown in said


def test_a_chart_that_is_described_otherwise_is_found(good, tmp_path, capsys):
    chart = "page/charts/lead.svg"
    said = differs(
        forged(good, tmp_path, replaced(chart, "Card B fp32-ieee 14.8 min", "Card B fp32-ieee 9.8 min")),
        capsys,
    )
    assert f"{chart}: under 'Time for the same training' it says" in said and "14.8 min" in said


def test_a_forged_summary_is_packed_by_no_one_and_found_though_checksums_fit(clone, good, tmp_path, capsys):
    other = tmp_path / "clone"
    shutil.copytree(clone, other)
    path = next(other.glob("results/*/*-a-*/word_lm-r1*.json"))
    raw = json.loads(path.read_text())
    raw["summary"]["throughput"] *= 1.1
    path.write_text(json.dumps(raw))
    named = f"{path.relative_to(other)}: its raw samples do not give its summary's 'throughput'"
    with pytest.raises(UserError, match=re.escape(named)):
        offer.pack(other, offer.Packing(out=tmp_path / "forged.tar.gz"))

    def change(work: Path) -> None:
        (work / path.relative_to(other)).write_text(json.dumps(raw))

    assert named in differs(forged(good, tmp_path, change), capsys)


def test_samples_that_were_made_faster_change_the_page(clone, good, tmp_path, capsys):
    path = next(clone.glob("results/*/*-a-*/word_lm-r1*.json"))

    def change(work: Path) -> None:
        name = path.relative_to(clone)
        raw = json.loads((work / name).read_text())
        raw["measurement"]["window"]["seconds"] *= 0.9
        raw["summary"] = None
        (work / name).write_text(json.dumps(raw))

    assert "page/index.html" in differs(forged(good, tmp_path, change), capsys)


RECORD = "results/*/*-a-*/word_lm-r1*.json"


def renamed(name: str, new: str) -> Callable[[Path], object]:
    def change(work: Path) -> None:
        (path,) = work.glob(name)
        path.rename(path.with_name(new))

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda work: (work / "CERTIFICATE.html").write_text("gold"),
            "CERTIFICATE.html: is no file of a bundle",
        ),
        (
            lambda work: (work / "results" / "GOLD.html").write_text("gold"),
            "GOLD.html: is no file of a bundle",
        ),
        (lambda work: (work / "page" / "other.html").write_text("gold"), "page/other.html: was added"),
        (replaced("page/index.html", "</style>", "section { display: none }</style>"), "display: none"),
        (replaced("plans/constructed.toml", "repeats = 3", "repeats = 9"), "is not the plan that session"),
        (lambda work: (work / "plans" / "constructed.toml").unlink(), "is missing, and nothing says why"),
        (replaced("docker/cuda/lock.txt", "==", "==9"), "docker/cuda/lock.txt: is not the lock"),
        (replaced("bundle.json", '"bundle": 3', '"bundle": 3, "more": 2'), "'more': unknown key"),
        (replaced(RECORD, bundled.LEAD, bundled.OTHER), "its content belongs into"),
        (renamed(RECORD, "best.json"), "best.json: its content belongs into"),
    ],
)
def test_what_was_resealed_with_something_else_in_it_is_named(good, tmp_path, capsys, change, said):
    assert said in differs(forged(good, tmp_path, change), capsys)


def test_locks_that_are_left_out_without_a_word_are_named(good, tmp_path, capsys):
    def change(work: Path) -> None:
        manifest = json.loads((work / bundle.MANIFEST).read_text())
        (work / bundle.MANIFEST).write_text(json.dumps(manifest | {"locks": {}}))

    said = differs(forged(good, tmp_path, change), capsys)
    assert f"does not say where the lock {bundled.lock_sha256()[:12]} of its records is" in said
