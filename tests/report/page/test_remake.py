"""Every figure of a page is found where it was changed: the page is of constructed records."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import offer
from harness.bundle import archive
from report.page import remake
from tests.harness.bundle import test_bundle as bundles
from tests.helpers import bundled
from tests.helpers.purchase_builder import FILE

BUYER = FILE.replace("Card A", bundled.PAPER, 1).replace("Card B", "Constructed Card B", 1)
FIGURE = re.compile(r"(?<![#&\w-])\d[\d,.]*\d|(?<![#&\w.-])\d(?![\w.;])")
"""A number of the page: not an entity, a colour, or a part of a name."""
UNREAD = r"<script.*?</script>|<text.*?</text>"
"""Scripts, and what a drawing says beside its description."""
SECTION = re.compile(r"<h([23])[^>]*>(.*?)</h\1>", re.S)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of two cards with claims, limits, an acceptance clause, and a buyer's file."""
    folder = tmp_path_factory.mktemp("packed")
    clone = bundled.write(folder / "clone", bundled.two_cards())
    shutil.copytree(bundled.REPOSITORY / "results" / "claims", clone / "results" / "claims")
    (clone / "purchase.toml").write_text(BUYER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUDYNO_STATE", str(folder / "state"))
        return offer.pack(clone, offer.Packing(out=folder / "packed.tar.gz"))


@pytest.fixture(scope="module")
def page(packed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    archive.unpack(packed, folder)
    return folder / "page"


def another(figure: str) -> str:
    """The figure with its first digit one up."""
    return str(int(figure[0]) % 9 + 1) + figure[1:]


def words_of(text: str) -> list[tuple[int, int]]:
    """Where the figures stand in what is compared: not in tags, style sheet, scripts or drawings."""
    read = re.sub(UNREAD, _blank, text, flags=re.S)
    shown = [match.span() for match in re.finditer(r"(?<=>)[^<]+", read)]
    body = text.index("<body")
    return [
        found.span() for start, end in shown if start > body for found in FIGURE.finditer(read, start, end)
    ]


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def sections(text: str) -> dict[str, list[tuple[int, int]]]:
    """The figures that stand under each heading."""
    heads = [(found.end(), remake.pieces("a.html", found[2])[0].text) for found in SECTION.finditer(text)]
    found: dict[str, list[tuple[int, int]]] = {}
    for span in words_of(text):
        under = [said for start, said in heads if start <= span[0]]
        found.setdefault(under[-1] if under else "", []).append(span)
    return found


def changed(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + another(text[start:end]) + text[end:]
    return text


def test_a_figure_changed_in_every_section_of_the_page_is_named_each(packed, page, tmp_path, capsys):
    text = (page / "index.html").read_text()
    found = sections(text)
    for part in ("What it costs", "How close to the limit", "What a delivered machine", "What was published"):
        assert [said for said in found if said.startswith(part)], (part, list(found))
    chosen = {said: spans[len(spans) // 2] for said, spans in found.items()}

    def change(work: Path) -> None:
        (work / "page" / "index.html").write_text(changed(text, list(chosen.values())))

    said = bundles.differs(bundles.forged(packed, tmp_path, change), capsys)
    listed = [line for line in said.splitlines() if "DIFFERS: page/index.html" in line]
    assert len(listed) == min(len(chosen), remake.MOST_LISTED)
    for (start, end), line in zip(sorted(chosen.values()), listed, strict=False):
        assert another(text[start:end]) in line and text[start:end] in line


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_figure_of_the_page_that_is_changed_is_named_alone(page, tmp_path_factory, data):
    text = (page / "index.html").read_text()
    start, end = data.draw(st.sampled_from(words_of(text)))
    forged = tmp_path_factory.mktemp("forged")
    shutil.copytree(page, forged, dirs_exist_ok=True)
    (forged / "index.html").write_text(changed(text, [(start, end)]))
    (found,) = remake.differences(forged, page)
    assert another(text[start:end]) in found.sentence()
    assert text[start:end] in found.sentence()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_figure_of_the_markdown_that_is_changed_is_named_alone(page, tmp_path_factory, data):
    text = (page / "report.md").read_text()
    span = data.draw(st.sampled_from([found.span() for found in FIGURE.finditer(text)]))
    forged = tmp_path_factory.mktemp("forged")
    shutil.copytree(page, forged, dirs_exist_ok=True)
    (forged / "report.md").write_text(changed(text, [span]))
    (found,) = remake.differences(forged, page)
    assert found.file == "report.md"
    assert another(text[slice(*span)]) in found.sentence()


def test_a_price_that_was_changed_in_the_buyer_s_file_shows_in_every_figure_that_stands_on_it(
    packed, tmp_path, capsys
):
    change = bundles.replaced("purchase.toml", "price = 2000", "price = 2900")
    said = bundles.differs(bundles.forged(packed, tmp_path, change), capsys)
    assert "What it costs" in said and "Cost against time" in said
    assert "more places differ" in said


def test_a_page_that_hides_a_doubt_by_its_style_sheet_is_not_as_it_was_packed(packed, tmp_path, capsys):
    change = bundles.replaced("page/index.html", "</style>", "section { display: none }</style>")
    assert "display: none" in bundles.differs(bundles.forged(packed, tmp_path, change), capsys)


def test_a_file_that_was_put_beside_the_page_is_named(packed, tmp_path, capsys):
    def change(work: Path) -> None:
        (work / "page" / "other.html").write_text("<p>2.00 times as fast</p>")

    said = bundles.differs(bundles.forged(packed, tmp_path, change), capsys)
    assert "page/other.html: it says 'the file is there', and the records give 'no such file'" in said
