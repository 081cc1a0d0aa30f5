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

from typing import Any

import torch
from torch import nn

from parts.training.batches import Rotated
from parts.training.fit import Loop, fit
from parts.training.setting import Setting, run_in_processes

TITLE = "Matrix products alone: an MLP of three equal layers"
ABOUT = "Three linear layers on random numbers, a recipe of mixed precision: tensorcore 2022."
BATCHES = 50
RATE = 1e-3
PUBLISHED_BATCH = 512
OPTIONS: dict[str, Any] = {"width": 4096}
PROTOCOLS = {"published/1": (BATCHES, 3, False), "warmed/1": (20 * BATCHES, 100, True)}
"""Steps of an epoch, epochs, and whether a pass that is not measured comes first."""


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, as far as its limit lets it go."""
    trial.choose("protocol", trial.asked["protocol"], PROTOCOLS)
    trial.choose("model", trial.variant["model"], ("mlp",))
    trial.choose("data mode", trial.variant["data_mode"], ("cached",))
    trial.choose("profile", trial.variant["profile"], ("default",))
    return run_in_processes(trial, train, OPTIONS)


def train(setting: Setting) -> dict[str, Any]:
    """Train in this process and return what it measured."""
    trial, device, batch_size = setting.trial, setting.device, setting.batch_size
    steps, epochs, warmed = PROTOCOLS[trial.asked["protocol"]]
    width = setting.options["width"]
    trial.stage("data")
    with trial.phase("data"):
        shape = (BATCHES, batch_size, width)
        inputs, targets = ([torch.randn(shape[1:], device=device) for _ in range(BATCHES)] for _ in range(2))
    measured = fit(
        setting,
        network(width),
        Rotated(list(zip(inputs, targets, strict=True)), steps),
        None,
        nn.functional.mse_loss,
        lambda model: torch.optim.SGD(model.parameters(), lr=RATE),
        Loop(epochs, warmed=warmed, keeps_gradients=True),
        data={"name": "random"},
    )
    return dict(measured, notes=notes(setting.options, batch_size))


def network(width: int) -> nn.Sequential:
    """Return three linear layers with ReLU between them."""
    first, second, third = (nn.Linear(width, width) for _ in range(3))
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), third)


def notes(options: dict[str, Any], batch_size: int) -> list[str]:
    """Return what a reader has to know before holding this against the study."""
    published = {**OPTIONS, "batch": PUBLISHED_BATCH}
    here = {**options, "batch": batch_size}
    different = [
        f"{name} {here[name]} (published {value})" for name, value in published.items() if here[name] != value
    ]
    return [f"scaled down: {', '.join(different)}"] if different else []


if __name__ == "__main__":
    main(run)
