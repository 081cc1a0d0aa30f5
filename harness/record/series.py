"""Raw step times, small enough to keep: integer microseconds, deflated, inside the JSON."""

from __future__ import annotations

import base64
import binascii
import sys
import zlib
from array import array
from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, model_validator

from harness.record.base import Model

STEPS_KEPT_SINGLE = 20_000


class Series(Model):
    """Durations in microseconds. Above 20,000 of them each value is the sum over `steps_per_value` steps."""

    count: Annotated[int, Field(ge=0, le=1_000_000)]
    steps_per_value: Annotated[int, Field(ge=1)] = 1
    microseconds: Annotated[str, Field(max_length=400_000)]
    """Base64 of deflated little-endian unsigned 32-bit integers (64-bit where a value needs it)."""
    wide: bool = False

    @classmethod
    def of(cls, microseconds: Sequence[int]) -> Self:
        """Packs durations; a last group of less than `steps_per_value` steps is dropped."""
        step = -(-len(microseconds) // STEPS_KEPT_SINGLE) or 1
        whole = len(microseconds) - len(microseconds) % step
        values = [sum(microseconds[at : at + step]) for at in range(0, whole, step)]
        wide = max(values, default=0) >= 2**32
        packed = array("Q" if wide else "I", values)
        if sys.byteorder == "big":
            packed.byteswap()
        text = base64.b64encode(zlib.compress(packed.tobytes(), 9)).decode()
        return cls(count=len(values), steps_per_value=step, microseconds=text, wide=wide)

    @model_validator(mode="after")
    def _unpacks(self) -> Self:
        self.values()
        return self

    def values(self) -> array[int]:
        """The durations in microseconds, each of `steps_per_value` steps."""
        values = array("Q" if self.wide else "I")
        size = self.count * values.itemsize
        try:
            inflate = zlib.decompressobj()
            raw = inflate.decompress(base64.b64decode(self.microseconds, validate=True), size + 1)
        except (binascii.Error, zlib.error, ValueError) as error:
            raise ValueError(f"the series cannot be unpacked ({error})") from None
        if len(raw) != size:
            raise ValueError(f"the series holds {len(raw)} bytes where {self.count} values need {size}")
        values.frombytes(raw)
        if sys.byteorder == "big":
            values.byteswap()
        return values
