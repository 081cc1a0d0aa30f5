"""The page in a real browser: no sideways scrolling, nothing fetched, quiet, dark, and printed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from report.page import pdf
from tests.helpers.checks import require
from tests.helpers.purposes import PURPOSES, written
from tests.report.page.test_page import page_of_any

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",
    "--enable-logging=stderr",
)

FRAMES = """<!doctype html><body style="margin:0">
{frames}
<pre id="answer"></pre>
<script>
const found = {{}}, frames = [...document.querySelectorAll('iframe')];
for (const frame of frames) {{
  frame.addEventListener('load', looked);
  frame.src = frame.dataset.page;
}}
function looked(event) {{
  const page = event.target.contentDocument, room = page.documentElement.clientWidth;
  const outside = [...page.querySelectorAll('body *')].filter(element =>
    !element.closest('svg') && !element.closest('.skip') && element.getBoundingClientRect().right > room + 1);
  found[event.target.name] = {{
    room,
    width: page.documentElement.scrollWidth,
    outside: outside.slice(0, 5).map(element => element.outerHTML.slice(0, 80)),
    fetched: page.defaultView.performance.getEntriesByType('resource').map(element => element.name),
    drawn: [...page.querySelectorAll('svg')].filter(element => element.getBoundingClientRect().height > 10)
      .map(element => element.getAttribute('class')),
    paper: getComputedStyle(page.body).backgroundColor,
    scripts: page.scripts.length,
    active: [...page.querySelectorAll('*')].flatMap(element => [...element.attributes]).filter(element =>
      element.name.startsWith('on') || /^ *javascript:/i.test(element.value)).map(element => element.name),
    loading: page.querySelectorAll('img, iframe, object, embed, link, base, form').length,
  }};
  if (Object.keys(found).length === frames.length)
    document.getElementById('answer').textContent = JSON.stringify(found);
}}
</script>"""
FRAME = (
    '<iframe name="{name} {width}" data-page="{page}" width="{width}" style="border:0;height:900px"></iframe>'
)
PAGES = ("buyer", "twenty-machines", "committed", "failed", "hostile")
WIDTHS = (360, 390, 800, 1280)
EACH_PAGE = pytest.mark.parametrize("name", PAGES)


def chromium(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    line = [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


@dataclass(frozen=True)
class Seen:
    """What frames around pages find in them, by name and width, and what was said on the console."""

    frames: dict[str, dict[str, Any]]
    console: list[str]


def looked_at(pages: dict[str, Path], folder: Path, widths: tuple[int, ...], *arguments: str) -> Seen:
    """All of them by one browser."""
    frames = folder / "frames.html"
    each = [
        FRAME.format(name=name, page=page.as_uri(), width=width)
        for name, page in pages.items()
        for width in widths
    ]
    frames.write_text(FRAMES.format(frames="".join(each)))
    dump = ("--virtual-time-budget=5000", "--window-size=1400,1000", "--dump-dom")
    shown = chromium(folder, *dump, *arguments, frames.as_uri())
    answered = re.search(r'<pre id="answer">(.+?)</pre>', shown.stdout, re.DOTALL)
    assert answered, "the frames said nothing"
    return Seen(json.loads(answered[1]), [line for line in shown.stderr.splitlines() if "CONSOLE" in line])


@pytest.fixture(scope="module", autouse=True)
def _a_browser_is_installed() -> None:
    require("browser", CHROMIUM is not None, "no Chromium is installed")
    require("browser", shutil.which("pdftotext") is not None, "no pdftotext is installed")


@pytest.fixture(scope="module")
def pages() -> dict[str, Path]:
    return {name: page_of_any(name).html for name in PAGES}


@pytest.fixture(scope="module")
def seen(pages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return looked_at(pages, tmp_path_factory.mktemp("seen"), WIDTHS)


@pytest.fixture(scope="module")
def by_night(pages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Seen:
    night = "--blink-settings=preferredColorScheme=0"
    return looked_at(pages, tmp_path_factory.mktemp("night"), (800,), night)


@cache
def printed(name: str) -> Path:
    """A page as a PDF."""
    target = Path(tempfile.mkdtemp(prefix="printed-")) / "page.pdf"
    return pdf.write(page_of_any(name).html, target, root=os.geteuid() == 0)


@EACH_PAGE
@pytest.mark.parametrize("width", [360, 390, 1280])
def test_nothing_scrolls_sideways_nothing_is_fetched_and_all_charts_are_drawn(
    seen: Seen, name: str, width: int
):
    found = seen.frames[f"{name} {width}"]
    assert found["outside"] == []
    assert found["width"] == found["room"] <= width
    assert found["fetched"] == []
    hidden = {"chart desk" if width < 760 else "chart narrow"}
    drawn = [kind for kind in found["drawn"] if kind and kind.startswith("chart")]
    assert not hidden & set(drawn)
    assert drawn


@EACH_PAGE
def test_no_string_of_a_record_became_a_part_of_the_page_that_acts(seen: Seen, name: str):
    found = seen.frames[f"{name} 800"]
    assert (found["active"], found["loading"]) == ([], 0)
    assert found["scripts"] == 1


@EACH_PAGE
def test_the_paper_is_light_by_day_and_dark_by_night(seen: Seen, by_night: Seen, name: str):
    assert seen.frames[f"{name} 800"]["paper"] == "rgb(255, 255, 255)"
    assert by_night.frames[f"{name} 800"]["paper"] == "rgb(18, 21, 26)"


def test_no_page_says_a_word_on_the_console(seen: Seen):
    assert seen.console == []


def test_what_a_page_says_on_the_console_is_heard(tmp_path: Path):
    loud = tmp_path / "loud.html"
    loud.write_text("<!doctype html><script>console.log('loud')</script>")
    assert any("loud" in line for line in looked_at({"loud": loud}, tmp_path, (800,)).console)


@EACH_PAGE
def test_the_page_prints_on_a4(name: str):
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", printed(name).read_bytes())
    assert {(round(float(wide)), round(float(high))) for wide, high in boxes} == {(595, 842)}


PRESS = """<!doctype html><body>
<iframe id="frame" src="{page}" style="border:0;width:1280px;height:900px"></iframe>
<pre id="answer"></pre>
<script>
document.getElementById('frame').addEventListener('load', event => {{
  const page = event.target.contentDocument;
  const table = [...page.querySelectorAll('table')].find(each => each.querySelector('thead button'));
  const head = table.tHead.rows[0].cells[0], button = head.querySelector('button');
  const column = () => [...table.tBodies[0].rows].map(row => row.cells[0].textContent);
  page.querySelectorAll('details').forEach(each => each.open = true);
  button.focus();
  const answer = {{ focused: page.activeElement === button }};
  button.click();
  answer.up = column();
  button.click();
  answer.down = column();
  answer.sort = head.getAttribute('aria-sort');
  document.getElementById('answer').textContent = JSON.stringify(answer);
}});
</script>"""


def test_a_table_is_sorted_by_a_button_that_the_keyboard_reaches(tmp_path: Path):
    frame = tmp_path / "frame.html"
    frame.write_text(PRESS.format(page=written("twenty-machines").html.as_uri()))
    dump = ("--virtual-time-budget=5000", "--window-size=1400,1000", "--dump-dom")
    shown = chromium(tmp_path, *dump, frame.as_uri()).stdout
    answered = re.search(r'<pre id="answer">(.+?)</pre>', shown, re.DOTALL)
    assert answered, "the frame said nothing"
    pressed = json.loads(answered[1])
    assert (pressed["focused"], pressed["sort"]) == (True, "descending")
    assert len(pressed["up"]) > 3
    assert pressed["up"] != pressed["down"]
    assert sorted(pressed["up"]) == sorted(pressed["down"])


@pytest.fixture(scope="module")
def unshrunk(tmp_path_factory: pytest.TempPathFactory) -> float:
    """How high the name in the head of a page is, where nothing below it is wide."""
    alone = tmp_path_factory.mktemp("alone") / "alone.html"
    text = written("pair").html.read_text(encoding="utf-8")
    alone.write_text(text.partition("</header>")[0] + "</header></main></body></html>", encoding="utf-8")
    return _height_of_the_name(pdf.write(alone, alone.with_suffix(".pdf"), root=os.geteuid() == 0))


@pytest.mark.parametrize("name", PURPOSES)
def test_page_one_prints_on_one_sheet(name: str, unshrunk: float):
    line = ["pdftotext", "-bbox", "-l", "3", str(printed(name)), "-"]
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
    assert lowest <= 0.92 * height, "another font needs 5 % of the sheet to spare"
    assert _height_of_the_name(printed(name)) >= 0.97 * unshrunk, (
        "a browser shrinks the whole print where a table is wider than the sheet"
    )


def _page_one(name: str) -> str:
    return written(name).html.read_text(encoding="utf-8").partition("<nav")[0]


def _height_of_the_name(sheet: Path) -> float:
    line = ["pdftotext", "-bbox", "-l", "1", str(sheet), "-"]
    text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    top, bottom = re.findall(r'yMin="([\d.]+)" xMax="[\d.]+" yMax="([\d.]+)">gpudyno<', text)[0]
    return round(float(bottom) - float(top), 1)
