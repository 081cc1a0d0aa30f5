"""Chainer without its warning, the one CPU that it computes on, and what a measurement tells of it."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

# Chainer warns that it was not made for this NumPy's distutils, which it reads to look for a BLAS.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import chainer
    import chainer.functions as F  # noqa: N812
    import chainer.links as L  # noqa: N812

from parts import source
from parts.numerics import arithmetic
from parts.trial import Failed, Trial, processor_name, versions

__all__ = ["F", "L", "chainer"]


def refuse_others(trial: Trial) -> None:
    """Raises Failed for anything but one CPU in fp32."""
    if trial.asked["device"] != "cpu" or trial.variant["gpus"] != 1:
        raise Failed("no-device", "this Chainer has no CuPy for a card of today; it runs on one CPU")
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
    """The processor, with the threads that Chainer takes."""
    threads = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
    return {"kind": "cpu", "name": processor_name(), "threads": threads}


def software() -> dict[str, str | None]:
    """Versions of what the trial computes with."""
    return dict(versions(), chainer=chainer.__version__, numpy=np.__version__)


def framework(workload_file: str, differs: list[str]) -> dict[str, Any]:
    """The framework, as a measurement tells it."""
    return {
        "name": "Chainer",
        "version": chainer.__version__,
        "retired": True,
        "layout": "channels first",
        "loader": "none: NumPy arrays in host memory",
        "lines": source.lines(workload_file, "chainer"),
        "differs": differs,
    }


def matmul(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Chainer's product."""
    return F.matmul(left, right).array


def convolution(images: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Chainer's convolution, without padding."""
    return F.convolution_2d(images, weights).array
