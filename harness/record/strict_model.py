"""What all models share: frozen, no unknown keys, canonical JSON, and numbers that are not finite."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    AllowInfNan,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
)

from harness.errors import PlanError, RecordError, UserError

_NOT_FINITE = ("nan", "inf", "-inf")


def _parse_number(value: Any) -> Any:
    if isinstance(value, str):
        if value not in _NOT_FINITE:
            raise ValueError(f"{value!r} is not a number")
        return float(value)
    return value


def _write_number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


Number = Annotated[
    float,
    AllowInfNan(True),
    BeforeValidator(_parse_number, json_schema_input_type=float | Literal["nan", "inf", "-inf"]),
    PlainSerializer(_write_number, when_used="json"),
]
"""A float that may be not finite; in JSON the strings "nan", "inf" and "-inf"."""


def _check_year(moment: datetime) -> datetime:
    if not 2000 <= moment.year < 2200:
        raise ValueError(f"the year {moment.year} is none of a record's")
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_check_year)]
"""A date with its time and zone, far enough from the calendar's ends to be reckoned with."""


T = TypeVar("T")

LeftOutIfNull = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
"""A field that a file has only where it says something: files of before it keep their ids and hashes."""


class Model(BaseModel):
    """A frozen value; refuses keys it does not know, and numbers that are not finite except in a `Number`."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        protected_namespaces=(),
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    @classmethod
    def parse(
        cls,
        given: str | bytes | Mapping[str, Any],
        where: str,
        remedy: str = "correct or remove it",
        refusal: type[UserError] = RecordError,
    ) -> Self:
        """Read JSON, or what a file holds; raises the refusal with the file, the field and the reason."""
        try:
            if isinstance(given, Mapping):
                return cls.model_validate(given)
            return cls.model_validate_json(given)
        except ValidationError as error:
            raise refusal(f"{where}: {first_problem(error)}", remedy=remedy) from None

    @classmethod
    def parse_toml(
        cls, content: bytes, where: str, remedy: str, refusal: type[UserError] = PlanError
    ) -> Self:
        """Read TOML; raises the refusal with the file, the field and the reason."""
        try:
            tables = parse_toml(content)
        except UnicodeError as error:
            raise refusal(f"{where} {error}", remedy="save it again as UTF-8") from None
        except ValueError as error:
            raise refusal(f"{where} is not TOML: {error}", remedy="correct the line it names") from None
        return cls.parse(tables, where, remedy, refusal)

    def canonical(self) -> str:
        """Return JSON with sorted keys and no spaces: equal values give equal text."""
        return canonical_json(self.model_dump(mode="json"))


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys, no spaces, and no numbers that JSON does not have."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def short_hash(value: Any, digits: int = 12) -> str:
    """Return the first hex digits of the SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:digits]


TOML_BYTES = 2 * 2**20
"""More than any table that was published."""

_DEEP_KEY = re.compile(rb"(?<![\w\"'.-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){24}")
"""tomllib's time and memory grow with the square of a dotted key's parts."""


def parse_toml(content: bytes) -> dict[str, Any]:
    """Return a TOML file's tables; raises ValueError, in one clause, for whatever is none or has no end."""
    if len(content) > TOML_BYTES:
        raise ValueError(f"{len(content)} bytes, where a file has at most {TOML_BYTES}")
    if _DEEP_KEY.search(content):
        raise ValueError("a key has too many parts")
    try:
        return tomllib.loads(decode_utf8(content))
    except RecursionError:
        raise ValueError("its values are nested too deep") from None


def decode_utf8(content: bytes) -> str:
    """Return a text that a person saved, without Windows' byte-order mark; raises UnicodeError."""
    text, place = "\0", ""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = f" (byte {error.start + 1})"
    if "\0" in text:
        raise UnicodeError(f"is not UTF-8{place}, perhaps UTF-16 as some editors of Windows save it")
    return text


_PLAIN = {"extra_forbidden": "unknown key", "missing": "it is missing", "string_too_short": "it is empty"}


def first_problem(error: ValidationError) -> str:
    """Return pydantic's first problem in one clause: the field, list counted from 1, and what is wrong.

    An unknown key goes before one that is missing, which may be the same, mistyped.
    """
    problems = sorted(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
    parts: list[str] = []
    for part in problems[0]["loc"]:
        if isinstance(part, int) and parts:
            parts[-1] += f" {part + 1}"
        else:
            parts.append(str(part)[:80])
    field = ".".join(parts) or "the whole"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    message = problems[0]["msg"].removeprefix("Value error, ")
    message = _PLAIN.get(problems[0]["type"], message)
    return f"'{field}': {message[:300]}{more}"
