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
