"""The one way in which the versions of an image change."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.image.catalog import load_images
from harness.image.lock import relock


def lock(root: Path, image: str) -> None:
    """Resolves one image's lock anew, and says what could not be reached."""
    chosen = load_images(root).image(image)
    report = relock(chosen, root)
    for line in report.changed or (f"{image}: nothing changed",):
        print(line)
    for line in report.unreachable:
        print(f"not reached: {line}", file=sys.stderr)
