"""UniLu 2019's ResNet-44 on CIFAR-10 in TensorFlow's Keras with Horovod, one process a device.

The protocol is that of `workloads/cifar_resnet44.py`, which says what is the study's and what is of Keras'
example: 662,826 trained parameters, Adam at 1e-3 times the ranks, L2 of 1e-4 on the convolutions, pixels less
their mean image, shifts and flips, 40 epochs, all test images after each.

As in that example, batch norm has Keras' own momentum of 0.99 and epsilon of 0.001. Each rank normalises its
own part of a batch by itself; what is validated has rank 0's statistics, and the ranks share the test images.
The loss that is told is cross-entropy, without the L2 that is trained on too.
"""

from __future__ import annotations

from parts.trial import Failed, TrialProcess, main  # isort: skip  (its clock starts with this line)

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import math
import time
from collections.abc import Iterator
from typing import Any

import horovod
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from frameworks.horovod import ranks
from frameworks.tensorflow import device
from parts import launcher
from parts.chexnet.network import METHOD
from parts.inputs import datasets
from parts.launcher import Place
from parts.timing.step_clock import StepClock

TITLE = "ResNet-44 on CIFAR-10"
ABOUT = "UniLu 2019: accuracy against epochs and time on one to twelve devices."
EPOCHS = 40
BLOCKS_PER_STAGE = 7
PARAMETERS = 662_826
RATE = 1e-3
L2 = 1e-4
LARGEST_SHIFT = 3
VALID_BATCH_SIZE = 500
NAME = "tensorflow-horovod"
LAST_RELEASE = "2023-06-12"
"""By its own changelog. Its repository had a commit in June 2026, and no release since."""
WAYS = {"ddp": "Horovod over gloo, a process each"}
OPTIONS: dict[str, Any] = {"framework": NAME, "parallel": "ddp", "train_images": 50_000}


def resnet44() -> tf.keras.Model:
    """The network of the protocol; raises Failed if it has other parameters than that."""
    inputs = x = tf.keras.Input((32, 32, 3))
    x = activated(convolution(x, 16))
    width = 16
    for wider in (16, 32, 64):
        for _ in range(BLOCKS_PER_STAGE):
            stride = wider // width
            y = activated(convolution(x, wider, stride))
            y = tf.keras.layers.BatchNormalization()(convolution(y, wider))
            shortcut = convolution(x, wider, stride, side=1) if stride > 1 else x
            x = tf.keras.layers.ReLU()(y + shortcut)
            width = wider
    x = tf.keras.layers.GlobalAveragePooling2D()(x)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(10, kernel_initializer="he_normal")(x))
    trained = sum(int(np.prod(weight.shape)) for weight in model.trainable_variables)
    if trained != PARAMETERS:
        raise Failed("error", f"the network has {trained} parameters where the protocol has {PARAMETERS}")
    return model


def convolution(x: Any, width: int, stride: int = 1, side: int = 3) -> Any:
    """He's initial weights, and a bias."""
    asked = {"strides": stride, "padding": "same", "kernel_initializer": "he_normal"}
    return tf.keras.layers.Conv2D(width, side, **asked)(x)


def activated(x: Any) -> Any:
    """Batch norm and ReLU."""
    return tf.keras.layers.ReLU()(tf.keras.layers.BatchNormalization()(x))


class Images:
    """A split in memory, channels last, and as the network takes it."""

    def __init__(self, images: Any, mean: np.ndarray | None, items: int | None = None) -> None:
        pixels = np.frombuffer(images.pixels, np.uint8).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self.pixels = np.ascontiguousarray(pixels[:items])
        self.labels = np.array(images.labels[:items], np.int32)
        self.mean = self.pixels.mean(0, dtype=np.float64).astype(np.float32) / 255 if mean is None else mean

    def plain(self, chosen: Any) -> np.ndarray:
        """fp32 images, centred."""
        return self.pixels[chosen].astype(np.float32) / 255 - self.mean

    def augmented(self, chosen: np.ndarray, draw: np.random.RandomState) -> np.ndarray:
        """The same, each shifted by whole pixels with its edge repeated, and every other one flipped."""
        edge = (LARGEST_SHIFT,) * 2
        padded = np.pad(self.plain(chosen), ((0, 0), edge, edge, (0, 0)), mode="edge")
        shifts = draw.randint(0, 2 * LARGEST_SHIFT + 1, (len(chosen), 2))
        flips = np.where(draw.random_sample(len(chosen)) < 0.5, -1, 1)
        cut = [
            image[row : row + 32, column : column + 32][:, ::flip]
            for image, (row, column), flip in zip(padded, shifts, flips, strict=True)
        ]
        return np.stack(cut)


class Training:
    """The network with its Adam, and one step of this rank."""

    def __init__(self, count: int) -> None:
        self.model = resnet44()
        self.adam = tf.keras.optimizers.Adam(RATE * count, epsilon=1e-8)
        self.decayed = [weight for weight in self.model.trainable_variables if len(weight.shape) == 4]
        self.step = tf.function(self._step, autograph=False)
        self.scores = tf.function(lambda images: self.model(images, training=False), autograph=False)
        self.adam.build(self.model.trainable_variables)
        hvd.broadcast_variables(self.model.variables, root_rank=0)

    def rehearse(self, images: np.ndarray, labels: np.ndarray) -> None:
        """One step and one output that leave no trace, for graphs to be made."""
        variables = [*self.model.variables, *self.adam.variables]
        before = [variable.numpy() for variable in variables]
        self.step(tf.constant(images), tf.constant(labels))
        self.scores(tf.constant(images))
        for variable, value in zip(variables, before, strict=True):
            variable.assign(value)

    def operations_per_image(self) -> float:
        """Two for each product of convolutions and head, forward and for both gradients."""
        counted = [layer for layer in self.model.layers if hasattr(layer, "kernel")]
        sides = [math.prod(layer.output_shape[1:-1]) for layer in counted]
        return float(6 * sum(math.prod(c.kernel.shape) * s for c, s in zip(counted, sides, strict=True)))

    def _step(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            scores = self.model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores)
            loss = tf.reduce_mean(losses)
            whole = loss + L2 * tf.add_n([tf.reduce_sum(weight * weight) for weight in self.decayed])
        variables = self.model.trainable_variables
        gradients = hvd.DistributedGradientTape(tape).gradient(whole, variables)
        self.adam.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    def validated(self, images: Images, place: Place, batches: int) -> dict[str, Any]:
        """Mean loss and accuracy over so many batches, shared by the ranks, with rank 0's statistics."""
        began = time.perf_counter()
        hvd.broadcast_variables(self.model.non_trainable_variables, root_rank=0)
        sums = np.zeros(3)
        for number in range(place.rank, batches, place.count):
            part = slice(number * VALID_BATCH_SIZE, (number + 1) * VALID_BATCH_SIZE)
            scores, labels = self.scores(tf.constant(images.plain(part))), images.labels[part]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores).numpy()
            right = scores.numpy().argmax(1) == labels
            sums += (losses.sum(), right.sum(), len(labels))
        loss, right, seen = hvd.allreduce(tf.constant(sums), op=hvd.Sum, name="validation").numpy()
        if not math.isfinite(loss):
            raise Failed("not-finite", f"the loss of a validation is {loss}")
        seconds = time.perf_counter() - began
        told = {"valid_seconds": seconds, "valid_batches": batches, "valid_loss": float(loss / seen)}
        return {**told, "quality": float(right / seen)}


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


def order(items: int, epoch: int, seed: int, size: int, place: Place) -> Iterator[np.ndarray]:
    """This rank's part of each batch, in an order that all ranks draw alike."""
    drawn = np.random.RandomState((seed + epoch) % 2**32).permutation(items)
    for step in range(items // (size * place.count)):
        first = (step * place.count + place.rank) * size
        yield drawn[first : first + size]


def measured(trial: TrialProcess, options: dict[str, Any], place: Place) -> dict[str, Any]:
    """The training of this process and what it measured."""
    size = trial.variant["batch_size"]
    with trial.phase("device"):
        devices = device.choose("cpu", 1)
        arithmetic = device.prepare(trial.variant["precision"], devices)
        tf.keras.utils.set_random_seed(trial.seed % 2**32)
    trial.stage("data")
    with trial.phase("data"):
        found = datasets.cifar_10(trial.data_folder, trial.asked["data"])
        train = Images(found.train, None, options["train_images"])
        valid = Images(found.test, train.mean)
    trial.stage("setup")
    with trial.phase("model"):
        training = Training(place.count)
    with trial.phase("first_step"):
        training.rehearse(train.plain(slice(size)), train.labels[:size])
    steps = len(train.labels) // (size * place.count)
    clock = device.clock_on(devices)(trial, steps_per_epoch=steps, epochs=EPOCHS)
    epochs = trained(trial, clock, training, train, valid, place)
    trial.stage("collect")
    whole = len(valid.labels) // VALID_BATCH_SIZE
    counted = [layer for layer in training.model.layers if hasattr(layer, "kernel")]
    return dict(
        {
            "device": device.facts("cpu", 1),
            "versions": dict(device.software(), horovod=horovod.__version__),
            "precision": dict(
                arithmetic, output_dtypes={"float32": len(counted)}, parameter_dtypes={"float32": PARAMETERS}
            ),
            "framework": {
                "name": "Horovod on TensorFlow",
                "version": horovod.__version__,
                "dormant_since": LAST_RELEASE,
                "ways": WAYS,
                "layout": "channels last",
                "compiled": "tf.function",
                "loader": "none: NumPy arrays in host memory",
                "differs": ["Keras' own layers, with its momentum and epsilon of batch norm"],
            },
            "title": TITLE,
            "about": ABOUT,
            "data": {
                "name": found.name,
                "source": trial.asked["data"],
                "sha256": found.sha256,
                "train_items": len(train.labels),
                "valid_items": len(valid.labels),
                **clock.batches(),
            },
            "protocol": clock.protocol(epochs, whole, trial.valid_batches(whole)),
            "sample_unit": "image",
            "samples_per_step": size,
            "epochs": epochs,
            "quality_name": "accuracy",
            "flops": {"per_sample": training.operations_per_image(), "method": METHOD},
            "structure": {"parameters": PARAMETERS, "classes": 10},
            "parallel": options["parallel"] if place.count > 1 else None,
            "notes": [],
            "ranks": entries(clock, place, devices),
        },
        **clock.series(),
    )


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
        for chosen in order(
            len(train.labels), clock.segments, trial.seed, trial.variant["batch_size"], place
        ):
            yield train.augmented(chosen, draw), train.labels[chosen]

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
