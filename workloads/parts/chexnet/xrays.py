"""ChestX-ray14 as `invoke build --only chestxray` made it ready: the images of each part, and their labels.

The split by patient, the size of 264 px and the sums are its work (`harness/data/prepare.py`). What is
checked here before a step: that the table is that of the sums, and that each image of the table is there; of
the real data, that each part has the study's number of images. An image's own hash is checked by saying that
verb again, since 112,120 of them would take longer than many a trial.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parts.chexnet.protocol import CLASSES, IMAGES
from parts.trial import Failed

FOLDER = "chestxray"
PIXELS = 264
BESIDE_LABELS = ("image", "part", "patient")


@dataclass(frozen=True)
class Part:
    """Images by their paths, and their labels as 0 or 1 in fp32, (images, 14)."""

    paths: list[str]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True)
class Xrays:
    """The parts `train`, `valid` and `test`, the labels' names, and the SHA-256 of the sums of all files."""

    parts: dict[str, Part]
    labels: tuple[str, ...]
    sha256: str


def prepared(data_folder: str, source: str) -> Xrays:
    """What lies in the data folder; raises Failed where it is not whole, or not the study's though `real`."""
    folder = Path(data_folder, FOLDER)
    sums, table = (_content(folder, name) for name in ("SHA256SUMS", "table.csv"))
    if hashlib.sha256(table).hexdigest() + "  table.csv" not in sums.decode().splitlines():
        raise Failed("bad-data", "'%s/table.csv' is not the one of its sums; prepare it again" % FOLDER)
    rows = list(csv.DictReader(table.decode("utf-8").splitlines()))
    labels = tuple(name for name in (rows[0] if rows else ()) if name not in BESIDE_LABELS)
    if len(labels) != CLASSES:
        raise Failed("bad-data", "'%s/table.csv' has %d labels, of %d" % (FOLDER, len(labels), CLASSES))
    there = {path.name for path in (folder / "images").glob("*.png")}
    missing = [row["image"] for row in rows if row["image"] not in there]
    if missing:
        raise Failed("bad-data", "'%s/images/%s' is not there; prepare it again" % (FOLDER, missing[0]))
    parts = {part: _part(folder, labels, [row for row in rows if row["part"] == part]) for part in IMAGES}
    _check_counts(parts, source)
    return Xrays(parts, labels, hashlib.sha256(sums).hexdigest())


def _part(folder: Path, labels: tuple[str, ...], rows: list[dict[str, str]]) -> Part:
    values = [[float(row[label]) for label in labels] for row in rows]
    paths = [str(folder / "images" / row["image"]) for row in rows]
    return Part(paths, np.array(values, np.float32).reshape(len(rows), len(labels)))


def _check_counts(parts: dict[str, Part], source: str) -> None:
    for name, part in parts.items():
        if not len(part):
            raise Failed("bad-data", "'%s' has no image in its part '%s'" % (FOLDER, name))
        if source == "real" and len(part) != IMAGES[name]:
            counts = (FOLDER, len(part), name, IMAGES[name])
            raise Failed("bad-data", "'%s' has %d images in its part '%s', of %d" % counts)


def _content(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError:
        message = "'%s/%s' is not in the data folder; `invoke build --only chestxray --from FOLDER` makes it"
        raise Failed("bad-data", message % (FOLDER, name)) from None
