"""The X-rays as batches of pixels and labels: one feed for all frameworks.

Order, crop and flip are functions of the trial's seed, the epoch and the image's place in it, so that all
frameworks train on the same bits in `fair/1`. Threads make batches ahead. A framework may bring
a loader and a crop of its own.

The crops `part` and `middle` only copy pixels, so `fair/1` is alike to the bit. `resized` and `whole` are
interpolated bilinearly, over all the pixels that a smaller one covers, as Pillow does it, to within one of
256 levels.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from parts.chexnet import synthetic, xrays
from parts.chexnet.protocol import LOADING, Terms, Variant
from parts.chexnet.synthetic import ArrayBatch
from parts.chexnet.training import Evaluation, Trainer
from parts.launcher import ALONE, Place
from parts.trial import Failed, TrialProcess

BATCHES_AHEAD = 2
"""Batches that each worker makes before they are asked for."""

Wanted = tuple
"""An item, the epoch that it is wanted in, and its place in that."""
Crop = Callable[[np.ndarray, int, int], np.ndarray]
"""Makes (3, size, size) in fp32 of an image, for an epoch and a place in it."""


MEAN = (0.485, 0.456, 0.406)
"""The mean of ImageNet's pixels in [0, 1]."""
DEVIATION = (0.229, 0.224, 0.225)
CAFFE_FACTOR = 0.017
"""The factor for pixels up to 255, in place of a division by the deviation."""
AREAS, SHAPES, TRIES = (0.08, 1.0), (3 / 4, 4 / 3), 10
"""How a part of any size is drawn: its share of the image, width by height, and how often one is tried that
must fit; as in torchvision and in Gluon."""


def crop_for_training(
    image: np.ndarray, size: int, variant: Variant, stream: np.random.RandomState
) -> np.ndarray:
    """Return the variant's crop of (height, width, 3) as (3, size, size) in fp32, flipped one time in two."""
    if variant.crop == "resized":
        image = resize(_part_of_any_size(image, stream), size)
    elif variant.crop == "whole":
        image = resize(image, size)
    else:
        _check(image, size)
        top, left = (stream.randint(side - size + 1) for side in image.shape[:2])
        image = image[top : top + size, left : left + size]
    if stream.randint(2):
        image = image[:, ::-1]
    return normalise(image, variant)


def crop_for_testing(image: np.ndarray, size: int, variant: Variant) -> np.ndarray:
    """Return the middle of an image, or the whole made smaller, as (3, size, size) in fp32."""
    if variant.tested_on == "whole":
        return normalise(resize(image, size), variant)
    _check(image, size)
    # As torchvision's CenterCrop has its halves.
    top, left = (round((side - size) / 2) for side in image.shape[:2])
    return normalise(image[top : top + size, left : left + size], variant)


def normalise(image: np.ndarray, variant: Variant) -> np.ndarray:
    """256 levels as numbers about nothing, channels first."""
    mean = np.array(MEAN, np.float32)[:, None, None]
    values = np.ascontiguousarray(image.transpose(2, 0, 1)).astype(np.float32)
    if variant.pixels == "caffe":
        return (values - mean * np.float32(255)) * np.float32(CAFFE_FACTOR)
    return (values / np.float32(255) - mean) / np.array(DEVIATION, np.float32)[:, None, None]


def resize(image: np.ndarray, size: int) -> np.ndarray:
    """Return an image of size × size, in 256 levels."""
    down, across = (_weights(side, size) for side in image.shape[:2])
    values = np.tensordot(down, image.astype(np.float64), (1, 0))
    values = np.tensordot(values, across, (1, 1)).transpose(0, 2, 1)
    return np.clip(np.floor(values + 0.5), 0, 255).astype(np.uint8)


def _weights(before: int, after: int) -> np.ndarray:
    """(after, before): what each pixel of a line gives to each of the new line."""
    scale = before / after
    centres = (np.arange(after) + 0.5) * scale
    away = np.abs(np.arange(before) + 0.5 - centres[:, None]) / max(scale, 1.0)
    weights = np.maximum(0.0, 1.0 - away)
    return weights / weights.sum(axis=1, keepdims=True)


def _part_of_any_size(image: np.ndarray, stream: np.random.RandomState) -> np.ndarray:
    height, width = image.shape[:2]
    for _ in range(TRIES):
        area = height * width * stream.uniform(*AREAS)
        shape = math.exp(stream.uniform(*(math.log(bound) for bound in SHAPES)))
        across, down = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
        if 0 < across <= width and 0 < down <= height:
            top, left = stream.randint(height - down + 1), stream.randint(width - across + 1)
            return image[top : top + down, left : left + across]
    return image


def _check(image: np.ndarray, size: int) -> None:
    if min(image.shape[:2]) < size:
        sizes = (size, min(image.shape[:2]))
        raise Failed("unsupported", "images of %d px cannot be cut from X-rays of %d px" % sizes)


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
        return np.stack([self[one][0] for one in wanted]), self.part.labels[[item for item, _, _ in wanted]]


class ThreadLoader:
    """An epoch's batches each time it is gone through, made in their order by threads of this process.

    The threads begin before the first batch is asked for.
    """

    def __init__(self, sampler: Any, made: Callable[[list[Wanted]], Any], workers: int) -> None:
        self.sampler, self.made, self.workers = sampler, made, workers

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Iterator[Any]:
        pool, wanted = ThreadPoolExecutor(self.workers), iter(self.sampler)
        ahead = itertools.islice(wanted, BATCHES_AHEAD * self.workers)
        return self._in_order(pool, deque(pool.submit(self.made, one) for one in ahead), wanted)

    def _in_order(self, pool: ThreadPoolExecutor, coming: deque[Any], wanted: Iterator[Any]) -> Iterator[Any]:
        try:
            while coming:
                batch = coming.popleft().result()
                coming.extend(pool.submit(self.made, one) for one in itertools.islice(wanted, 1))
                yield batch
        finally:
            for batch in coming:
                batch.cancel()
            pool.shutdown(wait=False)


def own_crop(terms: Terms, seed: int, *, training: bool) -> Crop:
    """Return the crop that all frameworks share: the same bits in each."""
    return partial(_trained_on, terms, seed) if training else partial(_tested_on, terms)


def _trained_on(terms: Terms, seed: int, image: np.ndarray, epoch: int, place: int) -> np.ndarray:
    return crop_for_training(image, terms.image_size, terms.variant, choices(seed, epoch, place))


def _tested_on(terms: Terms, image: np.ndarray, epoch: int, place: int) -> np.ndarray:
    return crop_for_testing(image, terms.image_size, terms.variant)


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
            arranged = self.trainer.arrange
            return ThreadLoader(sampler, lambda wanted: arranged(made(wanted)), terms.workers)
        return ThreadLoader(sampler, made, terms.workers)

    def generate_files(self, folder: str, terms: Terms) -> Any:
        """Return generated files, where a framework reads files."""
        raise NotImplementedError

    def hold_batch(self, batch: ArrayBatch) -> Any:
        """Return a batch of arrays in memory as a step takes it."""
        return self.trainer.arrange(batch) if self.trainer else batch

    def loader_name(self, terms: Terms) -> str:
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


def dataset(trial: TrialProcess, terms: Terms, loading: HostLoading, place: Place = ALONE) -> Dataset:
    """Arrays, generated files or real X-rays; raises Failed where these are not there or not whole."""
    if terms.data == "real":
        return _real(trial, terms, loading, place)
    if terms.data == "files":
        folder = tempfile.TemporaryDirectory(prefix="gpudyno-files-")
        part = loading.generate_files(folder.name, terms)
        facts = {"distinct_batches": None, "looked_at_batches": None}
        return replace(_training(trial, terms, loading, place, part), facts=facts, folder=folder)
    drawn = synthetic.batches(terms)
    facts = synthetic.facts(drawn)
    own = slice(place.rank * terms.batch_size, (place.rank + 1) * terms.batch_size)
    mine = [tuple(half[own] for half in batch) for batch in drawn] if place.count > 1 else drawn
    if terms.workers:
        images = CroppedImages(synthetic.ArrayImages(drawn), _uncropped)
        sampler = TrainingSampler(len(images), terms, place, trial.seed)
        return Dataset(terms, loading.loader(images, sampler, terms), loading.hold_batch(mine[0]), facts)
    fixed = [loading.hold_batch(batch) for batch in mine]
    return Dataset(terms, fixed, fixed[0], facts)


def _training(trial: TrialProcess, terms: Terms, loading: HostLoading, place: Place, part: Any) -> Dataset:
    images = CroppedImages(part, loading.crop(terms, trial.seed, training=True))
    sampler = TrainingSampler(len(part), terms, place, trial.seed)
    first = loading.hold_batch(images.batch(TrainingSampler(len(part), terms, place, trial.seed).at(0, 0)))
    return Dataset(terms, loading.loader(images, sampler, terms), first, {})


def _real(trial: TrialProcess, terms: Terms, loading: HostLoading, place: Place) -> Dataset:
    found = xrays.read_xrays(trial.data_folder, trial.asked["data"])
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
