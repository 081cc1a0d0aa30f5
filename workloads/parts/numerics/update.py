"""Backward pass and update of the weights, in every precision: a loss in, new weights out.

`Update` is the step of any optimiser in fp32 and under autocast. `clipped_sgd` is plain SGD with clipped
gradients, and has the studies' "FP16" as well: the model's weights are half, an fp32 copy of each takes the
update and is rounded back. The loss is scaled before the backward pass; a dynamic scale drops the step on
overflow. The fp32 gradients are clipped after the scale is taken off, as in Apex's main_fp16_optimizer.py.
"""

import importlib
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from parts.numerics.precision import PRECISIONS, ScaleLog

LABELS = tuple(label for label, numerics in PRECISIONS.items() if numerics.weights == torch.float32)
"""The precisions of `Update`."""
GROW_AFTER_STEPS = 1000
"""Steps without an overflow after which a dynamic scale doubles, as Apex had it when the study ran."""
FIRST_DYNAMIC_SCALE = 2.0**16
"""Where a dynamic scale starts, in Apex and in our own master weights alike; torch's GradScaler does, too.

Apex had 2**32 when the study ran; the Apex that still installs starts here and allows no more than 2**24.
"""

SgdStep = Callable[[torch.Tensor, float], torch.Tensor | None]
"""Takes a loss and a rate; gives the gradient norm that the clipping computes, the loss scale taken off.

None where the clipping did not compute it.
"""


class Update:
    """One optimiser's step under a precision label; fp16 has torch's dynamic loss scale.

    Nothing waits for the device but what torch's GradScaler reads; the scales stay there until they are read.
    """

    def __init__(self, label: str, optimiser: torch.optim.Optimizer, device: torch.device) -> None:
        self.optimiser, self.device = optimiser, device
        self.scaler = torch.amp.GradScaler(device.type, enabled=PRECISIONS[label].scaled)
        self.method = "torch.autocast" if PRECISIONS[label].autocast else "none"
        self.log: ScaleLog | None = None
        self._scales: list[torch.Tensor] = []
        if self.scaler.is_enabled():
            self.method += ", torch.amp.GradScaler"
            self.log = ScaleLog("dynamic", self.scaler.get_scale())

    def __call__(self, loss: torch.Tensor) -> None:
        """Take gradients of the loss, and the step where they are finite."""
        self.backward(loss)
        self.step()

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradients of the loss to the gradients that are there."""
        self.scaler.scale(loss).backward()

    def clip(self, largest_norm: float) -> torch.Tensor:
        """Scale all gradients down to that norm where theirs is larger; returns the norm that they had."""
        self.scaler.unscale_(self.optimiser)
        weights = [weight for group in self.optimiser.param_groups for weight in group["params"]]
        return nn.utils.clip_grad_norm_(weights, largest_norm)

    def step(self) -> None:
        """Take the step where the gradients are finite."""
        self.scaler.step(self.optimiser)
        self.scaler.update()
        if self.log:
            self._scales.append(self.scaler._get_scale_async().clone())

    def read(self) -> None:
        """Note the scales of the steps so far; waits for the device."""
        if self.log is None or not self._scales:
            return
        for scale in torch.stack(self._scales).tolist():
            self.log.note(scale, skipped=scale < self.log.scale)
        self._scales.clear()


class MasterWeights:
    """fp32 copies of a half model's parameters, and the way of gradients and weights between the two."""

    method = "own master weights"

    def __init__(self, model: nn.Module, kind: str) -> None:
        self.model_parameters = [weight for weight in model.parameters() if weight.requires_grad]
        self.masters = [nn.Parameter(weight.detach().float().clone()) for weight in self.model_parameters]
        self.log = ScaleLog(kind, FIRST_DYNAMIC_SCALE if kind == "dynamic" else 1.0)
        self._steps = 0
        self._last_overflow = 0

    def backward(self, loss: torch.Tensor) -> None:
        """Take gradients of the loss, scaled in its own type."""
        for parameter in self.model_parameters:
            parameter.grad = None
        (loss * self.log.scale).backward()

    def unscaled_gradients(self) -> bool:
        """Bring the gradients to the masters, unscaled; False where a dynamic scale overflowed."""
        for parameter, master in zip(self.model_parameters, self.masters, strict=True):
            master.grad = parameter.grad.float()
        gradients = [master.grad for master in self.masters]
        torch._foreach_div_(gradients, self.log.scale)
        # A static scale is applied unseen, as published: looking would cost a synchronisation a step.
        return self.log.kind == "static" or all(
            bool(torch.isfinite(gradient).all()) for gradient in gradients
        )

    def update(self, step: Callable[[], object], *, finite: bool) -> None:
        """Update masters and model where the gradients were finite, and move a dynamic scale."""
        self._steps += 1
        if finite:
            step()
            with torch.no_grad():
                for parameter, master in zip(self.model_parameters, self.masters, strict=True):
                    parameter.copy_(master)
        if self.log.kind == "dynamic":
            self.log.note(self._moved_scale(finite), skipped=not finite)

    def _moved_scale(self, finite: bool) -> float:
        if not finite:
            self._last_overflow = self._steps
            return max(self.log.scale / 2, 1.0)
        if (self._steps - self._last_overflow) % GROW_AFTER_STEPS == 0:
            return self.log.scale * 2
        return self.log.scale


def clipped_sgd(
    label: str, model: nn.Module, clip: float, kind: str, device: torch.device
) -> tuple[SgdStep, str, ScaleLog | None]:
    """Return the step through backward pass, clipping and SGD, its method, and its loss scale if it has one.

    `kind` of the scale of master weights is "static", which is 1, or "dynamic".
    """
    numerics = PRECISIONS[label]
    if numerics.scaled and not numerics.autocast:
        apex = apex_optimizer(device)
        if apex is None:
            return _with_own_master_weights(model, clip, kind)
        return _with_apex(apex, model, clip, kind)

    update = Update(label, _sgd(model.parameters()), device)

    def step(loss: torch.Tensor, rate: float) -> torch.Tensor | None:
        _at(update.optimiser, rate).zero_grad()
        update.backward(loss)
        norm = update.clip(clip)
        update.step()
        # The scaler has read its overflow flag on the host already, so this reading waits for little more.
        update.read()
        return norm

    return step, update.method, update.log


def _with_own_master_weights(model: nn.Module, clip: float, kind: str) -> tuple[SgdStep, str, ScaleLog]:
    weights = MasterWeights(model, kind)
    optimiser = _sgd(weights.masters)

    def step(loss: torch.Tensor, rate: float) -> torch.Tensor | None:
        weights.backward(loss.float())
        finite = weights.unscaled_gradients()
        norm = nn.utils.clip_grad_norm_(weights.masters, clip) if finite else None
        weights.update(_at(optimiser, rate).step, finite=finite)
        return norm

    return step, weights.method, weights.log


def _with_apex(apex: Any, model: nn.Module, clip: float, kind: str) -> tuple[SgdStep, str, ScaleLog]:
    wrapped = apex(
        _sgd(model.parameters()),
        static_loss_scale=1.0,
        dynamic_loss_scale=kind == "dynamic",
        dynamic_loss_args={"init_scale": FIRST_DYNAMIC_SCALE, "scale_window": GROW_AFTER_STEPS},
    )
    log = ScaleLog(kind, wrapped.loss_scale)

    def step(loss: torch.Tensor, rate: float) -> torch.Tensor | None:
        wrapped.zero_grad()
        wrapped.backward(loss)
        norm = wrapped.clip_master_grads(clip)
        _at(wrapped, rate).step()
        log.note(wrapped.loss_scale, skipped=bool(wrapped.overflow))
        return norm if isinstance(norm, torch.Tensor) and not wrapped.overflow else None

    return step, "apex FP16_Optimizer", log


def _sgd(weights: Iterable[nn.Parameter]) -> torch.optim.SGD:
    """Return plain SGD, whose rate comes with each step."""
    return torch.optim.SGD(weights, lr=1.0, foreach=False)


def apex_optimizer(device: torch.device) -> Any | None:
    """Return Apex's FP16_Optimizer where it is installed and the device is a GPU: it runs on nothing else."""
    if device.type != "cuda":
        return None
    try:
        return importlib.import_module("apex.fp16_utils").FP16_Optimizer
    except Exception:
        # One that was built for another torch may raise anything.
        return None


def _at(optimiser: Any, rate: float) -> Any:
    for group in optimiser.param_groups:
        group["lr"] = rate
    return optimiser
