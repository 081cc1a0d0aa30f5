"""Raw step times, small enough to keep: integer microseconds, deflated, inside the JSON."""

from __future__ import annotations

import base64
import binascii
import zlib
from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from harness.record.strict_model import Model

STEPS_KEPT_SINGLE = 20_000


def pack(values: array[int]) -> str:
    """Return base64 of deflated little-endian integers."""
    return base64.b64encode(zlib.compress(values.tobytes(), 9)).decode()


@lru_cache(maxsize=16)
def unpack(text: str, typecode: Literal["I", "Q", "i"], count: int, what: str) -> array[int]:
    """Return what `pack` packed; raises ValueError where it is not `count` integers, naming them `what`.

    Kept, since a record's summary reads one series several times: nobody changes it.
    """
    values = array(typecode)
    size = count * values.itemsize
    try:
        raw = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), size + 1)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise ValueError(f"the {what} cannot be unpacked ({error})") from None
    if len(raw) != size:
        raise ValueError(f"the {what} holds {len(raw)} bytes where {count} values need {size}")
    values.frombytes(raw)
    return values


class Series(Model):
    """Durations in microseconds; each value is the sum over `steps_per_value` steps.

    That is more than 1 above 20,000 steps, and where steps end several together.
    """

    count: Annotated[int, Field(ge=0, le=STEPS_KEPT_SINGLE)]
    steps_per_value: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    microseconds: Annotated[str, Field(max_length=400_000)]
    """Base64 of deflated little-endian unsigned 32-bit integers (64-bit where a value needs it)."""
    wide: bool = False

    @classmethod
    def from_microseconds(cls, microseconds: Sequence[int], together: int = 1) -> Self:
        """Pack microseconds of steps that end `together` at once; a short last group is dropped."""
        step = together * (-(-len(microseconds) // (together * STEPS_KEPT_SINGLE)) or 1)
        whole = len(microseconds) - len(microseconds) % step
        values = [sum(microseconds[at : at + step]) for at in range(0, whole, step)]
        wide = max(values, default=0) >= 2**32
        packed = array("Q" if wide else "I", values)
        return cls(count=len(values), steps_per_value=step, microseconds=pack(packed), wide=wide)

    @model_validator(mode="after")
    def _unpacks(self) -> Self:
        self.values()
        return self

    def values(self) -> array[int]:
        """Return the durations in microseconds, each of `steps_per_value` steps."""
        return unpack(self.microseconds, "Q" if self.wide else "I", self.count, "series")


def _pack_list(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, list):
        return value
    for place, microseconds in enumerate(value):
        if type(microseconds) is not int or not 0 <= microseconds < 2**40:
            raise ValueError(f"value {place} is no whole number of microseconds")
    return Series.from_microseconds(value, info.data.get("steps_together", 1))


Packed = Annotated[Series, BeforeValidator(_pack_list, json_schema_input_type=Series | list[int])]
"""A workload writes plain lists of integer microseconds; a record holds them packed."""

Seconds = Annotated[float, Field(ge=0)]
