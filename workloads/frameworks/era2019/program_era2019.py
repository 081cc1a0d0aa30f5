"""A published program on the stack of its own time: the workload `program`, as everywhere."""

from __future__ import annotations

import runpy
from pathlib import Path

if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).resolve().parents[2] / "program.py"), run_name="__main__")
