"""The updates of Apex's language model as it stood at 28bdc04e, in our own words.

fp32 is plain SGD on clipped gradients. In half the model's weights are fp16, an fp32 copy of each takes the
update and is rounded back. The script `main` clips the fp16 gradients while they carry a static loss scale;
`fp16_optimizer`, after Apex's class of that name, takes the scale off the fp32 gradients and clips those. Its
dynamic scale starts at 2**32; a step that overflows is dropped and halves it, a thousand without double it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from parts.numerics.loss_scale import ScaleLog
from parts.trial import Failed

FIRST_DYNAMIC_SCALE = 2.0**32
GROW_AFTER_STEPS = 1000


class MasterWeights:
    """fp32 copies of a model's parameters, which take its gradients and give it their values."""

    def __init__(self, model: nn.Module, kind: str, scale: float) -> None:
        self.model_parameters = [weight for weight in model.parameters() if weight.requires_grad]
        self.masters = [nn.Parameter(weight.detach().float().clone()) for weight in self.model_parameters]
        self.log = ScaleLog(kind, FIRST_DYNAMIC_SCALE if kind == "dynamic" else scale)
        self._steps = 0
        self._last_overflow = -1

    def backward(self, loss: torch.Tensor) -> None:
        """Gradients of the scaled loss, as the model's weights have them."""
        for parameter in self.model_parameters:
            parameter.grad = None
        (loss * self.log.scale).backward()

    def unscaled_gradients(self) -> bool:
        """Brings the gradients to the masters, unscaled; False where a dynamic scale overflowed."""
        gradients = [parameter.grad for parameter in self.model_parameters]
        if self.log.kind == "dynamic" and not all(map(_finite, gradients)):
            return False
        for master, gradient in zip(self.masters, gradients):
            master.grad = gradient.detach().float() / self.log.scale
        return True

    def update(self, optimiser: torch.optim.SGD, finite: bool) -> None:
        """Updates masters and model where the gradients were finite, and moves a dynamic scale."""
        if finite:
            optimiser.step()
            for parameter, master in zip(self.model_parameters, self.masters):
                parameter.data.copy_(master.data)
        step, self._steps = self._steps, self._steps + 1
        if self.log.kind == "dynamic":
            self.log.note(self._steps, self._moved_scale(step, finite), skipped=not finite)

    def _moved_scale(self, step: int, finite: bool) -> float:
        if not finite:
            self._last_overflow = step
            return max(self.log.scale / 2, 1.0)
        grows = (step - self._last_overflow) % GROW_AFTER_STEPS == 0
        return self.log.scale * 2 if grows else self.log.scale


def clipped_sgd(
    label: str, model: nn.Module, options: dict[str, Any]
) -> tuple[Callable[[torch.Tensor, float], torch.Tensor | None], str, ScaleLog | None]:
    """The step through backward pass, clipping and SGD, its method, and its loss scale where it has one.

    The step takes a loss and a rate, and gives the norm before clipping without the loss scale, or none where
    it was dropped.
    """
    clip, kind = options["clip"], options["loss_scale"]
    if label == "fp32-ieee":
        parameters = list(model.parameters())
        optimiser = torch.optim.SGD(parameters, lr=options["lr"])

        def plain(loss: torch.Tensor, rate: float) -> torch.Tensor:
            optimiser.zero_grad()
            loss.backward()
            norm = _clipped(parameters, clip)
            _at(optimiser, rate).step()
            return norm

        return plain, "none", None
    as_in_main = options["fp16_path"] == "main"
    if as_in_main and kind != "static":
        raise Failed("unsupported", "'fp16_path' is 'main', which has a static loss scale alone")
    weights = MasterWeights(model, kind, options["static_loss_scale"])
    optimiser = torch.optim.SGD(weights.masters, lr=options["lr"])

    def main(loss: torch.Tensor, rate: float) -> torch.Tensor:
        weights.backward(loss)
        norm = _clipped(weights.model_parameters, clip)
        weights.unscaled_gradients()
        weights.update(_at(optimiser, rate), True)
        return norm / weights.log.scale

    def fp16_optimizer(loss: torch.Tensor, rate: float) -> torch.Tensor | None:
        weights.backward(loss.float())
        finite = weights.unscaled_gradients()
        norm = _clipped(weights.masters, clip) if finite else None
        weights.update(_at(optimiser, rate), finite)
        return norm

    return main if as_in_main else fp16_optimizer, "own master weights", weights.log


def _clipped(parameters: list[nn.Parameter], clip: float) -> torch.Tensor:
    """The norm of all gradients before they are clipped; this torch reads it on the host."""
    return torch.tensor(nn.utils.clip_grad_norm_(parameters, clip))


def _finite(gradient: torch.Tensor) -> bool:
    total = float(gradient.float().sum())
    return total - total == 0.0


def _at(optimiser: torch.optim.SGD, rate: float) -> torch.optim.SGD:
    for group in optimiser.param_groups:
        group["lr"] = rate
    return optimiser
