"""One update of plain SGD with clipped gradients, in every precision: a loss and a rate in, new weights out.

fp16-master follows the two scripts of Apex's language model. In `main` the half gradients are clipped while
they still carry the loss scale; in `fp16_optimizer` the fp32 gradients are, after it is taken off.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from parts.master_weights import MasterWeights, ScaleLog, apex_optimizer
from parts.trial import Failed

Step = Callable[[torch.Tensor, float], torch.Tensor | None]
"""Gives the gradient norm that the clipping computes, the loss scale taken off; None where it did not."""
Sgd = Callable[[list[nn.Parameter]], torch.optim.SGD]


def clipped_sgd(
    label: str, model: nn.Module, options: dict[str, Any], tuned: bool, device: torch.device
) -> tuple[Step, str, ScaleLog | None]:
    """A function that takes a loss and a rate through backward, clipping and SGD; its method; its scale."""
    parameters = list(model.parameters())

    def sgd(weights: list[nn.Parameter]) -> torch.optim.SGD:
        return torch.optim.SGD(weights, lr=options["lr"], foreach=False, fused=tuned)

    if label == "amp-fp16":
        return _scaled_by_torch(sgd(parameters), parameters, options["clip"], device)
    if label == "fp16-master":
        if options["fp16_path"] == "main":
            return _as_in_main(model, sgd, options)
        return _as_in_fp16_optimizer(model, sgd, options, device)

    plain = sgd(parameters)

    def step(loss: torch.Tensor, rate: float) -> torch.Tensor | None:
        plain.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(parameters, options["clip"])
        _at(plain, rate).step()
        return norm

    return step, "torch.autocast" if label.startswith("amp-") else "none", None


def _scaled_by_torch(
    plain: torch.optim.SGD, parameters: list[nn.Parameter], clip: float, device: torch.device
) -> tuple[Step, str, ScaleLog]:
    scaler = torch.amp.GradScaler(device.type)
    log = ScaleLog("dynamic", scaler.get_scale())
    steps = 0

    def step(loss: torch.Tensor, rate: float) -> torch.Tensor | None:
        nonlocal steps
        steps += 1
        plain.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(plain)
        norm = nn.utils.clip_grad_norm_(parameters, clip)
        scaler.step(_at(plain, rate))
        scaler.update()
        # The scaler has read its overflow flag on the host already, so this reading waits for little more.
        scale = scaler.get_scale()
        log.note(steps, scale, skipped=scale < log.scale)
        return norm

    return step, "torch.autocast, torch.amp.GradScaler", log


def _as_in_main(model: nn.Module, sgd: Sgd, options: dict[str, Any]) -> tuple[Step, str, ScaleLog]:
    if options["loss_scale"] != "static":
        raise Failed("unsupported", "'fp16_path' is 'main', which has a static loss scale alone")
    weights = MasterWeights(model, "static", options["static_loss_scale"])
    plain = sgd(weights.masters)

    def step(loss: torch.Tensor, rate: float) -> torch.Tensor | None:
        weights.backward(loss)
        norm = nn.utils.clip_grad_norm_(weights.model_parameters, options["clip"])
        weights.unscaled_gradients()
        weights.update(_at(plain, rate).step, clean=True)
        return norm if weights.log.scale == 1 else norm / weights.log.scale

    return step, weights.method, weights.log


def _as_in_fp16_optimizer(
    model: nn.Module,
    sgd: Sgd,
    options: dict[str, Any],
    device: torch.device,
) -> tuple[Step, str, ScaleLog]:
    apex = apex_optimizer(device)
    kind, scale = options["loss_scale"], options["static_loss_scale"]
    if apex is None:
        weights = MasterWeights(model, kind, scale)
        plain = sgd(weights.masters)

        def step(loss: torch.Tensor, rate: float) -> torch.Tensor | None:
            weights.backward(loss.float())
            clean = weights.unscaled_gradients()
            norm = nn.utils.clip_grad_norm_(weights.masters, options["clip"]) if clean else None
            weights.update(_at(plain, rate).step, clean=clean)
            return norm

        return step, weights.method, weights.log

    plain = sgd(list(model.parameters()))
    wrapped = apex(plain, static_loss_scale=scale, dynamic_loss_scale=kind == "dynamic")
    log = ScaleLog(kind, wrapped.loss_scale)
    steps = 0

    def step_of_apex(loss: torch.Tensor, rate: float) -> torch.Tensor | None:
        nonlocal steps
        steps += 1
        wrapped.zero_grad()
        wrapped.backward(loss)
        norm = wrapped.clip_master_grads(options["clip"])
        _at(wrapped, rate).step()
        log.note(steps, wrapped.loss_scale, skipped=bool(wrapped.overflow))
        return norm if isinstance(norm, torch.Tensor) and not wrapped.overflow else None

    return step_of_apex, "apex FP16_Optimizer", log


def _at(optimiser: Any, rate: float) -> Any:
    for group in optimiser.param_groups:
        group["lr"] = rate
    return optimiser
