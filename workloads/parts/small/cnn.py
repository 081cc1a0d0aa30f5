"""Karmanov 2018's four convolutions on CIFAR-10: network, weights, images. June 2018, thirteen frameworks.

Two convolutions of 50 channels and two of 100, 3 × 3 with an edge of one, each pair with a ReLU between, a
pooling of 2 × 2, a ReLU and a dropout of 0.25 behind; then 512 units with a ReLU, a dropout of 0.5, and ten
scores: 3,441,592 parameters. Ten epochs of SGD at 0.01 with momentum 0.9 in batches of 64; pixels are divided
by 255, and nothing is augmented.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import numpy as np

from parts.inputs import datasets, neutral
from parts.small.terms import Data, Manner, Split, Work
from parts.trial import Trial

EPOCHS = 10
RATE, MOMENTUM = 0.01, 0.9
SIZE, CLASSES = 32, 10
CONVOLUTIONS = (("conv1", 3, 50), ("conv2", 50, 50), ("conv3", 50, 100), ("conv4", 100, 100))
FEATURES = 100 * (SIZE // 4) ** 2
DENSE = (("dense1", FEATURES, 512), ("dense2", 512, CLASSES))
"""Names, inputs and outputs; the features of `dense1` are channels before rows before columns."""

SEED = 10
SHA256 = "dd99444407902f635a12b28331ad65c5475063a9d45b4c68e4e7cba9b562445d"
"""Of the neutral weights' file."""


def drawn(seed: int) -> dict[str, np.ndarray]:
    """Glorot's uniform numbers, ±√(6 ÷ (inputs + outputs)) of a weight, and biases of 0.

    A convolution's weight is (outputs, inputs, height, width), a dense one's (outputs, inputs).
    """
    stream = np.random.RandomState(seed % 2**32)
    arrays = {}
    shapes = [(name, (outputs, inputs, 3, 3)) for name, inputs, outputs in CONVOLUTIONS]
    shapes += [(name, (outputs, inputs)) for name, inputs, outputs in DENSE]
    for name, shape in shapes:
        window = int(np.prod(shape[2:]))
        bound = np.sqrt(6 / ((shape[0] + shape[1]) * window))
        arrays[f"{name}/weight"] = neutral.uniform(stream, shape, bound)
        arrays[f"{name}/bias"] = np.zeros(shape[0], np.float32)
    return arrays


def the_same() -> dict[str, np.ndarray]:
    """The weights of `fair/1`; raises Failed where they are not those of SHA256."""
    return neutral.checked(drawn(SEED), SHA256)


def read(trial: Trial) -> Data:
    """CIFAR-10 as (items, 3, 32, 32) in [0, 1], and its classes."""
    images = datasets.cifar_10(trial.data_folder, trial.asked["data"])
    return Data(images.name, images.sha256, _split(images.train), _split(images.test))


def _split(images: datasets.Images) -> Split:
    pixels = np.frombuffer(images.pixels, np.uint8).reshape(-1, 3, SIZE, SIZE)
    return Split(pixels.astype(np.float32) / np.float32(255), np.array(images.labels, np.int32))


def _operations() -> float:
    """Of one training step on an image: the first convolution has no gradient of its input."""
    total = 0
    for name, inputs, outputs in CONVOLUTIONS:
        side = SIZE if name in ("conv1", "conv2") else SIZE // 2
        passes = 2 if name == "conv1" else 3
        total += 2 * inputs * outputs * 9 * side**2 * passes
    return float(total + sum(2 * inputs * outputs * 3 for _, inputs, outputs in DENSE))


WORK = Work(
    model="cnn",
    sample_unit="image",
    epochs=EPOCHS,
    batch_size=64,
    parameters=3_441_592,
    classes=CLASSES,
    operations_per_sample=_operations(),
    weights_sha256=SHA256,
    drawn=drawn,
    neutral=the_same,
    read=read,
    manners={
        "pytorch": Manner(),
        "tensorflow": Manner(),
        "keras-tensorflow": Manner(whole_batches=False),
        "mxnet-gluon": Manner(last_dropout=0.25),
        "chainer": Manner(),
    },
)
