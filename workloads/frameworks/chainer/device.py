"""Chainer without its warning, and what a measurement tells of it; it computes on one CPU."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

# Chainer warns that it was not made for this NumPy's distutils, which it reads to look for a BLAS.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import chainer
    import chainer.functions as F  # noqa: N812
    import chainer.links as L  # noqa: N812

from parts.trial import versions

__all__ = ["F", "L", "chainer"]

NO_CARD = "this Chainer has no CuPy for a card of today"


def software() -> dict[str, str | None]:
    """Versions of what the trial computes with."""
    return dict(versions(), chainer=chainer.__version__, numpy=np.__version__)


def framework(differs: list[str]) -> dict[str, Any]:
    """The framework, as a measurement tells it."""
    return {
        "name": "Chainer",
        "version": chainer.__version__,
        "retired": True,
        "layout": "channels first",
        "differs": differs,
    }


def matmul(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Chainer's product."""
    return F.matmul(left, right).array


def convolution(images: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Chainer's convolution, without padding."""
    return F.convolution_2d(images, weights).array
