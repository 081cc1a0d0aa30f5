"""A trial as one process has to run it: device, precision, and its place among the processes of a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from parts import launcher, ranks
from parts.device import choose, choose_own, seed_everything
from parts.launcher import ALONE, Place
from parts.numerics import precision
from parts.numerics.update import LABELS
from parts.trial import Failed, TrialProcess

SHARING: dict[str, Any] = {
    "parallel": "ddp",
    "virtual_ranks": 1,
    "sync_batchnorm": False,
    "compile": False,
}
"""Options of a workload that several devices may share; `fit` acts on them."""
PARALLEL = ("ddp", "dp", "fsdp")


@dataclass(frozen=True)
class Setting:
    """What a workload's model, data and optimiser are made for."""

    trial: TrialProcess
    label: str
    device: torch.device
    parallel: str
    """How devices share a step: "ddp", "dp" or "fsdp"; with "each" they share none."""
    place: Place
    devices: int
    """How many this process itself drives: more than one with DataParallel alone."""
    options: dict[str, Any]

    @property
    def batch_size(self) -> int:
        """Samples of one step on one device or virtual rank."""
        return int(self.trial.variant["batch_size"])

    @property
    def virtual_ranks(self) -> int:
        """Return how many ranks this process simulates, one after the other, on one device."""
        return int(self.options.get("virtual_ranks", 1))

    @property
    def samples(self) -> int:
        """The samples of one step of this process, which a batch of its training data has to hold."""
        return self.batch_size * self.devices * self.virtual_ranks

    @property
    def ranks(self) -> int:
        """Devices, real or virtual, that a step's batch is spread over: what the linear rule scales by."""
        return self.place.count * self.devices * self.virtual_ranks

    @property
    def shares_gradients(self) -> bool:
        """Whether this process is one of several that train one model."""
        return self.place.count > 1 and self.parallel != "each"

    @property
    def tuned(self) -> bool:
        """Whether the profile is `tuned`."""
        return bool(self.trial.variant["profile"] == "tuned")

    @property
    def compiled(self) -> bool:
        """Whether the model goes through torch.compile."""
        return bool(self.options.get("compile", False))

    @property
    def home(self) -> torch.device:
        """Return where the data is before a step: on the device, or with data mode `host` in main memory."""
        return torch.device("cpu") if self.trial.variant["data_mode"] == "host" else self.device


def run_in_processes(
    trial: TrialProcess,
    work: Callable[[Setting], dict[str, Any]],
    options: dict[str, Any],
    labels: tuple[str, ...] = LABELS,
    ways: tuple[str, ...] = PARALLEL,
) -> dict[str, Any]:
    """Run `work` in this process, or in one process a device where devices are to share a step.

    `options` are the workload's own, `labels` the precisions that its model can take, and `ways` the values
    of the option `parallel`, without which it runs on one device. Raises Failed where the variant asks for
    what cannot be had.
    """
    chosen = trial.options(options)
    label = trial.choose("precision", trial.variant["precision"], labels)
    parallel = trial.choose("parallel", chosen.get("parallel", "ddp"), ways)
    gpus, place = trial.variant["gpus"], launcher.own_place()
    shares = "parallel" in options
    if shares and gpus > 1 and parallel != "dp" and place is None:
        return ranks.launch_ranks(trial, parallel, gpus)
    devices = gpus if place is None and shares else 1
    kind = trial.asked["device"]
    count = chosen.get("virtual_ranks", 1)
    if count < 1 or (count > 1 and gpus > 1):
        message = f"{count} virtual ranks on {gpus} devices: they stand for several devices on one"
        raise Failed("unsupported", message)
    with trial.phase("device"):
        device = choose_own(kind, place.local if place else 0, devices) if shares else choose(kind, gpus)
        torch.backends.cudnn.benchmark = trial.variant["profile"] == "tuned"
        precision.switch(label, device)
    seed_everything(trial.seed)
    setting = Setting(trial, label, device, parallel, place or ALONE, devices, chosen)
    with ranks.process_group(setting.place, device, gradients=setting.shares_gradients):
        return work(setting)
