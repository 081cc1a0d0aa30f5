"""Karmanov 2018's small networks in PyTorch: what its two workloads share around `fit`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from parts import source
from parts.small.terms import FAIR, Split, Terms, Work, terms
from parts.small.training import data_found, structure, weights_found
from parts.training.batches import Batch, InOrder
from parts.training.fit import Loop, Quality, accuracy, fit
from parts.training.setting import Setting, over_processes
from parts.trial import Failed, Trial

FRAMEWORK = "pytorch"


class Drawn:
    """Batches in the order that the protocol draws for each epoch."""

    def __init__(self, split: Split, wanted: Terms, home: torch.device) -> None:
        self.inputs, self.targets = tensors(split, home)
        self.terms = wanted
        self._epoch = 0

    def __len__(self) -> int:
        return self.terms.steps(len(self.targets))

    def __iter__(self) -> Iterator[Batch]:
        epoch, self._epoch = self._epoch, self._epoch + 1
        for numbers in self.terms.batches(len(self.targets), epoch):
            chosen = torch.from_numpy(numbers).to(self.targets.device)
            yield self.inputs[chosen], self.targets[chosen]


def run(
    trial: Trial,
    work: Work,
    network: Callable[[], nn.Module],
    names: Mapping[str, str],
    optimiser: Callable[[nn.Module], torch.optim.Optimizer],
    workload_file: str,
    layout: str | None = None,
) -> dict[str, Any]:
    """One trial, as far as its limit lets it go; `names` are PyTorch's of the neutral weights."""
    wanted = terms(trial, work, (FRAMEWORK,), ("host", "device"))

    def train(setting: Setting) -> dict[str, Any]:
        torch.backends.cudnn.benchmark = True
        trial.stage("data")
        with trial.phase("data"):
            data = work.read(trial)
            batches = Drawn(data.train, wanted, setting.home)
            inputs, targets = tensors(data.test, setting.home)
            whole = wanted.steps(len(targets)) * wanted.batch_size
            valid = InOrder(inputs[:whole], targets[:whole], wanted.batch_size)
        found = fit(
            setting,
            begun(network(), wanted, names),
            batches,
            valid,
            nn.functional.cross_entropy,
            optimiser,
            Loop(work.epochs, work.sample_unit, warmed=False),
            quality=Quality("accuracy", accuracy),
            data=dict(data_found(trial, data), **weights_found(wanted)),
            structure=structure(work),
        )
        notes = [*found["notes"], *wanted.notes]
        return dict(found, framework=facts(setting, workload_file, layout), notes=notes)

    return over_processes(trial, train, {"framework": FRAMEWORK})


def begun(model: nn.Module, wanted: Terms, names: Mapping[str, str]) -> nn.Module:
    """The model with the weights that the protocol begins with; raises Failed where it is another network."""
    trained = sum(weight.numel() for weight in model.parameters())
    if trained != wanted.work.parameters:
        counts = f"{trained} parameters where the protocol has {wanted.work.parameters}"
        raise Failed("error", f"the network has {counts}")
    if wanted.protocol == FAIR:
        load(model, wanted.work.neutral(), names)
    return model


def load(model: nn.Module, arrays: Mapping[str, np.ndarray], names: Mapping[str, str]) -> None:
    """Takes over weights by their neutral names."""
    model.load_state_dict({names[name]: torch.from_numpy(array) for name, array in arrays.items()})


def facts(setting: Setting, workload_file: str, layout: str | None) -> dict[str, Any]:
    """The framework, as a measurement tells it; `layout` is of images."""
    place = "host" if setting.home.type == "cpu" else "the device's"
    return {
        "name": "PyTorch",
        "version": torch.__version__,
        "layout": layout,
        "loader": f"none: tensors in {place} memory",
        "lines": source.lines(workload_file, "torch"),
        "differs": ["cudnn.benchmark is on, as published"],
    }


def tensors(split: Split, home: torch.device) -> Batch:
    """Inputs and their classes, where they lie before a step."""
    return torch.from_numpy(split.inputs).to(home), torch.from_numpy(split.targets).long().to(home)
