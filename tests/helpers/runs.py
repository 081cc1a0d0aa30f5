"""A stand-in's plan that is run here or by another process, and what it leaves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

from harness.record import store
from harness.run import runner
from tests.helpers import ROOT, clone, wait_for

DRIVER = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background may have it ignored
from pathlib import Path
sys.path.insert(0, {tests!r})
from tests.helpers import clone
from harness.run import runner
root = Path({root!r})
runner.run(clone.ready(root), clone.open_session(root), clone.Quiet())
"""


def records(root: Path):
    return [stored.record for stored in store.read_all(root).records]


def go(root: Path, **options):
    return runner.run(clone.ready(root), clone.open_session(root), clone.Quiet(), **options)


def runs_in(process: psutil.Process, root: Path) -> bool:
    try:
        return str(root) in " ".join(process.cmdline())
    except psutil.Error:
        return False


def begin_elsewhere(root: Path) -> subprocess.Popen[bytes]:
    driver = DRIVER.format(tests=str(ROOT), root=str(root))
    return subprocess.Popen([sys.executable, "-c", driver], start_new_session=True)


def killed_elsewhere(root: Path) -> psutil.Process:
    """The trial that another process began and that lives on when that one is killed."""
    harness = begin_elsewhere(root)
    trial: psutil.Process = wait_for(lambda: running_trial(root))
    harness.kill()
    harness.wait()
    return trial


def running_trial(root: Path) -> psutil.Process | None:
    return next((p for p in psutil.process_iter() if runs_in(p, root / "workloads")), None)
