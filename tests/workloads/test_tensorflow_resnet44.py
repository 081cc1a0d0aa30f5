"""ResNet-44 in Keras and by TensorFlow's own distribution: one network, one loss, equal shares of a batch."""

from __future__ import annotations

import json

import pytest

from tests.helpers.workload_runner import WORKLOADS, need_stack, printed, run, trial

pytestmark = pytest.mark.tensorflow
SCRIPT = WORKLOADS / "frameworks" / "tensorflow" / "cifar_resnet44_tensorflow.py"
NAMES = {"keras-tensorflow": "Keras", "tensorflow": "TensorFlow"}


SMALL = """
from parts import trial
from frameworks.tensorflow import cifar_resnet44_tensorflow as cifar_resnet44, resnet44
resnet44.BLOCKS_PER_STAGE, resnet44.PARAMETERS = 1, 78_186
if __name__ == "__main__":
    trial.main(cifar_resnet44.run)
"""
"""The workload with one block a stage: its graphs are made in a fifth of the time."""


def ended(folder, framework, *, whole=False, **told):
    options = {"framework": framework, "train_images": 100}
    asked = {"model": "resnet44", "batch_size": 4, "data_mode": "host", "options": options, **told}
    found = trial("cifar_resnet44", timeout_seconds=280.0, **asked)
    return run(folder, found, code="" if whole else SMALL, script=SCRIPT, python=need_stack("tensorflow"))


@pytest.mark.whole
@pytest.mark.parametrize("framework", NAMES)
def test_two_logical_devices_train_the_network_of_the_protocol(tmp_path, framework):
    found = ended(tmp_path, framework, whole=True, gpus=2).measured
    assert (found.framework.name, found.parallel) == (NAMES[framework], "dp")
    assert found.structure == {"parameters": 662826, "classes": 10}
    assert (found.window.steps, found.window.samples, found.samples_per_step) == (3, 24, 8)
    assert (found.protocol.steps_per_epoch, found.protocol.epochs, found.protocol.valid_batches) == (
        *(12, 40),
        20,
    )
    assert 0 <= found.epochs[0].quality <= 1
    assert {probe.reads_as for probe in found.precision.probes} == {"fp32-ieee"}


def test_the_protocols_epochs_end_it_where_no_limit_does(tmp_path):
    found = ended(tmp_path, "keras-tensorflow", limit={"epochs": 2, "valid_batches": 1}).measured
    assert [(epoch.steps, epoch.valid_batches) for epoch in found.epochs] == [(25, 1), (25, 1)]
    assert (found.parallel, found.protocol.stopped_by) == (None, "epochs")


def test_data_on_the_device_is_refused_in_one_sentence(tmp_path):
    failed = ended(tmp_path, "tensorflow", data_mode="device").failed
    assert failed.reason == "unsupported" and "data mode" in failed.message


ALIKE = """
import json
from frameworks.tensorflow import cifar_resnet44_tensorflow as own, tensorflow_device as device, resnet44
import numpy as np, tensorflow as tf
resnet44.BLOCKS_PER_STAGE, resnet44.PARAMETERS = 1, 78_186
devices = device.choose("cpu", 2)
draw = np.random.RandomState(1)
images = draw.randint(0, 256, (8, 32, 32, 3)).astype(np.uint8)
labels = draw.randint(0, 10, 8).astype(np.int32)
mean = np.full((32, 32, 3), 0.5, np.float32)
resnet44.Prepared.call = lambda self, images, training=False: tf.cast(images, tf.float32) / 255 - self.mean
weights, found = None, {}
for kind in (own.Mirrored, own.Fitted):
    training = kind(devices, mean)
    if weights is None:
        weights = training.model.get_weights()
    training.model.set_weights(weights)
    loss = training.take_step(images, labels)
    if kind is own.Fitted:
        loss = loss.history["loss"][0] - float(tf.add_n(training.model.losses))
    after = training.model.get_weights()
    moved = [float(np.abs(a - b).max()) for a, b in zip(after, weights)]
    found[kind.__name__] = float(loss), max(moved), [float(np.abs(each).sum()) for each in after]
print(json.dumps(found))
"""


def test_both_ways_take_the_same_step_over_two_devices():
    found = json.loads(printed(ALIKE, python=need_stack("tensorflow"))[-1])
    (loss, moved, weights), (fitted_loss, fitted_moved, fitted) = found["Mirrored"], found["Fitted"]
    assert fitted_loss == pytest.approx(loss, abs=0.001)
    assert fitted == pytest.approx(weights, rel=1e-5)
    assert moved > 0 and fitted_moved == pytest.approx(moved, rel=1e-5)


SHIFTED = """
import json
from frameworks.tensorflow import resnet44
import numpy as np
image = np.arange(32 * 32 * 3).reshape(1, 32, 32, 3).astype(np.float32) / 16
layer = resnet44.Prepared(np.zeros((32, 32, 3), np.float32))
plain = layer(image).numpy()[0]
padded = np.pad(plain, ((3, 3), (3, 3), (0, 0)), mode="edge")
every = [padded[r:r + 32, c:c + 32][:, ::f] for r in range(7) for c in range(7) for f in (1, -1)]
seen = set()
for got in layer(np.repeat(image, 400, 0), training=True).numpy():
    (number,) = [n for n, each in enumerate(every) if np.array_equal(each, got)]
    seen.add(number)
print(json.dumps([len(seen), float(plain.max())]))
"""


def test_training_images_are_shifted_with_their_edge_repeated_and_flipped():
    seen, most = json.loads(printed(SHIFTED, python=need_stack("tensorflow"))[-1])
    assert 80 < seen <= 98 and most == pytest.approx(3071 / 16 / 255)
