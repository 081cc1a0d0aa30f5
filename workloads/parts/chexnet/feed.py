"""The X-rays as batches of pixels and labels: one feed for all frameworks.

Order, crop and flip are functions of the trial's seed, the epoch and the image's place in it, so that all
frameworks train on the same bits in `fair/1`. Threads make batches ahead. A framework may bring
a loader and a crop of its own.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from parts.chexnet import pictures, synthetic, xrays
from parts.chexnet.protocol import LOADING, Terms
from parts.chexnet.synthetic import ArrayBatch
from parts.chexnet.training import Evaluation, Trainer
from parts.launcher import Place
from parts.trial import TrialProcess

BATCHES_AHEAD = 2
"""Batches that each worker makes before they are asked for."""
FILES = 64
"""Generated files, that come round; they lie in the page cache, so that no disk is measured."""

Wanted = tuple
"""An item, the epoch that it is wanted in, and its place in that."""
Crop = Callable[[np.ndarray, int, int], np.ndarray]
"""Makes (3, size, size) in fp32 of an image, for an epoch and a place in it."""


class Prefetcher(Iterator):
    """An epoch's batches, made in their order by threads that begin before the first one is asked for."""

    def __init__(self, wanted: Iterator[Any], made: Callable[[Any], Any], workers: int) -> None:
        self.wanted, self.made = wanted, made
        self.pool = ThreadPoolExecutor(workers)
        self.coming: deque[Any] = deque()
        for _ in range(BATCHES_AHEAD * workers):
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


@lru_cache(maxsize=2)
def order(items: int, seed: int, epoch: int) -> np.ndarray:
    """Return the items in the order of an epoch, which are counted from 0."""
    return np.random.RandomState([seed % 2**32, epoch]).permutation(items)


def choices(seed: int, epoch: int, place: int) -> np.random.RandomState:
    """Return what the crop and the flip of an epoch's image are drawn from."""
    return np.random.RandomState([seed % 2**32, epoch, place])


class TrainingSampler:
    """The items of each training batch, in another order each epoch; a rank has its own part of them.

    Where there are fewer items than an epoch takes, they come round; a last batch that is not whole is left
    out.
    """

    def __init__(self, items: int, terms: Terms, place: Place, seed: int) -> None:
        self.items, self.terms, self.place, self.seed = items, terms, place, seed
        self.epochs = 0

    def __len__(self) -> int:
        return self.terms.steps_per_epoch

    def __iter__(self) -> Iterator[list[Wanted]]:
        epoch, self.epochs = self.epochs, self.epochs + 1
        return (self.at(epoch, step) for step in range(len(self)))

    def at(self, epoch: int, step: int) -> list[Wanted]:
        """Return the items of one batch."""
        drawn = order(self.items, self.seed, epoch)
        size = self.terms.batch_size if self.place.count > 1 else self.terms.global_batch_size
        first = step * self.terms.global_batch_size + self.place.rank * size
        return [(int(drawn[place % self.items]), epoch, place) for place in range(first, first + size)]


class EvaluationSampler:
    """The items of each batch to validate or test on, the last one as long as what is left.

    Ranks take turns, unless the first has all of them.
    """

    def __init__(self, items: int, size: int, place: Place, limit: int, *, first_alone: bool) -> None:
        alone = place.count == 1 or first_alone
        mine = range(0 if alone else place.rank, limit, 1 if alone else place.count)
        self.firsts = [number * size for number in mine] if place.rank == 0 or not first_alone else []
        self.items, self.size = items, size

    def __len__(self) -> int:
        return len(self.firsts)

    def __iter__(self) -> Iterator[list[Wanted]]:
        for first in self.firsts:
            yield [(item, 0, item) for item in range(first, min(first + self.size, self.items))]


class CroppedImages:
    """Images of a part, read and cropped when they are asked for, each with its labels."""

    def __init__(self, part: Any, crop: Crop) -> None:
        self.part, self.crop = part, crop

    def __len__(self) -> int:
        return len(self.part)

    def __getitem__(self, wanted: Wanted) -> tuple[np.ndarray, np.ndarray]:
        item, epoch, place = wanted
        return self.crop(self.part.rgb(item), epoch, place), self.part.labels[item]

    def batch(self, wanted: list[Wanted]) -> ArrayBatch:
        """Return these images and their labels."""
        images, labels = zip(*(self[one] for one in wanted))
        return np.stack(images), np.stack(labels)


class ThreadLoader:
    """An epoch's batches each time it is gone through, made by threads of this process."""

    def __init__(self, sampler: Any, made: Callable[[list[Wanted]], Any], workers: int) -> None:
        self.sampler, self.made, self.workers = sampler, made, workers

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Iterator[Any]:
        return Prefetcher(iter(self.sampler), self.made, self.workers)


def own_crop(terms: Terms, seed: int, *, training: bool) -> Crop:
    """Return the crop that all frameworks share: the same bits in each."""
    return partial(_trained_on, terms, seed) if training else partial(_tested_on, terms)


def _trained_on(terms: Terms, seed: int, image: np.ndarray, epoch: int, place: int) -> np.ndarray:
    return pictures.trained_on(image, terms.image_size, terms.manner, choices(seed, epoch, place))


def _tested_on(terms: Terms, image: np.ndarray, epoch: int, place: int) -> np.ndarray:
    return pictures.tested_on(image, terms.image_size, terms.manner)


def _uncropped(image: np.ndarray, epoch: int, place: int) -> np.ndarray:
    return image


class HostLoading:
    """How a framework has its batches made: by threads, as NumPy arrays, in the crop of all frameworks."""

    crop = staticmethod(own_crop)

    def __init__(self, trainer: Trainer | None = None) -> None:
        self.trainer = trainer

    def loader(self, images: CroppedImages, sampler: Any, terms: Terms) -> Any:
        """Return what gives an epoch's batches each time it is gone through."""
        made = images.batch
        if self.trainer and isinstance(sampler, TrainingSampler):
            arranged = self.trainer.arranged
            return ThreadLoader(sampler, lambda wanted: arranged(made(wanted)), terms.workers)
        return ThreadLoader(sampler, made, terms.workers)

    def fixed(self, batch: ArrayBatch) -> Any:
        """Return a batch of arrays in memory as a step takes it."""
        return self.trainer.arranged(batch) if self.trainer else batch

    def named(self, terms: Terms) -> str:
        """Return what a record's framework has as its loader."""
        if terms.data == "synthetic":
            return "none: NumPy arrays in host memory"
        return "our own, threads: %d" % terms.workers


@dataclass(frozen=True)
class Dataset:
    """What a trial trains on: a list of batches that come round, or a loader; and what it is judged by.

    `first` is one batch, `facts` are a measurement's about the data, and `folder` holds generated files as
    long as this lives.
    """

    terms: Terms
    train: Any
    first: Any
    facts: dict[str, Any]
    valid: Evaluation | None = None
    test: Evaluation | None = None
    labels: tuple[str, ...] = ()
    folder: Any = None


ALONE = Place()


def dataset(trial: TrialProcess, terms: Terms, loading: HostLoading, place: Place = ALONE) -> Dataset:
    """Arrays, generated files or real X-rays; raises Failed where these are not there or not whole."""
    if terms.data == "real":
        return _real(trial, terms, loading, place)
    if terms.data == "files":
        from parts.chexnet import files  # Pillow is not in every image.

        folder = tempfile.TemporaryDirectory(prefix="gpudyno-files-")
        part = files.generated(folder.name, FILES, terms.source_pixels, terms.loading["format"])
        facts = {"distinct_batches": None, "looked_at_batches": None}
        return replace(_training(trial, terms, loading, place, part), facts=facts, folder=folder)
    drawn = synthetic.batches(terms)
    facts = synthetic.facts(drawn)
    own = slice(place.rank * terms.batch_size, (place.rank + 1) * terms.batch_size)
    mine = [tuple(half[own] for half in batch) for batch in drawn] if place.count > 1 else drawn
    if terms.workers:
        images = CroppedImages(synthetic.ArrayImages(drawn), _uncropped)
        sampler = TrainingSampler(len(images), terms, place, trial.seed)
        return Dataset(terms, loading.loader(images, sampler, terms), loading.fixed(mine[0]), facts)
    fixed = [loading.fixed(batch) for batch in mine]
    return Dataset(terms, fixed, fixed[0], facts)


def _training(trial: TrialProcess, terms: Terms, loading: HostLoading, place: Place, part: Any) -> Dataset:
    images = CroppedImages(part, loading.crop(terms, trial.seed, training=True))
    sampler = TrainingSampler(len(part), terms, place, trial.seed)
    first = loading.fixed(images.batch(TrainingSampler(len(part), terms, place, trial.seed).at(0, 0)))
    return Dataset(terms, loading.loader(images, sampler, terms), first, {})


def _real(trial: TrialProcess, terms: Terms, loading: HostLoading, place: Place) -> Dataset:
    found = xrays.prepared(trial.data_folder, trial.asked["data"])
    parts = found.parts
    terms = replace(terms, train_images=len(parts["train"]))
    trained = _training(trial, terms, loading, place, parts["train"])
    facts = dict({"%s_items" % name: len(part) for name, part in parts.items()}, sha256=found.sha256)
    if terms.protocol == LOADING:
        return replace(trained, facts=facts)
    crop, held = loading.crop(terms, trial.seed, training=False), {}
    for name in ("valid", "test"):
        size, items = terms.valid_batch_size, len(parts[name])
        whole = -(-items // size)
        limit = trial.valid_batches(whole) if name == "valid" else whole
        first_alone = terms.loading.get("valid_devices") == "first"
        sampler = EvaluationSampler(items, size, place, limit, first_alone=first_alone)
        batches = loading.loader(CroppedImages(parts[name], crop), sampler, terms)
        held[name] = Evaluation(loading.trainer, batches, whole)
    return replace(trained, facts=facts, labels=found.labels, **held)
