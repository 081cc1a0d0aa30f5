"""ChestX-ray14 from a folder of the user's, made ready once: the study's split, and its images at 264 px.

The table comes with the images (Wang et al., "ChestX-ray8", CVPR 2017; 112,120 images of 30,805
patients). Karmanov 2018 sorted the patients by their number, without shuffling, and took the first 0.7 to
train on, the next 0.1 to validate, and the rest to test, so that no patient is in two parts. Of the
findings "No Finding" is no label.

What is written: `chestxray/images.npy`, one uint8 array of (images, 264, 264); `chestxray/table.csv` with the
part, patient and labels of each image in the array's order; and `chestxray/SHA256SUMS` over both, last.
X-rays are grey, so one channel holds them. Hashes of the archives are published nowhere that we know: what is
checked of the source is that every image of the table is there and how many each part has.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import PIL
from PIL import Image

from harness.data.datasets import CHEST_XRAY, IMAGES, LABEL_TABLE, SUMS
from harness.data.fetch import ELSEWHERE, hold_folder
from harness.errors import DataError, UserError
from harness.files import free_bytes, hash_file, need_room, write_then_rename

TABLE = "Data_Entry_2017.csv"
LABELS = (
    *("Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia"),
    *("Pneumothorax", "Consolidation", "Edema", "Emphysema", "Fibrosis", "Pleural_Thickening", "Hernia"),
)
NO_LABEL = "No Finding"
PATIENT_SHARES = {"train": 0.7, "valid": 0.1}
"""Each rounded down; the patients that are left are tested on."""

SplitPart = Literal["train", "valid", "test"]
PIXELS = 264
AHEAD = 256
"""Images that are read before the first of them is written."""

Watch = Callable[[int, int], None]
"""Told how many images are there, of how many."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One image. `labels` are 0 or 1, in the order of LABELS."""

    image: str
    patient: int
    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PatientCount:
    """How much there is of one part."""

    patients: int
    images: int


WHOLE: Mapping[SplitPart, PatientCount] = {
    "train": PatientCount(21563, 87306),
    "valid": PatientCount(3080, 7616),
    "test": PatientCount(6162, 17198),
}
"""The study's own; its text says 12,120 images where its code reads 112,120."""


def read_table(path: Path) -> tuple[Entry, ...]:
    """Return the table's rows in their order; raises DataError naming the line that is none."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        missing = {"Image Index", "Finding Labels", "Patient ID"} - set(rows.fieldnames or ())
        if missing:
            raise DataError(
                f"'{path.name}' has no column '{min(missing)}'", remedy="take the table as it came"
            )
        entries = tuple(_entry(row, rows.line_num, path.name) for row in rows)
    names = {entry.image for entry in entries}
    if len(names) != len(entries):
        raise DataError(f"'{path.name}' names {len(entries) - len(names):,} images twice")
    return entries


def _entry(row: Mapping[str, str], line: int, name: str) -> Entry:
    findings = row["Finding Labels"].split("|")
    unknown = set(findings) - set(LABELS) - {NO_LABEL}
    image = row["Image Index"]
    if unknown or not row["Patient ID"].isdecimal() or not re.fullmatch(r"[^/]+\.png", image):
        raise DataError(
            f"line {line} of '{name}' is no row of that table: '{image}', '{row['Finding Labels']}', "
            f"patient '{row['Patient ID']}'",
            remedy="take the table as it came",
        )
    return Entry(image, int(row["Patient ID"]), tuple(int(label in findings) for label in LABELS))


def split_patients(entries: Iterable[Entry]) -> dict[SplitPart, tuple[Entry, ...]]:
    """Return the images of each part, by patient, the patients in the order of their numbers."""
    entries = tuple(entries)
    patients = sorted({entry.patient for entry in entries})
    train = int(PATIENT_SHARES["train"] * len(patients))
    valid = train + int(PATIENT_SHARES["valid"] * len(patients))
    part_of: dict[int, SplitPart] = {}
    for place, patient in enumerate(patients):
        part_of[patient] = "train" if place < train else "valid" if place < valid else "test"
    return {part: tuple(entry for entry in entries if part_of[entry.patient] == part) for part in WHOLE}


def split_sizes(split: Mapping[SplitPart, tuple[Entry, ...]]) -> dict[SplitPart, PatientCount]:
    """Return patients and images of each part."""
    return {part: PatientCount(len({entry.patient for entry in of}), len(of)) for part, of in split.items()}


def check_sizes(
    split: Mapping[SplitPart, tuple[Entry, ...]], expected: Mapping[SplitPart, PatientCount]
) -> None:
    """Raise DataError with the first part that has not as many patients and images as it should."""
    for part, size in split_sizes(split).items():
        right = expected[part]
        if size != right:
            raise DataError(
                f"'{TABLE}' gives {size.patients:,} patients with {size.images:,} images to '{part}' where "
                f"{right.patients:,} with {right.images:,} belong",
                remedy="take the whole table as it came",
            )


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is there now. `sha256` is that of SHA256SUMS: what a record would call this data."""

    folder: Path
    sizes: Mapping[SplitPart, PatientCount]
    sha256: str
    pillow: str


def prepare_xrays(
    source: Path,
    folder: Path,
    *,
    expected: Mapping[SplitPart, PatientCount] = WHOLE,
    watch: Watch = lambda done, of: None,
) -> Prepared:
    """Make `folder`/chestxray of what lies anywhere below `source`, in place of one that is there.

    Raises UserError where `source` has no table, DataError where the table, its counts or an image are not as
    they should be, NoSpace and Busy as fetching does.
    """
    split, images = _read_source(source, expected)
    paths = [images[entry.image] for entries in split.values() for entry in entries]
    with hold_folder(folder):
        ours = folder / CHEST_XRAY
        ours.mkdir(parents=True, exist_ok=True)
        need_room(CHEST_XRAY, len(paths) * PIXELS**2, free_bytes(folder), folder, ELSEWHERE)
        _write_images(paths, ours / IMAGES, watch)
        with write_then_rename(ours / LABEL_TABLE) as part:
            part.write_text(_table_text(split), encoding="utf-8", newline="")
        sums = [f"{hash_file(ours / name)}  {name}\n" for name in (IMAGES, LABEL_TABLE)]
        with write_then_rename(ours / SUMS) as part:
            part.write_text("".join(sums), encoding="utf-8", newline="")
        return Prepared(ours, split_sizes(split), hash_file(ours / SUMS), PIL.__version__)


def _read_source(
    source: Path, expected: Mapping[SplitPart, PatientCount]
) -> tuple[dict[SplitPart, tuple[Entry, ...]], dict[str, Path]]:
    """Return the split of the table, and the path of each of its images."""
    tables = sorted(source.rglob(TABLE))
    if not tables:
        raise UserError(
            f"'{source}' has no '{TABLE}' in it", remedy="name the folder that you unpacked ChestX-ray14 into"
        )
    split = split_patients(read_table(tables[0]))
    check_sizes(split, expected)
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


def _write_images(paths: Sequence[Path], target: Path, watch: Watch) -> None:
    """Write the array under a temporary name, by threads: Pillow works outside of Python's lock."""
    shape = (len(paths), PIXELS, PIXELS)
    with write_then_rename(target) as unfinished, ThreadPoolExecutor() as pool:
        array = np.lib.format.open_memmap(unfinished, mode="w+", dtype=np.uint8, shape=shape)
        try:
            for number, pixels in enumerate(_read_images(pool, paths)):
                array[number] = pixels
                watch(number + 1, len(paths))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        array.flush()


def _read_images(pool: ThreadPoolExecutor, paths: Sequence[Path]) -> Iterator[np.ndarray]:
    """Yield the images in their order, some of them ahead."""
    for first in range(0, len(paths), AHEAD):
        yield from pool.map(resize_image, paths[first : first + AHEAD])


def resize_image(path: Path) -> np.ndarray:
    """Return an image as in Karmanov 2018: a bilinear square in one channel; raises DataError naming it."""
    try:
        with Image.open(path) as image:
            small = image.resize((PIXELS, PIXELS), Image.Resampling.BILINEAR).convert("RGB").convert("L")
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(
            f"the image '{path.name}' cannot be read ({error})", remedy="unpack its archive again"
        ) from None
    return np.asarray(small)


def _table_text(split: Mapping[SplitPart, tuple[Entry, ...]]) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["image", "part", "patient", *LABELS])
    for part, entries in split.items():
        rows.writerows([entry.image, part, entry.patient, *entry.labels] for entry in entries)
    return text.getvalue()
