"""The page in a real browser: no sideways scrolling, nothing fetched, quiet, dark, and printed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.browser import CHROMIUM, Browser, started
from tests.helpers.checks import require
from tests.helpers.purposes import PURPOSES, page, written
from tests.report.page.test_page import page_of_any

pytestmark = pytest.mark.browser

LOOKED = """(() => {
  const room = document.documentElement.clientWidth;
  const outside = [...document.querySelectorAll('body *')].filter(element =>
    !element.closest('svg') && !element.closest('.skip') && element.getBoundingClientRect().right > room + 1);
  return {
    room,
    width: document.documentElement.scrollWidth,
    outside: outside.slice(0, 5).map(element => element.outerHTML.slice(0, 80)),
    fetched: performance.getEntriesByType('resource').map(element => element.name),
    drawn: [...document.querySelectorAll('svg')].filter(element =>
      element.getBoundingClientRect().height > 10).map(element => element.getAttribute('class')),
    paper: getComputedStyle(document.body).backgroundColor,
    scripts: document.scripts.length,
    active: [...document.querySelectorAll('*')].flatMap(element => [...element.attributes]).filter(element =>
      element.name.startsWith('on') || /^ *javascript:/i.test(element.value)).map(element => element.name),
    loading: document.querySelectorAll('img, iframe, object, embed, link, base, form').length,
  };
})()"""
PAGES = ("buyer", "twenty-machines", "committed", "failed", "hostile")
WIDTHS = (360, 390, 800, 1280)
EACH_PAGE = pytest.mark.parametrize("name", PAGES)


@pytest.fixture(scope="module", autouse=True)
def _a_browser_is_installed() -> None:
    require("browser", CHROMIUM is not None, "no Chromium is installed")
    require("browser", shutil.which("pdftotext") is not None, "no pdftotext is installed")


@pytest.fixture(scope="module")
def browser(_a_browser_is_installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="module")
def seen(browser: Browser) -> dict[str, Any]:
    """What is found in pages, by name and width or `night`, and what was said on the `console`."""
    found, before = dict[str, Any](), len(browser.said)
    for name in PAGES:
        browser.open(page_of_any(name).html)
        for width in WIDTHS:
            browser.resize(width)
            found[f"{name} {width}"] = browser.run(LOOKED)
        browser.resize(800, night=True)
        found[f"{name} night"] = browser.run(LOOKED)
    return {**found, "console": browser.said[before:]}


@pytest.fixture(scope="module")
def printed(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Prints a page as a PDF, once."""
    folder, done = tmp_path_factory.mktemp("printed"), dict[Path, Path]()

    def printed(page: Path) -> Path:
        if page not in done:
            browser.open(page)
            done[page] = folder / f"{len(done)}.pdf"
            done[page].write_bytes(browser.printed())
        return done[page]

    return printed


@EACH_PAGE
@pytest.mark.parametrize("width", [360, 390, 1280])
def test_nothing_scrolls_sideways_nothing_is_fetched_and_all_charts_are_drawn(
    seen: dict[str, Any], name: str, width: int
):
    found = seen[f"{name} {width}"]
    assert found["outside"] == []
    assert found["width"] == found["room"] <= width
    assert found["fetched"] == []
    hidden = {"chart desk" if width < 760 else "chart narrow"}
    drawn = [kind for kind in found["drawn"] if kind and kind.startswith("chart")]
    assert not hidden & set(drawn)
    assert drawn


@EACH_PAGE
def test_no_string_of_a_record_became_a_part_of_the_page_that_acts(seen: dict[str, Any], name: str):
    found = seen[f"{name} 800"]
    assert (found["active"], found["loading"]) == ([], 0)
    assert found["scripts"] == 0


@EACH_PAGE
def test_the_paper_is_light_by_day_and_dark_by_night(seen: dict[str, Any], name: str):
    assert seen[f"{name} 800"]["paper"] == "rgb(255, 255, 255)"
    assert seen[f"{name} night"]["paper"] == "rgb(18, 21, 26)"


def test_no_page_says_a_word_on_the_console(seen: dict[str, Any]):
    assert seen["console"] == []


def test_what_a_page_says_on_the_console_and_what_its_policy_refuses_is_heard(
    browser: Browser, tmp_path: Path
):
    loud, before = tmp_path / "page.html", len(browser.said)
    policy = "<meta http-equiv=Content-Security-Policy content=\"img-src 'none'\">"
    loud.write_text(f"<!doctype html>{policy}<script>console.log('loud')</script><img src=refused.png>")
    browser.open(loud)
    assert ["loud" in line for line in browser.said[before:]].count(True) == 1
    assert any("refused.png" in line for line in browser.said[before:])


@EACH_PAGE
def test_the_page_prints_on_a4(printed: Callable[[Path], Path], name: str):
    sheets = printed(page_of_any(name).html).read_bytes()
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", sheets)
    assert {(round(float(wide)), round(float(high))) for wide, high in boxes} == {(595, 842)}


@pytest.fixture(scope="module")
def unshrunk(printed: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> float:
    """How high the name in the head of a page is, where nothing below it is wide."""
    alone = tmp_path_factory.mktemp("alone") / "alone.html"
    text = written("pair").html.read_text(encoding="utf-8")
    alone.write_text(text.partition("</header>")[0] + "</header></main></body></html>", encoding="utf-8")
    return _height_of_the_name(printed(alone))


@pytest.mark.parametrize("name", PURPOSES)
def test_page_one_prints_on_one_sheet(printed: Callable[[Path], Path], name: str, unshrunk: float):
    sheets = printed(written(name).html)
    line = ["pdftotext", "-bbox", "-l", "3", str(sheets), "-"]
    _, first, *others = subprocess.run(line, capture_output=True, text=True, check=True).stdout.split(
        "<page "
    )
    title = re.search(r'class="part">([^<]+)<', written(name).html.read_text(encoding="utf-8"))
    assert title
    said = [" ".join(re.findall(r">([^<]+)</word>", sheet)) for sheet in others]
    pictures = len(re.findall(r"^<figure>", _page_one(name), re.M))
    assert any(title[1] in sheet for sheet in said) if pictures > 1 else said[0].startswith(title[1])
    height = float(re.findall(r'height="([\d.]+)"', first)[0])
    lowest = max(float(end) for end in re.findall(r'yMax="([\d.]+)"', first))
    cited, cite = " ".join(re.findall(r">([^<]+)</word>", first)), page(name).one.source.sessions
    assert "This print is not checked" in cited and (len(cite) > 3 or all(each in cited for each in cite))
    assert lowest <= 0.92 * height, "another font needs 5 % of the sheet to spare"
    assert _height_of_the_name(sheets) >= 0.97 * unshrunk, (
        "a browser shrinks the whole print where a table is wider than the sheet"
    )


def _page_one(name: str) -> str:
    return written(name).html.read_text(encoding="utf-8").partition("<nav")[0]


def _height_of_the_name(sheet: Path) -> float:
    line = ["pdftotext", "-bbox", "-l", "1", str(sheet), "-"]
    text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    top, bottom = re.findall(r'yMin="([\d.]+)" xMax="[\d.]+" yMax="([\d.]+)">gpudyno<', text)[0]
    return round(float(bottom) - float(top), 1)
