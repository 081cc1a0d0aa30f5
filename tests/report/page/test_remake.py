"""Every figure of a page is found where it was changed: the page is of constructed records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import bundle
from harness.bundle import archive
from report.page import remake
from tests.helpers import bundled
from tests.helpers import forged_bundles as bundles
from tests.helpers.cases import published
from tests.helpers.purchase_builder import FILE

BUYER = FILE.replace("Card A", bundled.PAPER, 1).replace("Card B", "Constructed Card B", 1)
FIGURE = re.compile(r"(?<![#&\w-])\d[\d,.]*\d|(?<![#&\w.-])\d(?![\w.;])")
"""A number of the page: not an entity, a colour, or a part of a name."""
UNREAD = r"<script.*?</script>|<svg.*?</svg>"
"""Scripts and drawings."""
SECTION = re.compile(r"<h([23])[^>]*>(.*?)</h\1>", re.S)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of two cards with claims, limits, an acceptance clause, and a buyer's file."""
    folder = tmp_path_factory.mktemp("packed")
    clone = bundled.write(folder / "clone", bundled.two_cards())
    published(clone, "s004")
    (clone / "purchase.toml").write_text(BUYER)
    return bundles.packed(clone, folder, with_prices=True)


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
        figure.span() for start, end in shown if start > body for figure in FIGURE.finditer(read, start, end)
    ]


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def sections(text: str) -> dict[str, list[tuple[int, int]]]:
    """The figures that stand under each heading."""
    heads = [(head.end(), re.sub(r"<[^>]+>", "", head[2]).strip()) for head in SECTION.finditer(text)]
    spans: dict[str, list[tuple[int, int]]] = {}
    for span in words_of(text):
        under = [heading for start, heading in heads if start <= span[0]]
        spans.setdefault(under[-1] if under else "", []).append(span)
    return spans


def changed(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + another(text[start:end]) + text[end:]
    return text


def test_a_figure_changed_in_every_section_of_the_page_is_named_each(packed, page, tmp_path, capsys):
    text = (page / "index.html").read_text()
    places = sections(text)
    parts = ("Pair by pair", "Costs", "Acceptance", "Published studies")
    for part in parts:
        assert [heading for heading in places if heading.startswith(part)], (part, list(places))
    chosen = {heading: spans[len(spans) // 2] for heading, spans in places.items()}

    def change(work: Path) -> None:
        (work / "page" / "index.html").write_text(changed(text, list(chosen.values())))

    printed = bundles.differs(bundles.forged(packed, tmp_path, change), capsys)
    listed = [line for line in printed.splitlines() if "DIFFERS: page/index.html" in line]
    assert len(listed) == min(len(chosen), bundle.MOST_LISTED)
    for (start, end), line in zip(sorted(chosen.values()), listed, strict=False):
        assert another(text[start:end]) in line and text[start:end] in line


@settings(max_examples=25)
@given(st.sampled_from(["index.html", "report.md"]), st.data())
def test_any_figure_of_the_page_that_is_changed_is_named_alone(page, tmp_path_factory, name, data):
    text = (page / name).read_text()
    spans = words_of(text) if name == "index.html" else [figure.span() for figure in FIGURE.finditer(text)]
    start, end = data.draw(st.sampled_from(spans))
    forged = tmp_path_factory.mktemp("forged") / name
    forged.write_text(changed(text, [(start, end)]))
    (line,) = remake.other_words(forged, page / name)
    assert another(text[start:end]) in line and text[start:end] in line


def numbers_in(value: Any, place: str = "") -> Iterator[tuple[str, list[Any] | dict[str, Any], Any]]:
    """Each number's place, what holds it, and its name there."""
    named = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in named:
        here = (f"{place}.{name}" if place else name) if isinstance(value, dict) else f"{place}[{name}]"
        if isinstance(item, dict | list):
            yield from numbers_in(item, here)
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield here, value, name


@pytest.fixture(scope="module")
def figures(page: Path) -> tuple[Any, Any, list[tuple[str, Any, Any]]]:
    """The figures of the page twice, and the numbers of the second."""
    packed, forged = (json.loads((page.parent / "analysis.json").read_text()) for _ in range(2))
    return packed, forged, list(numbers_in(forged))


@settings(max_examples=60)
@given(st.data())
def test_any_number_of_the_figures_that_is_changed_is_named_by_its_place(figures, data):
    packed, forged, numbers = figures
    place, holder, name = data.draw(st.sampled_from(numbers))
    before, holder[name] = holder[name], holder[name] * 1.001 + 1e-6
    (line,) = remake.differences(forged, packed)
    holder[name] = before
    assert line.startswith(f"{place}: it says ")


def test_a_price_that_was_changed_in_the_buyer_s_file_shows_in_every_figure_that_stands_on_it(
    packed, tmp_path, capsys
):
    change = bundles.replaced("purchase.toml", "price = 2000", "price = 2900")
    printed = bundles.differs(bundles.forged(packed, tmp_path, change), capsys)
    assert "page/index.html: it says" in printed
    assert "costs.ranking.offers" in printed and printed.count("DIFFERS") > 10
