"""What frameworks tell that compute on one CPU in fp32 alone: refusals, label, processor."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from parts.numerics import arithmetic
from parts.trial import Failed, TrialProcess, processor_name


def refuse_others(trial: TrialProcess, because: str) -> None:
    """Raises Failed, saying why, for anything but one CPU in fp32."""
    if trial.asked["device"] != "cpu" or trial.variant["gpus"] != 1:
        raise Failed("no-device", f"{because}; it runs on one CPU")
    trial.choose("precision", trial.variant["precision"], ("fp32-ieee",))


def precision(
    trial: TrialProcess,
    output_types: dict[str, int],
    parameters: int,
    matmul: Callable[[Any, Any], Any],
    convolution: Callable[[Any, Any], Any],
) -> dict[str, Any]:
    """Label, types and probes as a measurement has them; the two operations take and give NumPy arrays."""
    return {
        "label": trial.variant["precision"],
        "output_dtypes": output_types,
        "parameter_dtypes": {"float32": parameters},
        "method": "none",
        "probes": arithmetic.probes({"matmul": matmul, "convolution": convolution}),
    }


def facts() -> dict[str, Any]:
    """The processor, with the threads that a framework takes."""
    threads = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
    return {"kind": "cpu", "name": processor_name(), "threads": threads}
