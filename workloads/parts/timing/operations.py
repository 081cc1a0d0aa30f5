"""Products and copies that a device is timed by, of random normals: on zeros a card spends less power."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import cycle, pairwise
from statistics import median
from typing import Any

import torch

from parts.device import facts, free_bytes, software
from parts.timing.clock import Clock, DeviceSteps, stopwatch
from parts.timing.measurement import make_measurement
from parts.trial import Failed, TrialProcess

PAIRS = 4
"""Operands in turn, so that none stays in a cache."""
STEP_SECONDS = 0.01
"""A step is as many operations as take about this long, so that marking it costs nothing."""
STEPS = 100
"""The fewest steps of a measurement."""
FEWEST_SAMPLES = 5
SWEEP_SECONDS = 0.15
LONGEST_SECONDS = 0.25
MEMORY_SHARE = 0.5
COPY_BYTES = {"cpu": 256 * 2**20, "cuda": 2**30}
"""The size of a block that is copied within the device's memory, and that no cache holds."""
HOST_BYTES = 256 * 2**20
EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e4m3fnuz)

ProductShape = tuple[int, int, int]


@dataclass(frozen=True)
class TimedOperation:
    """One operation, done again and again; `amount` is how much it is, in operations or bytes."""

    call: Callable[[], torch.Tensor]
    amount: float
    structure: dict[str, int]
    dtype: torch.dtype


def product(shape: ProductShape, device: torch.device, dtype: torch.dtype) -> TimedOperation:
    """Return x @ w.T as in a linear layer, of four pairs of random normals in turn; 8 bits give bf16."""
    m, n, k = shape
    pairs = [
        (torch.randn(m, k, device=device).to(dtype), torch.randn(n, k, device=device).to(dtype))
        for _ in range(PAIRS)
    ]
    in_turn = cycle(pairs)
    multiply = multiplication(device, dtype)
    return TimedOperation(lambda: multiply(*next(in_turn)), 2.0 * m * n * k, {"m": m, "n": n, "k": k}, dtype)


def multiplication(
    device: torch.device, dtype: torch.dtype
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return a function that multiplies a matrix by another's transpose, into the last result's memory."""
    if dtype.itemsize > 1:
        results: dict[tuple[int, int], torch.Tensor] = {}

        def plain(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
            shape = (len(left), len(right))
            if shape not in results:
                results[shape] = torch.empty(*shape, device=device, dtype=dtype)
            return torch.mm(left, right.t(), out=results[shape])

        return plain
    one = torch.ones((), device=device)

    def scaled(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return torch._scaled_mm(
            left, right.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
        )

    return scaled


def eight_bits(device: torch.device, types: Iterable[torch.dtype] = EIGHT_BITS) -> torch.dtype:
    """Return the first type that the device multiplies; raises Failed where card or torch has none."""
    reason = ""
    for dtype in types:
        small = torch.ones(32, 32, device=device).to(dtype)
        try:
            multiplication(device, dtype)(small, small).sum().item()
        except (RuntimeError, AttributeError, NotImplementedError, ValueError) as error:
            reason = reason or str(error).partition("\n")[0]
        else:
            return dtype
    raise Failed("unsupported", f"no scaled product in 8 bits here ({reason})")


def copies(device: torch.device, size: int) -> TimedOperation:
    """Copy of `size` bytes within the device's memory; amount counts reading and writing."""
    sources = [torch.randn(size // 4, device=device) for _ in range(PAIRS)]
    target = torch.empty_like(sources[0])
    in_turn = cycle(sources)
    return TimedOperation(
        lambda: target.copy_(next(in_turn)), 2.0 * 4 * (size // 4), {"copy_bytes": size}, torch.float32
    )


def time_calls(operation: TimedOperation, times: int, device: torch.device) -> float:
    """Return seconds of one operation, the mean of `times`."""
    with stopwatch(device) as seconds:
        for _ in range(times):
            operation.call()
    return seconds[0] / times


def link_copies(device: torch.device, size: int, *, back: bool) -> TimedOperation:
    """Copy from the host's pinned memory to a GPU's, or `back`."""
    host, there = torch.randn(size // 4).pin_memory(), torch.randn(size // 4, device=device)
    source, target = (there, host) if back else (host, there)
    return TimedOperation(
        lambda: target.copy_(source, non_blocking=True),
        4.0 * (size // 4),
        {"copy_bytes": size},
        torch.float32,
    )


def fastest_product(
    shapes: Iterable[ProductShape], device: torch.device, dtype: torch.dtype
) -> TimedOperation:
    """Return the product of the shape that reaches the most operations a second, each being tried briefly."""
    best: tuple[float, ProductShape] | None = None
    rate = 0.0
    for shape in shapes:
        operations = 2.0 * shape[0] * shape[1] * shape[2]
        if not fits(shape, device, dtype) or (rate and operations / rate > LONGEST_SECONDS):
            continue
        operation = product(shape, device, dtype)
        once = time_calls(operation, 1, device)
        rate = operations / time_calls(operation, max(3, round(SWEEP_SECONDS / once)), device)
        if best is None or rate > best[0]:
            best = rate, shape
        del operation
    if best is None:
        raise Failed("out-of-memory", "the smallest product does not fit into the device's memory")
    return product(best[1], device, dtype)


def fits(shape: ProductShape, device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether four pairs of operands and a result leave half of a GPU's memory free."""
    if device.type != "cuda":
        return True
    m, n, k = shape
    values = PAIRS * (m * k + n * k) + m * n
    return bool(values * dtype.itemsize < MEMORY_SHARE * free_bytes(device))


def calls_per_step(operation: TimedOperation, warm_up: int, device: torch.device) -> int:
    """Return how many calls take about as long as a step is to, by so many of them."""
    return max(1, round(STEP_SECONDS / time_calls(operation, warm_up, device)))


def settled_rate(operation: TimedOperation, seconds: float, device: torch.device) -> float:
    """Return operations or bytes a second, by the device's clock where it has one, of about so many seconds.

    The median sample of their later half counts: a card's clock settles in the first.
    """
    calls = calls_per_step(operation, 3, device)
    count = max(FEWEST_SAMPLES, round(seconds / (calls * time_calls(operation, calls, device))))
    marks, ends = (DeviceSteps() if device.type == "cuda" else None), []
    with stopwatch(device):
        if marks:
            marks.start()
        ends.append(time.perf_counter_ns())
        for _ in range(count):
            for _ in range(calls):
                operation.call()
            if marks:
                marks.end()
            ends.append(time.perf_counter_ns())
    samples_us = marks.read_ends() if marks else [(end - begin) // 1000 for begin, end in pairwise(ends)]
    return operation.amount * calls / max(1, median(samples_us[count // 2 :])) * 1e6


def protocol_steps(trial: TrialProcess) -> int:
    """Return the steps of the protocol, or as many as are to fill the limit's seconds."""
    return max(STEPS, round((trial.limit.get("seconds") or 0.0) / STEP_SECONDS))


def measure_operation(
    clock: Clock,
    operation: TimedOperation,
    calls: int,
    arithmetic: dict[str, Any],
    over: Callable[[], object] | None = None,
    **known: Any,
) -> tuple[dict[str, Any], float]:
    """Return a measurement of steps of so many calls, and the window's rate: operations or bytes a second.

    `over` is for ranks, which have to agree, and `known` for what is otherwise than of random normals; a
    sample is a call unless its unit is a byte.
    """
    samples = round(operation.amount) * calls if known.get("sample_unit") == "byte" else calls

    def step(number: int) -> None:
        clock.ready()
        for _ in range(calls):
            result = operation.call()
        # One value of the last result, so that the clock sees whether it is finite.
        clock.step(result.flatten()[0], samples)

    steps = range(clock.steps_per_epoch)
    with torch.no_grad():
        epochs = clock.run(lambda: steps, step, over, lambda epoch: epoch.update(train_loss=None))
    clock.trial.stage("collect")
    product, dtype = "k" in operation.structure, operation.dtype
    parts = {
        "device": facts(clock.trial.asked["device"], clock.device),
        "versions": software(),
        "precision": dict(
            arithmetic,
            output_dtypes={str(dtype).removeprefix("torch."): 1} if product else {},
            parameter_dtypes={},
            method="none" if dtype is torch.float32 else f"all operands in {dtype}",
        ),
        "data": {"name": "random normals", "distinct_batches": PAIRS},
        "sample_unit": "sample",
        "samples_per_step": samples,
        "structure": operation.structure,
        "flops": {"per_sample": operation.amount, "method": "2 m n k"} if product else {},
    }
    measured = make_measurement(clock, epochs, dict(clock.series(), losses=[]), **{**parts, **known})
    calls_done = len(clock.step_us) * calls
    return measured, operation.amount * calls_done / measured["window"]["seconds"]
