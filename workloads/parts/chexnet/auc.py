"""The area under the ROC curve: how often an image that has a label is scored above one that has not.

It is U ÷ (positives × negatives), where U is the Mann-Whitney statistic by ranks, ties at their mean rank
(Hanley and McNeil, "The meaning and use of the area under a receiver operating characteristic curve",
Radiology 143:29-36, 1982). The study took scikit-learn's, which is the same number; not every image has it.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import numpy as np


def auc(labels: np.ndarray, scores: np.ndarray) -> float | None:
    """Of one label, 0 or 1 for each image; None where all images have it, or none has."""
    positive = labels > 0.5
    positives, negatives = int(positive.sum()), int((~positive).sum())
    if not positives or not negatives:
        return None
    above = _mean_ranks(scores)[positive].sum() - positives * (positives + 1) / 2
    return float(above / (positives * negatives))


def of_each(labels: np.ndarray, scores: np.ndarray) -> list[float | None]:
    """Of each column of (images, labels)."""
    return [auc(labels[:, place], scores[:, place]) for place in range(labels.shape[1])]


def mean(found: list[float | None]) -> float | None:
    """Over all labels; None where one of them has none."""
    known = [value for value in found if value is not None]
    return sum(known) / len(known) if known and len(known) == len(found) else None


def _mean_ranks(scores: np.ndarray) -> np.ndarray:
    """From 1, equal scores at the mean of their ranks."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place.reshape(-1)]
