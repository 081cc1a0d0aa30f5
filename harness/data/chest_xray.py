"""ChestX-ray14 as Karmanov 2018 read it: who is in which part, and what each image shows.

The table comes with the images (Wang et al., "ChestX-ray8", CVPR 2017; 112,120 images of 30,805
patients). The study sorted the patients by their number, without shuffling, and took the first 0.7 to
train on, the next 0.1 to validate, and the rest to test, so that no patient is in two parts. Of the
findings "No Finding" is no label.

Nothing may fetch it, so it is made ready from a folder of the user's (`prepare.py`). Its array is too large
to be hashed before each session: what is looked at is that its sums are there, that its table is theirs, and
that its array is there.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.data.datasets import CHEST_XRAY, Presence
from harness.errors import DataError
from harness.files import hash_file

NAME = CHEST_XRAY
SUMS, TABLE_FILE, IMAGES = "SHA256SUMS", "table.csv", "images.npy"
"""What is made ready of it, below a folder of that name."""
HOW = "unpack ChestX-ray14, then `invoke build --only chestxray --from FOLDER`"
TABLE = "Data_Entry_2017.csv"
LABELS = (
    *("Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia"),
    *("Pneumothorax", "Consolidation", "Edema", "Emphysema", "Fibrosis", "Pleural_Thickening", "Hernia"),
)
NO_LABEL = "No Finding"
PATIENT_SHARES = {"train": 0.7, "valid": 0.1}
"""Each rounded down; the patients that are left are tested on."""

SplitPart = Literal["train", "valid", "test"]


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


def xray_presence(folder: Path) -> Presence:
    """Return what a data folder has of it made ready."""
    ours = folder / NAME
    if not (ours / SUMS).is_file():
        return Presence("missing")
    lines = (line.partition("  ") for line in (ours / SUMS).read_text(encoding="utf-8").splitlines())
    sums = {path: digest for digest, _, path in lines}
    for file in (TABLE_FILE, IMAGES):
        if file not in sums or not (ours / file).is_file():
            return Presence("corrupt", f"{NAME}/{file}", "it is not there")
    if hash_file(ours / TABLE_FILE) != sums[TABLE_FILE]:
        return Presence("corrupt", f"{NAME}/{TABLE_FILE}", "it is not the one of its sums")
    return Presence("complete")
