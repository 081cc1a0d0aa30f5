"""What `check` holds against each other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from commands import check
from harness.errors import PlanError
from harness.image.images import load_images
from harness.image.lock import lock_packages
from harness.plan import names
from tests.helpers import ROOT, copied

BUILD = load_images(ROOT).image("cpu").channel.packages[0].version
RELEASE = BUILD.partition("+")[0]
"""Of the torch that the images share."""

PARTS = ("plans", "docker", "workloads", "examples", "results/claims", "results/cards.toml")
"""All that names stand in."""


@pytest.fixture
def clone(tmp_path) -> Path:
    return copied(tmp_path, *PARTS)


def changed(clone: Path, name: str, old: str, new: str) -> None:
    path = clone / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_all_that_is_shipped_agrees(clone):
    assert list(names.name_problems(clone)) == []


def test_the_models_of_libraries_are_those_of_the_locked_versions():
    heads = (ROOT / names.LIBRARY_MODELS).read_text().splitlines()
    listed = [line.split()[-1].split("==") for line in heads if line.startswith("#")]
    locked = lock_packages(ROOT / "docker" / "cuda" / "lock.txt")
    assert listed == [[name, locked[name].partition("+")[0]] for name in ("torchvision", "timm")]


OLDER_DRIVERS = "cuda126"
"""The image for drivers and cards that the release of the others no longer serves."""


def test_images_that_a_device_calls_for_have_one_release_of_what_they_share():
    images = load_images(ROOT).images.values()
    called = [image for image in images if not image.by_name_alone and image.name != OLDER_DRIVERS]
    asked = [lock_packages(ROOT / "docker" / image.requirements) for image in called]
    shared = {name for packages in asked for name in packages}
    assert len(asked) >= 3 and "torch" in shared
    for name in shared:
        assert len({packages[name] for packages in asked if name in packages}) == 1, name


TYPOS = [
    (
        "plans/quick.toml",
        'workload = "word_lm"',
        'workload = "word_ml"',
        "plans/quick.toml: 'word_ml' is no workload; is 'word_lm' meant?",
    ),
    (
        "results/claims/s000.toml",
        'surf = "timing"',
        'surv = "timing"',
        "claim '000-resnet50-ddp-ahead-of-dp': 'surv' is no plan; is 'surf' meant?",
    ),
    (
        "plans/chexnet.toml",
        'images = ["tensorflow-cuda"]',
        'images = ["tensorflow-cud"]',
        "'tensorflow-cud' is no image; is 'tensorflow-cuda' meant?",
    ),
    (
        "plans/selfcheck.toml",
        'protocol = "published/1"',
        'protocol = "publishd/1"',
        "'publishd/1' is no protocol of word_lm; is 'published/1' meant?",
    ),
    (
        "plans/mission.toml",
        '"resnet152"',
        '"rezne152"',
        "'rezne152' is no model of cifar_fastai; is 'resnet152' meant?",
    ),
    (
        "plans/acceptance.toml",
        'model = "resnet50"',
        'model = "ResNet-50"',
        "'ResNet-50' is no model of convnet; is 'resnet50' meant?",
    ),
    (
        "plans/surf.toml",
        '"inception_v3"',
        '"ViT-B/16"',
        "'ViT-B/16' is no model of convnet; is 'vit_b_16' meant?",
    ),
    (
        "docker/cpu/requirements.in",
        f"torch=={RELEASE}",
        "torch==99.1",
        f"docker/cpu/requirements.in asks for torch 99.1, and {BUILD} is pinned",
    ),
    (
        "docker/cpu/lock.txt",
        f"torch=={BUILD}",
        "torch==99.1+cpu",
        f"docker/cpu/lock.txt has torch 99.1+cpu, and {BUILD} is pinned",
    ),
    (
        "docker/tensorflow-cuda/requirements.in",
        "tensorflow[and-cuda]==",
        "tensorflow[and-cuda]==9",
        "docker/tensorflow-cuda/requirements.in asks for tensorflow 9",
    ),
    (
        "plans/iris.toml",
        "targets = [0.60, 0.70, 0.75, 0.80]",
        "targets = [30, 40]",
        "a target of 40 is no share, as cifar_resnet44's are; is 0.4 meant?",
    ),
    (
        "plans/tensorcore.toml",
        "options = { width = 512 }",
        "options = { widht = 512 }",
        "'widht' is no option of tensorcore_mlp; is 'width' meant?",
    ),
]


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> str:
    """What is said of a clone with all of these."""
    root = copied(tmp_path_factory.mktemp("typos"), *PARTS)
    for name, old, new in dict.fromkeys(typo[:3] for typo in TYPOS):
        changed(root, name, old, new)
    return "\n".join(check.file_problems(root))


@pytest.mark.parametrize("said", [typo[3] for typo in TYPOS])
def test_a_name_that_nothing_else_has_is_told_with_the_nearest(told, said):
    assert said in told


def test_a_card_that_nothing_else_has_is_told_with_the_nearest(clone):
    changed(clone, "results/claims/s001.toml", 'card = "T4"', 'card = "T4O"')
    assert "is 'T4' meant?" in "\n".join(check.file_problems(clone))


def test_a_record_of_the_future_is_named(clone):
    record = next((ROOT / "results").glob("2026*/*/*-r*.json"))
    folder = clone / record.parent.relative_to(ROOT)
    shutil.copytree(record.parent, folder)
    text = (folder / record.name).read_text()
    (folder / record.name).write_text(text.replace('"started_at": "2026', '"started_at": "2031'))
    assert [
        said for said in check.file_problems(clone) if record.name in said and "in the future (2031" in said
    ]


@pytest.mark.parametrize("own", ["cpu/channel.txt", "chainer/tools.txt", "cuda/lock.txt"])
def test_two_images_never_write_one_lock(clone, own):
    path = clone / "docker" / "images.toml"
    path.write_text(path.read_text().replace(f'lock = "{own}"', 'lock = "cpu/lock.txt"', 1))
    with pytest.raises(PlanError, match=r"both name the lock cpu/lock\.txt"):
        load_images(clone)
