"""Charts do not depend on what a user's matplotlib is set to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.helpers import ROOT

SIZE = "from report.charts import sheet; import matplotlib; print(matplotlib.rcParams['font.size'])"


def test_a_notebook_s_backend_and_a_user_s_settings_change_no_chart(tmp_path: Path):
    settings = tmp_path / "matplotlibrc"
    settings.write_text("font.size: 40\n")
    environ = {**os.environ, "MPLBACKEND": "inline", "MATPLOTLIBRC": str(settings)}
    line = [sys.executable, "-c", SIZE]
    done = subprocess.run(line, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "10.0\n", "")


def test_a_settings_file_in_the_clone_changes_no_chart(tmp_path: Path):
    (tmp_path / "matplotlibrc").write_text("font.size: 40\nlines.linewidth: 9\nsvg.image_inline: False\n")
    code = "import matplotlib; from report.charts import sheet\nwith sheet._settings():\n print(*(matplotlib."
    code += "rcParams[name] for name in ('font.size', 'lines.linewidth', 'svg.image_inline')))"
    line = [sys.executable, "-c", code]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(line, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "10.0 1.5 True\n", "")
