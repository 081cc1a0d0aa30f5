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

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from harness.data.datasets import CHEST_XRAY, IMAGES, LABEL_TABLE, SUMS
from harness.data.fetch import ELSEWHERE, hold_folder
from harness.errors import DataError, UserError
from harness.files import free_bytes, hash_file, need_room, write_then_rename

TABLE = "Data_Entry_2017.csv"
COLUMNS = {"Image Index": "image", "Patient ID": "patient", "Finding Labels": "findings"}
AS_IT_CAME = "take the whole table as it came"
LABELS = (
    *("Atelectasis", "Cardiomegaly", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia"),
    *("Pneumothorax", "Consolidation", "Edema", "Emphysema", "Fibrosis", "Pleural_Thickening", "Hernia"),
)
_FINDING = f"(?:{'|'.join((*LABELS, 'No Finding'))})"
PATIENT_SHARES = {"train": 0.7, "valid": 0.1}
"""Each rounded down; the patients that are left are tested on."""

PIXELS = 264
AHEAD = 256
"""Images that are read before the first of them is written."""

Watch = Callable[[int, int], None]
"""Told how many images are there, of how many."""


@dataclass(frozen=True, slots=True)
class PatientCount:
    """How much there is of one part."""

    patients: int
    images: int


WHOLE: Mapping[str, PatientCount] = {
    "train": PatientCount(21563, 87306),
    "valid": PatientCount(3080, 7616),
    "test": PatientCount(6162, 17198),
}
"""The study's own; its text says 12,120 images where its code reads 112,120."""


def read_table(path: Path) -> pd.DataFrame:
    """Return each image of the table in its order, its patient, and each label as 0 or 1.

    Raises DataError naming the line that is none.
    """
    try:
        rows = pd.read_csv(path, usecols=[*COLUMNS], dtype=str, index_col=False, na_filter=False)
    except ValueError as error:
        raise DataError(f"'{path.name}' cannot be read ({error})", remedy=AS_IT_CAME) from None
    rows = rows.rename(columns=COLUMNS)
    good = (
        rows["image"].str.fullmatch(r"[^/]+\.png")
        & rows["patient"].str.fullmatch("[0-9]{1,9}")
        & rows["findings"].str.fullmatch(rf"{_FINDING}(\|{_FINDING})*")
    )
    if not good.all():
        at = int(np.argmin(good))
        image, findings, patient = rows[["image", "findings", "patient"]].iloc[at]
        raise DataError(
            f"line {at + 2} of '{path.name}' is no row of that table: '{image}', '{findings}', "
            f"patient '{patient}'",
            remedy=AS_IT_CAME,
        )
    if twice := int(rows["image"].duplicated().sum()):
        raise DataError(f"'{path.name}' names {twice:,} images twice")
    labels = rows.pop("findings").str.get_dummies("|").reindex(columns=[*LABELS], fill_value=0)
    return rows.astype({"patient": int}).join(labels)


def split_patients(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with each image's part, sorted by it: patients in the order of their numbers."""
    patients = np.unique(table["patient"])
    train = int(PATIENT_SHARES["train"] * len(patients))
    valid = train + int(PATIENT_SHARES["valid"] * len(patients))
    part = np.digitize(np.searchsorted(patients, table["patient"]), [train, valid])
    return table.assign(part=pd.Categorical.from_codes(part, pd.Index([*WHOLE]))).sort_values(
        "part", kind="stable"
    )


def check_sizes(split: pd.DataFrame, expected: Mapping[str, PatientCount]) -> None:
    """Raise DataError with the first part that has not as many patients and images as it should."""
    for part, right in expected.items():
        members = split[split["part"] == part]
        size = PatientCount(members["patient"].nunique(), len(members))
        if size != right:
            raise DataError(
                f"'{TABLE}' gives {size.patients:,} patients with {size.images:,} images to '{part}' where "
                f"{right.patients:,} with {right.images:,} belong",
                remedy=AS_IT_CAME,
            )


def prepare_xrays(
    source: Path,
    folder: Path,
    *,
    expected: Mapping[str, PatientCount] = WHOLE,
    watch: Watch = lambda done, of: None,
) -> str:
    """Make `folder`/chestxray of what lies anywhere below `source`, in place of one that is there.

    Returns the SHA-256 of its SHA256SUMS: what a record would call this data. Raises UserError where `source`
    has no table, DataError where the table, its counts or an image are not as they should be, NoSpace and
    Busy as fetching does.
    """
    table, paths = _read_source(source, expected)
    with hold_folder(folder):
        ours = folder / CHEST_XRAY
        ours.mkdir(parents=True, exist_ok=True)
        need_room(CHEST_XRAY, len(paths) * PIXELS**2, free_bytes(folder), folder, ELSEWHERE)
        _write_images(paths, ours / IMAGES, watch)
        with write_then_rename(ours / LABEL_TABLE) as part:
            columns = ["image", "part", "patient", *LABELS]
            table.to_csv(part, columns=columns, index=False, lineterminator="\n")
        sums = [f"{hash_file(ours / name)}  {name}\n" for name in (IMAGES, LABEL_TABLE)]
        with write_then_rename(ours / SUMS) as part:
            part.write_text("".join(sums), encoding="utf-8", newline="")
        return hash_file(ours / SUMS)


def _read_source(source: Path, expected: Mapping[str, PatientCount]) -> tuple[pd.DataFrame, list[Path]]:
    """Return the table by its parts, and the path of each of its images."""
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
    missing = [name for name in split["image"] if name not in images]
    if missing:
        raise DataError(
            f"{len(missing):,} of the {len(split):,} images that '{TABLE}' names are not below '{source}', "
            f"the first is '{missing[0]}'",
            remedy="unpack all twelve archives there",
        )
    return split, [images[name] for name in split["image"]]


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
