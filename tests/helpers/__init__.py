"""What tests share: builders of records, fakes, and where things lie."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
T = TypeVar("T")


def copied(to: Path, *parts: str, compiled: bool = False) -> Path:
    """Files and folders of this clone below another folder, without what was written there.

    What Python `compiled` of the modules comes along where it would be compiled again otherwise.
    """
    unwanted = shutil.ignore_patterns("out", *(() if compiled else ("__pycache__",)))
    for part in parts:
        (to / part).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, to / part, ignore=unwanted)
        else:
            shutil.copy(ROOT / part, to / part)
    return to


def without_settings() -> dict[str, str]:
    """The variables here but those that tell gpudyno anything."""
    told = ("GPUDYNO_", "DOCKER_HOST", "CONTAINER_HOST")
    lock = "GPUDYNO_TEST_LOCK"
    return {name: value for name, value in os.environ.items() if name == lock or not name.startswith(told)}


def invoked(root: Path, *words: str, given: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """What a line of `invoke` comes to in a clone; of the variables of gpudyno it is told these alone."""
    return subprocess.run(
        [sys.executable, "-m", "invoke", *words],
        cwd=root,
        env=without_settings() | variables,
        input=given,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


BUSY = 5
"""How many times as long all takes where other work runs beside."""


def wait_for(condition: Callable[[], T], seconds: float = 20.0) -> T:
    """The first answer of `condition` that is true; fails after so many seconds on a quiet machine."""
    end = time.monotonic() + BUSY * seconds
    while time.monotonic() < end:
        if answer := condition():
            return answer
        time.sleep(0.05)
    raise AssertionError("it did not come to pass")
