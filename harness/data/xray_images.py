"""ChestX-ray14 from a folder of the user's, made ready once: the study's split, and its images at 264 px.

What is written: `chestxray/images.npy`, one uint8 array of (images, 264, 264); `chestxray/table.csv` with the
part, patient and labels of each image in the array's order; and `chestxray/SHA256SUMS` over both, last.
X-rays are grey, so one channel holds them. Hashes of the archives are published nowhere that we know: what is
checked of the source is that every image of the table is there and how many each part has.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import PIL
from PIL import Image

from harness.data import chest_xray
from harness.data.chest_xray import (
    IMAGES,
    LABELS,
    NAME,
    SUMS,
    TABLE,
    TABLE_FILE,
    WHOLE,
    Entry,
    PatientCount,
    SplitPart,
)
from harness.data.fetch import ELSEWHERE, hold_folder
from harness.errors import DataError, UserError
from harness.files import free_bytes, hash_file, need_room, write_then_rename

PIXELS = 264
AHEAD = 256
"""Images that are read before the first of them is written."""

Watch = Callable[[int, int], None]
"""Told how many images are there, of how many."""


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
        ours = folder / NAME
        ours.mkdir(parents=True, exist_ok=True)
        need_room(NAME, len(paths) * PIXELS**2, free_bytes(folder), folder, ELSEWHERE)
        _write_images(paths, ours / IMAGES, watch)
        with write_then_rename(ours / TABLE_FILE) as part:
            part.write_text(_table_text(split), encoding="utf-8", newline="")
        sums = [f"{hash_file(ours / name)}  {name}\n" for name in (IMAGES, TABLE_FILE)]
        with write_then_rename(ours / SUMS) as part:
            part.write_text("".join(sums), encoding="utf-8", newline="")
        return Prepared(ours, chest_xray.split_sizes(split), hash_file(ours / SUMS), PIL.__version__)


def _read_source(
    source: Path, expected: Mapping[SplitPart, PatientCount]
) -> tuple[dict[SplitPart, tuple[Entry, ...]], dict[str, Path]]:
    """Return the split of the table, and the path of each of its images."""
    tables = sorted(source.rglob(TABLE))
    if not tables:
        raise UserError(
            f"'{source}' has no '{TABLE}' in it", remedy="name the folder that you unpacked ChestX-ray14 into"
        )
    split = chest_xray.split_patients(chest_xray.read_table(tables[0]))
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
