"""A trial's measurement, put together in one place for all workloads and frameworks.

Python 3.7 syntax, and no framework.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from parts.timing.step_clock import StepClock


def make_measurement(
    clock: StepClock,
    epochs: Sequence[Mapping[str, Any]],
    series: Mapping[str, Any],
    *,
    device: Mapping[str, Any],
    versions: Mapping[str, str | None],
    precision: Mapping[str, Any],
    data: Mapping[str, Any],
    sample_unit: str,
    samples_per_step: int,
    structure: Mapping[str, int],
    valid_batches: int = 0,
    validated: int | None = None,
    quality_name: str | None = None,
    tested: Mapping[str, Any] | None = None,
    flops: Mapping[str, Any] | None = None,
    kernels: Mapping[str, Any] | None = None,
    framework: Mapping[str, Any] | None = None,
    parallel: str | None = None,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a measurement by the names of its record: what the clock has, and what the workload knows.

    `series` are the clock's, read before anything more runs that the peak of memory would count. A whole
    validation has `valid_batches`, of which `validated` were asked, or what the trial's limit leaves. `data`
    is what is known of the data set beside its source. `tested` is what came of the test split.
    """
    trial = clock.trial
    asked = trial.valid_batches(valid_batches) if validated is None else validated
    return {
        "device": device,
        "versions": versions,
        "precision": precision,
        "data": {"source": trial.asked["data"], **clock.batches(), **data},
        "protocol": clock.protocol(epochs, valid_batches, asked),
        "sample_unit": sample_unit,
        "samples_per_step": samples_per_step,
        "epochs": epochs,
        "quality_name": quality_name,
        "flops": flops or {},
        "structure": structure,
        "parallel": parallel,
        "notes": notes,
        "kernels": kernels,
        "framework": framework,
        **(tested or {}),
        **series,
    }
