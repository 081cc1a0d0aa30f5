"""ChestX-ray14 as `invoke build --only chestxray` made it ready: the images of each part, and their labels.

The split by patient, the size of 264 px and the sums are its work (`harness/data/chest_xray.py`). What is
checked here before a step: that the table is that of the sums, and that the array has an image for each of
its rows; of the real data, that each part has the study's number of images. The array's own hash is not
checked before each trial: it has 7.8 GB.

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
    """Images in grey, (images, 264, 264) in uint8, and their labels as 0 or 1 in fp32, (images, 14)."""

    pixels: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.pixels)

    def rgb(self, item: int) -> np.ndarray:
        """Return an image as (264, 264, 3)."""
        return np.repeat(self.pixels[item][:, :, None], 3, axis=2)


@dataclass(frozen=True)
class Xrays:
    """The parts `train`, `valid` and `test`, the labels' names, and the SHA-256 of the sums of all files."""

    parts: dict[str, Part]
    labels: tuple[str, ...]
    sha256: str


def read_xrays(data_folder: str, source: str) -> Xrays:
    """Return the data folder's X-rays; raises Failed where they are incomplete, or not the study's."""
    folder = Path(data_folder, FOLDER)
    sums, table = (_content(folder, name) for name in ("SHA256SUMS", "table.csv"))
    if hashlib.sha256(table).hexdigest() + "  table.csv" not in sums.decode().splitlines():
        raise Failed("bad-data", "'%s/table.csv' is not the one of its sums; prepare it again" % FOLDER)
    rows = list(csv.DictReader(table.decode("utf-8").splitlines()))
    labels = tuple(name for name in (rows[0] if rows else ()) if name not in BESIDE_LABELS)
    if len(labels) != CLASSES:
        raise Failed("bad-data", "'%s/table.csv' has %d labels, of %d" % (FOLDER, len(labels), CLASSES))
    pixels = _array(folder)
    if pixels.shape != (len(rows), PIXELS, PIXELS) or pixels.dtype != np.uint8:
        raise Failed("bad-data", "'%s/images.npy' is not of its table; prepare it again" % FOLDER)
    of = np.array([row["part"] for row in rows])
    parts = {part: _part(pixels, labels, rows, of == part) for part in IMAGES}
    _check_counts(parts, source)
    return Xrays(parts, labels, hashlib.sha256(sums).hexdigest())


def _part(pixels: np.ndarray, labels: tuple[str, ...], rows: list[dict[str, str]], own: np.ndarray) -> Part:
    """Return a part, whose rows follow one another, so that its pixels stay on the disk until asked for."""
    places = np.flatnonzero(own)
    first, end = (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
    if end - first != len(places):
        raise Failed("bad-data", "'%s/table.csv' is not in the order of its parts" % FOLDER)
    values = [[float(row[label]) for label in labels] for row in rows[first:end]]
    return Part(pixels[first:end], np.array(values, np.float32).reshape(end - first, len(labels)))


def _array(folder: Path) -> np.ndarray:
    try:
        return np.load(folder / "images.npy", mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        message = "'%s/images.npy' is not there or not whole; prepare it again"
        raise Failed("bad-data", message % FOLDER) from None


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
