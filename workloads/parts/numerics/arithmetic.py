"""What an arithmetic is by its error against float64, for every framework that can multiply and convolve.

Python 3.7 syntax; NumPy only where a probe is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Largest error over mean magnitude: some 1e-5 in fp32 at these sizes, 2e-3 with TF32's or fp16's ten bits of
# mantissa, 1.5e-2 with bf16's seven.
FP32_ERROR = 3e-4
TEN_BIT_ERROR = 6e-3
SHAPES = {"matmul": ((512, 1024), (1024, 512)), "convolution": ((8, 128, 28, 28), (128, 128, 3, 3))}
"""The operands' shapes; a convolution's are images and weights, channels before pixels, and its edges are
not padded."""


def reads_as(error: float, type_name: str) -> str:
    """Return an arithmetic's name by its error; the output's type separates fp16 from TF32."""
    if type_name in ("float16", "bfloat16"):
        return "fp16" if type_name == "float16" else "bf16"
    if error < FP32_ERROR:
        return "fp32-ieee"
    return "tf32" if error < TEN_BIT_ERROR else "bf16"


def probes(operations: dict[str, Callable[[Any, Any], Any]]) -> list[dict[str, Any]]:
    """Return a product and a convolution of a framework in fp32 against float64; what their error reads as.

    `operations` has `matmul` and `convolution`, from NumPy arrays to one.
    """
    import numpy as np

    exactly = {"matmul": np.matmul, "convolution": _convolution}
    stream = np.random.RandomState(0)
    found = []
    for name, shapes in SHAPES.items():
        operands = [stream.standard_normal(shape).astype(np.float32) for shape in shapes]
        exact = exactly[name](*(operand.astype(np.float64) for operand in operands))
        result = operations[name](*operands)
        error = float(np.abs(result.astype(np.float64) - exact).max() / np.abs(exact).mean())
        found.append({"operation": name, "error": error, "reads_as": reads_as(error, str(result.dtype))})
    return found


def _convolution(images: Any, weights: Any) -> Any:
    import numpy as np

    sides = [pixels - edge + 1 for pixels, edge in zip(images.shape[2:], weights.shape[2:])]
    total = np.zeros((images.shape[0], weights.shape[0], *sides))
    for row in range(weights.shape[2]):
        for column in range(weights.shape[3]):
            part = images[:, :, row : row + sides[0], column : column + sides[1]]
            total += np.einsum("nihw,oi->nohw", part, weights[:, :, row, column], optimize=True)
    return total
