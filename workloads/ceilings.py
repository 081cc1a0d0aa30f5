"""The most that this device does, or several do together: what other trials are held against.

Protocol `ceiling/1` has three models. `gemm` times products x @ w.T of random normals in one precision:
shapes are swept briefly, squares and the shapes of transformer layers, and the fastest is then measured over
100 steps after 50 products of warm-up, or over as many as the limit's seconds hold. A card spends less power
on zeros and runs faster, so the operands are normals, four pairs in turn. `copy` times copies within the
device's memory, of blocks that no cache holds, reading and writing counted, and on a GPU copies from the
host, one way counted. `all-reduce` has a rank on each of several devices, or two processes and more on a CPU:
their sums of one message are timed size by size, and the fastest size is then measured as long, in steps
whose samples are its bytes (`parts/all_reduce.py`).

This is no upper bound of the hardware, but what the installed software reached on it in that time.
"""

from parts.trial import Failed, TrialProcess, main  # isort: skip  (its clock starts with this line)

from collections.abc import Iterator
from typing import Any

import torch
from torch import distributed

from parts import all_reduce, launcher, ranks
from parts.device import choose, choose_own, facts, seed_everything, software
from parts.launcher import Place
from parts.numerics import precision
from parts.timing import kernels
from parts.timing.clock import Clock
from parts.timing.measurement import make_measurement
from parts.timing.operations import (
    HOST_BYTES,
    ProductShape,
    calls_per_step,
    copies,
    fastest_product,
    link_copies,
    measure_operation,
    protocol_steps,
    run_steps,
    time_calls,
)

WARM_UP = 50
SIDES = (256, 512, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
LONG = 4
"""One side of a transformer's layers is this many times the others."""
COPY_BYTES = {"cpu": 256 * 2**20, "cuda": 2**30}
HOST_COPIES = 10
TYPES = {
    label: (numerics.arithmetic[0], numerics.weights)
    for label, numerics in precision.PRECISIONS.items()
    if numerics.plain
}
MODELS = ("gemm", "copy", "all-reduce")
OPTIONS: dict[str, Any] = {"largest": SIDES[-1], "copy_bytes": 0, "largest_message_bytes": 0}
"""`largest` is the side of a product; of the others 0 takes the default size of the kind of device."""


def run(trial: TrialProcess) -> dict[str, Any]:
    """Measure one ceiling in one precision, of one device or of the trial's ranks."""
    trial.choose("protocol", trial.asked["protocol"], ("ceiling/1",))
    trial.choose("data", trial.asked["data"], ("synthetic",))
    trial.choose("data mode", trial.variant["data_mode"], ("cached",))
    model = trial.choose("model", trial.variant["model"], MODELS)
    options = trial.options(OPTIONS)
    if model != "all-reduce":
        return measure_one_device(trial, model, options)
    gpus, place = trial.variant["gpus"], launcher.own_place()
    trial.choose("precision", trial.variant["precision"], ("fp32-ieee",))
    if gpus < 2:
        raise Failed("unsupported", "one device has nothing to sum; an all-reduce takes two or more")
    return ranks.launch_ranks(trial, None, gpus) if place is None else measure_rank(trial, place, options)


def measure_one_device(trial: TrialProcess, model: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the fastest product or copy."""
    label = trial.variant["precision"]
    type_name, dtype = trial.choose("precision", label, TYPES)
    with trial.phase("device"):
        device = choose(trial.asked["device"], trial.variant["gpus"])
        arithmetic = precision.prepare(label, device)
    seed_everything(trial.seed)
    ceilings: dict[str, float] = {}
    with trial.phase("sweep"), torch.no_grad():
        if model == "gemm":
            operation = fastest_product(shapes(options["largest"]), device, dtype)
        else:
            operation = copies(device, options["copy_bytes"] or COPY_BYTES[device.type])
            ceilings.update(host_copies(device))
    with trial.phase("first_step"), torch.no_grad():
        operations_per_step = calls_per_step(operation, WARM_UP, device)

    clock = Clock(trial, device, steps_per_epoch=protocol_steps(trial), epochs=1)
    trial.stage("train")
    measured, rate = measure_operation(clock, operation, operations_per_step, arithmetic)

    @torch.no_grad()
    def again() -> None:
        for _ in range(operations_per_step):
            operation.call()

    if model == "gemm":
        ceilings[f"gemm_{type_name}_tflops"] = rate / 1e12
    else:
        ceilings["copy_gb_per_second"] = rate / 1e9
    return {**measured, "ceilings": ceilings, "kernels": kernels.kernel_time(again, device)}


def measure_rank(trial: TrialProcess, place: Place, options: dict[str, Any]) -> dict[str, Any]:
    """Return the fastest all-reduce, as this rank of several has measured it."""
    with trial.phase("device"):
        device = choose_own(trial.asked["device"], place.local)
        arithmetic = precision.prepare(trial.variant["precision"], device)
    seed_everything(trial.seed)
    with ranks.process_group(place, device, gradients=True), torch.no_grad():
        with trial.phase("first_step"):
            all_reduce.check(place, device)
        with trial.phase("sweep"):
            largest_bytes = options["largest_message_bytes"] or all_reduce.LARGEST_BYTES[device.type]
            sizes = all_reduce.sweep(device, largest_bytes)
        fastest = all_reduce.fastest_size(sizes, device)
        message = all_reduce.message(fastest.message_bytes, device)
        all_reduce.seconds(message, all_reduce.WARM_UP_CALLS)

        def call() -> torch.Tensor:
            distributed.all_reduce(message)
            return message

        clock = Clock(trial, device, steps_per_epoch=protocol_steps(trial), epochs=1)
        over = ranks.SharedEnd(clock, place).limit_reached
        trial.stage("train")
        distributed.barrier()
        bytes_per_step = fastest.calls_per_sample * fastest.message_bytes
        epochs = run_steps(clock, call, fastest.calls_per_sample, bytes_per_step, over)
        trial.stage("collect")
        found = all_reduce.facts(sizes)
    series = clock.series()
    gb_per_second = series["window"]["samples"] / series["window"]["seconds"] / 1e9
    measured = make_measurement(
        clock,
        epochs,
        dict(series, losses=[]),
        device=facts(trial.asked["device"], device),
        versions=software(),
        precision=dict(arithmetic, output_dtypes={}, parameter_dtypes={}, method="none"),
        data={"name": "zeros"},
        sample_unit="byte",
        samples_per_step=bytes_per_step,
        structure={"message_bytes": fastest.message_bytes},
        ranks=ranks.rank_entries(place, place.count, clock),
    )
    ceilings = {
        "all_reduce_algorithm_gb_per_second": gb_per_second,
        "all_reduce_bus_gb_per_second": gb_per_second * all_reduce.bus_factor(place.count),
    }
    return dict(measured, ceilings=ceilings, all_reduce=found)


def shapes(largest: int) -> Iterator[ProductShape]:
    """Yield (m, n, k): squares from small to large, and those with one long side."""
    for side in SIDES:
        if side <= largest:
            yield side, side, side
        if side >= 1024 and LONG * side <= largest:
            yield from ((LONG * side, side, side), (side, LONG * side, side), (side, side, LONG * side))


def host_copies(device: torch.device) -> dict[str, float]:
    """Return GB/s from the host to a GPU, from pageable and from pinned memory; nothing on a CPU."""
    rates = {}
    for name in ("pageable", "pinned") if device.type == "cuda" else ():
        operation = link_copies(device, HOST_BYTES, pinned=name == "pinned")
        time_calls(operation, 1, device)
        rate = operation.amount / time_calls(operation, HOST_COPIES, device)
        rates[f"host_to_device_{name}_gb_per_second"] = rate / 1e9
    return rates


if __name__ == "__main__":
    launcher.settle()
    main(run)
