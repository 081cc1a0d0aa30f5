"""What a precision label means to torch, and what the arithmetic then really is.

A label sets its switches explicitly: torch's own default computes matrix products in IEEE fp32 and cuDNN's
convolutions and recurrent layers in TF32. The switches are not believed: a product and a convolution are held
against float64, and hooks count the types that the layers doing the work put out.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from parts.numerics import arithmetic
from parts.trial import Failed


@dataclass(frozen=True)
class Numerics:
    """What a label is to torch; what a report says of it is in `harness/record/vocabulary/precision.py`."""

    arithmetic: tuple[str, ...]
    """What a product's error against float64 may read as."""
    outputs: torch.dtype = torch.float32
    """The type that the layers that do the work give."""
    weights: torch.dtype = torch.float32
    autocast: bool = False
    scaled: bool = False
    """Whether the loss has a scale."""

    @property
    def plain(self) -> bool:
        """Whether weights, update and arithmetic are all of one type."""
        return self.weights == self.outputs and len(self.arithmetic) == 1 and not self.scaled


PRECISIONS = {
    "fp32-ieee": Numerics(("fp32-ieee",)),
    "fp32-default": Numerics(("fp32-ieee", "tf32")),
    "fp32-tf32": Numerics(("tf32",)),
    "amp-fp16": Numerics(("fp16",), torch.float16, autocast=True, scaled=True),
    "amp-bf16": Numerics(("bf16",), torch.bfloat16, autocast=True),
    "fp16-master": Numerics(("fp16",), torch.float16, torch.float16, scaled=True),
    "pure-fp16": Numerics(("fp16",), torch.float16, torch.float16),
    "pure-bf16": Numerics(("bf16",), torch.bfloat16, torch.bfloat16),
}
LACKING = Path(__file__).parents[2] / "precisions.json"
"""What no device of a kind, none below a compute capability, or none of some targets does in hardware.

The harness plans by the same file, so that nothing is planned that is refused here.
"""
OVERRIDES = ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "NVIDIA_TF32_OVERRIDE", "ONEDNN_DEFAULT_FPMATH_MODE")
LAYERS_THAT_WORK = (nn.Linear, nn.modules.conv._ConvNd, nn.RNNBase)
NO_KERNEL_WORDS = ("not implemented for", "could not create a primitive", "is not supported on")


def prepare(label: str, device: torch.device) -> dict[str, Any]:
    """Set the label's switches; return label, flags and probes. Refuses what the device cannot do."""
    switch(label, device)
    return facts(label, device)


def switch(label: str, device: torch.device) -> None:
    """Set the label's switches and compute nothing; refuses what the device cannot do."""
    lacking = _lacking(label, device)
    if lacking:
        raise Failed("unsupported", f"'{label}' is asked; {lacking}")
    if label != "fp32-default":
        _set_fp32("tf32" if label == "fp32-tf32" else "ieee")


class ScaleLog:
    """The loss scale at first and now, and the steps that were dropped."""

    def __init__(self, kind: str, first: float) -> None:
        self.kind = kind
        self.first = self.scale = first
        self.skipped_steps = 0

    def note(self, scale: float, *, skipped: bool) -> None:
        """Note the scale after a step."""
        self.scale = scale
        self.skipped_steps += skipped

    def facts(self) -> dict[str, Any]:
        """Return the loss scale as a record has it."""
        return {
            "kind": self.kind,
            "first": self.first,
            "last": self.scale,
            "skipped_steps": self.skipped_steps,
        }


def facts(label: str, device: torch.device) -> dict[str, Any]:
    """Return label, flags and probes as they are now."""
    return {"label": label, "flags": _flags(), "probes": probes(label, device)}


def effective_precision(
    facts: dict[str, Any],
    model: nn.Module,
    output_types: dict[str, int],
    method: str = "none",
    loss_scale: ScaleLog | None = None,
) -> dict[str, Any]:
    """Return the precision of a measurement: `facts` of the label, the types that were seen, and how."""
    return {
        **facts,
        "output_dtypes": output_types,
        "parameter_dtypes": parameter_types(model),
        "method": method,
        "loss_scale": loss_scale.facts() if loss_scale else None,
    }


def weight_type(label: str) -> torch.dtype:
    """Return the type that the model's weights have under a label."""
    return PRECISIONS[label].weights


def autocast(label: str, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Return torch.autocast on the trial's own device for the amp labels; else nothing."""
    if PRECISIONS[label].autocast:
        return torch.autocast(device.type, dtype=PRECISIONS[label].outputs)
    return contextlib.nullcontext()


def probes(label: str, device: torch.device) -> list[dict[str, Any]]:
    """Return a product and a convolution in the label's arithmetic against float64; what their error reads
    as.

    cudnn.benchmark is off meanwhile: it takes the fastest kernel that a switch allows, which in fp32-tf32 may
    be one in fp32, and the switch is what is asked about.
    """
    generator = torch.Generator().manual_seed(0)
    operations = {"matmul": torch.matmul, "convolution": nn.functional.conv2d}
    errors = []
    with preserved_random_state(device), torch.no_grad(), _without_benchmark():
        for name, (left, right) in arithmetic.SHAPES.items():
            operands = [torch.randn(shape, generator=generator) for shape in (left, right)]
            exact = operations[name](*(operand.double() for operand in operands))
            operands = [operand.to(device).to(weight_type(label)) for operand in operands]
            with autocast(label, device):
                result = operations[name](*operands)
            error = ((result.double().cpu() - exact).abs().max() / exact.abs().mean()).item()
            reads_as = arithmetic.reads_as(error, _name(result.dtype))
            errors.append({"operation": name, "error": error, "reads_as": reads_as})
    return errors


@contextlib.contextmanager
def counted_output_types(model: nn.Module) -> Iterator[dict[str, int]]:
    """Count by type what the convolutions, linear and recurrent layers put out while the block runs."""
    counts: Counter[str] = Counter()

    def count(layer: nn.Module, inputs: Any, output: Any) -> None:
        counts[_name((output[0] if isinstance(output, tuple) else output).dtype)] += 1

    layers = [layer for layer in model.modules() if isinstance(layer, LAYERS_THAT_WORK)]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    try:
        yield counts
    finally:
        for hook in hooks:
            hook.remove()


def parameter_types(model: nn.Module) -> dict[str, int]:
    """Return how many numbers the model holds in each type."""
    counts: Counter[str] = Counter()
    for parameter in model.parameters():
        counts[_name(parameter.dtype)] += parameter.numel()
    return counts


@contextlib.contextmanager
def preserved_random_state(device: torch.device) -> Iterator[None]:
    """Keep the trial's random numbers as they are, whatever the block draws."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        yield


@contextlib.contextmanager
def rehearsal(model: nn.Module, device: torch.device) -> Iterator[dict[str, int]]:
    """A forward and backward pass that leaves no trace: it warms the device, and counts output types."""
    with leaving_no_trace(model, device), counted_output_types(model) as counts:
        yield counts


@contextlib.contextmanager
def leaving_no_trace(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Pass of the block leave no random number drawn, no gradient and no buffer changed."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    try:
        with preserved_random_state(device):
            yield
    except RuntimeError as error:
        if any(words in str(error) for words in NO_KERNEL_WORDS):
            raise Failed("unsupported", f"this device has no kernel for it: {error}") from error
        raise
    model.zero_grad()
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _lacking(label: str, device: torch.device) -> str | None:
    """Return why this device cannot do a label in hardware; None where it can."""
    kind, card, capability, target = device.type, "", (0, 0), ""
    if kind == "cuda":
        kind = "rocm" if torch.version.hip else "cuda"
        card, capability = torch.cuda.get_device_name(device), torch.cuda.get_device_capability(device)
        target = getattr(torch.cuda.get_device_properties(device), "gcnArchName", "").partition(":")[0]
    for rule in json.loads(LACKING.read_text(encoding="utf-8")):
        if (
            rule["device"] == kind
            and label in rule["precisions"]
            and ("below" not in rule or capability < tuple(rule["below"]))
            and ("targets" not in rule or target in rule["targets"])
        ):
            return str(rule["because"]).format(card=card)
    return None


def _set_fp32(precision: str) -> None:
    """Set the old switches and the new ones alike: torch refuses to read an old one that disagrees.

    Inductor reads some of both.
    """
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    if hasattr(torch.backends.cudnn, "conv") and hasattr(torch.backends.cudnn.conv, "fp32_precision"):
        cudnn = torch.backends.cudnn
        for switch_of in (torch.backends.cuda.matmul, cudnn, cudnn.conv, cudnn.rnn):
            switch_of.fp32_precision = precision
        if precision == "ieee":
            for operation in ("matmul", "conv", "rnn"):
                getattr(torch.backends.mkldnn, operation).fp32_precision = precision


def _flags() -> dict[str, Any]:
    readers = {
        "cuda.matmul.fp32_precision": lambda: torch.backends.cuda.matmul.fp32_precision,
        "cudnn.conv.fp32_precision": lambda: torch.backends.cudnn.conv.fp32_precision,
        "cudnn.rnn.fp32_precision": lambda: torch.backends.cudnn.rnn.fp32_precision,
        "mkldnn.matmul.fp32_precision": lambda: torch.backends.mkldnn.matmul.fp32_precision,
        "mkldnn.conv.fp32_precision": lambda: torch.backends.mkldnn.conv.fp32_precision,
        "cuda.matmul.allow_tf32": lambda: torch.backends.cuda.matmul.allow_tf32,
        "cudnn.allow_tf32": lambda: torch.backends.cudnn.allow_tf32,
        "float32_matmul_precision": torch.get_float32_matmul_precision,
        "fp16_reduced_precision_reduction": lambda: (
            torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
        ),
        "bf16_reduced_precision_reduction": lambda: (
            torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
        ),
        "fp16_accumulation": lambda: torch.backends.cuda.matmul.allow_fp16_accumulation,
        "cudnn.benchmark": lambda: torch.backends.cudnn.benchmark,
    }
    flags: dict[str, Any] = {name: os.environ.get(name) for name in OVERRIDES}
    for name, read in readers.items():
        # Where nothing was set torch may refuse to read an old switch, and old versions lack the new ones.
        with contextlib.suppress(AttributeError, RuntimeError):
            value = read()
            flags[name] = value if isinstance(value, bool | int | float | str) else str(value)
    return flags


@contextlib.contextmanager
def _without_benchmark() -> Iterator[None]:
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def _name(dtype: torch.dtype) -> str:
    return str(dtype).split(".")[1]
