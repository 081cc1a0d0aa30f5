"""The page's money in a real browser: the script's figures are Python's, and what is typed is followed."""

from __future__ import annotations

import html
import json
import re
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from report.cost.model import answer
from report.page import build as page
from tests.helpers import records_builder as build
from tests.helpers.checks import require
from tests.helpers.purchase_builder import FILE, random_buyer
from tests.report.page.test_page_browser import CHROMIUM, chromium, looked_at

pytestmark = pytest.mark.browser

BUYERS = 200
SCRIPT = Path(page.__file__).parent / "templates" / "money.js"

CASES = """<!doctype html><meta charset="utf-8"><pre id="found"></pre>
<script type="application/json" id="cases">{cases}</script>
<script>{script}</script>
<script>
const cases = JSON.parse(document.getElementById("cases").textContent);
document.getElementById("found").textContent = JSON.stringify(cases.map(money));
</script>"""

FRAME = """<!doctype html><meta charset="utf-8">
<iframe id="frame" src="{page}" style="border:0;width:1200px;height:900px"></iframe>
<pre id="found"></pre>
<script>
document.getElementById("frame").addEventListener("load", event => {{
  const page = event.target.contentDocument, typed = {typed};
  const said = () => ({{
    sentences: [...page.querySelectorAll("[data-say]")].map(one => one.textContent),
    cells: Object.fromEntries([...page.querySelectorAll("[data-money]")].map(one =>
      [one.dataset.money, [...one.querySelectorAll("bdi")].map(part => part.textContent).join("|")])),
    changed: !page.getElementById("money-changed").hidden,
    shown: !page.getElementById("money-fields").hidden,
  }});
  const type = (path, value) => {{
    const field = page.querySelector(`[data-set="${{path}}"]`);
    field.value = value;
    field.dispatchEvent(new Event("input", {{ bubbles: true }}));
  }};
  const found = [said()];
  for (const [path, value] of typed) {{ type(path, value); found.push(said()); }}
  document.getElementById("found").textContent = JSON.stringify(found);
}});
</script>"""


@pytest.fixture(autouse=True)
def _browser() -> None:
    require("browser", CHROMIUM is not None, "no Chromium is installed")


def told(folder: Path, text: str) -> Any:
    """What a page writes into its element `found`."""
    path = folder / "asked.html"
    path.write_text(text, encoding="utf-8")
    shown = chromium(folder, "--virtual-time-budget=20000", "--dump-dom", path.as_uri()).stdout
    said = re.search(r'<pre id="found">(.+?)</pre>', shown, re.DOTALL)
    assert said, "the page said nothing"
    return json.loads(html.unescape(said[1]))


def furthest(mine: Any, theirs: Any, where: str = "") -> float:
    """The largest relative difference of two answers that have the same shape."""
    if isinstance(mine, dict):
        assert mine.keys() == theirs.keys(), where
        return max((furthest(mine[key], theirs[key], f"{where}.{key}") for key in mine), default=0.0)
    if isinstance(mine, list):
        assert len(mine) == len(theirs), where
        pairs = enumerate(zip(mine, theirs, strict=True))
        return max((furthest(*pair, f"{where}.{n}") for n, pair in pairs), default=0.0)
    if mine is None or theirs is None or mine == theirs:
        assert mine == theirs, where
        return 0.0
    return abs(mine - theirs) / max(abs(mine), abs(theirs))


def test_the_script_works_out_what_python_does_for_two_hundred_random_buyers(tmp_path):
    buyers = [random_buyer(seed) for seed in range(BUYERS)]
    cases = json.dumps([buyer.as_json() for buyer in buyers])
    theirs = told(tmp_path, CASES.format(cases=cases, script=SCRIPT.read_text(encoding="utf-8")))
    mine = json.loads(json.dumps([asdict(answer(buyer)) for buyer in buyers]))
    assert len(theirs) == BUYERS
    assert sum(len(found["order"]) > 1 for found in mine) > BUYERS / 3
    assert furthest(mine, theirs) < 1e-9


def built(folder: Path, purchase: str) -> Path:
    build.write(folder, build.two_cards())
    (folder / "results" / "claims").mkdir()
    (folder / "purchase.toml").write_text(purchase, encoding="utf-8")
    now = datetime(2026, 2, 1, tzinfo=UTC)
    return page.build(folder, folder / "out", session="20260131-aaaaaa", now=now).html


def typed(folder: Path, made: Path, *values: tuple[str, str]) -> list[dict[str, Any]]:
    return list(told(folder, FRAME.format(page=made.as_uri(), typed=json.dumps(values))))


def test_typed_prices_and_hours_give_the_page_that_a_changed_file_would_give(tmp_path):
    made = built(tmp_path / "filed", FILE)
    changed = FILE.replace("price = 2000", "price = 500").replace("hours = 20", "hours = 55")
    other = built(tmp_path / "changed", changed)
    found = typed(tmp_path, made, ("cards.0.price", "500"), ("rows.0.hours", "55"))
    [expected] = typed(tmp_path, other)
    assert found[0]["shown"] and not found[0]["changed"] and found[2]["changed"]
    assert found[0]["cells"] != found[2]["cells"]
    assert found[2]["cells"] == expected["cells"]
    assert found[2]["sentences"] == expected["sentences"]
    assert "Constructed Card A costs least" in found[2]["sentences"][0]


def test_a_price_typed_back_gives_the_page_as_it_was_written(tmp_path):
    made = built(tmp_path / "filed", FILE)
    found = typed(tmp_path, made, ("cards.1.price", "1"), ("cards.1.price", "3200"))
    assert found[1]["cells"] != found[0]["cells"]
    assert found[2] == found[0]


@pytest.mark.parametrize("value", ["", "0", "-5", "dear"])
def test_a_price_that_cannot_be_meant_changes_nothing(tmp_path, value):
    made = built(tmp_path / "filed", FILE)
    found = typed(tmp_path, made, ("cards.0.price", value))
    assert found[1] == found[0]


def test_the_page_with_money_is_quiet_and_fits_a_phone(tmp_path):
    made = built(tmp_path / "filed", FILE)
    said = chromium(tmp_path, "--dump-dom", made.as_uri()).stderr
    assert [line for line in said.splitlines() if "CONSOLE" in line] == []
    seen = looked_at(made, tmp_path, 360)
    assert seen["outside"] == [] and seen["width"] == seen["room"] <= 360
