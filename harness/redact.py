"""Finds what points at a machine or a person in a value: its names, an address, a path, a place on the net.

A record holds our own messages and no log, so that few kinds of text can come into one.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

_PRIVATE = r"(?<![\w.])(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2}(?!\.?\w)"
_MAC = r"\b(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\b"
_SYSTEM = r"(?:bin|dev|etc|lib\w*|opt|proc|sbin|sys|usr|workloads)/"
_KINDS = {
    "a URL": re.compile(r"\w://"),
    "an e-mail address": re.compile(r"[\w.+-]@(?!sha\d+:|\d)\w"),
    "a path": re.compile(rf"(?<![\w.~/])/+(?!{_SYSTEM})[^\s/'\"]+/|\b[A-Za-z]:\\"),
    "a serial number": re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    "a network address": re.compile(f"{_PRIVATE}|{_MAC}"),
}

WITHHELD = "withheld"
"""Stands for a value that would name somebody."""

# fmt: off
NOBODY = frozenset((
    "root", "user", "admin", "administrator", "ubuntu", "debian", "localhost", "nobody", "runner",
    "container", "default", "guest", "test", "host", "python", "gpudyno", "unknown", "home", "data", "cpu",
    "gpu", "cuda", "rocm", "nvidia", "amd", "intel", "torch", "pytorch", "model", "linux",
))
# fmt: on
"""Names that identify nobody: defaults, and the words of records."""

_PACKED = frozenset({"microseconds", "packed"})
"""Deflated numbers: the models refuse anything else there, and their letters spell paths by chance."""
_VERSION = re.compile(r"[\w.+!-]{1,64}")


def find_leaks(record_json: str) -> tuple[str, ...]:
    """Return what a record would give away, as "'field' holds a path".

    Raises ValueError where it is no JSON.
    """
    sentences = (
        f"'{field}' holds {what}"
        for field, value in _strings(json.loads(record_json), "")
        if not ({"packages", "versions"} & set(field.split(".")) and _VERSION.fullmatch(value))
        for what in _leak_kinds(value)
    )
    return tuple(dict.fromkeys(sentences))


def redact_value(value: str, names: Collection[str] = ()) -> str:
    """Return a value as it may be public: at most 200 characters, or WITHHELD where it names somebody.

    `names` are this machine's and its user's.
    """
    value = "".join(char if unicodedata.category(char)[0] != "C" else " " for char in value)
    known = tuple(sorted({name.lower() for name in names if len(name) > 2} - NOBODY))
    named = bool(known) and _words(known).search(value)
    return WITHHELD if named or any(True for _ in _leak_kinds(value)) else value[:200]


def _leak_kinds(value: str) -> Iterator[str]:
    """Yield the kinds of what in a value points at a machine or a person."""
    return (kind for kind, expression in _KINDS.items() if expression.search(value))


@cache
def _words(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, names))})(?![^\W_])", re.I)


def _strings(value: Any, field: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _PACKED:
                yield field or "the whole", key
                yield from _strings(inner, f"{field}.{key}" if field else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, field)
    elif isinstance(value, str):
        yield field or "the whole", value
