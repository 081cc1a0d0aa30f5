"""What a measurement tells of MXNet, which computes on one CPU."""

from __future__ import annotations

from typing import Any

import mxnet as mx
import numpy as np

from parts.trial import versions

NO_CARD = "this MXNet has no build for a card of today"
WAITED = "each step waited for: MXNet's engine works behind the host on a CPU too"


def software() -> dict[str, str | None]:
    """Versions of what the trial computes with."""
    return dict(versions(), mxnet=mx.__version__, numpy=np.__version__)


def framework() -> dict[str, Any]:
    """The framework, as a measurement tells it."""
    return {
        "name": "MXNet, Gluon",
        "version": mx.__version__,
        "retired": True,
        "compiled": "Gluon, hybridised",
        "layout": "channels first",
        "loader": "none: NumPy arrays in host memory",
        "differs": [WAITED],
    }


def matmul(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """MXNet's product."""
    return mx.nd.dot(mx.nd.array(left), mx.nd.array(right)).asnumpy()


def convolution(images: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """MXNet's convolution, without padding."""
    shape = {"kernel": weights.shape[2:], "num_filter": len(weights), "no_bias": True}
    return mx.nd.Convolution(mx.nd.array(images), mx.nd.array(weights), **shape).asnumpy()
