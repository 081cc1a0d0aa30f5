"""The structure of every page: what it may load and run, its headings, drawings, tables and files."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
import tarfile
import tempfile
from functools import cache
from io import BytesIO
from pathlib import Path

import pytest

from report.analysis import AnalysisRequest, analyse, evidence_in
from report.page import render
from report.page.whole_page import WrittenPage, page_of, write
from tests.helpers import records_builder as constructed
from tests.helpers import records_hostile
from tests.helpers.cases import COMMITTED, MADE, MEASURED
from tests.helpers.checks import golden
from tests.helpers.here import evidence_here
from tests.helpers.page_reader import LOADING, Read, read
from tests.helpers.purposes import PURPOSES, analysis_of, written

QUESTION = AnalysisRequest(MADE)
HELD: dict[str, tuple[str, ...] | None] = {
    "buyer": (),
    "committed": ("What limits the speed", "Acceptance", "What ran"),
    "failed": None,
    "nothing": None,
    "one-machine": ("Workloads", "How sure"),
    "researcher": ("Published studies", "Costs"),
    "twenty-machines": (),
    "card-slow": ("The check",),
}
"""The purposes whose pages are compared: whole, or page one and the parts in a state that no other has."""

MOST_WORDS = 5_000
MOST_BYTES = 700_000
MOST_LINES = 300

_UNREAD = re.compile(r"<(style|script|svg)\b.*?</\1>|<[^>]+>", re.S)


@cache
def hostile() -> WrittenPage:
    """The page of records whose every name is an attack."""
    root = Path(tempfile.mkdtemp())
    records_hostile.write(root)
    return write(analyse(evidence_in(root), QUESTION), root / "out")


def page_of_any(name: str) -> WrittenPage:
    return hostile() if name == "hostile" else written(name)


@pytest.fixture(scope="module", params=[*PURPOSES, "hostile"])
def any_page(request: pytest.FixtureRequest) -> Read:
    return read(page_of_any(request.param).html.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "parts"), HELD.items())
def test_a_purpose_gives_exactly_this_page(name: str, parts: tuple[str, ...] | None):
    one, *others = written(name).markdown.read_text(encoding="utf-8").split("\n## ")
    kept = [part for part in others if parts is None or part.partition("\n")[0] in parts]
    golden(f"pages/{name}.md", "\n## ".join([one, *kept]))


@pytest.mark.parametrize(
    "piece", ["heading('a')", "note('a')", "command('a')", "items(['a'])", "strip([('', 'a', 1)])"]
)
def test_a_piece_of_markdown_that_is_a_line_ends_with_an_empty_one(piece: str):
    text = '{% import "macros.md" as m with context %}{{ m.' + piece + " }}"
    written = render._environment().from_string(text).render(escaped=str)
    assert re.fullmatch(r"\n?[^\n]+\n\n+", written)


def test_the_page_of_two_desks_is_short():
    page = written("committed")
    html = page.html.read_text(encoding="utf-8")
    assert 1_000 < len(_UNREAD.sub(" ", html).split()) <= MOST_WORDS
    assert len(html.encode()) <= MOST_BYTES
    assert len(page.markdown.read_text(encoding="utf-8").splitlines()) < MOST_LINES


def test_the_page_loads_nothing_and_runs_no_handler(any_page: Read):
    for element in any_page.elements:
        assert element.tag not in ("iframe", "object", "embed", "link", "img", "base", "form")
        assert not LOADING & element.attributes.keys()
        assert not any(name.startswith("on") or name == "style" for name in element.attributes)
        begin = "data:application/octet-stream;base64," if "download" in element.attributes else "#"
        for name in ("href", "xlink:href"):
            assert element.attributes.get(name, begin).startswith(begin)


def test_the_policy_allows_the_style_sheet_of_the_page_alone():
    text = written("pair").html.read_text(encoding="utf-8")
    sheet = text.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'" in text
    assert "url(" not in sheet
    assert "@import" not in sheet


def test_headings_go_down_one_level_at_a_time_from_a_single_first(any_page: Read):
    levels = [int(element.tag[1]) for element in any_page.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_every_drawing_says_in_words_what_it_shows_or_is_hidden_from_readers(any_page: Read):
    named = {element.attributes.get("id", ""): element.tag for element in any_page.all("title", "desc")}
    for drawing in any_page.all("svg"):
        if "aria-labelledby" in drawing.attributes:
            words = drawing.attributes["aria-labelledby"].split()
            assert [named[each] for each in words] == ["title", "desc"]
        elif "aria-hidden" not in drawing.attributes:
            assert drawing.attributes["aria-label"]
            assert drawing.attributes["role"] == "img"


def test_every_table_has_scoped_headings_and_names_its_cells_for_a_phone(any_page: Read):
    assert all(element.attributes["scope"] in ("col", "row") for element in any_page.all("th"))
    assert all("data-h" in element.attributes for element in any_page.all("td"))


def test_strings_from_records_are_shown_and_do_nothing_else():
    html, markdown = (path.read_text(encoding="utf-8") for path in (hostile().html, hostile().markdown))
    assert "<script" not in html
    assert "<img" not in html
    assert "L" * 300 not in html, "a string of ten thousand letters is cut"
    assert "&lt;script&gt;alert(1)" in html
    assert not set("\u202e\u202c\u2067\u2069\x1b\x00") & set(html + markdown)
    assert "<script" not in markdown
    for path in (hostile().html.parent / "charts").iterdir():
        assert b"<script" not in path.read_bytes()


@pytest.mark.parametrize("name", ["buyer", "pair", "twenty-machines", "failed"])
def test_charts_beside_the_markdown_are_whole_files_on_white_paper_under_their_titles(name: str):
    page = written(name)
    linked = re.findall(r"\]\(charts/([^)]+)\)", page.markdown.read_text(encoding="utf-8"))
    charts = list((page.html.parent / "charts").iterdir())
    assert charts and sorted(linked) == sorted(path.name for path in charts)
    for path in charts:
        text = path.read_text(encoding="utf-8")
        drawing = read(text)
        heading = next(words for place, words in drawing.texts if "text" in place)
        assert drawing.text("title").startswith(heading)
        assert "var(--" not in text
        assert drawing.all("rect")[0].attributes["fill"] == "#ffffff"


def test_building_again_leaves_no_chart_of_an_older_page(tmp_path: Path):
    write(analysis_of("pair"), tmp_path / "out")
    assert list((tmp_path / "out" / "charts").iterdir())
    (tmp_path / "nothing").mkdir()
    write(analyse(evidence_in(tmp_path / "nothing"), QUESTION), tmp_path / "out")
    assert not list((tmp_path / "out" / "charts").iterdir())


def test_a_record_that_cannot_be_read_is_named_on_the_page(tmp_path: Path):
    constructed.write(tmp_path, constructed.two_cards())
    next(tmp_path.glob("results/*/*/cifar*.json")).write_text('{"record": 1', encoding="utf-8")
    page = write(analyse(evidence_in(tmp_path), QUESTION), tmp_path / "out")
    assert "the file is cut short or not JSON" in read(page.html.read_text(encoding="utf-8")).text("li")


def test_a_record_of_the_future_is_named_on_the_page(tmp_path: Path):
    constructed.write(tmp_path, constructed.two_cards())
    early = AnalysisRequest(MADE.replace(year=2020))
    named = [analyse(evidence_in(tmp_path), asked).evidence.results.problems for asked in (QUESTION, early)]
    assert [sum("begins in the future (2026-01-3" in one for one in each) > 0 for each in named] == [
        False,
        True,
    ]


def test_the_named_session_leads_the_page(tmp_path: Path):
    constructed.write(tmp_path, constructed.two_cards())
    for session in ("20260130-bbbbbb", "20260131-aaaaaa"):
        analysis = analyse(evidence_in(tmp_path), AnalysisRequest(MADE, session=session))
        own = {trial.session for trial in analysis.own}
        assert own == {session}
        assert page_of(analysis).one.source.trials == len(analysis.own)


def test_a_note_stands_on_the_page_as_text_and_in_nothing_that_is_taken_along(tmp_path, undrawn):
    constructed.write(tmp_path, constructed.two_cards())
    request = AnalysisRequest(MADE, note="serial 0123 <b>")
    page = write(analyse(evidence_in(tmp_path), request), tmp_path / "out")
    assert "Note: serial 0123 <b>" in read(page.html.read_text(encoding="utf-8")).text("p")
    assert page.markdown.read_text(encoding="utf-8").count("serial 0123") == 1
    rest = [path for path in tmp_path.rglob("*.*") if path not in (page.html, page.markdown)]
    assert rest and not any(b"serial 0123" in path.read_bytes() for path in rest if path.is_file())


def test_a_page_takes_its_session_s_records_and_the_table_along(tmp_path, undrawn):
    analysis = analyse(evidence_here(), AnalysisRequest(MEASURED, session=COMMITTED["desk"][-15:]))
    html = write(analysis, tmp_path).html.read_text()
    inside = dict(re.findall(r'download="([^"]+)" href="data:application/octet-stream;base64,([^"]+)"', html))
    assert base64.b64decode(inside["trials.csv"]) == (tmp_path / "trials.csv").read_bytes()
    with tarfile.open(fileobj=BytesIO(base64.b64decode(inside[f"{analysis.lead}.tar.gz"]))) as tar:
        assert len(tar.getnames()) == len([one for one in analysis.on_record if one.session == analysis.lead])
