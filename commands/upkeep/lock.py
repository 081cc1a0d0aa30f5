"""The one way in which the versions of an image change."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.image.catalog import load_images
from harness.image.lock import relock
from harness.image.repin import repin


def lock(root: Path, image: str, package: str) -> None:
    """Resolves one image's lock anew, or moves one package in it, and says what could not be reached."""
    chosen = load_images(root).image(image)
    report = repin(root, image, package) if package else relock(chosen, root)
    for line in report.changed or (f"{image}: nothing changed",):
        print(line)
    for line in report.unreachable:
        print(f"not reached: {line}", file=sys.stderr)
