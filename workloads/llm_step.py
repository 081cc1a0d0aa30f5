"""Training steps of a decoder of published shape: tokens per second, memory, and the share of a peak.

Protocol `synthetic/1`: random weights; tokens that are drawn evenly, which changes what is learned and not
how fast; the next token is the target; AdamW at 3e-4 with betas of 0.9 and 0.95 and a weight decay of 0.1,
fused on a GPU; no clipping, no schedule; 100 epochs of 100 steps; nothing is validated. The batch is in
sequences per device, each of `sequence_length` tokens.

`lora_rank` freezes the decoder and trains a low rank beside each projection of its blocks; 0 trains all.
`checkpointing` keeps each block's input alone and computes the rest again. Precision `pure-bf16` holds
weights and optimiser in bfloat16, `amp-bf16` is autocast over fp32 weights. `fp8` computes the blocks'
projections in 8 bits, scaled by each tensor's largest value, where card and torch can. `compile` is
torch.compile; in the window nothing is compiled. Several devices share a step by `parallel`: `ddp`, `dp` or
`fsdp`, which splits weights and optimiser by block.
"""

from parts.trial import Failed, TrialProcess, main  # isort: skip  (its clock starts with this line)

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from parts import launcher
from parts.networks.decoder import (
    SHAPES,
    Decoder,
    DecoderShape,
    add_low_rank,
    attention_operations,
    replace_projections,
)
from parts.numerics.precision import weight_type
from parts.numerics.update import LABELS
from parts.timing.operations import eight_bits
from parts.training.batches import Rotated
from parts.training.fit import Loop, fit
from parts.training.setting import SHARING, Setting, run_in_processes

TITLE = "Steps of a language model's training"
ABOUT = "A decoder of published shape trains on random tokens: its speed and memory, and nothing is learned."
STEPS_PER_EPOCH, EPOCHS = 100, 100
RATE, BETAS, WEIGHT_DECAY = 3e-4, (0.9, 0.95), 0.1
SEQUENCE_LENGTH = 1024
OPTIONS: dict[str, Any] = {
    **SHARING,
    "lora_rank": 0,
    "checkpointing": False,
    "fp8": False,
}
BATCHES = 4


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, by itself or as the ranks that it is made of."""
    trial.choose("protocol", trial.asked["protocol"], ("synthetic/1",))
    trial.choose("model", trial.variant["model"], SHAPES)
    return run_in_processes(trial, train, OPTIONS, (*LABELS, "pure-bf16"))


def train(setting: Setting) -> dict[str, Any]:
    """Train in this process and return what it measured."""
    name, length = (setting.trial.variant[each] for each in ("model", "sequence_length"))
    shape, length = SHAPES[name], length or SEQUENCE_LENGTH
    if shape.positions and length > shape.positions:
        raise Failed("unsupported", f"'{name}' has {shape.positions} positions; {length} are asked")
    if setting.options["fp8"] and setting.samples * length % SIDE:
        raise Failed("unsupported", f"option 'fp8' needs a step of tokens that {SIDE} divides")
    model = decoder(shape, setting)
    trained = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    return fit(
        setting,
        model,
        tokens(setting, shape.words, length),
        None,
        next_token_loss,
        optimiser,
        Loop(EPOCHS, sample_unit="token", alike=True),
        data={"name": "random"},
        structure={"trained_parameters": trained, "sequence_length": length},
        other_operations=attention_operations(shape, setting.samples, length),
    )


def decoder(shape: DecoderShape, setting: Setting) -> Decoder:
    """Return the model in its weights' type, with what the options change of it."""
    rank = setting.options["lora_rank"]
    if rank < 0:
        raise Failed("unsupported", f"option 'lora_rank' is {rank} where it must be 0 or more")
    if setting.options["fp8"]:
        eight_bits(setting.device, (NARROW,))
    with _made_on(setting):
        model = Decoder(shape, checkpointing=setting.options["checkpointing"])
        if setting.options["fp8"]:
            replace_projections(model, Fp8Linear.from_layer)
        return add_low_rank(model, rank) if rank else model


@contextlib.contextmanager
def _made_on(setting: Setting) -> Iterator[None]:
    """Layers are made on the device and in the weights' type: a large decoder fits nowhere twice."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(weight_type(setting.label))
    try:
        with setting.device:
            yield
    finally:
        torch.set_default_dtype(before)


def optimiser(model: nn.Module) -> torch.optim.Optimizer:
    """Return AdamW over what trains."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    fused = all(weight.device.type == "cuda" for weight in weights)
    return torch.optim.AdamW(weights, lr=RATE, betas=BETAS, weight_decay=WEIGHT_DECAY, fused=fused)


def next_token_loss(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return cross-entropy in nats per token."""
    return nn.functional.cross_entropy(scores.flatten(0, 1).float(), targets.flatten())


def tokens(setting: Setting, words: int, length: int) -> Rotated:
    """Return evenly drawn tokens, each rank's own, and the one after each, where the data mode has them."""
    generator = torch.Generator().manual_seed(setting.trial.seed * 1_000_003 + setting.place.rank)
    shape = (BATCHES, setting.samples, length + 1)
    drawn = torch.randint(words, shape, generator=generator).to(setting.home)
    return Rotated([(each[:, :-1], each[:, 1:]) for each in drawn], STEPS_PER_EPOCH)


NARROW, WIDE = torch.float8_e4m3fn, torch.float8_e5m2
SIDE = 16
"""What the sides of a product have to be multiples of."""


class Fp8Linear(nn.Linear):
    """A linear layer whose products are in 8 bits, forward and backward."""

    @classmethod
    def from_layer(cls, layer: nn.Linear) -> "Fp8Linear":
        """Return the same weights; raises Failed where a side is no multiple of 16."""
        if layer.in_features % SIDE or layer.out_features % SIDE:
            sides = f"{layer.in_features} by {layer.out_features}"
            raise Failed("unsupported", f"option 'fp8' needs sides that 16 divides, not {sides}")
        layer.__class__ = cls
        assert isinstance(layer, cls)
        return layer

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return features as wide as the weight's rows; on tensors without content, as any linear layer."""
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
    """Return left · right in bfloat16; the left is stored by rows, the right by columns, as torch needs."""
    (left, left_scale), (right, right_scale) = _scale(left, of), _scale(right, over)
    return torch._scaled_mm(
        left.contiguous(),
        right.t().contiguous().t(),
        scale_a=left_scale,
        scale_b=right_scale,
        out_dtype=torch.bfloat16,
    )


def _scale(tensor: torch.Tensor, to: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tensor in 8 bits, its largest value at the type's, and what it has to be multiplied by."""
    scale = tensor.abs().amax().float().clamp(min=1e-12) / torch.finfo(to).max
    return (tensor.float() / scale).to(to), scale


if __name__ == "__main__":
    launcher.settle()
    main(run)
