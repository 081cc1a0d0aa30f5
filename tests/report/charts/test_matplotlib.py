"""What matplotlib draws: the same bytes every time, and nowhere else."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

from matplotlib import rc_context

from report.charts.card import ShareCard, draw_card
from tests.helpers import ROOT
from tests.helpers.charts import CHARTS, drawing_of

HASHES = """
import report.charts
from tests.report.charts.test_matplotlib import hashes
print(*hashes(), sep="\\n")
"""


EACH_KIND = ("rows", "dots", "curves")


def hashes() -> list[str]:
    """Of a chart of each kind as it stands in a page and in a file, and of a card in pixels."""
    charts = [CHARTS[name] for name in EACH_KIND]
    drawn = [(drawing_of(chart).page + drawing_of(chart).file).encode() for chart in charts]
    drawn += draw_card(ShareCard("about", "headline", "title", "doubt", "source", charts[0])).values()
    return [hashlib.sha256(each).hexdigest() for each in drawn]


def test_the_same_bytes_are_drawn_in_every_process_whatever_a_user_s_settings_and_a_notebook_s_backend(
    tmp_path,
):
    settings = tmp_path / "matplotlibrc"
    settings.write_text("font.size: 40\n")
    seed = "1" if os.environ.get("PYTHONHASHSEED") == "2" else "2"
    told = {"PYTHONHASHSEED": seed, "MPLBACKEND": "inline", "MATPLOTLIBRC": str(settings)}
    elsewhere = subprocess.run(
        [sys.executable, "-c", HASHES],
        env={**os.environ, **told, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    here = hashes()
    assert elsewhere.stdout.split() == here and len(set(here)) == len(here)
    assert elsewhere.stderr == ""


def test_a_settings_file_in_the_clone_changes_no_chart():
    drawn = drawing_of(CHARTS["curves"])
    theirs = {"text.usetex": True, "path.sketch": (9, 9, 9), "lines.linewidth": 9}
    with rc_context(theirs):
        assert drawing_of.__wrapped__(CHARTS["curves"]) == drawn


def test_matplotlib_is_loaded_when_the_first_chart_is_drawn():
    line = "import sys, report.page; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", line], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_nothing_but_the_charts_draws():
    drawing = [path for path in (ROOT / "report").rglob("*.py") if "matplotlib" in path.read_text()]
    assert {path.parent.name for path in drawing} == {"charts"}
