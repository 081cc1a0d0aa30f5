"""UniLu 2019's ResNet-44 on CIFAR-10 in TensorFlow's Keras with Horovod, one process a device.

Protocol and network are those of `frameworks/tensorflow/resnet44.py`. What is validated has rank 0's
statistics, and the ranks share the test images. The loss that is told is cross-entropy, without the L2.
"""

from __future__ import annotations

from parts.trial import Failed, TrialProcess, main  # isort: skip  (its clock starts with this line)

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import time
from collections.abc import Iterator
from typing import Any

import horovod
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from frameworks.horovod import ranks
from frameworks.tensorflow import device, resnet44
from frameworks.tensorflow.resnet44 import EPOCHS, LARGEST_SHIFT, VALID_BATCH_SIZE, Images
from parts import launcher
from parts.launcher import Place
from parts.timing.step_clock import StepClock

NAME = "tensorflow-horovod"
LAST_RELEASE = "2023-06-12"
"""By its own changelog. Its repository had a commit in June 2026, and no release since."""
WAYS = {"ddp": "Horovod over gloo, a process each"}
OPTIONS: dict[str, Any] = {"framework": NAME, "parallel": "ddp", "train_images": 50_000}


def augmented(images: Images, chosen: np.ndarray, draw: np.random.RandomState) -> np.ndarray:
    """Centred images, each shifted by whole pixels with its edge repeated, and every other one flipped."""
    edge = (LARGEST_SHIFT,) * 2
    padded = np.pad(images.plain(chosen), ((0, 0), edge, edge, (0, 0)), mode="edge")
    shifts = draw.randint(0, 2 * LARGEST_SHIFT + 1, (len(chosen), 2))
    flips = np.where(draw.random_sample(len(chosen)) < 0.5, -1, 1)
    cut = [
        image[row : row + 32, column : column + 32][:, ::flip]
        for image, (row, column), flip in zip(padded, shifts, flips, strict=True)
    ]
    return np.stack(cut)


class Training(resnet44.Training):
    """The network with its Adam, and one step of this rank."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        hvd.broadcast_variables(self.model.variables, root_rank=0)

    def _step(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss, whole = self.losses(images, labels)
        variables = self.model.trainable_variables
        gradients = hvd.DistributedGradientTape(tape).gradient(whole, variables)
        self.adam.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    def validated(self, images: Images, place: Place, batches: int) -> dict[str, Any]:
        """Mean loss and accuracy over so many batches, shared by the ranks, with rank 0's statistics."""
        began = time.perf_counter()
        hvd.broadcast_variables(self.model.non_trainable_variables, root_rank=0)
        sums = self.summed(images, range(place.rank, batches, place.count), images.plain)
        shared = hvd.allreduce(tf.constant(sums), op=hvd.Sum, name="validation").numpy()
        return resnet44.quality(shared, time.perf_counter() - began, batches)


def run(trial: TrialProcess) -> dict[str, Any]:
    """One trial of the protocol, by itself or as the ranks that it is made of."""
    trial.choose("protocol", trial.asked["protocol"], ("published/1",))
    trial.choose("model", trial.variant["model"], ("resnet44",))
    trial.choose("data mode", trial.variant["data_mode"], ("device", "host"))
    trial.choose("precision", trial.variant["precision"], ("fp32-ieee",))
    options = trial.options(OPTIONS)
    trial.choose("framework", options["framework"], (NAME,))
    trial.choose("parallel", options["parallel"], WAYS)
    if trial.asked["device"] != "cpu":
        raise Failed("no-device", f"Horovod runs on a CPU here, and a '{trial.asked['device']}' is asked")
    place, count = launcher.here(), trial.variant["gpus"]
    if count > 1 and place is None:
        return ranks.launched(trial, options["parallel"], count)
    with ranks.together():
        return measured(trial, options, place or Place())


def measured(trial: TrialProcess, options: dict[str, Any], place: Place) -> dict[str, Any]:
    """The training of this process and what it measured."""
    size = trial.variant["batch_size"]
    with trial.phase("device"):
        devices = device.choose("cpu", 1)
        arithmetic = device.prepare(trial.variant["precision"], devices)
        tf.keras.utils.set_random_seed(trial.seed % 2**32)
    trial.stage("data")
    with trial.phase("data"):
        train, valid, data = resnet44.read(trial, options["train_images"])
    trial.stage("setup")
    with trial.phase("model"):
        training = Training(place.count)
    with trial.phase("first_step"):
        training.rehearse(train.plain(slice(size)), train.labels[:size])
    steps = len(train.labels) // (size * place.count)
    clock = device.clock_on(devices)(trial, steps_per_epoch=steps, epochs=EPOCHS)
    epochs = trained(trial, clock, training, train, valid, place)
    trial.stage("collect")
    framework = {
        "name": "Horovod on TensorFlow",
        "version": horovod.__version__,
        "dormant_since": LAST_RELEASE,
        "ways": WAYS,
        "compiled": "tf.function",
        "loader": "none: NumPy arrays in host memory",
        "differs": ["Keras' own layers, with its momentum and epsilon of batch norm"],
    }
    found = resnet44.measurement(trial, training, clock, epochs, data, arithmetic, devices, framework)
    found["versions"]["horovod"] = horovod.__version__
    parallel = options["parallel"] if place.count > 1 else None
    return dict(found, samples_per_step=size, parallel=parallel, ranks=entries(clock, place, devices))


def entries(clock: StepClock, place: Place, devices: list[str]) -> list[dict[str, Any]]:
    """What is known of this rank, where there are several."""
    if place.count == 1:
        return []
    own = {"rank": place.rank, "samples": clock.samples, "seconds": clock.seconds}
    return [{**own, "memory": device.memory(devices)}]


def trained(
    trial: TrialProcess, clock: StepClock, training: Training, train: Images, valid: Images, place: Place
) -> list[dict[str, Any]]:
    """Epochs until the protocol or the trial's limit ends; one each."""
    over = ranks.End(clock).over if place.count > 1 else clock.over
    draw = np.random.RandomState((trial.seed + place.rank) % 2**32)
    limit = trial.valid_batches(len(valid.labels) // VALID_BATCH_SIZE)

    def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        size, drawn = (
            trial.variant["batch_size"],
            resnet44.order(len(train.labels), clock.segments, trial.seed),
        )
        for step in range(clock.steps_per_epoch):
            first = (step * place.count + place.rank) * size
            chosen = drawn[first : first + size]
            yield augmented(train, chosen, draw), train.labels[chosen]

    def step(batch: tuple[np.ndarray, np.ndarray]) -> None:
        images, labels = batch
        clock.ready(images)
        clock.step(training.step(tf.constant(images), tf.constant(labels)), len(labels))

    def after(epoch: dict[str, Any]) -> None:
        if limit:
            trial.stage("valid")
            epoch.update(training.validated(valid, place, limit))

    return clock.run(batches, step, over, after)


if __name__ == "__main__":
    launcher.settle()
    main(run)
