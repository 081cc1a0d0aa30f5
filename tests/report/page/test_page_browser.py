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
from tests.report.page import test_page as pages

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
WIDTHS = (360, 800, 1280)


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


@pytest.fixture(scope="module", params=["two cards", "quick", "hostile", "odd", "published", "with quotes"])
def built(request: pytest.FixtureRequest) -> Path:
    require("browser", CHROMIUM is not None, "no Chromium is installed")
    return pages.built(request.param).html


@pytest.fixture(scope="module")
def seen(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return looked_at(built, tmp_path_factory.mktemp("seen"), WIDTHS)


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_scrolls_sideways_nothing_is_fetched_and_all_charts_are_drawn(
    built: Path, seen: Seen, width: int
):
    found = seen.by_width[width]
    assert found["outside"] == []
    assert found["width"] == found["room"] <= width
    assert found["fetched"] == []
    there = re.findall(r'<svg [^>]*class="([^"]+)"', built.read_text())
    assert found["drawn"] == [
        kind for kind in there if kind != f"chart {'desk' if width == 360 else 'narrow'}"
    ]


def test_no_string_of_a_record_became_a_part_of_the_page_that_acts(seen: Seen):
    found = seen.by_width[800]
    assert (found["active"], found["loading"]) == ([], 0)
    assert found["scripts"] == len(render.SCRIPTS)


def test_the_paper_is_light_by_day_and_dark_by_night(built: Path, seen: Seen, tmp_path: Path):
    assert seen.by_width[800]["paper"] == "rgb(255, 255, 255)"
    night = looked_at(built, tmp_path, (800,), "--blink-settings=preferredColorScheme=0")
    assert night.by_width[800]["paper"] == "rgb(20, 24, 29)"


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
  const page = event.target.contentDocument, all = path => [...page.querySelectorAll(path)];
  const seen = element => element.getClientRects().length > 0;
  const box = (field, value) =>
    all(`input[data-field="${{field}}"]`).find(element => element.value.startsWith(value));
  const shown = () => ({{
    rows: all('.figures tbody tr').filter(seen).map(element => element.dataset.precision),
    series: all('g.series').filter(g => g.dataset.precision === 'fp16-master' && seen(g)).length,
    heights: all('svg[id$=-seconds]').map(element => Number(element.getAttribute('height'))),
    sections: all('section[data-workload]').filter(seen).length,
  }});
  const shownAfter = {{ at_first: shown() }};
  box('precision', 'fp16-master').click();
  shownAfter.without_half = shown();
  box('precision', 'fp16-master').click();
  shownAfter.again = shown();
  box('workload', 'Language').click();
  shownAfter.without_language = shown();
  const half = element => element.textContent.startsWith('fp16-master');
  const line = all('.lines button').find(element =>
    half(element) && [...element.parentElement.querySelectorAll('button')].filter(half).length > 1);
  const beside = () => [...line.parentElement.nextElementSibling.querySelectorAll('g.series')]
    .filter(seen).map(element => element.dataset.precision);
  shownAfter.line = {{ drawn: beside(), others: shown().series }};
  line.focus();
  line.click();
  shownAfter.line.hid = beside();
  shownAfter.line.elsewhere = shown().series;
  shownAfter.line.pressed = line.getAttribute('aria-pressed') + (page.activeElement === line);
  line.click();
  shownAfter.line.again = beside();
  const totals = element => element.tHead.textContent.includes('Total') ? element.tBodies[0].rows.length : 0;
  const table = all('.figures table').reduce((most, next) => totals(next) > totals(most) ? next : most);
  const place = [...table.tHead.rows[0].cells].findIndex(head => head.textContent.startsWith('Total'));
  const head = table.tHead.rows[0].cells[place];
  const column = () => [...table.tBodies[0].rows].map(row =>
    row.cells[place].querySelector('bdi').textContent);
  const button = head.querySelector('button');
  button.focus();
  shownAfter.focused = page.activeElement === button;
  button.click();
  shownAfter.up = column();
  button.click();
  shownAfter.down = column();
  shownAfter.sort = head.getAttribute('aria-sort');
  document.getElementById('answer').textContent = JSON.stringify(shownAfter);
}});
</script>"""


@pytest.fixture(scope="module")
def pressed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    require("browser", CHROMIUM is not None, "no Chromium is installed")
    folder = tmp_path_factory.mktemp("pressed")
    frame = folder / "frame.html"
    frame.write_text(PRESS.format(page=pages.built("two cards").html.as_uri()))
    dump = ("--virtual-time-budget=5000", "--window-size=1400,1000", "--dump-dom")
    answered = re.search(
        r'<pre id="answer">(.+?)</pre>', chromium(folder, *dump, frame.as_uri()).stdout, re.DOTALL
    )
    assert answered, "the frame said nothing"
    return dict(json.loads(answered[1]))


def test_a_precision_that_is_not_ticked_leaves_tables_and_charts_which_close_up(pressed: dict[str, Any]):
    first, without = pressed["at_first"], pressed["without_half"]
    assert "fp16-master" in first["rows"] and first["series"] > 0
    assert "fp16-master" not in without["rows"] and without["series"] == 0
    assert all(after < before for before, after in zip(first["heights"], without["heights"], strict=True))
    assert pressed["again"] == first


def test_a_workload_that_is_not_ticked_leaves_the_page(pressed: dict[str, Any]):
    assert pressed["without_language"]["sections"] == pressed["at_first"]["sections"] - 1


def test_a_line_is_hidden_from_its_own_charts_alone_by_a_button_that_the_keyboard_reaches(
    pressed: dict[str, Any],
):
    line = pressed["line"]
    gone = len(line["drawn"]) - len(line["hid"])
    assert 0 < gone == line["drawn"].count("fp16-master") - line["hid"].count("fp16-master")
    assert "fp16-master" in line["hid"], "the other card's line stays"
    assert line["pressed"] == "falsetrue"
    assert 0 < line["elsewhere"] < line["others"]
    assert line["again"] == line["drawn"]


def test_a_table_is_sorted_by_a_button_that_the_keyboard_reaches(pressed: dict[str, Any]):
    def seconds(words: str) -> float:
        return float(words.removesuffix(" s").replace(",", "")) if words.endswith(" s") else float("inf")

    assert pressed["focused"] and pressed["sort"] == "descending"
    rising = [seconds(words) for words in pressed["up"] if words.endswith(" s")]
    assert rising == sorted(rising) and len(rising) > 1
    assert [seconds(words) for words in pressed["down"] if words.endswith(" s")] == rising[::-1]


def printed(case: str, folder: Path) -> list[str]:
    """The words of each sheet."""
    require("browser", CHROMIUM is not None, "no Chromium is installed")
    require("browser", shutil.which("pdftotext") is not None, "no pdftotext is installed")
    target = pdf.write(pages.built(case).html, folder / "page.pdf", root=os.geteuid() == 0)
    line = ["pdftotext", "-layout", str(target), "-"]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.split("\f")


def test_a_buyers_first_sheet_ends_with_clause_and_command(tmp_path: Path):
    first, second, *_ = printed("with quotes and studies", tmp_path)
    for words in (
        "What does it cost?",
        "How sure is this?",
        "a delivered machine accepted?",
        "--new-session",
    ):
        assert words in first
    assert second.lstrip().startswith("Which is faster, pair by pair?")


def test_page_one_on_paper_is_a_whole_decision_sheet(tmp_path: Path):
    first, *others = printed("two cards", tmp_path)
    for words in (
        "times as fast as",
        "What would change",
        "What limits the speed",
        "How sure is this",
        "measured again",
    ):
        assert words in first
    assert "How to read this" not in first and "Protocol published/1" not in first
    study = "Bhutani 2019: time-scaled"
    drawn = [number for other in others for number in range(1, 6) if f"{study} ({number} of 5)" in other]
    assert study in first and drawn == [1, 2, 3, 4, 5], "brief, and whole in its section, in their order"
