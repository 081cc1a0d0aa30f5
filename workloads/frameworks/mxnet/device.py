"""The one CPU that this MXNet computes on: refused others, and what a measurement tells of it."""

from __future__ import annotations

import os
from typing import Any

import mxnet as mx
import numpy as np

from parts import source
from parts.numerics import arithmetic
from parts.trial import Failed, Trial, processor_name, versions

WAITED = "each step waited for: MXNet's engine works behind the host on a CPU too"


def refuse_others(trial: Trial) -> None:
    """Raises Failed for anything but one CPU in fp32."""
    if trial.asked["device"] != "cpu" or trial.variant["gpus"] != 1:
        raise Failed("no-device", "this MXNet has no build for a card of today; it runs on one CPU")
    trial.choose("precision", trial.variant["precision"], ("fp32-ieee",))


def precision(trial: Trial, output_types: dict[str, int], parameters: int) -> dict[str, Any]:
    """Label, types and probes as a measurement has them."""
    return {
        "label": trial.variant["precision"],
        "output_dtypes": output_types,
        "parameter_dtypes": {"float32": parameters},
        "method": "none",
        "probes": arithmetic.probes({"matmul": matmul, "convolution": convolution}),
    }


def facts() -> dict[str, Any]:
    """The processor, with the threads that MXNet takes."""
    threads = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
    return {"kind": "cpu", "name": processor_name(), "threads": threads}


def software() -> dict[str, str | None]:
    """Versions of what the trial computes with."""
    return dict(versions(), mxnet=mx.__version__, numpy=np.__version__)


def framework(workload_file: str, layout: str | None, *, waited: bool = True) -> dict[str, Any]:
    """The framework, as a measurement tells it; `layout` is of images, `waited` says of each step."""
    return {
        "name": "MXNet, Gluon",
        "version": mx.__version__,
        "retired": True,
        "compiled": "Gluon, hybridised",
        "layout": layout,
        "loader": "none: NumPy arrays in host memory",
        "lines": source.lines(workload_file, "mxnet"),
        "differs": [WAITED] if waited else [],
    }


def matmul(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """MXNet's product."""
    return mx.nd.dot(mx.nd.array(left), mx.nd.array(right)).asnumpy()


def convolution(images: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """MXNet's convolution, without padding."""
    shape = {"kernel": weights.shape[2:], "num_filter": len(weights), "no_bias": True}
    return mx.nd.Convolution(mx.nd.array(images), mx.nd.array(weights), **shape).asnumpy()
