"""Half-precision training with fp32 master weights and a loss scale: the studies' "FP16".

The model's weights are half (batch norms stay fp32 where the caller keeps them so); an fp32 copy of each
takes the update and is rounded back. The loss is scaled before backward; a dynamic scale drops the step on
overflow.
"""

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

GROW_AFTER_STEPS = 1000
"""Clean steps after which a dynamic scale doubles, as Apex had it."""
FIRST_DYNAMIC_SCALE = 2.0**32


class ScaleLog:
    """The loss scale at each change, and the steps that were dropped."""

    def __init__(self, kind: str, first: float) -> None:
        self.kind = kind
        self.history: list[tuple[int, float]] = [(0, first)]
        self.skipped_steps = 0

    @property
    def scale(self) -> float:
        """The scale now in force."""
        return self.history[-1][1]

    def note(self, step: int, scale: float, *, skipped: bool) -> None:
        """Notes the scale after a step, where it changed."""
        self.skipped_steps += skipped
        if scale != self.scale:
            self.history.append((step, scale))

    def found(self) -> dict[str, Any]:
        """The record's form."""
        return {
            "kind": self.kind,
            "first": self.history[0][1],
            "last": self.scale,
            "skipped_steps": self.skipped_steps,
            "history": self.history,
        }


class MasterWeights:
    """fp32 copies of a half model's parameters, and the way of gradients and weights between the two."""

    method = "own master weights"

    def __init__(self, model: nn.Module, kind: str, scale: float) -> None:
        self.model_parameters = [weight for weight in model.parameters() if weight.requires_grad]
        self.masters = [nn.Parameter(weight.detach().float().clone()) for weight in self.model_parameters]
        self.log = ScaleLog(kind, FIRST_DYNAMIC_SCALE if kind == "dynamic" else scale)
        self._steps = 0
        self._last_overflow = 0

    def backward(self, loss: torch.Tensor) -> None:
        """Gradients of the loss, scaled in its own type."""
        for parameter in self.model_parameters:
            parameter.grad = None
        (loss * self.log.scale).backward()

    def unscaled_gradients(self) -> bool:
        """Brings the gradients to the masters, unscaled; False where a dynamic scale overflowed."""
        for parameter, master in zip(self.model_parameters, self.masters, strict=True):
            master.grad = parameter.grad.float()
        gradients = [master.grad for master in self.masters]
        torch._foreach_div_(gradients, self.log.scale)
        # A static scale is applied unseen, as published: looking would cost a synchronisation a step.
        return self.log.kind == "static" or all(
            bool(torch.isfinite(gradient).all()) for gradient in gradients
        )

    def update(self, step: Callable[[], object], *, clean: bool) -> None:
        """Updates masters and model where the gradients were clean, and moves a dynamic scale."""
        self._steps += 1
        if clean:
            step()
            with torch.no_grad():
                for parameter, master in zip(self.model_parameters, self.masters, strict=True):
                    parameter.copy_(master)
        if self.log.kind == "dynamic":
            self.log.note(self._steps, self._moved_scale(clean), skipped=not clean)

    def _moved_scale(self, clean: bool) -> float:
        if not clean:
            self._last_overflow = self._steps
            return max(self.log.scale / 2, 1.0)
        if (self._steps - self._last_overflow) % GROW_AFTER_STEPS == 0:
            return self.log.scale * 2
        return self.log.scale


def all_finite(tensors: list[torch.Tensor]) -> bool:
    """Whether no value is infinite or undefined; waits for the device."""
    return bool(torch.stack([tensor.isfinite().all() for tensor in tensors]).all())


def apex_optimizer(device: torch.device) -> Any | None:
    """Apex's FP16_Optimizer where it is installed and the device is a GPU: it runs on nothing else."""
    if device.type != "cuda":
        return None
    try:
        return importlib.import_module("apex.fp16_utils").FP16_Optimizer
    except (ImportError, AttributeError):
        return None
