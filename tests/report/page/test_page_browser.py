"""The page in a real browser: no sideways scrolling, nothing fetched, quiet, dark, and printed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from report.page import pdf, render
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
for (const frame of frames) frame.addEventListener('load', event => {{
  const page = event.target.contentDocument, room = page.documentElement.clientWidth;
  const outside = [...page.querySelectorAll('body *')].filter(element =>
    !element.closest('svg') && !element.closest('.skip') && element.getBoundingClientRect().right > room + 1);
  found[event.target.width] = {{
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
}});
</script>"""
FRAME = '<iframe src="{page}" width="{width}" style="border:0;height:900px"></iframe>'
WIDTHS = (360, 390, 800, 1280)


def chromium(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    line = [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


@dataclass(frozen=True)
class Seen:
    """What frames around a page find in it, by their width, and what was said on the console."""

    by_width: dict[int, dict[str, Any]]
    console: list[str]


def looked_at(page: Path, folder: Path, widths: tuple[int, ...], *arguments: str) -> Seen:
    frames = folder / "frames.html"
    each = [FRAME.format(page=page.as_uri(), width=width) for width in widths]
    frames.write_text(FRAMES.format(frames="".join(each)))
    dump = ("--virtual-time-budget=5000", "--window-size=1400,1000", "--dump-dom")
    shown = chromium(folder, *dump, *arguments, frames.as_uri())
    answered = re.search(r'<pre id="answer">(.+?)</pre>', shown.stdout, re.DOTALL)
    assert answered, "the frames said nothing"
    found = {int(width): seen for width, seen in json.loads(answered[1]).items()}
    return Seen(found, [line for line in shown.stderr.splitlines() if "CONSOLE" in line])


@pytest.fixture(scope="module", params=["buyer", "twenty-machines", "committed", "failed", "hostile"])
def built(request: pytest.FixtureRequest) -> Path:
    require("browser", CHROMIUM is not None, "no Chromium is installed")
    return page_of_any(request.param).html


@pytest.fixture(scope="module")
def seen(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return looked_at(built, tmp_path_factory.mktemp("seen"), WIDTHS)


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_nothing_scrolls_sideways_nothing_is_fetched_and_all_charts_are_drawn(
    built: Path, seen: Seen, width: int
):
    found = seen.by_width[width]
    assert found["outside"] == []
    assert found["width"] == found["room"] <= width
    assert found["fetched"] == []
    hidden = {"chart paper", "chart desk" if width < 760 else "chart narrow"}
    drawn = [kind for kind in found["drawn"] if kind and kind.startswith("chart")]
    assert not hidden & set(drawn)
    assert drawn


def test_no_string_of_a_record_became_a_part_of_the_page_that_acts(seen: Seen):
    found = seen.by_width[800]
    assert (found["active"], found["loading"]) == ([], 0)
    assert found["scripts"] == len(render.SCRIPTS)


def test_the_paper_is_light_by_day_and_dark_by_night(built: Path, seen: Seen, tmp_path: Path):
    assert seen.by_width[800]["paper"] == "rgb(255, 255, 255)"
    night = looked_at(built, tmp_path, (800,), "--blink-settings=preferredColorScheme=0")
    assert night.by_width[800]["paper"] == "rgb(18, 21, 26)"


def test_the_page_says_nothing_on_the_console(seen: Seen):
    assert seen.console == []


def test_what_a_page_says_on_the_console_is_heard(tmp_path: Path):
    require("browser", CHROMIUM is not None, "no Chromium is installed")
    loud = tmp_path / "loud.html"
    loud.write_text("<!doctype html><script>console.log('loud')</script>")
    assert any("loud" in line for line in looked_at(loud, tmp_path, (800,)).console)


def test_the_page_prints_on_a4(built: Path, tmp_path: Path):
    target = tmp_path / "page.pdf"
    chromium(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={target}", built.as_uri())
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", target.read_bytes())
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
    require("browser", CHROMIUM is not None, "no Chromium is installed")
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


@pytest.mark.parametrize("name", PURPOSES)
def test_page_one_prints_on_one_sheet(name: str, tmp_path: Path):
    require("browser", CHROMIUM is not None, "no Chromium is installed")
    require("browser", shutil.which("pdftotext") is not None, "no pdftotext is installed")
    target = pdf.write(written(name).html, tmp_path / "page.pdf", root=os.geteuid() == 0)
    line = ["pdftotext", "-bbox", "-l", "2", str(target), "-"]
    first, second = subprocess.run(line, capture_output=True, text=True, check=True).stdout.split("<page ")[
        1:
    ]
    title = re.search(r'class="part">([^<]+)<', written(name).html.read_text(encoding="utf-8"))
    assert title
    words = re.findall(r">([^<]+)</word>", second)
    assert " ".join(words).startswith(title[1])
    height = float(re.findall(r'height="([\d.]+)"', first)[0])
    lowest = max(float(end) for end in re.findall(r'yMax="([\d.]+)"', first))
    assert lowest <= 0.92 * height, "another font needs 5 % of the sheet to spare"
    alone = tmp_path / "alone.html"
    text = written(name).html.read_text(encoding="utf-8")
    alone.write_text(text.partition("</header>")[0] + "</header></main></body></html>", encoding="utf-8")
    unshrunk = pdf.write(alone, tmp_path / "alone.pdf", root=os.geteuid() == 0)
    heights = [_height_of_the_name(sheet) for sheet in (target, unshrunk)]
    assert heights[0] >= 0.97 * heights[1], (
        "a browser shrinks the whole print where a table is wider than the sheet"
    )


def _height_of_the_name(sheet: Path) -> float:
    line = ["pdftotext", "-bbox", "-l", "1", str(sheet), "-"]
    text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    top, bottom = re.findall(r'yMin="([\d.]+)" xMax="[\d.]+" yMax="([\d.]+)">gpudyno<', text)[0]
    return round(float(bottom) - float(top), 1)
