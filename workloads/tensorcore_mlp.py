"""Three linear layers of 4096 by 4096: what Tensor Cores give where nothing but matrix products is done.

Protocol `published/1` is tensorcore 2022 (a Tesla T4), which runs PyTorch's recipe of mixed precision as
it is: batch 512, 50 batches of random inputs and targets in the device's memory, three passes over them,
mean squared error, plain SGD of rate 1e-3, gradients set to zero and not freed. Nothing is warmed up: the
first product, which loads the libraries, is inside the seconds, so the arithmetic is probed after the window.
The window is closed after each pass, two synchronisations more than published.

Protocol `warmed/1` is the same work, warmed and long enough to mean something on any card: 100 epochs of
1,000 steps over the same 50 batches.

The peak of the allocator needs no clock: data 2 n b w, parameters and gradients 2 l (w² + w), one weight's
new gradient before it is added w² + w, and (l + 2) b w of activations, times four bytes (width w, batch b,
n batches, l layers). What cuBLAS keeps for itself comes on top: on Hopper 32 MiB for each of two threads.
"""

from parts.trial import TrialProcess, main  # isort: skip  (its clock starts with this line)

import gc
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from parts.numerics import precision
from parts.numerics.flops import of_step, value_bytes
from parts.numerics.update import Update
from parts.timing import kernels
from parts.timing.clock import Clock
from parts.training.setting import Setting, over_processes

TITLE = "Matrix products alone: an MLP of three equal layers"
ABOUT = "Three linear layers on random numbers, a recipe of mixed precision: tensorcore 2022."
BATCHES = 50
RATE = 1e-3
PUBLISHED_BATCH = 512
LAYERS = 3
OPTIONS: dict[str, Any] = {"width": 4096}
PROTOCOLS = {"published/1": (BATCHES, 3, False), "warmed/1": (20 * BATCHES, 100, True)}
"""Steps of an epoch, epochs, and whether a pass that is not measured comes first."""


def run(trial: TrialProcess) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    trial.choose("protocol", trial.asked["protocol"], PROTOCOLS)
    trial.choose("model", trial.variant["model"], ("mlp",))
    trial.choose("data mode", trial.variant["data_mode"], ("cached",))
    trial.choose("profile", trial.variant["profile"], ("default",))
    return over_processes(trial, measured, OPTIONS)


def measured(setting: Setting) -> dict[str, Any]:
    """The training of the study and what was measured of it."""
    trial, label, device, batch_size = setting.trial, setting.label, setting.device, setting.batch_size
    steps, epochs, warmed = PROTOCOLS[trial.asked["protocol"]]
    width = setting.options["width"]
    trial.stage("data")
    with trial.phase("data"):
        shape = (batch_size, width)
        inputs, targets = ([torch.randn(shape, device=device) for _ in range(BATCHES)] for _ in range(2))

    trial.stage("setup")
    with trial.phase("model"):
        model = network(width, LAYERS).to(device)
        update = Update(label, torch.optim.SGD(model.parameters(), lr=RATE), device)
        loss_of = nn.MSELoss()

    def forward(number: int) -> torch.Tensor:
        with precision.autocast(label, device):
            return loss_of(model(inputs[number]), targets[number])

    def trained(number: int) -> torch.Tensor:
        loss = forward(number)
        update(loss)
        update.optimiser.zero_grad(set_to_none=False)
        return loss

    def rehearse() -> dict[str, int]:
        with precision.rehearsal(model, device) as counts:
            forward(0).backward()
        return counts

    if warmed:
        with trial.phase("first_step"):
            rehearse()

    clock = Clock(trial, device, steps_per_epoch=steps, epochs=epochs)
    trial.stage("train")
    _only_what_lives(device)

    def step(number: int) -> None:
        clock.ready(inputs[number % BATCHES])
        clock.step(trained(number % BATCHES), batch_size)

    found = clock.measurement(clock.run(lambda: range(steps), step, after=lambda epoch: update.read()))

    trial.stage("collect")
    if device.type == "cpu":
        # A step in half precision takes minutes on a processor without it, so one step shows both.
        with precision.counted_output_types(model) as output_types:
            held = peak_bytes(lambda: trained(0), update.optimiser, [*inputs, *targets])
        found["memory"]["allocated_peak_bytes"] = held
    else:
        output_types = rehearse()
    return {
        **found,
        "precision": dict(
            precision.facts(label, device),
            output_dtypes=output_types,
            parameter_dtypes=precision.parameter_types(model),
            **update.facts(),
        ),
        "data": {"name": "random", "source": trial.asked["data"], **clock.batches()},
        "sample_unit": "sample",
        "samples_per_step": batch_size,
        "flops": of_step(
            model, shape, lambda output: loss_of(output, torch.zeros_like(output)), value_bytes(label)
        ),
        "structure": {"parameters": sum(weight.numel() for weight in model.parameters())},
        "notes": notes(setting.options, batch_size),
        "kernels": kernels.kernel_time(lambda: trained(0), device),
    }


def network(width: int, layers: int) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    parts: list[nn.Module] = []
    for _ in range(layers - 1):
        parts += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(width, width))


def notes(options: dict[str, Any], batch_size: int) -> list[str]:
    """What a reader has to know before holding this against the study."""
    published = {**OPTIONS, "batch": PUBLISHED_BATCH}
    here = {**options, "batch": batch_size}
    different = [
        f"{name} {here[name]} (published {value})" for name, value in published.items() if here[name] != value
    ]
    return [f"scaled down: {', '.join(different)}"] if different else []


def _only_what_lives(device: torch.device) -> None:
    """Collect garbage, empty the cache and forget the peak before the clock, as published."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


MEMORY = "[memory]"


def peak_bytes(
    step: Callable[[], object], optimiser: torch.optim.Optimizer, data: Iterable[torch.Tensor]
) -> int | None:
    """Return the peak over one more step after the window, with data, weights, their gradients and state.

    One step is enough, since what earlier steps left is still held. None where the peak cannot be had. What a
    library takes for itself past torch is not in it, as it is in no allocator's count.
    """
    held = bytes_of([*data, *_left_by_steps(optimiser)])
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
            step()
        return held + most(watched.profiler.kineto_results.events())
    except Exception:
        # The trial is measured by now: what a profiler cannot do costs it nothing but this figure.
        traceback.print_exc()
        return None


def _left_by_steps(optimiser: torch.optim.Optimizer) -> list[torch.Tensor]:
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    state = [value for values in optimiser.state.values() for value in values.values()]
    return [*weights, *gradients, *(value for value in state if isinstance(value, torch.Tensor))]


def bytes_of(tensors: Iterable[torch.Tensor]) -> int:
    """What their storages take, each once."""
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    return sum(storages.values())


def most(events: Iterable[Any]) -> int:
    """The most that was allocated and not freed, from each allocation and its time."""
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == MEMORY)
    held = peak = 0
    for _, change in changes:
        held += change
        peak = max(peak, held)
    return peak


if __name__ == "__main__":
    main(run)
