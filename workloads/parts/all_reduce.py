"""How fast ranks sum one message over all of them, size by size: the most at which gradients can be shared.

A sample is as many calls one after the other as take about 10 ms; rank 0 says how many, and its clock counts.
The time of a call gives two bandwidths, as nccl-tests defines them (its doc/PERFORMANCE.md): the algorithm
bandwidth is the message's bytes over that time; the bus bandwidth is it times 2 (n - 1) / n on n ranks, which
is what each link carries and may be held against the hardware's, whatever n is.

The message is zeros, the only number that stays finite however often all ranks sum it. That the ranks' sum is
right is seen on other numbers beforehand.
"""

from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch
from torch import distributed

from parts.launcher import Place
from parts.timing.clock import stopwatch
from parts.trial import Failed

LARGEST_BYTES = {"cpu": 16 * 2**20, "cuda": 256 * 2**20}
SIZES = 9
"""Each half of the next: on a GPU from 1 MiB on, on a CPU from 64 KiB."""
WARM_UP_CALLS = 5
SAMPLES = 20
SAMPLE_SECONDS = 0.01
CHECKED_NUMBERS = 1024


@dataclass(frozen=True)
class SizeSamples:
    """The samples of one message size, each of so many calls."""

    message_bytes: int
    calls_per_sample: int
    sample_us: list[int]

    @property
    def bytes_per_second(self) -> float:
        """Algorithm bandwidth by the median sample."""
        return self.message_bytes * self.calls_per_sample / median(self.sample_us) * 1e6


def bus_factor(ranks: int) -> float:
    """Return bus bandwidth over algorithm bandwidth of an all-reduce (nccl-tests, doc/PERFORMANCE.md)."""
    return 2 * (ranks - 1) / ranks


def check(place: Place, device: torch.device) -> None:
    """Raise Failed where the ranks' sum of their numbers is another than it must be."""
    numbers = torch.full((CHECKED_NUMBERS,), place.rank + 1.0, device=device)
    distributed.all_reduce(numbers)
    right = place.count * (place.count + 1) / 2
    if not bool((numbers == right).all()):
        raise Failed("error", f"{place.count} ranks sum 1 to {place.count} to {numbers[0].item():g}")


def sweep(device: torch.device, largest_bytes: int) -> list[SizeSamples]:
    """Return all sizes, from the smallest on."""
    return [sample_size(largest_bytes // 2**halved, device) for halved in reversed(range(SIZES))]


def sample_size(message_bytes: int, device: torch.device) -> SizeSamples:
    """Return the samples of one size, after calls that are not counted."""
    values = message(message_bytes, device)
    seconds(values, WARM_UP_CALLS)
    once = seconds(values, WARM_UP_CALLS) / WARM_UP_CALLS
    calls = agree_on(max(1, round(SAMPLE_SECONDS / once)), device)
    return SizeSamples(
        message_bytes, calls, [max(1, round(seconds(values, calls) * 1e6)) for _ in range(SAMPLES)]
    )


def message(message_bytes: int, device: torch.device) -> torch.Tensor:
    """Return what is summed: fp32, as the gradients that DistributedDataParallel shares mostly are."""
    return torch.zeros(message_bytes // 4, device=device)


def seconds(values: torch.Tensor, calls: int) -> float:
    """Return seconds of so many calls one after the other."""
    with stopwatch(values.device) as taken:
        for _ in range(calls):
            distributed.all_reduce(values)
    return taken[0]


def fastest_size(sizes: list[SizeSamples], device: torch.device) -> SizeSamples:
    """Return the size of the highest bandwidth by rank 0's clock, which all ranks take."""
    rates = [size.bytes_per_second for size in sizes]
    return sizes[agree_on(rates.index(max(rates)), device)]


def agree_on(number: int, device: torch.device) -> int:
    """Return rank 0's number on every rank."""
    shared = torch.tensor([number], device=device)
    distributed.broadcast(shared, src=0)
    return int(shared[0])


def facts(sizes: list[SizeSamples]) -> dict[str, Any]:
    """Return the measurement's part: what summed, and the samples of each size."""
    if distributed.get_backend() == "gloo":
        backend, version = "gloo", None
    else:
        # torch calls both of them nccl.
        backend = "rccl" if torch.version.hip else "nccl"
        version = ".".join(map(str, torch.cuda.nccl.version()))
    return {
        "backend": backend,
        "backend_version": version,
        "sizes": [asdict(size) for size in sizes],
    }
