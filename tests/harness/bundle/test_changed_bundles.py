"""What a bundle says that is not as it was packed. No figure here was measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from commands import bundle, report
from harness.errors import UserError
from tests.helpers import bundled
from tests.helpers import records_builder as build
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
    assert f"{chart}: it says" in said and "14.8 min" in said


def test_a_forged_summary_is_packed_by_no_one_and_found_though_checksums_fit(
    own_clone, good, tmp_path, capsys
):
    path = next(own_clone.glob("results/*/*-a-*/word_lm-r1*.json"))
    raw = json.loads(path.read_text())
    raw["summary"]["throughput"] *= 1.1
    path.write_text(json.dumps(raw))
    named = f"{path.relative_to(own_clone)}: its raw samples do not give its summary's 'throughput'"
    with pytest.raises(UserError, match=re.escape(named)):
        bundle.pack(own_clone, bundle.Packing(out=tmp_path / "forged.tar.gz"))

    def change(work: Path) -> None:
        (work / path.relative_to(own_clone)).write_text(json.dumps(raw))

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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda work: (work / "CERTIFICATE.html").write_text("gold"),
            "CERTIFICATE.html: is no file of a bundle",
        ),
        (lambda work: (work / "page" / "other.html").write_text("gold"), "page/other.html: was added"),
        (replaced("page/index.html", "</style>", "section { display: none }</style>"), "display: none"),
        (replaced("plans/constructed.toml", "repeats = 3", "repeats = 9"), "is not the plan that session"),
        (replaced("docker/cuda/lock.txt", "==", "==9"), "docker/cuda/lock.txt: is not the lock"),
        (replaced("bundle.json", '"bundle": 4', '"bundle": 4, "more": 2'), "'more': unknown key"),
        (replaced(RECORD, bundled.LEAD, bundled.OTHER), "its content belongs into"),
    ],
)
def test_what_was_resealed_with_something_else_in_it_is_named(good, tmp_path, capsys, change, said):
    assert said in differs(forged(good, tmp_path, change), capsys)


def test_two_bundles_that_hold_one_session_under_two_names_are_refused(tmp_path):
    paths = []
    for site in ("one", "two"):
        on = build.machine("Constructed Card A", label=f"card-{site}", digits="a")
        records = [one.model_copy(update={"machine": on}) for one in bundled.one_card()]
        root = bundled.write(tmp_path / site, records)
        paths.append(bundle.pack(root, bundle.Packing(out=tmp_path / f"{site}.tar.gz")))
    with (
        pytest.raises(UserError, match=f"session '{bundled.LEAD}' is in '.*' already"),
        report.merged(tmp_path / "one", paths),
    ):
        pass


def test_a_bundle_whose_list_of_sessions_is_not_what_it_holds_is_named(good, tmp_path, capsys):
    change = replaced("bundle.json", f'"{bundled.OTHER}",', '"20990101-ffffff",')
    said = differs(forged(good, tmp_path, change), capsys)
    assert "bundle.json: session 20990101-ffffff is not in it" in said
    assert f"bundle.json: does not name session {bundled.OTHER}" in said


def test_what_a_hostile_bundle_says_reaches_the_terminal_as_text(good, tmp_path, capsys):
    change = replaced("results/*/*-a-*/session.json", '"label": "', '"label": "\\u001b[2J\\u202e')
    assert not {"\x1b", "\u202e"} & set(differs(forged(good, tmp_path, change), capsys))
