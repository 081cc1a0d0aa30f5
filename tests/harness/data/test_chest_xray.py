"""ChestX-ray14 made ready, on a small folder of generated images with the real one's layout and table."""

from __future__ import annotations

import csv
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from commands import build
from harness.data import chest_xray
from harness.data.chest_xray import (
    LABELS,
    PIXELS,
    TABLE,
    WHOLE,
    PatientCount,
    prepare_xrays,
    read_table,
    split_patients,
)
from harness.data.fetch import DataFolders, resolve_datasets
from harness.errors import DataError, UserError
from harness.files import hash_file
from tests.helpers import ROOT

COLUMNS = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],"
)
PATIENTS = 10
IMAGES = {"train": PatientCount(7, 14), "valid": PatientCount(1, 2), "test": PatientCount(2, 4)}


def generated(folder: Path, *, patients: int = PATIENTS, pixels: int = 32, every_label: bool = False) -> Path:
    """Two noisy images of each patient in the archives' folders, and the table beside them.

    With `every_label` each label is found in one image of each two patients that follow one another.
    """
    rng = random.Random(1)
    rows = []
    for patient in range(1, patients + 1):
        for follow_up in range(2):
            name = f"{patient:08d}_{follow_up:03d}.png"
            place = folder / f"images_{patient % 12 + 1:03d}" / "images"
            place.mkdir(parents=True, exist_ok=True)
            # The real ones are grey, and some have four channels.
            grey = Image.frombytes("L", (pixels, pixels), rng.randbytes(pixels**2))
            grey.convert("RGBA" if patient == 2 else "L").save(place / name)
            drawn = LABELS[patient % 2 :: 2] if every_label else rng.sample(LABELS, 2)
            findings = "|".join(drawn) if follow_up else "No Finding"
            rows.append(f"{name},{findings},{follow_up},{patient},058Y,M,PA,2682,2749,0.143,0.143,")
    rng.shuffle(rows)
    (folder / TABLE).write_text("\n".join([COLUMNS, *rows]) + "\n")
    return folder


def made(source: Path, folder: Path) -> Path:
    prepare_xrays(source, folder, expected=IMAGES)
    return folder / "chestxray"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated(tmp_path_factory.mktemp("chest"))


@pytest.fixture(scope="module")
def ready(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(source, tmp_path_factory.mktemp("ready"))


def test_the_study_s_counts_are_those_of_its_rule_for_as_many_patients():
    split = split_patients(pd.DataFrame({"patient": range(1, 30806)}))
    assert dict(split["part"].value_counts()) == {part: size.patients for part, size in WHOLE.items()}
    assert sum(size.images for size in WHOLE.values()) == 112120


@given(st.lists(st.integers(1, 60), min_size=1, max_size=80))
def test_no_patient_is_in_two_parts_and_no_image_is_lost(patients):
    split = split_patients(pd.DataFrame({"image": range(len(patients)), "patient": patients}))
    assert sorted(split["image"]) == list(range(len(patients)))
    groups = [set(split["patient"][split["part"] == part]) for part in WHOLE]
    assert sum(map(len, groups)) == len(set(patients))
    numbers = [number for group in groups for number in sorted(group)]
    assert numbers == sorted(numbers)


def test_each_image_is_made_as_the_study_made_it_and_the_table_says_its_part(source: Path, ready: Path):
    with (ready / "table.csv").open() as file:
        rows = {row["image"]: row for row in csv.DictReader(file)}
    array = np.load(ready / "images.npy", allow_pickle=False)
    entries = read_table(source / TABLE).set_index("image")
    assert set(rows) == set(entries.index)
    assert (array.shape, array.dtype) == ((20, PIXELS, PIXELS), np.uint8)
    for name, row in rows.items():
        patient = int(name[:8])
        assert int(row["patient"]) == patient
        assert row["part"] == ("train" if patient <= 7 else "valid" if patient == 8 else "test")
        assert [int(row[label]) for label in LABELS] == list(entries.loc[name, [*LABELS]])
        assert entries.loc[name, [*LABELS]].sum() == (2 if name.endswith("001.png") else 0)
    for name in ("00000001_000.png", "00000002_000.png"):
        (before,) = source.rglob(name)
        with Image.open(before) as image:
            right = image.resize((PIXELS, PIXELS), Image.Resampling.BILINEAR).convert("RGB")
        own = array[list(rows).index(name)]
        assert np.array_equal(np.repeat(own[:, :, None], 3, axis=2), np.asarray(right))


def test_the_sums_cover_every_file_and_are_the_data_s_hash(ready: Path):
    content = (ready / "SHA256SUMS").read_bytes()
    done = subprocess.run(
        ["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=ready, check=False
    )
    assert done.returncode == 0
    files = {str(p.relative_to(ready)) for p in ready.rglob("*") if p.is_file()}
    assert files == {line.split("  ")[1] for line in content.decode().splitlines()} | {"SHA256SUMS"}


def test_a_second_run_makes_the_same_bytes(source: Path, ready: Path, tmp_path: Path):
    sums = [prepare_xrays(source, tmp_path, expected=IMAGES) for _ in range(2)]
    assert {*sums} == {hash_file(ready / "SHA256SUMS")}
    assert {path.name for path in (tmp_path / "chestxray").iterdir()} == {
        "images.npy",
        "table.csv",
        "SHA256SUMS",
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace("Patient ID", "Patient"), "cannot be read .*'Patient ID'"),
        (lambda text: text.replace("No Finding", "Nothing", 1), "is no row of that table"),
        (lambda text: text.replace("No Finding", "", 1), "is no row of that table"),
        (lambda text: text.replace("00000001_000.png", "../1.png"), "is no row of that table: '../1.png'"),
        (lambda text: text.replace("00000001_000.png", "00000001_001.png"), "names 1 images twice"),
        (lambda text: text.replace("_000.png,", "_009.png,", 1), "1 of the 20 images that"),
        (
            lambda text: "\n".join(line for line in text.splitlines() if "00000010" not in line),
            "gives 6 patients with 12 images to 'train' where 7 with 14 belong",
        ),
    ],
    ids=["column", "finding", "none", "path", "twice", "missing", "patients"],
)
def test_a_table_that_is_not_the_whole_one_is_refused_with_the_reason(source, tmp_path, change, words):
    other = tmp_path / "source"
    other.mkdir()
    for folder in source.glob("images_*"):
        (other / folder.name).symlink_to(folder)
    (other / TABLE).write_text(change((source / TABLE).read_text()))
    with pytest.raises(DataError, match=words):
        made(other, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_image_that_cannot_be_read_is_named(tmp_path: Path):
    source = generated(tmp_path / "source")
    (bad,) = source.rglob("00000005_001.png")
    bad.write_bytes(bad.read_bytes()[:200])
    with pytest.raises(DataError, match=r"'00000005_001.png' cannot be read \(.*unpack its archive again"):
        made(source, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out" / "chestxray").iterdir()] == []


@pytest.mark.parametrize(
    ("name", "source", "words"),
    [
        ("chestxray", "", "behind a form .* name its folder with --from FOLDER"),
        ("chestxray", "/nowhere", "'/nowhere' has no 'Data_Entry_2017.csv' in it"),
    ],
)
def test_the_verb_says_what_it_needs(name: str, source: str, words: str):
    with pytest.raises(UserError, match=words):
        build.build_data_set(ROOT, name, source)


def test_the_verb_says_what_it_made(source: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("GPUDYNO_CACHE", str(tmp_path))
    monkeypatch.setattr(chest_xray, "WHOLE", IMAGES)
    build.build_data_set(ROOT, "chestxray", str(source))
    said = capsys.readouterr().out
    assert "train: 7 patients, 14 images" in said
    assert "chestxray: complete in " in said
    assert "its makers give no hash" in said


def test_a_plan_finds_what_was_made_ready_and_says_how_to_make_it(ready: Path, tmp_path: Path):
    folders = DataFolders(own=None, cache=ready.parent)
    found = resolve_datasets(["chestxray"], folders=folders, allow_generated=True)["chestxray"]
    assert (found.source, found.folder) == ("real", ready)
    with pytest.raises(DataError, match=r"is not made ready.*`invoke build --only chestxray --from FOLDER"):
        resolve_datasets(["chestxray"], folders=DataFolders(own=None, cache=tmp_path), allow_generated=True)


@pytest.mark.parametrize("lost", ["table.csv", "images.npy"])
def test_a_set_that_lost_a_file_is_refused_by_its_name(ready: Path, tmp_path: Path, lost: str):
    shutil.copytree(ready, tmp_path / "chestxray")
    (tmp_path / "chestxray" / lost).unlink()
    with pytest.raises(DataError, match=rf"{lost}' in .*: it is not there; unpack"):
        resolve_datasets(["chestxray"], folders=DataFolders(own=tmp_path, cache=tmp_path))
