"""What a card's check measures before its window: products, copies, replayed computations, and its memory."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.record.series import Packed, Seconds
from harness.record.strict_model import Model, Number

ProductArithmetic = Literal["fp32-ieee", "tf32", "fp16", "bf16", "fp8"]
"""What a product is computed in."""


class TimedPart(Model):
    """One operation timed again and again for seconds, with the samples in which a clock still settles.

    A sample's rate is `call_amount` (operations of a product, bytes of a copy) times calls over its time. Its
    phase in the telemetry has the operation's name, with the arithmetic behind it.
    """

    operation: Literal["product", "copy", "host-to-device", "device-to-host"]
    arithmetic: Annotated[ProductArithmetic | None, Field(exclude_if=lambda value: value is None)] = None
    """The product's; null for a copy."""
    call_amount: Annotated[float, Field(gt=0)]
    calls_per_sample: Annotated[int, Field(ge=1)]
    structure: dict[str, int]
    """m, n and k of a product, bytes of a copy."""
    sample_us: Packed


class Replay(Model):
    """One computation again and again on the same inputs, which depend on no seed, machine or process."""

    computation: Literal["product", "training-step"]
    arithmetic: ProductArithmetic
    replays: Annotated[int, Field(ge=1)]
    """After the first."""
    differing: Annotated[int, Field(ge=0)]
    """Those with other bits than the first."""
    largest_relative_difference: Number
    """The largest difference of any value in any replay, over the largest value of the first."""
    bound: Annotated[float, Field(gt=0)]
    """What another order of summing may make of it."""
    bits_promised: bool
    """Whether the library promises equal bits, on one card and on another of its model."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """The hash of the first's bits, to hold another process against."""


class MemoryPattern(Model):
    """A pattern, other at every address, all written before any is read; the second pass turns its bits."""

    free_bytes: Annotated[int, Field(ge=0)]
    tested_bytes: Annotated[int, Field(ge=1)]
    passes: Annotated[int, Field(ge=1)]
    wrong_words: Annotated[int, Field(ge=0)]
    """Words of 8 bytes each, in all passes."""
    write_seconds: Seconds
    read_seconds: Seconds


class CardCheck(Model):
    """What was measured before the window, which holds one product without a pause."""

    parts: tuple[TimedPart, ...]
    lacking: dict[ProductArithmetic, Annotated[str, Field(max_length=200)]] = {}
    """Arithmetic that was not measured, and why."""
    replays: tuple[Replay, ...]
    memory_pattern: MemoryPattern
