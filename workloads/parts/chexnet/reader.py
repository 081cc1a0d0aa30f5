"""The prepared X-rays as batches of NumPy arrays, in any framework.

Order, crop and flip are functions of the trial's seed, the epoch and the image's place in it, so that all
frameworks train on the same bits in `fair/1`. Threads make batches ahead.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parts.chexnet import pictures, xrays
from parts.chexnet.data import Batch, batches
from parts.chexnet.protocol import Terms
from parts.chexnet.training import Evaluation, Trainer, of_arrays
from parts.chexnet.xrays import Part
from parts.trial import Failed, TrialProcess

AHEAD = 2
"""Batches a worker."""


class Ahead(Iterator):
    """An epoch's batches, made in their order by threads that begin before the first one is asked for."""

    def __init__(self, wanted: Iterator[Any], made: Callable[[Any], Any], workers: int) -> None:
        self.wanted, self.made = wanted, made
        self.pool = ThreadPoolExecutor(workers)
        self.coming: deque[Any] = deque()
        for _ in range(AHEAD * workers):
            self._send()

    def __next__(self) -> Any:
        if not self.coming:
            self.pool.shutdown()
            raise StopIteration
        batch = self.coming.popleft().result()
        self._send()
        return batch

    def __del__(self) -> None:
        while self.coming:
            self.coming.pop().cancel()
        self.pool.shutdown(wait=False)

    def _send(self) -> None:
        wanted = next(self.wanted, None)
        if wanted is not None:
            self.coming.append(self.pool.submit(self.made, wanted))


def order(items: int, seed: int, epoch: int) -> np.ndarray:
    """The items in the order of an epoch, which are counted from 0."""
    return np.random.RandomState([seed % 2**32, epoch]).permutation(items)


def choices(seed: int, epoch: int, place: int) -> np.random.RandomState:
    """What the crop and the flip of an epoch's image are drawn from."""
    return np.random.RandomState([seed % 2**32, epoch, place])


class Training:
    """An epoch's batches each time it is gone through; the last that is not whole is left out."""

    def __init__(self, part: Part, terms: Terms, seed: int, trainer: Trainer) -> None:
        self.part, self.terms, self.seed = part, terms, seed
        self.trainer = trainer
        self.epochs = 0

    def __len__(self) -> int:
        return self.terms.steps_per_epoch

    def __iter__(self) -> Iterator[Batch]:
        epoch, self.epochs = self.epochs, self.epochs + 1
        wanted = ((epoch, step) for step in range(len(self)))
        return Ahead(wanted, lambda batch: self.at(*batch), self.terms.workers)

    def at(self, epoch: int, step: int) -> Batch:
        """A batch as the trainer takes it."""
        size = self.terms.global_batch_size
        places = range(step * size, (step + 1) * size)
        items = order(len(self.part), self.seed, epoch)[places]
        images = [self._image(item, epoch, place) for item, place in zip(items, places)]
        return self.trainer.arranged((np.stack(images), self.part.labels[items]))

    def _image(self, item: int, epoch: int, place: int) -> np.ndarray:
        stream = choices(self.seed, epoch, place)
        return pictures.trained_on(self.part.rgb(item), self.terms.image_size, self.terms.manner, stream)


class Testing:
    """A part's batches in their order, the last one as long as what is left."""

    def __init__(self, part: Part, terms: Terms, limit: int | None = None) -> None:
        self.part, self.terms = part, terms
        self.whole = -(-len(part) // terms.valid_batch_size)
        self.limit = self.whole if limit is None else min(limit, self.whole)

    def __iter__(self) -> Iterator[Batch]:
        return Ahead(iter(range(self.limit)), self.at, self.terms.workers)

    def at(self, number: int) -> Batch:
        """A batch by its number."""
        size, manner = self.terms.image_size, self.terms.manner
        first = number * self.terms.valid_batch_size
        items = range(first, min(first + self.terms.valid_batch_size, len(self.part)))
        images = [pictures.tested_on(self.part.rgb(item), size, manner) for item in items]
        return np.stack(images), self.part.labels[items]


@dataclass(frozen=True)
class Given:
    """What a trial trains on: a list of batches that come round, or a loader; and what it is judged by.

    `first` is one batch; `facts` are told of the data.
    """

    terms: Terms
    train: Any
    first: Batch
    facts: dict[str, Any]
    valid: Evaluation | None = None
    test: Evaluation | None = None
    labels: tuple[str, ...] = ()


def given(trial: TrialProcess, terms: Terms, trainer: Trainer) -> Given:
    """Arrays or real X-rays; raises Failed where these are not there or not whole."""
    if terms.data == "real":
        return _real(trial, terms, trainer)
    drawn = batches(terms)
    arranged = [trainer.arranged(batch) for batch in drawn]
    return Given(terms, arranged, arranged[0], of_arrays(drawn))


def _real(trial: TrialProcess, terms: Terms, trainer: Trainer) -> Given:
    if trial.asked["weights"] == "pretrained":
        raise Failed("unsupported", "PyTorch alone reads the file of ImageNet's weights")
    found = xrays.prepared(trial.data_folder, trial.asked["data"])
    parts = found.parts
    terms = replace(terms, train_images=len(parts["train"]))
    train = Training(parts["train"], terms, trial.seed, trainer)
    held = {
        "valid": Testing(parts["valid"], terms, trial.limit.get("valid_batches")),
        "test": Testing(parts["test"], terms),
    }
    facts = {"%s_items" % name: len(part) for name, part in parts.items()}
    return Given(
        terms,
        train,
        train.at(0, 0),
        dict(facts, sha256=found.sha256),
        labels=found.labels,
        **{name: Evaluation(trainer, part, part.whole) for name, part in held.items()},
    )


def named(terms: Terms) -> str:
    """What a record's framework has as its loader."""
    if terms.data == "synthetic":
        return "none: NumPy arrays in host memory"
    return "our own, threads: %d" % terms.workers
