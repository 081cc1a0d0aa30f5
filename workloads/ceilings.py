"""The most that this device does, or several do together: what other trials are held against.

Protocol `ceiling/1` has three models. `gemm` times products x @ w.T of random normals in one precision:
shapes are swept briefly, squares and the shapes of transformer layers, and the fastest is then measured over
100 steps after 50 products of warm-up, or over as many as the limit's seconds hold. A card spends less power
on zeros and runs faster, so the operands are normals, four pairs in turn. `copy` times copies within the
device's memory, of blocks that no cache holds, reading and writing counted. `all-reduce` has a rank on each
of several devices, or two processes and more on a CPU: their sums of one message are timed size by size, and
the fastest size is then measured as long, in steps whose samples are its bytes.

Of each size a sample is as many calls one after the other as take about 10 ms; rank 0 says how many, and its
clock counts. The time of a call gives two bandwidths, as nccl-tests defines them (its doc/PERFORMANCE.md):
the algorithm bandwidth is the message's bytes over that time; the bus bandwidth is it times 2 (n - 1) / n on
n ranks, which is what each link carries and may be held against the hardware's, whatever n is. The message is
zeros, the only number that stays finite however often all ranks sum it; that the ranks' sum is right is seen
on other numbers beforehand.

This is no upper bound of the hardware, but what the installed software reached on it in that time.
"""

from parts.trial import Failed, TrialProcess, main  # isort: skip  (its clock starts with this line)

from collections.abc import Iterator
from statistics import median
from typing import Any

import torch
from torch import distributed

from parts import launcher, ranks
from parts.device import choose, choose_own, seed_everything
from parts.launcher import Place
from parts.numerics import precision
from parts.timing.clock import Clock
from parts.timing.operations import (
    COPY_BYTES,
    STEP_SECONDS,
    ProductShape,
    TimedOperation,
    calls_per_step,
    copies,
    fastest_product,
    measure_operation,
    protocol_steps,
    time_calls,
)

WARM_UP = 50
SIDES = (256, 512, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
LONG = 4
"""One side of a transformer's layers is this many times the others."""
LARGEST_MESSAGE_BYTES = {"cpu": 16 * 2**20, "cuda": 256 * 2**20}
MESSAGE_SIZES = 9
"""Each half of the next: on a GPU from 1 MiB on, on a CPU from 64 KiB."""
WARM_UP_CALLS = 5
SAMPLES = 20
CHECKED_NUMBERS = 1024
PLAIN = {label: numerics for label, numerics in precision.PRECISIONS.items() if numerics.plain}
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
    numerics = trial.choose("precision", label, PLAIN)
    with trial.phase("device"):
        device = choose(trial.asked["device"], trial.variant["gpus"])
        arithmetic = precision.prepare(label, device)
    seed_everything(trial.seed)
    with trial.phase("sweep"), torch.no_grad():
        if model == "gemm":
            operation = fastest_product(shapes(options["largest"]), device, numerics.weights)
        else:
            operation = copies(device, options["copy_bytes"] or COPY_BYTES[device.type])
    with trial.phase("first_step"), torch.no_grad():
        operations_per_step = calls_per_step(operation, WARM_UP, device)

    clock = Clock(trial, device, steps_per_epoch=protocol_steps(trial), epochs=1)
    trial.stage("train")
    measured, rate = measure_operation(clock, operation, operations_per_step, arithmetic)
    if model == "gemm":
        return {**measured, "ceilings": {f"gemm_{numerics.arithmetic[0]}_tflops": rate / 1e12}}
    return {**measured, "ceilings": {"copy_gb_per_second": rate / 1e9}}


def measure_rank(trial: TrialProcess, place: Place, options: dict[str, Any]) -> dict[str, Any]:
    """Return the fastest all-reduce, as this rank of several has measured it."""
    with trial.phase("device"):
        device = choose_own(trial.asked["device"], place.local)
        arithmetic = precision.prepare(trial.variant["precision"], device)
    seed_everything(trial.seed)
    with ranks.process_group(place, device, gradients=True), torch.no_grad():
        with trial.phase("first_step"):
            check_sums(place, device)
        with trial.phase("sweep"):
            largest_bytes = options["largest_message_bytes"] or LARGEST_MESSAGE_BYTES[device.type]
            halvings = reversed(range(MESSAGE_SIZES))
            sizes = [sample_size(largest_bytes // 2**halved, device) for halved in halvings]
        rates = [one["message_bytes"] * one["calls_per_sample"] / median(one["sample_us"]) for one in sizes]
        # By rank 0's clock, which all ranks take.
        fastest = sizes[agree_on(rates.index(max(rates)), device)]
        operation = message_sum(fastest["message_bytes"], device)
        time_calls(operation, WARM_UP_CALLS, device)
        clock = Clock(trial, device, steps_per_epoch=protocol_steps(trial), epochs=1)
        over = ranks.SharedEnd(clock, place).limit_reached
        trial.stage("train")
        distributed.barrier()
        known = {"data": {"name": "zeros"}, "sample_unit": "byte"}
        calls = fastest["calls_per_sample"]
        measured, rate = measure_operation(clock, operation, calls, arithmetic, over, **known)
        found = {**backend(), "sizes": sizes}
    ceilings = {
        "all_reduce_algorithm_gb_per_second": rate / 1e9,
        # nccl-tests, doc/PERFORMANCE.md.
        "all_reduce_bus_gb_per_second": rate / 1e9 * 2 * (place.count - 1) / place.count,
    }
    return dict(measured, ceilings=ceilings, all_reduce=found)


def check_sums(place: Place, device: torch.device) -> None:
    """Raise Failed where the ranks' sum of their numbers is another than it must be."""
    numbers = torch.full((CHECKED_NUMBERS,), place.rank + 1.0, device=device)
    distributed.all_reduce(numbers)
    right = place.count * (place.count + 1) / 2
    if not bool((numbers == right).all()):
        raise Failed("error", f"{place.count} ranks sum 1 to {place.count} to {numbers[0].item():g}")


def message_sum(message_bytes: int, device: torch.device) -> TimedOperation:
    """Return the sum of one message in fp32, as the gradients that DistributedDataParallel shares mostly
    are."""
    message = torch.zeros(message_bytes // 4, device=device)

    def call() -> torch.Tensor:
        distributed.all_reduce(message)
        return message

    return TimedOperation(call, message_bytes, {"message_bytes": message_bytes}, torch.float32)


def sample_size(message_bytes: int, device: torch.device) -> dict[str, Any]:
    """Return the samples of one size as a record has them, after calls that are not counted."""
    operation = message_sum(message_bytes, device)
    time_calls(operation, WARM_UP_CALLS, device)
    calls = agree_on(round(STEP_SECONDS / time_calls(operation, WARM_UP_CALLS, device)) or 1, device)
    seconds = [calls * time_calls(operation, calls, device) for _ in range(SAMPLES)]
    samples_us = [max(1, round(each * 1e6)) for each in seconds]
    return {"message_bytes": message_bytes, "calls_per_sample": calls, "sample_us": samples_us}


def agree_on(number: int, device: torch.device) -> int:
    """Return rank 0's number on every rank."""
    shared = torch.tensor([number], device=device)
    distributed.broadcast(shared, src=0)
    return int(shared[0])


def backend() -> dict[str, str | None]:
    """Return what sums, and its version where it has one; torch calls RCCL nccl, too."""
    if distributed.get_backend() == "gloo":
        return {"backend": "gloo", "backend_version": None}
    version = ".".join(map(str, torch.cuda.nccl.version()))
    return {"backend": "rccl" if torch.version.hip else "nccl", "backend_version": version}


def shapes(largest: int) -> Iterator[ProductShape]:
    """Yield (m, n, k): squares from small to large, and those with one long side."""
    for side in SIDES:
        if side <= largest:
            yield side, side, side
        if side >= 1024 and LONG * side <= largest:
            yield from ((LONG * side, side, side), (side, LONG * side, side), (side, side, LONG * side))


if __name__ == "__main__":
    launcher.settle()
    main(run)
