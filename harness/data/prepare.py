"""ChestX-ray14 from a folder of the user's, made ready once: the study's split, and its images at 264 px.

What is written: `chestxray/images/*.png`, `chestxray/table.csv` with each image's part, patient and
labels, and `chestxray/SHA256SUMS` over all of them, last. Until then `SHA256SUMS.part` grows by a line
with each image, so that a run that was killed goes on where it was. Hashes of the archives are
published nowhere that we know: what is checked of the source is that every image of the table is there
and how many each part has.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import PIL

from harness.data import chest_xray
from harness.data.check import sha256_of
from harness.data.chest_xray import LABELS, NAME, TABLE, WHOLE, Entry, Part, Size
from harness.data.folder import check_free_space, locked, writable
from harness.data.resize import Resize, Resized, resize_all
from harness.errors import DataError, UserError

PIXELS = 264
BYTES_PER_IMAGE = 140_000
"""A generous guess for the disk: RGB noise of that size would need 209,000."""
SUMS = "SHA256SUMS"

Watch = Callable[[int, int], None]
"""Told how many images are there, of how many."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is there now. `sha256` is that of SHA256SUMS: what a record would call this data."""

    folder: Path
    sizes: Mapping[Part, Size]
    made: int
    kept: int
    sha256: str
    pillow: str


def prepare(
    source: Path,
    folder: Path,
    *,
    expected: Mapping[Part, Size] = WHOLE,
    processes: int | None = None,
    watch: Watch = lambda done, of: None,
) -> Prepared:
    """Makes `folder`/chestxray of what lies anywhere below `source`; images that are there already are kept.

    Raises UserError where `source` has no table, DataError where the table, its counts or an image are not as
    they should be, NoSpace and Busy as fetching does.
    """
    split, images = _source(source, expected)
    total = sum(len(entries) for entries in split.values())
    with writable(folder), locked(folder):
        ours = folder / NAME
        (ours / "images").mkdir(parents=True, exist_ok=True)
        before = _sums(ours)
        check_free_space(NAME, (total - len(before)) * BYTES_PER_IMAGE, folder)
        jobs = [
            Resize(images[entry.image], ours / "images" / entry.image, PIXELS, before.get(entry.image))
            for entries in split.values()
            for entry in entries
        ]
        found = _resized(jobs, ours, processes, watch)
        sha256 = _finish(ours, split, found)
    made = sum(image.made for image in found)
    return Prepared(ours, chest_xray.sizes(split), made, total - made, sha256, PIL.__version__)


def _source(
    source: Path, expected: Mapping[Part, Size]
) -> tuple[dict[Part, tuple[Entry, ...]], dict[str, Path]]:
    """The split of the table, and where each of its images lies."""
    tables = sorted(source.rglob(TABLE))
    if not tables:
        raise UserError(
            f"'{source}' has no '{TABLE}' in it", remedy="name the folder that you unpacked ChestX-ray14 into"
        )
    split = chest_xray.parts(chest_xray.read_table(tables[0]))
    chest_xray.check_sizes(split, expected)
    images = {
        name: Path(place) / name for place, _, names in os.walk(source, followlinks=True) for name in names
    }
    named = [entry.image for entries in split.values() for entry in entries]
    missing = [name for name in named if name not in images]
    if missing:
        raise DataError(
            f"{len(missing):,} of the {len(named):,} images that '{TABLE}' names are not below '{source}', "
            f"the first is '{missing[0]}'",
            remedy="unpack all twelve archives there",
        )
    return split, images


def _sums(ours: Path) -> dict[str, str]:
    """Image → SHA-256, of a run that ended or of one that was killed; half a line at the end is none."""
    known: dict[str, str] = {}
    for name in (SUMS, f"{SUMS}.part"):
        path = ours / name
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        pairs = [line.split("  images/") for line in lines]
        known |= {pair[1]: pair[0] for pair in pairs if len(pair) == 2 and len(pair[0]) == 64}
    return {name: sha256 for name, sha256 in known.items() if (ours / "images" / name).is_file()}


def _resized(jobs: list[Resize], ours: Path, processes: int | None, watch: Watch) -> list[Resized]:
    found: list[Resized] = []
    with (ours / f"{SUMS}.part").open("a", encoding="utf-8") as sums:
        # The line that a kill cut short ends here.
        sums.write("\n")
        for image in resize_all(jobs, processes=processes):
            sums.write(f"{image.sha256}  images/{image.name}\n")
            sums.flush()
            found.append(image)
            watch(len(found), len(jobs))
    return found


def _finish(ours: Path, split: Mapping[Part, tuple[Entry, ...]], found: list[Resized]) -> str:
    """Writes the table, then the sums, each whole; gives the sums' own hash."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["image", "part", "patient", *LABELS])
    for part, entries in split.items():
        rows.writerows([entry.image, part, entry.patient, *entry.labels] for entry in entries)
    _write(ours / "table.csv", text.getvalue())
    lines = [f"{image.sha256}  images/{image.name}\n" for image in sorted(found, key=lambda one: one.name)]
    lines.append(f"{sha256_of(ours / 'table.csv')}  table.csv\n")
    _write(ours / SUMS, "".join(lines))
    (ours / f"{SUMS}.part").unlink()
    return sha256_of(ours / SUMS)


def _write(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.new")
    with part.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
