"""What the epochs of one trial say of its learning: when it had a target, its best, and its falls."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from harness.record import Epoch, Measurement

EARLY_EPOCHS = 10
"""The first epochs, over whose falls `early_fall` is a mean."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a trial had a target for the first time."""

    epochs: int
    seconds: float
    """The wall time of training and validation up to there, without setup."""


def learning_key(measured: Measurement) -> Hashable:
    """What runs that one seed made equal have in common; null where nothing of their learning is known."""
    qualities = tuple(epoch.quality for epoch in measured.epochs)
    return (measured.losses, qualities) if measured.losses and any(qualities) else None


def target_place(measured: Measurement, target: float) -> Reached | None:
    """The end of the first whole epoch that has the target; null where no epoch of the run had it.

    An accuracy or AUC is reached from below, a perplexity or loss from above. Nothing is read between two
    validations. Where each is of a part of its batches only, so is what was reached: see `validated_batches`.
    """
    seconds = 0.0
    for epoch in measured.epochs:
        seconds += epoch.train_seconds + (epoch.valid_seconds or 0.0)
        value = _validated_quality(epoch)
        if value is not None and (value >= target if more_is_better(measured) else value <= target):
            return Reached(epoch.index, seconds)
    return None


def best_quality(measured: Measurement) -> float | None:
    """The best of all validations of whole epochs."""
    values = [value for epoch in measured.epochs if (value := _validated_quality(epoch)) is not None]
    return (max if more_is_better(measured) else min)(values) if values else None


def early_fall(measured: Measurement) -> float | None:
    """The mean loss of quality from one of the first ten epochs to the next, a gain counted as 0.

    In the unit of the quality. Null where fewer epochs were trained, or one of them was not validated.
    """
    values = [_validated_quality(epoch) for epoch in measured.epochs[:EARLY_EPOCHS]]
    known = [value for value in values if value is not None]
    if len(known) < EARLY_EPOCHS:
        return None
    losses = (before - after for before, after in pairwise(known))
    return fmean(max(0.0, loss if more_is_better(measured) else -loss) for loss in losses)


def more_is_better(measured: Measurement) -> bool:
    """Whether more of its quality is better: of an accuracy or an AUC, and of no loss or perplexity."""
    return measured.quality_name in ("accuracy", "auc")


def _validated_quality(epoch: Epoch) -> float | None:
    """The quality after a whole epoch."""
    return epoch.quality if epoch.complete else None


def validated_batches(measured: Measurement) -> int | None:
    """The fewest batches that an epoch was validated on; null where it was all of the protocol's."""
    whole = measured.protocol.valid_batches
    parts = (epoch.valid_batches for epoch in measured.epochs if _validated_quality(epoch) is not None)
    return min((part for part in parts if part is not None and part < whole), default=None)
