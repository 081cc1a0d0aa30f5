"""An image's lock, written again: what changed, and what could not be reached."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from harness.image.catalog import load_images
from harness.image.lock import relock
from harness.image.repin import repin


def lock(root: Path, image: str, packages: Sequence[str] | None) -> None:
    """Resolves all versions of an image and its base's digest, or moves these packages alone."""
    report = repin(root, image, list(packages)) if packages else relock(load_images(root).image(image), root)
    print("\n".join(report.changed) or f"{image}: nothing changed")
    for line in report.unreachable:
        print(f"not reached: {line}", file=sys.stderr)
