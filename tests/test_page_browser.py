"""The page in a real browser: no sideways scrolling, nothing fetched, quiet, dark, and printed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import test_report_page as pages
from conftest import require

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

FRAME = """<!doctype html><body style="margin:0">
<iframe id="frame" src="{page}" style="border:0;width:{width}px;height:900px"></iframe>
<pre id="found"></pre>
<script>
document.getElementById('frame').addEventListener('load', event => {{
  const page = event.target.contentDocument, room = page.documentElement.clientWidth;
  const outside = [...page.querySelectorAll('body *')].filter(one =>
    !one.closest('svg') && !one.closest('.skip') && one.getBoundingClientRect().right > room + 1);
  document.getElementById('found').textContent = JSON.stringify({{
    room,
    width: page.documentElement.scrollWidth,
    outside: outside.slice(0, 5).map(one => one.outerHTML.slice(0, 80)),
    fetched: page.defaultView.performance.getEntriesByType('resource').map(one => one.name),
    drawn: [...page.querySelectorAll('svg')].filter(one => one.getBoundingClientRect().height > 10).length,
    paper: getComputedStyle(page.body).backgroundColor,
  }});
}});
</script>"""


def chromium(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    line = [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def looked_at(page: Path, folder: Path, width: int, *arguments: str) -> dict[str, Any]:
    """What a frame of that width, around the page, finds in it."""
    frame = folder / "frame.html"
    frame.write_text(FRAME.format(page=page.as_uri(), width=width))
    dump = ("--virtual-time-budget=5000", "--window-size=1400,1000", "--dump-dom")
    shown = chromium(folder, *dump, *arguments, frame.as_uri()).stdout
    said = re.search(r'<pre id="found">(.+?)</pre>', shown, re.DOTALL)
    assert said, "the frame said nothing"
    return dict(json.loads(said[1]))


@pytest.fixture(scope="module", params=["two cards", "quick", "hostile", "published"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("browser", CHROMIUM is not None, "no Chromium is installed")
    return pages.built(request.param, tmp_path_factory.mktemp("page")).html


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_scrolls_sideways_nothing_is_fetched_and_all_charts_are_drawn(
    built: Path, tmp_path: Path, width: int
):
    found = looked_at(built, tmp_path, width)
    assert found["outside"] == []
    assert found["width"] == found["room"] <= width
    assert found["fetched"] == []
    assert found["drawn"] == built.read_text().count("<svg")


def test_the_paper_is_light_by_day_and_dark_by_night(built: Path, tmp_path: Path):
    assert looked_at(built, tmp_path, 800)["paper"] == "rgb(255, 255, 255)"
    night = looked_at(built, tmp_path, 800, "--blink-settings=preferredColorScheme=0")
    assert night["paper"] == "rgb(20, 24, 29)"


def test_the_page_says_nothing_on_the_console(built: Path, tmp_path: Path):
    said = chromium(tmp_path, "--dump-dom", built.as_uri()).stderr
    assert [line for line in said.splitlines() if "CONSOLE" in line] == []


def test_the_page_prints_on_a4(built: Path, tmp_path: Path):
    target = tmp_path / "page.pdf"
    chromium(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={target}", built.as_uri())
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", target.read_bytes())
    assert {(round(float(wide)), round(float(high))) for wide, high in boxes} == {(595, 842)}
