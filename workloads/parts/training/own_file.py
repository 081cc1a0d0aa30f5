"""A user's own model, data and loss: read from a file, checked, and every mistake reported with its line."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

from parts.numerics import precision
from parts.training.fit import Batches, Loop, Quality, accuracy
from parts.training.setting import Setting
from parts.trial import Failed, TrialProcess, why

NEEDED = ("model", "data", "loss", "optimiser")
HOOKS = {
    "model": ("setting",),
    "data": ("setting",),
    "loss": ("output", "targets"),
    "optimiser": ("model", "setting"),
    "metric": ("output", "targets"),
    "schedule": ("optimiser", "setting"),
}
"""The functions of a file, and what each is given in this order."""
CONSTANTS: dict[str, tuple[type, Any]] = {
    "TITLE": (str, None),
    "ABOUT": (str, None),
    "EPOCHS": (int, 1),
    "SAMPLE": (str, "sample"),
    "METRIC": (str, "loss"),
    "OPTIONS": (dict, {}),
}
"""Each with its type and what it is where the file does not say; None says that it must."""
CHOICES = {
    "SAMPLE": ("image", "token", "sample"),
    "METRIC": ("accuracy", "perplexity", "loss"),
}


@dataclass(frozen=True)
class OwnFile:
    """A user's file as Python has it, and the name that the user knows it by."""

    name: str
    path: str
    module: ModuleType

    def constant(self, name: str) -> Any:
        """One of CONSTANTS, or its default; raises Failed where its type is another."""
        kind, default = CONSTANTS[name]
        value = getattr(self.module, name, default)
        if type(value) is not kind:
            raise self.failed(f"{name} is {value!r} where a {kind.__name__} is needed", self.line(name))
        if name in CHOICES and value not in CHOICES[name]:
            choices = ", ".join(CHOICES[name])
            raise self.failed(f"{name} is '{value}'; it is one of {choices}", self.line(name))
        return value

    def function(self, name: str) -> Callable[..., Any] | None:
        """A function of the file, where it has it; raises Failed where it cannot be called as it will be."""
        value = getattr(self.module, name, None)
        if value is None:
            return None
        given = f"{name}({', '.join(HOOKS[name])})"
        try:
            # A function in C may have no signature, which is a ValueError.
            with contextlib.suppress(ValueError):
                inspect.signature(value).bind(*HOOKS[name])
        except TypeError:
            raise self.failed(f"{name} is called as {given}: define it so", self.line(name)) from None
        return value  # type: ignore[no-any-return]

    def line(self, name: str) -> int | None:
        """Where the file defines a function or a constant."""
        tree = ast.parse(Path(self.path).read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            else:
                names = [getattr(node, "name", "")]
            if name in names:
                return node.lineno
        return None

    def failed(self, message: str, line: int | None, reason: str = "error") -> Failed:
        """A failure that names the file, and the line where it is known."""
        return Failed(reason, f"{self.name}, line {line}: {message}" if line else f"{self.name}: {message}")

    @property
    def loop(self) -> Loop:
        """How long it trains, and what its samples are."""
        unit, epochs = self.constant("SAMPLE"), self.constant("EPOCHS")
        if epochs < 1:
            raise self.failed(f"EPOCHS is {epochs}; it is 1 at least", self.line("EPOCHS"))
        return Loop(epochs, unit)

    @property
    def quality(self) -> Quality:
        """Its metric: a function of the file where it has one, and else what the name says."""
        name = self.constant("METRIC")
        return Quality(name, self.function("metric") or (accuracy if name == "accuracy" else None))

    def loss(self, output: Any, targets: torch.Tensor) -> torch.Tensor:
        """The file's loss; raises Failed where it is no single number."""
        value = self.module.loss(output, targets)
        if not isinstance(value, torch.Tensor) or value.dim():
            shape = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise self.failed(f"loss gives {shape} where a tensor of one number is needed", self.line("loss"))
        return value

    def optimiser(self, model: nn.Module, setting: Setting) -> torch.optim.Optimizer:
        """Return what its `optimiser` gives; raises Failed where that is none."""
        given = self.module.optimiser(model, setting)
        if not isinstance(given, torch.optim.Optimizer):
            found = type(given).__name__
            raise self.failed(
                f"optimiser gives {found} where a torch Optimizer is needed", self.line("optimiser")
            )
        return given

    def schedules(self, optimiser: torch.optim.Optimizer, setting: Setting) -> list[LRScheduler]:
        """Return what its `schedule` gives, where it has one; raises Failed where that is none."""
        schedule = self.function("schedule")
        if schedule is None:
            return []
        given = schedule(optimiser, setting)
        every = list(given) if isinstance(given, (list, tuple)) else [given]
        if not every or not all(isinstance(each, LRScheduler) for each in every):
            needed = "a torch LRScheduler, or a list of them, is needed"
            raise self.failed(f"schedule gives {type(given).__name__} where {needed}", self.line("schedule"))
        return every


def load(trial: TrialProcess) -> OwnFile:
    """The trial's file; raises Failed where it cannot be read, or lacks what it needs."""
    spec = importlib.util.spec_from_file_location(Path(trial.own_file).stem, trial.own_file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    file = OwnFile(str(trial.own_name), trial.own_file, module)
    with failing_with_line(file):
        spec.loader.exec_module(module)
    for name in HOOKS:
        file.function(name)
    missing = [name for name in NEEDED if file.function(name) is None]
    missing += [
        name for name, (_, default) in CONSTANTS.items() if default is None and not hasattr(module, name)
    ]
    if missing:
        needs = f"it needs {', '.join(NEEDED)}, TITLE and ABOUT"
        raise file.failed(f"there is no '{missing[0]}'; {needs}", None)
    return file


@contextlib.contextmanager
def failing_with_line(file: OwnFile) -> Iterator[None]:
    """Raise any error in the block as Failed, with the last line of the user's file that it went through.

    Where it went through none, the line of `model` is named.
    """
    try:
        yield
    except SyntaxError as error:
        if error.filename != file.path:
            raise
        raise file.failed("SyntaxError", error.lineno) from error
    except Failed as error:
        if error.reason != "not-finite":
            raise
        raised_by = "metric" if "validation" in str(error) and file.function("metric") else "loss"
        raise file.failed(f"{error} (by '{raised_by}')", file.line(raised_by), error.reason) from error
    except Exception as error:
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file.path
        ]
        reason, _ = why(error)
        # A layer of torch's own, such as one of another width than its input, is the model's doing.
        line = lines[-1] if lines else file.line("model")
        raise file.failed(type(error).__name__, line, reason) from error


def checked_model(file: OwnFile, setting: Setting) -> nn.Module:
    """Return the model that the file's `model` gives; raises Failed where that is no module."""
    model = file.module.model(setting)
    if not isinstance(model, nn.Module):
        found = type(model).__name__
        raise file.failed(f"model gives {found} where a torch.nn.Module is needed", file.line("model"))
    return model


def checked_data(file: OwnFile, setting: Setting) -> tuple[Batches, Batches | None]:
    """What the file's `data` gives: batches to train and to validate with, each a pair of tensors."""
    given = file.module.data(setting)
    line = file.line("data")
    if not isinstance(given, tuple) or len(given) != 2:
        raise file.failed("data gives no pair: it needs (training batches, validation batches)", line)
    for batches in given:
        if batches is not None and not (hasattr(batches, "__len__") and hasattr(batches, "__iter__")):
            raise file.failed(f"data gives {type(batches).__name__}, which has no length or no batches", line)
    with precision.preserved_random_state(setting.device):
        first = next(iter(given[0]), None)
    if first is None:
        raise file.failed(f"an epoch has no batch of {setting.samples} samples", line, "unsupported")
    pair = isinstance(first, (tuple, list)) and len(first) == 2
    if not pair or not all(isinstance(half, torch.Tensor) for half in first):
        raise file.failed("a batch is no pair of tensors (inputs, targets)", line)
    if len(first[0]) != setting.samples or len(first[1]) != setting.samples:
        held = f"{len(first[0])} inputs and {len(first[1])} targets"
        raise file.failed(f"a batch has {held} where setting.samples is {setting.samples}", line)
    return given
