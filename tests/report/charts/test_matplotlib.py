"""What matplotlib draws: the same bytes every time, nowhere else, and marks where they belong in pixels."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from io import BytesIO

import numpy as np
import pytest
from matplotlib import image as images
from matplotlib import rc_context

from report.charts.drawing import MARGIN, PIXELS, Sheet
from tests.helpers import ROOT
from tests.helpers.charts import CHARTS, drawing_of, pixels_of

HASHES = """
import report.charts
from tests.report.charts.test_matplotlib import hashes
print(*hashes(), sep="\\n")
"""


EACH_KIND = ("rows", "dots", "curves")


def hashes() -> list[str]:
    """Of a chart of each kind as it stands in a page, in a file, and in pixels."""
    charts = [CHARTS[name] for name in EACH_KIND]
    drawn = [(drawing_of(chart).page + drawing_of(chart).file).encode() for chart in charts]
    drawn += [pixels_of(chart) for chart in charts[1:]]
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


def test_a_mark_stands_beside_its_name_in_pixels_too_with_a_margin_around_both():
    sheet = Sheet(300.0, 100.0)
    name = {"ls": "none", "marker": "s", "ms": 8, "mec": "none", "mfc": "#ff0000"}
    sheet.line([(8.0, 50.0)], name)
    sheet.line([(200.0, 50.0)], {**name, "mfc": "#0000ff"})
    above = sheet.head("Title", "unit")
    pixels = images.imread(BytesIO(sheet.png(above)))[..., :3]
    assert pixels.shape[:2] == (PIXELS * (100 + above + 2 * MARGIN), PIXELS * (300 + 2 * MARGIN))
    for colour, x in (((1, 0, 0), 8), ((0, 0, 1), 200)):
        rows, columns = np.nonzero((pixels == colour).all(axis=2))
        assert rows.mean() / PIXELS == pytest.approx(MARGIN + above + 50, abs=1)
        assert columns.mean() / PIXELS == pytest.approx(MARGIN + x, abs=1)
