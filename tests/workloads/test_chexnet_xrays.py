"""Karmanov 2018's CheXNet on generated images that were made ready as the real X-rays are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.data.chest_xray import LABELS, PatientCount, prepare_xrays
from tests.harness.data.test_chest_xray import generated
from tests.helpers.workload_runner import Ended, module, need_torch, printed, run, trial
from tests.workloads.test_chexnet import asking

training = module("parts.chexnet.training")
xrays = module("parts.chexnet.xrays")
failed = module("parts.trial").Failed

IMAGES = {"train": PatientCount(14, 28), "valid": PatientCount(2, 4), "test": PatientCount(4, 8)}
"""Of 20 patients with two images each."""


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = generated(tmp_path_factory.mktemp("source"), patients=20, every_label=True)
    folder = tmp_path_factory.mktemp("data")
    prepare_xrays(source, folder, expected=IMAGES)
    return folder


# scikit-learn's own example of its roc_auc_score, and ties and order by hand.
@pytest.mark.parametrize(
    ("labels", "scores", "area"),
    [
        ([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], 0.75),
        ([0, 1], [0.5, 0.5], 0.5),
        ([1, 0, 1, 0], [3.0, 1.0, 2.0, 0.0], 1.0),
        ([1, 0], [0.0, 1.0], 0.0),
        ([1, 1], [0.0, 1.0], None),
        ([0, 0], [0.0, 1.0], None),
    ],
)
def test_the_area_is_the_share_of_pairs_that_are_in_order(labels, scores, area):
    assert training.area_under_curve(np.array(labels), np.array(scores)) == area


def test_the_area_is_that_of_counting_each_pair():
    stream = np.random.RandomState(3)
    labels, scores = stream.random_sample(60) < 0.3, stream.randint(0, 9, 60)
    pairs = [
        (scores[a] > scores[b]) + (scores[a] == scores[b]) / 2
        for a in labels.nonzero()[0]
        for b in (~labels).nonzero()[0]
    ]
    assert training.area_under_curve(labels, scores) == pytest.approx(np.mean(pairs))


def test_a_mean_without_one_of_its_labels_is_none():
    assert training.Scores(0.0, [0.5, 1.0]).auc == 0.75
    assert training.Scores(0.0, [0.5, None]).auc is None


def test_the_prepared_folder_gives_each_part_its_images_and_labels(ready: Path):
    found = xrays.read_xrays(str(ready), "generated")
    assert found.labels == LABELS
    assert {name: len(part) for name, part in found.parts.items()} == {n: s.images for n, s in IMAGES.items()}
    for part in found.parts.values():
        assert part.rgb(0).shape == (264, 264, 3)
        assert part.labels.shape == (len(part), 14)
        assert (part.labels.any(axis=0) & ~part.labels.all(axis=0)).all()


def test_a_part_of_the_real_images_is_refused_where_the_real_are_asked(ready: Path):
    with pytest.raises(failed, match="28 images in its part 'train', of 87306"):
        xrays.read_xrays(str(ready), "real")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda at: (at / "SHA256SUMS").unlink(), "invoke build --only chestxray --from FOLDER"),
        (lambda at: (at / "table.csv").write_text("image,part\n"), "is not the one of its sums"),
        (lambda at: (at / "images.npy").unlink(), "is not there or not whole; prepare it again"),
        (lambda at: np.save(at / "images.npy", np.zeros((2, 264, 264), np.uint8)), "is not of its table"),
    ],
    ids=["sums", "table", "array", "other array"],
)
def test_a_folder_that_is_not_whole_is_refused_with_the_reason(ready: Path, tmp_path: Path, spoil, words):
    at = tmp_path / "chestxray"
    shutil.copytree(ready / "chestxray", at)
    spoil(at)
    with pytest.raises(failed, match=words):
        xrays.read_xrays(str(tmp_path), "generated")


FEW_FILES = """
from parts import trial as trial_part
import chexnet
from parts.chexnet import loading
loading.FILES = 4
if __name__ == "__main__":
    trial_part.main(chexnet.run)
"""


def asked(folder: Path, ready: Path, **told: Any) -> Ended:
    need_torch()
    given = {"model": "densenet121", "batch_size": 4, "data_mode": "host", "image_size": 32, **told}
    given["options"] = {"data": "real", "workers": 1, **told.get("options", {})}
    folder.mkdir(exist_ok=True)
    whole = trial("chexnet", **{"limit": {}, "timeout_seconds": 280, **given})
    return run(folder, whole, code=FEW_FILES, data=str(ready))


@pytest.mark.torch
def test_it_trains_five_epochs_validates_each_and_ends_with_the_area_of_each_label(
    ready: Path, tmp_path: Path
):
    found = asked(tmp_path, ready, protocol="fair/1", batch_size=14).measured
    assert (found.data.name, found.data.source, found.data.sha256) == (
        "chestxray",
        "generated",
        xrays.read_xrays(str(ready), "generated").sha256,
    )
    assert (found.data.train_items, found.data.valid_items, found.data.test_items) == (28, 4, 8)
    assert [(epoch.steps, epoch.valid_batches, epoch.complete) for epoch in found.epochs] == [
        (2, 1, True)
    ] * 5
    assert all(
        epoch.valid_loss > 0 and epoch.valid_seconds > 0 and 0 <= epoch.quality <= 1 for epoch in found.epochs
    )
    assert (found.protocol.valid_batches, found.protocol.stopped_by) == (1, "protocol")
    assert found.quality_name == "auc"
    assert tuple(sorted(found.test_qualities)) == tuple(sorted(LABELS))
    assert found.test_quality == pytest.approx(np.mean(list(found.test_qualities.values())))
    assert "scaled down: 28 images to train on, of 87306" in found.notes
    assert found.data.distinct_batches == found.data.looked_at_batches == 10


@pytest.mark.torch
def test_options_of_loading_change_no_image_that_is_validated(ready: Path, tmp_path: Path):
    few = {"protocol": "fair/1", "limit": {"steps": 1}}
    one = asked(tmp_path / "one", ready, **few).measured
    options = {
        "loader": "threads",
        "workers": 2,
        "valid_batch": "larger",
        "valid_loader": "before training",
        "loss": "kept",
    }
    other = asked(tmp_path / "other", ready, options=options, **few).measured
    assert (one.epochs[0].valid_batches, other.epochs[0].valid_batches) == (1, 1)
    assert other.epochs[0].valid_loss == pytest.approx(one.epochs[0].valid_loss, rel=1e-2)
    assert one.data.sha256 == other.data.sha256


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [
        {"data": "files", "loader": "processes"},
        {"data": "files", "loader": "threads", "source_pixels": 1024},
        {"data": "files", "format": "jpeg", "workers": 2},
        {"data": "synthetic", "workers": 1},
    ],
    ids=["processes", "full-size threads", "jpeg", "arrays"],
)
def test_the_loader_alone_is_timed_by_the_batches_that_come(ready: Path, tmp_path: Path, options):
    ended = asked(tmp_path, ready, protocol="loading/1", options=options, limit={"steps": 5}, image_size=224)
    found = ended.measured
    assert (found.window.steps, found.window.samples, found.losses, found.flops.per_sample) == (
        5,
        20,
        (),
        None,
    )
    assert found.test_quality is None and found.quality_name is None
    name = {
        "files": f"generated files: {options.get('format', 'png')} of {options.get('source_pixels', 264)} px"
    }
    assert found.data.name == name.get(options["data"], found.data.name)
    together = options.get("workers", 1)
    assert (found.steps_together, found.step_us.steps_per_value) == (together, together)
    assert found.step_us.count == 5 // together and found.input_us is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"data": "real", "source_pixels": 1024}, "'source_pixels' is of data 'files'"),
        ({"data": "synthetic", "loader": "threads"}, "'loader' is of data 'real' or 'files'"),
        ({"data": "files", "format": "webp"}, "format 'webp' is not known; there are: jpeg, png"),
        ({"data": "files", "workers": -1}, "'workers' is below 0"),
        ({"data": "elsewhere"}, "data 'elsewhere' is not known; there are: files, real, synthetic"),
    ],
)
def test_an_option_that_the_data_cannot_have_is_refused(options, words):
    with pytest.raises(failed, match=words):
        asking(("pytorch",), protocol="published/1", options=options, reads_files=True)


CROPS = """
import json, torch
import numpy as np
import torchvision
from parts.chexnet import loading, protocol
ramp = np.add.outer(np.minimum(np.arange(264), 255), np.zeros(264)).astype(np.uint8)
image = np.stack([ramp, ramp.T, ramp * 0], axis=-1)
terms = protocol.Terms("pytorch", protocol.VARIANTS["pytorch"], "fp32-ieee", 1, 1, "dp", 224)
found = []
for training in (True, False):
    torch.manual_seed(1)
    out = loading.TorchLoading.crop(terms, 1, training=training)(image, 0, 0)
    red = (out[0] * loading.DEVIATION[0] + loading.MEAN[0]) * 255
    found.append([list(out.shape), round((red[-1, 0] - red[0, 0]).item()), round(red[0, 0].item())])
print(json.dumps(found))
"""


@pytest.mark.torch
def test_the_published_crop_of_pytorch_changes_the_scale_and_is_tested_on_the_whole():
    trained, (tested_shape, span, first) = json.loads(printed(CROPS)[-1])
    assert trained[0] == tested_shape == [3, 224, 224]
    assert trained[1] != 223 and span > 250 and first < 3


PRETRAINED = """
import io, torch
import chexnet
from parts.chexnet import protocol
import torchvision
torch.manual_seed(2)
whole = torchvision.models.densenet121(num_classes=1000).eval()
for buffer in whole.buffers():
    if buffer.dtype == torch.float32:
        buffer.uniform_(0.5, 1.5)
old = {}
for name, value in whole.state_dict().items():
    for part in ("norm1", "norm2", "conv1", "conv2"):
        name = name.replace(f".{part}.", f".{part[:-1]}.{part[-1]}.")
    if "num_batches" not in name:
        old[name] = value
file = io.BytesIO()
torch.save(old, file)
arrays = chexnet.pretrained_arrays(file.getvalue())
terms = protocol.Terms("pytorch", protocol.FAIR, "fp32-ieee", 1, 1, "dp", 32)
trainer = chexnet.TorchTrainer(terms, torch.device("cpu"), chexnet.Place())
trainer.load(arrays)
trainer.network.eval()
images = torch.rand(1, 3, 32, 32)
with torch.no_grad():
    assert torch.equal(trainer.network.features(images), whole.features(images))
    assert torch.equal(trainer.network.classifier.weight, torch.from_numpy(arrays["head/weight"]))
assert tuple(arrays["head/weight"].shape) == (14, 1024)
"""


@pytest.mark.torch
def test_the_older_names_of_torchvision_s_file_give_its_whole_body_and_a_head_of_ours():
    printed(PRETRAINED)
