"""The feed of real X-rays that every framework has: pixels, crops, order, and trials in each framework."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from harness.data.chest_xray import LABELS
from tests.helpers.workload_runner import WORKLOADS, module, need_stack, printed, run, trial
from tests.workloads.test_chexnet_frameworks import STACKS
from tests.workloads.test_chexnet_xrays import ready  # noqa: F401  (a fixture)

protocol = module("parts.chexnet.protocol")
feed = module("parts.chexnet.feed")
failed = module("parts.trial").Failed

FAIR = ("keras", "mxnet")
"""All go through the same feed, and each keeps either protocol on synthetic images."""
TRAINED = [
    pytest.param(
        "fair/1" if stack.id in FAIR else "published/1",
        *stack.values,
        marks=[*stack.marks, *(() if stack.id == "chainer" else [pytest.mark.whole])],
        id=stack.id,
    )
    for stack in STACKS
]
"""Chainer is the fastest to begin."""


def picture() -> np.ndarray:
    return np.random.RandomState(4).randint(0, 256, (264, 264, 3)).astype(np.uint8)


def test_a_fair_crop_is_a_part_of_the_image_with_its_pixels_and_its_scale():
    plain = protocol.Variant()
    image, stream = picture(), feed.choices(1, 0, 3)
    found = feed.crop_for_training(image, 224, plain, stream)
    again = feed.choices(1, 0, 3)
    top, left, flip = again.randint(41), again.randint(41), again.randint(2)
    part = image[top : top + 224, left : left + 224][:, :: -1 if flip else 1]
    assert np.array_equal(found, feed.normalise(part, plain))
    assert np.array_equal(
        feed.crop_for_testing(image, 224, plain), feed.normalise(image[20:244, 20:244], plain)
    )


def test_a_smaller_whole_is_pillow_s_to_one_of_256_levels():
    image = picture()
    right = Image.fromarray(image).resize((224, 224), Image.Resampling.BILINEAR)
    assert np.abs(feed.resize(image, 224).astype(int) - np.asarray(right).astype(int)).max() <= 1


def test_each_published_manner_has_its_notebook_s_crop_and_normalisation():
    image = picture()
    whole = feed.resize(image, 224)
    for name, variant in protocol.VARIANTS.items():
        found = feed.crop_for_testing(image, 224, variant)
        assert np.array_equal(found, feed.normalise(whole, variant)), name
    white = np.full((1, 1, 3), 255, np.uint8)
    caffe = feed.normalise(white, protocol.VARIANTS["chainer"]).ravel()
    assert caffe == pytest.approx([255 * (1 - mean) * 0.017 for mean in (0.485, 0.456, 0.406)], rel=1e-6)
    part = feed.crop_for_training(image, 224, protocol.VARIANTS["mxnet-gluon"], feed.choices(1, 0, 0))
    assert part.shape == (3, 224, 224) and part.dtype == np.float32


def test_an_image_that_is_smaller_than_its_crop_is_refused():
    with pytest.raises(failed, match="images of 300 px cannot be cut from X-rays of 264 px"):
        feed.crop_for_testing(picture(), 300, protocol.FAIR)


def test_an_epoch_has_each_image_once_and_the_next_another_order():
    first, second = (feed.order(30, 7, epoch) for epoch in range(2))
    assert sorted(first) == sorted(second) == list(range(30))
    assert list(first) != list(second)


SEEN = """
import hashlib, json, sys
from types import SimpleNamespace
from parts.chexnet import feed, protocol
from parts.chexnet.loading import TorchLoading
trial = SimpleNamespace(seed=5, data_folder=sys.argv[1], limit={}, valid_batches=lambda whole: whole,
                        asked={"data": "generated", "weights": None})
terms = protocol.Terms("pytorch", protocol.FAIR, "fp32-ieee", 4, 1, "ddp", 64, data="real",
                       loading=dict(protocol.LOADER, workers=1, loader="threads"))
given = feed.dataset(trial, terms, TorchLoading(pinned=False))
digest = hashlib.sha256()
for batches in (given.train, given.train, given.valid.batches, given.test.batches):
    for images, labels in batches:
        digest.update(images.numpy().tobytes() + labels.numpy().tobytes())
print(digest.hexdigest())
"""


@pytest.mark.torch
def test_pytorch_sees_the_bits_of_all_the_others_in_the_same_order(ready: Path):  # noqa: F811
    asked = {"data": "generated", "weights": None}
    told = SimpleNamespace(seed=5, data_folder=str(ready), valid_batches=int, asked=asked)
    terms = protocol.Terms("chainer", protocol.FAIR, "fp32-ieee", 4, 1, "single", 64, data="real")
    given = feed.dataset(told, terms, feed.HostLoading())
    digest = hashlib.sha256()
    for batches in (given.train, given.train, given.valid.batches, given.test.batches):
        for images, labels in batches:
            digest.update(images.tobytes() + labels.tobytes())
    assert printed(SEEN, str(ready)) == [digest.hexdigest()]


@pytest.mark.parametrize(("asked_protocol", "stack", "folder", "framework"), TRAINED)
def test_each_framework_trains_on_the_prepared_x_rays_and_tells_the_area_of_each_label(
    ready: Path,  # noqa: F811
    tmp_path: Path,
    asked_protocol,
    stack,
    folder,
    framework,
):
    python = need_stack(stack)
    # MXNet's network is for 224 px alone. Two batches of the 28 images are an epoch.
    asked = trial(
        "chexnet",
        protocol=asked_protocol,
        model="densenet121",
        batch_size=14,
        data_mode="host",
        image_size=224 if folder == "mxnet" else 64,
        limit={"epochs": 1},
        options={"framework": framework, "data": "real"},
        timeout_seconds=280,
    )
    ended = run(
        tmp_path,
        asked,
        script=WORKLOADS / "frameworks" / folder / f"chexnet_{folder}.py",
        python=python,
        data=str(ready),
    )
    found = ended.measured
    (epoch,) = found.epochs
    assert (epoch.steps, epoch.complete, epoch.valid_batches) == (2, True, 1)
    assert epoch.valid_loss > 0
    assert (found.data.name, found.data.source, found.data.test_items) == ("chestxray", "generated", 8)
    assert tuple(sorted(found.test_qualities)) == tuple(sorted(LABELS))
    assert found.test_quality == pytest.approx(np.mean(list(found.test_qualities.values())))
    assert "threads: 6" in found.framework.loader


@pytest.mark.chainer
def test_imagenet_s_weights_are_refused_where_nothing_reads_their_file(ready, tmp_path):  # noqa: F811
    asked = trial(
        "chexnet",
        protocol="fair/1",
        model="densenet121",
        batch_size=4,
        data_mode="host",
        weights="pretrained",
        options={"data": "real"},
    )
    script = WORKLOADS / "frameworks" / "chainer" / "chexnet_chainer.py"
    ended = run(tmp_path, asked, script=script, python=need_stack("chainer"), data=str(ready))
    assert "PyTorch alone reads the file of ImageNet's weights" in ended.failed.message


TURNS = """
import json
from parts.chexnet import feed
from parts.launcher import Place
found = {}
for alone in (False, True):
    places = [Place(count=2, rank=rank) for rank in range(2)]
    ranks = [feed.EvaluationSampler(10, 4, place, 3, first_alone=alone) for place in places]
    found[str(alone)] = [[[item for item, _, _ in batch] for batch in rank] for rank in ranks]
print(json.dumps(found))
"""


@pytest.mark.torch
def test_two_ranks_validate_in_turns_or_the_first_alone():
    first, second, third = [0, 1, 2, 3], [4, 5, 6, 7], [8, 9]
    assert json.loads(printed(TURNS)[-1]) == {
        "False": [[first, third], [second]],
        "True": [[first, second, third], []],
    }
