"""What a trial of Karmanov 2018's small networks has to do, in whichever framework.

`published/1` leaves each framework as its notebook had it: its own initial weights, and what its Manner says.
`fair/1` is one manner for all: the same weights, drawn by rule (`cnn`, `gru`), and whole batches alone. In
both the training data come in the same order, drawn anew for each epoch from the trial's seed.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from parts.trial import Trial

PUBLISHED, FAIR = "published/1", "fair/1"


@dataclass(frozen=True)
class Manner:
    """What may differ between frameworks in `published/1`."""

    whole_batches: bool = True
    """Whether an epoch and a test leave out the last batch unless it is whole."""
    last_dropout: float = 0.5
    """Of the convolutional network, before its last layer."""


@dataclass(frozen=True)
class Split:
    """Inputs and their classes, in the host's memory."""

    inputs: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True)
class Data:
    """A data set as its network takes it; `sha256` is null where it was generated."""

    name: str
    sha256: str | None
    train: Split
    test: Split


@dataclass(frozen=True)
class Work:
    """One of the two networks: its protocol, and how its weights are drawn and its data read."""

    model: str
    sample_unit: str
    epochs: int
    batch_size: int
    parameters: int
    classes: int
    operations_per_sample: float
    weights_sha256: str
    drawn: Callable[[int], dict[str, np.ndarray]]
    """Initial weights by their neutral names, from a seed."""
    neutral: Callable[[], dict[str, np.ndarray]]
    """Those that all frameworks begin with in `fair/1`, their hash asserted."""
    read: Callable[[Trial], Data]
    manners: dict[str, Manner]
    """By the names that published figures have."""


@dataclass(frozen=True)
class Terms:
    """What one trial has to do."""

    work: Work
    framework: str
    protocol: str
    manner: Manner
    batch_size: int
    seed: int
    dropouts: tuple[float, float, float] = (0.25, 0.25, 0.5)

    def batches(self, items: int, epoch: int | None) -> Iterator[np.ndarray]:
        """The numbers of the items of each batch: of an epoch of training, or in order where it is null."""
        numbers = np.arange(items) if epoch is None else order(items, self.seed, epoch)
        for first in range(0, self.steps(items) * self.batch_size, self.batch_size):
            yield numbers[first : first + self.batch_size]

    def steps(self, items: int) -> int:
        """Batches that so many items are gone through in."""
        return items // self.batch_size if self.manner.whole_batches else -(-items // self.batch_size)

    @property
    def notes(self) -> list[str]:
        """What is smaller than the protocol."""
        if self.batch_size == self.work.batch_size:
            return []
        asked, work = self.batch_size, self.work
        return [f"scaled down: {asked} {work.sample_unit}s a step, of {work.batch_size}"]


def order(items: int, seed: int, epoch: int) -> np.ndarray:
    """The items in the order of an epoch, which counts from 0."""
    return np.random.RandomState([seed % 2**32, epoch]).permutation(items)


def terms(
    trial: Trial, work: Work, frameworks: tuple[str, ...], data_modes: tuple[str, ...] = ("host",)
) -> Terms:
    """A trial's terms; raises Failed, naming what there is, for anything that the workload does not do."""
    variant = trial.variant
    protocol = trial.choose("protocol", trial.asked["protocol"], (PUBLISHED, FAIR))
    trial.choose("model", variant["model"], (work.model,))
    trial.choose("data mode", variant["data_mode"], data_modes)
    trial.choose("profile", variant["profile"], ("default",))
    trial.choose("layout", variant["layout"], ("contiguous",))
    options: dict[str, Any] = trial.options({"framework": frameworks[0]})
    framework = trial.choose("framework", options["framework"], frameworks)
    return terms_of(work, framework, protocol, variant["batch_size"], trial.seed)


def terms_of(work: Work, framework: str, protocol: str, batch_size: int, seed: int) -> Terms:
    """As `terms`, of what is known to be there."""
    manner = work.manners[framework] if protocol == PUBLISHED else Manner()
    dropouts = (0.25, 0.25, manner.last_dropout)
    return Terms(work, framework, protocol, manner, batch_size, seed, dropouts)
