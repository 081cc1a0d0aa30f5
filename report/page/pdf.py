"""The page as a PDF, by a headless Chromium: mail filters drop HTML, and an order wants paper."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.errors import GpudynoError, MachineError

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LONGEST = 120.0

_ARGUMENTS = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-pdf-header-footer",
)


def find_browser() -> str:
    """The first of the browsers on the PATH; raises MachineError where there is none."""
    for path in filter(None, map(shutil.which, BROWSERS)):
        return path
    raise MachineError(
        f"a PDF needs Chromium, and none of {', '.join(BROWSERS)} is on the PATH",
        remedy="install it (Debian: `apt install chromium`), or print the page's index.html from any browser",
    )


def write(page: Path, target: Path, *, root: bool = False) -> Path:
    """Prints `page` to `target` as the page's own print rules say; `root` runs the browser unsandboxed.

    Raises MachineError without a browser, GpudynoError where it does not print.
    """
    target.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="gpudyno-pdf-") as profile:
        line = [
            find_browser(),
            *_ARGUMENTS,
            f"--user-data-dir={profile}",
            f"--print-to-pdf={target.resolve()}",
        ]
        # Chromium refuses to start as root inside its sandbox, and the page is our own.
        line += ["--no-sandbox"] if root else []
        try:
            done = subprocess.run(
                [*line, page.resolve().as_uri()], capture_output=True, text=True, timeout=LONGEST, check=False
            )
        except subprocess.TimeoutExpired:
            raise _print_failure(f"it did not end within {LONGEST:.0f} s") from None
    if done.returncode or not target.exists():
        reason = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise _print_failure(reason[:200])
    return target


def _print_failure(why: str) -> GpudynoError:
    return GpudynoError(
        f"Chromium printed no PDF ({why})", remedy="print the page's index.html from any browser"
    )
