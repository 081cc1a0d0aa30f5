"""Every precision, with all that the host and the report know of one: labels follow from this table alone.

What a label means to torch is in `workloads/parts/numerics/precision.py`, and which devices lack it in
`workloads/precisions.json`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Precision = Literal[
    "fp32-ieee",
    "fp32-tf32",
    "fp32-default",
    "amp-fp16",
    "amp-bf16",
    "fp16-master",
    "pure-fp16",
    "pure-bf16",
    "program",
]
"""fp16-master: half model, fp32 master weights, a loss scale; the studies' "FP16". program: its own."""

_OUTPUTS = {"fp16": "float16", "bf16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class PrecisionTraits:
    """What a label promises, and how it is called."""

    words: str
    arithmetic: tuple[str, ...]
    """What an error against float64 may read as; several where the framework chooses."""
    weights: str = "float32"
    """The type that the model's weights have."""

    @property
    def outputs(self) -> str:
        """Return the type that layers with weights put out; empty where nothing is known."""
        return _OUTPUTS.get(self.arithmetic[0], "float32") if self.arithmetic else ""

    @property
    def full(self) -> bool:
        """Return whether weights and outputs are of 32 bits."""
        return self.weights == self.outputs == "float32"

    @property
    def peak(self) -> str | None:
        """Return the field of a card's dense peaks; null where the label mixes two."""
        return self.arithmetic[0].removesuffix("-ieee") if len(self.arithmetic) == 1 else None

    @property
    def product(self) -> str | None:
        """Return the ceiling measured by products in the same arithmetic; null where it is of two."""
        return f"gemm_{self.arithmetic[0]}_tflops" if len(self.arithmetic) == 1 else None


PRECISIONS: MappingProxyType[Precision, PrecisionTraits] = MappingProxyType(
    {
        "fp32-ieee": PrecisionTraits(
            "32-bit arithmetic throughout, every bit of it: the strict baseline", ("fp32-ieee",)
        ),
        "fp32-default": PrecisionTraits(
            "what the framework calls 32-bit: convolutions may be TF32, matrix products are exact",
            ("fp32-ieee", "tf32"),
        ),
        "fp32-tf32": PrecisionTraits(
            "32-bit numbers, multiplied with a 10-bit mantissa (TF32) on cards that have it",
            ("tf32",),
        ),
        "amp-fp16": PrecisionTraits(
            "the framework chooses 16-bit floats (FP16) where it is safe, with a loss scale", ("fp16",)
        ),
        "amp-bf16": PrecisionTraits(
            "the framework chooses bfloat16 where it is safe; no loss scale", ("bf16",)
        ),
        "fp16-master": PrecisionTraits(
            "a 16-bit model with 32-bit master weights and a loss scale: what the studies call FP16",
            ("fp16",),
            "float16",
        ),
        "pure-fp16": PrecisionTraits("everything in 16-bit floats (FP16)", ("fp16",), "float16"),
        "pure-bf16": PrecisionTraits("everything in bfloat16", ("bf16",), "bfloat16"),
        "program": PrecisionTraits("a published program's own precision, as it says, unchecked", (), ""),
    }
)
"""In the order that groups of a chart have."""

PRECISION_ORDER = tuple(PRECISIONS)

FULL_PRECISION = tuple(label for label, traits in PRECISIONS.items() if traits.full)

PURE: dict[str, Precision] = {
    traits.arithmetic[0]: label for label, traits in PRECISIONS.items() if traits.peak is not None
}
"""By arithmetic, the label that has nothing else: the last of the table, with weights of that type."""
