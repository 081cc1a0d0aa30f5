"""One path that a long plan will need, taken once: it works, or its failure says why it does not.

Protocol `smoke/1`: the model is the name of a check. A check that ends well leaves notes of what it found.
What this device or this environment lacks is refused as unsupported; all else that goes wrong is a failure.
`clock` lasts as long as the trial's limit, the others one step. No figure of it is worth comparing.
"""

from parts.trial import Failed, TrialProcess, main, reserved_share, why  # isort: skip  (its clock starts with this line)

import copy
import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn

from parts.device import choose, seed_everything
from parts.networks import recurrent
from parts.numerics import precision
from parts.timing.clock import Clock, stopwatch

STEPS = 10_000
"""More than a limit lets `clock` have."""
SIDES = {"cpu": 512, "cuda": 4096}
TIMED_PRODUCTS = 50
CLOCKS_APART = 0.05
FILLED_IN = (2**30, 2**26, 2**21)
"""Bytes of the blocks that fill a card's memory, one size after the other."""
COMPILERS = ("c++", "g++", "clang++")


@dataclass(frozen=True)
class Here:
    """Where a check runs, and what it is given."""

    trial: TrialProcess
    device: torch.device
    label: str
    clock: Clock
    output_dtypes: dict[str, int] = field(default_factory=dict)
    """What layers were seen to put out."""

    @property
    def side(self) -> int:
        """Return the side of a square product that keeps this device busy for a while."""
        return SIDES[self.device.type]

    def matrix(self) -> torch.Tensor:
        """A square one of random normals."""
        return torch.randn(self.side, self.side, device=self.device)


Notes = tuple[str, ...]
"""What a check that ended well has to tell."""


def run(trial: TrialProcess) -> dict[str, Any]:
    """One check; raises Failed, or what the framework raises, where the path is not there or broken."""
    trial.choose("protocol", trial.asked["protocol"], ("smoke/1",))
    trial.choose("data", trial.asked["data"], ("synthetic",))
    trial.options({})
    name = trial.variant["model"]
    check = trial.choose("model", name, CHECKS)
    label = trial.variant["precision"]
    with trial.phase("device"):
        device = choose(trial.asked["device"], trial.variant["gpus"])
        if device.type == "cpu" and name in OF_A_GPU:
            raise Failed("unsupported", "it is a GPU's")
        arithmetic = precision.prepare(label, device)
    seed_everything(trial.seed)

    steps = STEPS if name == "clock" else 1
    clock = Clock(trial, device, steps_per_epoch=steps, epochs=1)
    trial.stage("train")
    clock.start()
    clock.ready()
    here = Here(trial, device, label, clock)
    notes = check(here)
    if not clock.step_us:
        clock.step(torch.zeros((), device=device), 1)
    epoch = dict(clock.stop(), train_loss=None)
    trial.event("epoch", **epoch)

    trial.stage("collect")
    return {
        **clock.told([epoch]),
        "precision": dict(
            arithmetic, output_dtypes=here.output_dtypes, parameter_dtypes={}, method="one check"
        ),
        "data": {"name": "random normals", "source": "synthetic"},
        "sample_unit": "sample",
        "samples_per_step": 1,
        "notes": list(notes),
        "losses": [],
    }


def eager(here: Here) -> Notes:
    """A product, a convolution and a recurrent layer, forward and backward, in the label's arithmetic."""
    return arithmetic_of(here, lambda layer: layer, list(layers(here.device)))


def compiled(here: Here) -> Notes:
    """The same by torch.compile; on a CPU the product alone: its compiler takes its time."""
    if here.device.type == "cpu" and not any(map(shutil.which, COMPILERS)):
        raise Failed("unsupported", "there is no C++ compiler, which torch.compile needs on a CPU")
    chosen = list(layers(here.device))
    return arithmetic_of(here, torch.compile, chosen[:1] if here.device.type == "cpu" else chosen)


def arithmetic_of(
    here: Here, made: Callable[[nn.Module], Any], chosen: list[tuple[str, nn.Module, torch.Tensor]]
) -> Notes:
    """Each layer's output type and its error against float64, where the device has a kernel for it.

    Raises Failed where a type or an error is another arithmetic's, or where there is no kernel at all.
    """
    notes: list[str] = []
    numerics = precision.PRECISIONS[here.label]
    for name, layer, batch in chosen:
        exact = outputs(copy.deepcopy(layer).double(), batch.double()).detach().cpu()
        weights = precision.weight_type(here.label)
        layer, given = layer.to(weights), batch.to(weights).requires_grad_()
        try:
            with precision.autocast(here.label, here.device):
                result = outputs(made(layer), given)
            result.float().square().mean().backward()
        except RuntimeError as error:
            if not any(words in str(error) for words in precision.NO_KERNEL_WORDS):
                raise
            notes.append(f"no kernel for a {name}")
            continue
        error = ((result.detach().double().cpu() - exact).abs().max() / exact.abs().mean()).item()
        kind = str(result.dtype).removeprefix("torch.")
        reading = precision.reads_as(error, result.dtype)
        gradients = [weight.grad for weight in layer.parameters()]
        if result.dtype is not numerics.outputs:
            raise Failed("error", f"a {name} labelled {here.label} gives {kind}")
        if name != "recurrent layer" and reading not in numerics.arithmetic:
            raise Failed("error", f"a {name} labelled {here.label} reads as {reading} (error {error:.1e})")
        if not all(gradient is not None and bool(gradient.isfinite().all()) for gradient in gradients):
            raise Failed("not-finite", f"a {name}'s gradients are not finite")
        notes.append(f"{name} {kind}, error {error:.1e}")
        here.output_dtypes[kind] = here.output_dtypes.get(kind, 0) + 1
    if not here.output_dtypes:
        raise Failed("unsupported", f"this device has no kernel in {here.label}")
    return tuple(notes)


def layers(device: torch.device) -> Iterator[tuple[str, nn.Module, torch.Tensor]]:
    """A name, a layer and its input, in fp32; small, since some of a CPU's 16-bit kernels are slow."""
    yield "product", nn.Linear(512, 128, bias=False).to(device), torch.randn(128, 512, device=device)
    convolution = nn.Conv2d(64, 64, 3, bias=False).to(device)
    yield "convolution", convolution, torch.randn(4, 64, 14, 14, device=device)
    yield "recurrent layer", recurrent.LSTM(128, 128).to(device), torch.randn(2, 16, 128, device=device)


def outputs(layer: Any, batch: torch.Tensor) -> torch.Tensor:
    """What a layer puts out; a recurrent one begins with zeros."""
    if batch.dim() != 3:
        return layer(batch)
    state = batch.new_zeros(1, batch.shape[1], batch.shape[2])
    return layer(batch, (state, state))[0]


def clock(here: Here) -> Notes:
    """Products until the limit ends, as a load for the telemetry; on a GPU first its events against wall."""
    operands = here.matrix(), here.matrix()
    on_gpu = here.device.type == "cuda"
    notes = events_against_wall(*operands) if on_gpu else "the host's clock; a CPU has no events"
    here.clock.start()
    while not here.clock.over():
        here.clock.ready()
        here.clock.step(torch.mm(*operands)[0, 0], 1)
        if on_gpu and len(here.clock.step_us) % TIMED_PRODUCTS == 0:
            # The host runs ahead, and the limit's seconds are the host's.
            torch.cuda.synchronize(here.device)
    return (notes,)


def events_against_wall(left: torch.Tensor, right: torch.Tensor) -> str:
    """The time of some products by events and by a synchronised clock; raises Failed where they disagree."""
    torch.mm(left, right)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with stopwatch(left.device) as wall_seconds:
        begin.record()
        for _ in range(TIMED_PRODUCTS):
            torch.mm(left, right)
        end.record()
    event_seconds = begin.elapsed_time(end) / 1000
    apart = event_seconds / wall_seconds[0] - 1
    said = f"events tell {event_seconds:.4g} s of {wall_seconds[0]:.4g} s of wall time ({apart:+.1%})"
    if abs(apart) > CLOCKS_APART:
        raise Failed("error", said)
    return said


def memory_wall(here: Here) -> Notes:
    """Fills the card, then computes: what the libraries say there has to read as out of memory."""
    device = here.device
    small = list(layers(device))
    filled: list[torch.Tensor] = []
    notes = []
    for size in FILLED_IN:
        while (words := refusal(lambda: filled.append(torch.empty(size // 4, device=device)))) is None:  # noqa: B023
            pass
        notes.append(read_as_full("an allocation", words))
    notes.append(f"{reserved_share():.0%} of the card was reserved")
    for name, layer, batch in small:
        words = refusal(lambda: outputs(layer, batch).square().mean().backward())  # noqa: B023
        notes.append(read_as_full(f"a {name}", words) if words else f"a {name} still went through")
    filled.clear()
    torch.cuda.empty_cache()
    torch.mm(here.matrix(), here.matrix())
    torch.cuda.synchronize(device)
    return (*dict.fromkeys(notes), "the process computes again after that")


def refusal(work: Callable[[], object]) -> tuple[str, str] | None:
    """The record's word for what stops the work, and its message; None where nothing does."""
    try:
        work()
        torch.cuda.synchronize()
    except Exception as error:
        return why(error)
    return None


def read_as_full(what: str, words: tuple[str, str]) -> str:
    """How a refusal reads, as a note; raises Failed where it reads as anything but out of memory."""
    reason, message = words
    first = message.splitlines()[0][:160]
    if reason != "out-of-memory":
        raise Failed("error", f"near the memory wall {what} says '{first}', which reads as '{reason}'")
    return f"{what} says '{first}'"


def collectives(here: Here) -> Notes:
    """The devices' own library of collectives, alone with itself over the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    values = torch.ones(2**20, device=here.device)
    distributed.init_process_group(
        "nccl", init_method=f"tcp://127.0.0.1:{port}", rank=0, world_size=1, device_id=here.device
    )
    try:
        distributed.all_reduce(values)
        distributed.barrier()
    finally:
        distributed.destroy_process_group()
    name = "RCCL" if torch.version.hip else "NCCL"
    return (f"{name} {'.'.join(map(str, torch.cuda.nccl.version()))}, one process",)


def apex(here: Here) -> Notes:
    """Apex's FP16_Optimizer, and whether its extensions are built."""
    try:
        module = importlib.import_module("apex")
    except ModuleNotFoundError as error:
        if error.name != "apex":
            raise
        message = "Apex is not in this environment: fp16-master has our own master weights"
        raise Failed("unsupported", message) from error
    optimiser = importlib.import_module("apex.fp16_utils").FP16_Optimizer
    weight = nn.Parameter(torch.ones(8, device=here.device, dtype=torch.float16))
    wrapped = optimiser(torch.optim.SGD([weight], lr=0.1), static_loss_scale=1.0)
    wrapped.backward(weight.float().sum())
    wrapped.step()
    built = [name for name in ("apex_C", "amp_C") if importlib.util.find_spec(name)]
    extensions = f"extensions {' and '.join(built)}" if built else "no extensions"
    return (f"Apex {getattr(module, '__version__', '')} with {extensions}".replace("  ", " "),)


def tuning(here: Here) -> Notes:
    """cuDNN's or MIOpen's search for the fastest convolution, twice, and what it leaves in the cache."""
    torch.backends.cudnn.benchmark = True
    layer = nn.Conv2d(64, 128, 3, padding=1).to(here.device)
    batch = torch.randn(32, 64, 56, 56, device=here.device, requires_grad=True)
    seconds = []
    for _ in range(2):
        with stopwatch(here.device) as taken:
            layer(batch).square().mean().backward()
        seconds.extend(taken)
    cache = Path(os.environ.get("GPUDYNO_CACHE", ""))
    kept = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
    searched = (
        f"a convolution took {seconds[0]:.2f} s with the search and {seconds[1] * 1000:.1f} ms after it"
    )
    return (searched, f"the session's cache holds {kept / 1e6:.1f} MB") if kept else (searched,)


def folders(here: Here) -> Notes:
    """Writes where a trial may, runs a program from the temporary folder, and looks at the root."""
    temporary = tempfile.gettempdir()
    for folder in (here.trial.out_folder, os.environ.get("GPUDYNO_CACHE", ""), temporary):
        with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".gpudyno-") as file:
            file.write("whole")
            file.flush()
            os.fsync(file.fileno())
    with tempfile.TemporaryDirectory(dir=temporary) as folder:
        program = Path(folder) / "program"
        program.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
        program.chmod(0o700)
        try:
            subprocess.run([program], check=True)
        except PermissionError:
            raise Failed("error", "no program runs from the temporary folder: its disk is noexec") from None
    closed = os.statvfs("/").f_flag & os.ST_RDONLY
    return (
        f"user {os.getuid()} writes results and caches, and runs programs from its temporary folder",
        f"the root is {'read-only' if closed else 'writable'}",
    )


CHECKS: dict[str, Callable[[Here], Notes]] = {
    "eager": eager,
    "compiled": compiled,
    "clock": clock,
    "memory-wall": memory_wall,
    "collectives": collectives,
    "apex": apex,
    "tuning": tuning,
    "folders": folders,
}
OF_A_GPU = ("memory-wall", "collectives", "apex", "tuning")


if __name__ == "__main__":
    main(run)
