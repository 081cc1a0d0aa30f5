"""Linear layers whose three products are in 8 bits, by torch's own scaled product.

Inputs and weights are e4m3, gradients e5m2, as in Micikevicius et al., 2022; each tensor is scaled by its own
largest value at each step. What comes out is bfloat16; weights stay as they are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from parts.trial import Failed

NARROW, WIDE = torch.float8_e4m3fn, torch.float8_e5m2
SIDE = 16
"""What the sides of a product have to be multiples of."""


def refuse_where_it_lacks(device: torch.device) -> None:
    """Raises Failed where card or torch has no scaled product in 8 bits."""
    left = torch.ones(SIDE, SIDE, device=device)
    try:
        _product(left, NARROW, left, NARROW)
    except (RuntimeError, AttributeError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise Failed("unsupported", f"option 'fp8' is asked; no scaled product here ({reason})") from error


def replace(model: nn.Module) -> None:
    """Puts an 8-bit layer in the place of each linear one within."""
    for name, layer in list(model.named_children()):
        if isinstance(layer, nn.Linear):
            setattr(model, name, Fp8Linear.of(layer))
        else:
            replace(layer)


class Fp8Linear(nn.Linear):
    """A linear layer whose products are in 8 bits, forward and backward."""

    @classmethod
    def of(cls, layer: nn.Linear) -> Fp8Linear:
        """The same weights; raises Failed where a side is no multiple of 16."""
        if layer.in_features % SIDE or layer.out_features % SIDE:
            sides = f"{layer.in_features} by {layer.out_features}"
            raise Failed("unsupported", f"option 'fp8' needs sides that 16 divides, not {sides}")
        layer.__class__ = cls
        assert isinstance(layer, cls)
        return layer

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Features as wide as the weight's rows; on tensors without content, as any linear layer."""
        if inputs.device.type == "meta":
            return super().forward(inputs)
        output: torch.Tensor = _Product.apply(inputs.flatten(0, -2), self.weight)
        output = output.unflatten(0, inputs.shape[:-1])
        return output if self.bias is None else output + self.bias.to(output.dtype)


class _Product(torch.autograd.Function):
    """inputs · weightᵀ with its two gradients, each a product in 8 bits."""

    @staticmethod
    def forward(ctx: Any, inputs: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(inputs, weight)
        return _product(inputs, NARROW, weight.t(), NARROW)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        (gradient,), (inputs, weight) = gradients, ctx.saved_tensors
        of_inputs = _product(gradient, WIDE, weight, NARROW) if ctx.needs_input_grad[0] else None
        of_weight = _product(gradient.t(), WIDE, inputs, NARROW) if ctx.needs_input_grad[1] else None
        return (
            None if of_inputs is None else of_inputs.to(inputs.dtype),
            None if of_weight is None else of_weight.to(weight.dtype),
        )


def _product(left: torch.Tensor, of: torch.dtype, right: torch.Tensor, over: torch.dtype) -> torch.Tensor:
    """left · right in bfloat16; the left lies by rows and the right by columns, as torch wants them."""
    (left, left_scale), (right, right_scale) = _scaled(left, of), _scaled(right, over)
    return torch._scaled_mm(
        left.contiguous(),
        right.t().contiguous().t(),
        scale_a=left_scale,
        scale_b=right_scale,
        out_dtype=torch.bfloat16,
    )


def _scaled(tensor: torch.Tensor, to: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """The tensor in 8 bits, its largest value at the type's, and what it has to be multiplied by."""
    scale = tensor.abs().amax().float().clamp(min=1e-12) / torch.finfo(to).max
    return (tensor.float() / scale).to(to), scale
