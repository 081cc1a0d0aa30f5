"""A stand-in's plan that is run here or by another process, and what it leaves."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil

from harness.image.images import load_images
from harness.record import store
from harness.run import runner
from harness.run.second_stack import second_stack
from harness.run.setup import RunSetup
from harness.settings import Settings
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
with clone.unwatched():
    runner.run_session(clone.ready(root), clone.open_session(root), clone.Quiet())
"""


def records(root: Path):
    return [stored.record for stored in store.read_results(root).records]


def alternating(root: Path, *asked: str) -> RunSetup:
    """What a line stands on that runs this interpreter beside itself with another variable, or as asked."""
    setup = clone.bench(root)
    settings = Settings(against=asked or ("env:OMP_NUM_THREADS=1",))
    return replace(setup, against=second_stack(root, settings, setup.image, load_images(root).image))


def go(root: Path, **options):
    return runner.run_session(clone.ready(root), clone.open_session(root), clone.Quiet(), **options)


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
    trial = begun_trial(root)
    harness.kill()
    harness.wait()
    return trial


def begun_trial(root: Path) -> psutil.Process:
    """The trial, once it runs; all processes are looked at only when there is one's log."""
    wait_for(lambda: any(root.glob("results/.state/work/*/*/log.txt")))
    return wait_for(lambda: running_trial(root))


def running_trial(root: Path) -> psutil.Process | None:
    return next((p for p in psutil.process_iter() if runs_in(p, root / "workloads")), None)
