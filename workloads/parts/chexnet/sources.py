"""What a trial in PyTorch trains and is tested on: arrays in memory, prepared X-rays, generated files."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils.data import default_collate

from parts.chexnet import data, files, loading, reader, xrays
from parts.chexnet.protocol import LOADING, Terms
from parts.chexnet.training import Evaluation, Trainer, of_arrays
from parts.launcher import Place
from parts.trial import TrialProcess

FILES = 64
"""Generated ones, that come round; they lie in the page cache, so that no disk is measured."""


@dataclass(frozen=True)
class Given(reader.Given):
    """As everywhere, and what keeps its files."""

    folder: Any = None
    """Of generated files, which go when this does."""


def given(
    trial: TrialProcess, terms: Terms, place: Place, trainer: Trainer | None = None, *, pinned: bool
) -> Given:
    """Raises Failed where the prepared X-rays are not there or not whole; loading alone has no trainer."""
    if terms.data == "real":
        return _real(trial, terms, place, trainer, pinned)
    if terms.data == "files":
        folder = tempfile.TemporaryDirectory(prefix="gpudyno-files-")
        part = files.generated(folder.name, FILES, terms.source_pixels, terms.loading["format"])
        found = _of_part(trial, terms, part, place, pinned)
        return replace(found, facts={"distinct_batches": None, "looked_at_batches": None}, folder=folder)
    drawn = data.batches(terms)
    facts = of_arrays(drawn)
    if terms.workers:
        arrays = loading.Arrays(drawn)
        order = loading.Drawn(len(arrays), terms, place, trial.seed)
        own = _own_part(drawn[:1], terms, place, pinned=False)
        return Given(terms, loading.loader(arrays, order, terms, pinned=pinned), own[0], facts)
    own = _own_part(drawn, terms, place, pinned=pinned)
    return Given(terms, own, own[0], facts)


def _real(trial: TrialProcess, terms: Terms, place: Place, trainer: Trainer | None, pinned: bool) -> Given:
    found = xrays.prepared(trial.data_folder, trial.asked["data"])
    parts = found.parts
    terms = replace(terms, train_images=len(parts["train"]))
    trained = _of_part(trial, terms, parts["train"], place, pinned)
    facts = {f"{name}_items": len(part) for name, part in parts.items()}
    if terms.protocol == LOADING:
        return replace(trained, facts=dict(facts, sha256=found.sha256))
    prepare = loading.preparation(terms, trial.seed, training=False)
    held = {}
    for name in ("valid", "test"):
        whole = -(-len(parts[name]) // terms.valid_batch_size)
        limit = trial.valid_batches(whole) if name == "valid" else whole
        first_alone = terms.loading["valid_devices"] == "first"
        order = loading.InOrder(
            len(parts[name]), terms.valid_batch_size, place, limit, first_alone=first_alone
        )
        batches = loading.loader(loading.Images(parts[name], prepare), order, terms, pinned=pinned)
        held[name] = Evaluation(trainer, batches, whole)
    return replace(trained, facts=dict(facts, sha256=found.sha256), labels=found.labels, **held)


def _of_part(
    trial: TrialProcess, terms: Terms, part: xrays.Part | files.Files, place: Place, pinned: bool
) -> Given:
    dataset = loading.Images(part, loading.preparation(terms, trial.seed, training=True))
    order = loading.Drawn(len(part), terms, place, trial.seed)
    size = terms.batch_size if place.count > 1 else terms.global_batch_size
    first = default_collate([dataset[item % len(part), 0, item] for item in range(size)])
    return Given(terms, loading.loader(dataset, order, terms, pinned=pinned), tuple(first), {})


def _own_part(drawn: list[data.Batch], terms: Terms, place: Place, *, pinned: bool) -> list[loading.Batch]:
    """This process's part of each global batch, as tensors that a copy need not wait for."""
    part = slice(None)
    if place.count > 1:
        part = slice(place.rank * terms.batch_size, (place.rank + 1) * terms.batch_size)
    tensors = [tuple(torch.from_numpy(half[part]) for half in batch) for batch in drawn]
    return [tuple(half.pin_memory() for half in batch) for batch in tensors] if pinned else tensors
