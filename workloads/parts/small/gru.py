"""Karmanov 2018's GRU on the reviews of IMDB: network, initial weights, reviews. June 2018, eight frameworks.

Each of 30,000 words has 125 numbers; a GRU of 100 units reads 150 of them, its reset gate behind the product
as in cuDNN, and its last output becomes two scores: 3,818,302 parameters. Three epochs of Adam at 0.001
(0.9, 0.999, epsilon 1e-8) in batches of 64.

A review is its last 150 words after a first 1; words count from 3, and those from 30,000 on are 2. Its trap:
a shorter review has zeros behind its words, so the last output has read them too.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parts.inputs import datasets, neutral
from parts.small.terms import Data, Manner, Split, Work
from parts.trial import Trial

EPOCHS = 3
RATE, BETAS, EPSILON = 0.001, (0.9, 0.999), 1e-8
WORDS, EMBEDDED, UNITS, LENGTH, CLASSES = 30000, 125, 100, 150, 2
BEGIN, UNKNOWN, FIRST_WORD = 1, 2, 3
GATES = ("reset", "update", "new")
"""In the order in which their weights stand below each other."""

BOUND = 0.1
SEED = 150
SHA256 = "21f2e0d10f00ad7f8e679e8262a23fb8e9ad4c11e7e60de2a21f4fcb83d42864"
"""Of the neutral weights' file."""


def drawn(seed: int) -> dict[str, np.ndarray]:
    """Uniform numbers in ±0.1, and biases of 0.

    `gru/input` is (gates · units, inputs), `gru/state` (gates · units, units), each with a bias of its own.
    """
    stream = np.random.RandomState(seed % 2**32)
    shapes = {
        "embedding": (WORDS, EMBEDDED),
        "gru/input": (len(GATES) * UNITS, EMBEDDED),
        "gru/state": (len(GATES) * UNITS, UNITS),
        "gru/input_bias": (len(GATES) * UNITS,),
        "gru/state_bias": (len(GATES) * UNITS,),
        "dense/weight": (CLASSES, UNITS),
        "dense/bias": (CLASSES,),
    }
    return {
        name: np.zeros(shape, np.float32) if name.endswith("bias") else neutral.uniform(stream, shape, BOUND)
        for name, shape in shapes.items()
    }


def the_same() -> dict[str, np.ndarray]:
    """The weights of `fair/1`; raises Failed where they are not those of SHA256."""
    return neutral.checked(drawn(SEED), SHA256)


def read(trial: Trial) -> Data:
    """The reviews as (items, 150) word numbers, and 1 where a review is a good one."""
    found = datasets.imdb(trial.data_folder, trial.asked["data"])
    return Data(found.name, found.sha256, _split(found.train), _split(found.test))


def _split(reviews: datasets.Reviews) -> Split:
    words = np.stack([numbered(review) for review in reviews.words])
    return Split(words, np.array(reviews.labels, np.int32))


def numbered(review: Sequence[int]) -> np.ndarray:
    """A review as the study numbered it, zeros behind."""
    last = [BEGIN, *(word + FIRST_WORD for word in review)][-LENGTH:]
    words = np.zeros(LENGTH, np.int32)
    words[: len(last)] = last
    words[words >= WORDS] = UNKNOWN
    return words


def _operations() -> float:
    """Of one training step on a review: forward, and backward twice as many."""
    products = len(GATES) * UNITS * (EMBEDDED + UNITS) * LENGTH + UNITS * CLASSES
    return float(2 * 3 * products)


WORK = Work(
    model="gru",
    sample_unit="sample",
    epochs=EPOCHS,
    batch_size=64,
    parameters=3_818_302,
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
        "mxnet-gluon": Manner(),
    },
)
