"""A fake CUDA over the CPU build of torch: device "cuda" is the CPU, events are clocks, memory is made up.

So each workload's branch for a GPU runs to a whole measurement without one. Its figures mean nothing, and it
cannot show kernels, cuDNN, NCCL, torch.compile, or that anything runs beside the host. Its cards are those
that CUDA_VISIBLE_DEVICES names.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

CARDS = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")
CAPABILITY = (9, 0)
MEMORY_BYTES = 80 * 2**30
RECURRENT = ("lstm", "gru")
LAYERS = (*RECURRENT, "conv2d", "linear", "matmul")
LIMIT = "FAKE_CUDA_LARGEST_BYTES"
"""The variable with the most bytes that a convolution in training takes in: beyond it the memory is full."""


class Event:
    """A moment of the host's clock; torch's own refusals are kept."""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self.enable_timing, self.at = enable_timing, 0.0

    def record(self, stream: Any = None) -> None:
        self.at = time.perf_counter()

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: Event) -> float:
        if not (self.enable_timing and end.enable_timing):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.at and end.at):
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end.at - self.at) * 1000


class Cards:
    """Which card is the current one, and what each answers."""

    current = 0

    def number(self, device: Any = None) -> int:
        """The card that is meant; raises RuntimeError as CUDA does for one that is not there."""
        import torch

        if device is None:
            return self.current
        if not isinstance(device, int):
            index = torch.device(device).index
            device = self.current if index is None else index
        if device >= len(CARDS):
            raise RuntimeError(f"CUDA error: invalid device ordinal ({device} of {len(CARDS)})")
        return device

    def choose(self, device: Any) -> None:
        self.current = self.number(device)

    def properties(self, device: Any = None) -> SimpleNamespace:
        return SimpleNamespace(
            name="NVIDIA Fake Card",
            major=CAPABILITY[0],
            minor=CAPABILITY[1],
            total_memory=MEMORY_BYTES,
            multi_processor_count=1,
            warp_size=32,
            uuid=CARDS[self.number(device)].removeprefix("GPU-"),
            simulated=True,
        )


def install(torch: Any) -> None:
    """Makes torch's CUDA answer, and brings whatever is asked of it to the CPU."""
    cards = Cards()

    def nothing(*_: Any, **__: Any) -> None:
        pass

    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": nothing,
        "_lazy_init": nothing,
        "device_count": lambda: len(CARDS),
        "current_device": lambda: cards.current,
        "set_device": cards.choose,
        "get_device_name": lambda device=None: cards.properties(device).name,
        "get_device_properties": cards.properties,
        "get_device_capability": lambda device=None: CAPABILITY,
        "is_bf16_supported": lambda *_, **__: True,
        "synchronize": lambda device=None: cards.number(device) and None,
        "current_stream": lambda device=None: SimpleNamespace(synchronize=nothing),
        "max_memory_allocated": lambda device=None: 2**30 + cards.number(device),
        "max_memory_reserved": lambda device=None: 2**31 + cards.number(device),
        "mem_get_info": lambda device=None: (MEMORY_BYTES - 2**31, MEMORY_BYTES),
        "reset_peak_memory_stats": nothing,
        "empty_cache": nothing,
        "manual_seed": nothing,
        "manual_seed_all": nothing,
        "get_rng_state": lambda device=None: torch.ByteTensor([0]),
        "set_rng_state": nothing,
        "Event": Event,
        "IntTensor": lambda values: torch.tensor(values, dtype=torch.int32),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer if isinstance(answer, type) else _own(answer))
    torch.cuda.random.get_rng_state = torch.cuda.get_rng_state
    torch.cuda.random.set_rng_state = torch.cuda.set_rng_state
    torch.cuda.nccl.version = lambda: (2, 0, 0)
    torch.version.cuda = "0.0"
    _autocast_and_scaler(torch)
    _several_cards(torch)
    # What is traced runs as it is: a kernel for the host's processor would show no card's.
    torch.compile = functools.partial(torch.compile, backend="eager")
    # It stays for the whole process: whatever names a device passes through it.
    _mode(torch, cards).__enter__()


def _own(answer: Callable[..., Any]) -> Callable[..., Any]:
    """A function for one name alone: torch.compile's tables refuse one that stands under several."""
    return lambda *args, **more: answer(*args, **more)


def _mode(torch: Any, cards: Cards) -> Any:
    cpu = torch.device("cpu")
    stays = (torch.Tensor.cuda, torch.Tensor.pin_memory)

    def on_cpu(value: Any) -> Any:
        if isinstance(value, str) and value.partition(":")[0] == "cuda":
            value = torch.device(value)
        if isinstance(value, torch.device) and value.type == "cuda":
            cards.number(value)
            return cpu
        return value

    class ToCpu(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function is torch.device:
                # fastai names its default device by a number alone.
                args = ("cuda", *args) if args and isinstance(args[0], int) else args
                return function(*args, **(kwargs or {}))
            if function in stays:
                return args[0]
            kwargs = {name: on_cpu(value) for name, value in (kwargs or {}).items()}
            if function is torch.Tensor.type and len(args) == 1:
                return function(*args).replace("torch.", "torch.cuda.")
            args = tuple(map(on_cpu, args))
            name = getattr(function, "__name__", "")
            trained = name == "conv2d" and torch.is_grad_enabled()
            if trained and args[0].nbytes > int(os.environ.get(LIMIT, 2**60)):
                raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {args[0].nbytes} bytes.")
            if _lacks_a_kernel(torch, name, args):
                return _in_fp32(torch, function, args, kwargs)
            return function(*args, **kwargs)

    return ToCpu()


def _lacks_a_kernel(torch: Any, name: str, args: Any) -> bool:
    """Whether a processor may have none for this layer in fp16, by its input's type or by autocast's."""
    if torch.is_autocast_enabled("cpu"):
        return name in RECURRENT and torch.get_autocast_dtype("cpu") is torch.float16
    return name in LAYERS and getattr(args[0] if args else None, "dtype", None) is torch.float16


def _in_fp32(torch: Any, function: Any, args: Any, kwargs: Any) -> Any:
    """Computed in fp32 and rounded."""

    def wide(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.float() if value.dtype is torch.float16 else value
        return type(value)(map(wide, value)) if isinstance(value, list | tuple) else value

    with torch.autocast("cpu", enabled=False):
        result = function(*wide(args), **{name: wide(value) for name, value in kwargs.items()})
    return tuple(part.half() for part in result) if isinstance(result, tuple) else result.half()


def _autocast_and_scaler(torch: Any) -> None:
    class Autocast(torch.autocast):
        def __init__(self, device_type: str, dtype: Any = None, **more: Any) -> None:
            if device_type == "cuda":
                device_type, dtype = "cpu", dtype or torch.float16
            super().__init__(device_type, dtype=dtype, **more)

    class Scaler(torch.amp.GradScaler):
        def __init__(self, device: str = "cuda", **more: Any) -> None:
            super().__init__("cpu", **more)

    torch.autocast = torch.amp.autocast = torch.amp.autocast_mode.autocast = Autocast
    torch.amp.GradScaler = Scaler


def _several_cards(torch: Any) -> None:
    """Ranks meet over gloo in NCCL's name; DataParallel's replicas are the one module, in threads."""
    distributed, parallel = torch.distributed, torch.nn.parallel
    begin = distributed.init_process_group

    @functools.wraps(begin)
    def over_gloo(backend: Any = None, *args: Any, device_id: Any = None, **more: Any) -> None:
        begin("gloo", *args, **more)

    class Distributed(parallel.DistributedDataParallel):
        def __init__(self, module: Any, device_ids: Any = None, **more: Any) -> None:
            super().__init__(module, **more)

    distributed.init_process_group = over_gloo
    parallel.DistributedDataParallel = parallel.distributed.DistributedDataParallel = Distributed
    parallel.DataParallel = torch.nn.DataParallel = _data_parallel(torch)


def _data_parallel(torch: Any) -> type:
    class Parallel(torch.nn.Module):
        def __init__(self, module: Any, device_ids: Any = None) -> None:
            super().__init__()
            self.module, self.device_ids = module, device_ids

        def forward(self, inputs: Any) -> Any:
            with ThreadPoolExecutor(len(self.device_ids)) as threads:
                return torch.cat(tuple(threads.map(self.module, inputs.chunk(len(self.device_ids)))))

    return Parallel
