"""Operations and traffic of one training step, counted on tensors without content, at no cost to the device.

Two independent counts of the operations must agree, or none is given: torch's counter on one eager step, and
the layers' sizes. Only products count (convolutions, linear and recurrent layers), a multiplication and an
addition each as one; recomputation never does. What does not train has no gradient of its weights, and what
comes before everything that trains has none of its input.

On a device torch's counter gives 0 for a recurrent layer, which is one fused operation there; on `meta` it is
taken apart and counted.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from parts.numerics.precision import PRECISIONS

AGREEMENT = 1e-6
METHOD = "torch FlopCounterMode on one training step, equal to the count by the layers' sizes"
ALLOCATES = ("aten::empty", "aten::new_empty", "aten::empty_like", "aten::empty_strided")


def image_operations(model: nn.Module, size: int, batch_size: int, value_bytes: int) -> dict[str, Any]:
    """Return operations and bytes of an image's training step at this batch size."""
    labels = torch.zeros(batch_size, dtype=torch.long, device="meta")
    images = torch.zeros((batch_size, 3, size, size), device="meta")

    def passes(twin: nn.Module) -> None:
        nn.functional.cross_entropy(twin(images), labels).backward()

    return batch_operations(model, passes, batch_size, value_bytes)


def batch_operations(
    model: nn.Module,
    passes: Callable[[nn.Module], object],
    samples: int,
    value_bytes: int,
    other_operations: int = 0,
) -> dict[str, Any]:
    """Return the same of a sample of a batch of so many; `passes` goes forward and backward on `meta`.

    `other_operations` are the operations of a step that no layer's size gives, such as attention's.
    """
    twin = _without_content(model)
    by_sizes = _Sizes(twin)
    with FlopCounterMode(display=False) as counter, Traffic() as traffic:
        passes(twin)
    by_sizes.remove()
    total = by_sizes.total + other_operations
    return _agreement(counter.get_total_flops(), total, samples, traffic.values, value_bytes)


def token_operations(
    model: nn.Module, recurrent: nn.RNNBase, decoder: nn.Linear, shape: tuple[int, int], value_bytes: int
) -> dict[str, Any]:
    """Return the same of one token; `model(tokens, state)` gives scores, `shape` is (tokens, columns).

    operations = 6 · (weights of the recurrent layers + weights of the decoder), a product each forward, for
    the gradient of its input and for that of its weights.
    """
    twin, tokens = _without_content(model), shape[0] * shape[1]
    with FlopCounterMode(display=False) as counter:
        state = twin.first_state(shape[1])  # type: ignore[operator]
        scores = twin(torch.zeros(shape, dtype=torch.long, device="meta"), state)[0]
        scores.sum().backward()
    # The state that a sequence starts from takes no gradient.
    first = 2 * shape[1] * sum(w.numel() for name, w in recurrent.named_parameters() if "weight_hh" in name)
    matrices = sum(w.numel() for name, w in recurrent.named_parameters() if name.startswith("weight"))
    whole = 6 * tokens * (matrices + decoder.weight.numel())
    values = _traffic_of_tokens(recurrent, decoder, shape)
    return _agreement(counter.get_total_flops() + first, whole, tokens, values, value_bytes)


def value_bytes(label: str) -> int:
    """Return bytes of a value under a precision label; autocast's fp32 parts are taken for 16-bit."""
    return PRECISIONS[label].outputs.itemsize


class Traffic(TorchDispatchMode):
    """Counts the values that operations read and write, as if nothing were fused or cached; views move
    nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.values = 0

    def __torch_dispatch__(
        self, operation: Any, types: Any, given: tuple[Any, ...] = (), named: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation and count its operands."""
        result = operation(*given, **(named or {}))
        read, written = _tensors(_needed(operation, given)), _tensors(result)
        storages = {_storage(tensor) for tensor in read}
        view = not operation._schema.is_mutable and all(_storage(tensor) in storages for tensor in written)
        if not view and not operation._schema.name.startswith(ALLOCATES):
            self.values += sum(map(_held, (*read, *written)))
        return result


def _agreement(counted: int, by_sizes: int, samples: int, values: int, size: int) -> dict[str, Any]:
    if not counted or abs(counted - by_sizes) > AGREEMENT * by_sizes:
        disagree = f"not given: torch counts {counted} operations a step, the layers' sizes give {by_sizes}"
        return {"per_sample": None, "method": disagree}
    return {
        "per_sample": by_sizes / samples,
        "method": METHOD,
        "bytes_per_sample": values * size / samples,
    }


class _Sizes:
    """Operations of convolutions and linear layers by their shapes, as a forward pass goes through them."""

    def __init__(self, model: nn.Module) -> None:
        self.total = 0
        layers = [m for m in model.modules() if isinstance(m, nn.Linear | nn.modules.conv._ConvNd)]
        self._hooks = [layer.register_forward_hook(self._count) for layer in layers]

    def _count(self, layer: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        # Products for one value of the output: the input channels under the kernel, or the inputs.
        each = layer.weight[0].numel()
        passes = 1 + layer.weight.requires_grad + inputs[0].requires_grad
        self.total += 2 * output.numel() * each * passes

    def remove(self) -> None:
        """Take the hooks off."""
        for hook in self._hooks:
            hook.remove()


def _without_content(model: nn.Module) -> nn.Module:
    """Return the same model in fp32 on `meta`; no weight is copied on the way: large models have no room for
    it."""
    parameters = {
        id(weight): nn.Parameter(_bare(weight), weight.requires_grad) for weight in model.parameters()
    }
    buffers = {id(buffer): _bare(buffer) for buffer in model.buffers()}
    return deepcopy(model, {**parameters, **buffers}).to("meta").train()


def _bare(tensor: torch.Tensor) -> torch.Tensor:
    dtype = torch.float32 if tensor.is_floating_point() else tensor.dtype
    return torch.empty_like(tensor, dtype=dtype, device="meta", requires_grad=False)


def _traffic_of_tokens(recurrent: nn.RNNBase, decoder: nn.Linear, shape: tuple[int, int]) -> int:
    """Return values of a whole step: the recurrent layers as one fused operation each, the rest one by one.

    A fused layer reads its input and writes gates, cell and output; backward it reads these and the
    gradient of its output, and writes that of its input. Its weights are read twice and their gradient is
    written once, however long the sequence.
    """
    tokens, units, layers = shape[0] * shape[1], recurrent.hidden_size, recurrent.num_layers
    gates = recurrent.weight_hh_l0.shape[0]
    inputs = recurrent.input_size + (layers - 1) * units
    fused = 3 * sum(w.numel() for w in recurrent.parameters())
    fused += tokens * (3 * inputs + layers * (2 * gates + 5 * units))

    def rest() -> torch.Tensor:
        embedded = nn.functional.dropout(nn.functional.embedding(words, table), 0.5)
        output = torch.zeros(*shape, units, device="meta", requires_grad=True)
        scores = nn.functional.linear(nn.functional.dropout(output, 0.5), weight, bias).flatten(0, 1)
        loss = nn.functional.cross_entropy(scores, words.flatten())
        return loss + embedded.sum()

    table = torch.zeros(decoder.out_features, recurrent.input_size, device="meta", requires_grad=True)
    weight, bias = (torch.zeros_like(w, device="meta", requires_grad=True) for w in decoder.parameters())
    words = torch.zeros(shape, dtype=torch.long, device="meta")
    with Traffic() as traffic:
        rest().backward()
    return fused + traffic.values


def _needed(operation: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the operands that are read: a convolution's gradient takes only what its mask asks for."""
    if operation is not torch.ops.aten.convolution_backward.default:
        return given
    gradient, images, weight, mask = given[0], given[1], given[2], given[-1]
    return gradient, weight if mask[0] else None, images if mask[1] else None


def _tensors(operands: Any) -> tuple[torch.Tensor, ...]:
    if isinstance(operands, torch.Tensor):
        return (operands,)
    if isinstance(operands, tuple | list):
        return tuple(tensor for operand in operands for tensor in _tensors(operand))
    return ()


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _held(tensor: torch.Tensor) -> int:
    """Return values that a tensor holds: an expanded one has fewer than its shape says."""
    return min(tensor.numel(), tensor.untyped_storage().nbytes() // tensor.element_size())
