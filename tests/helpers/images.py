"""The images that are shipped, and a clone of them to be changed."""

from __future__ import annotations

from pathlib import Path

from harness.image.images import load_images
from tests.helpers import ROOT

IMAGES = load_images(ROOT)
NAMES = tuple(IMAGES.images)
OF_TODAY = tuple(name for name, image in IMAGES.images.items() if not image.by_name_alone)


def change(root: Path, file: str, before: str, after: str) -> None:
    """Replaces one text in one file below docker/."""
    path = root / "docker" / file
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
