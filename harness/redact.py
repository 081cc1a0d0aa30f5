"""Finds what points at a machine or a person in a value: its names, an address, a path, a place on the net.

A record holds our own messages and no log, so that few kinds of text can come into one.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
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

_OPEN = (
    "packages",
    "versions",
    "options",
    "flags",
    "passed_variables",
    "inherited_variables",
    "build_arguments",
    "structure",
)
"""Where a record's keys are not its schema's."""
_PACKED = frozenset({"microseconds", "packed"})
"""Deflated numbers: the models refuse anything else there, and their letters spell paths by chance."""
_VERSION = re.compile(r"[\w.+!-]{1,64}")


@dataclass(frozen=True, slots=True)
class Names:
    """What must not leave: this machine's names."""

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


def leaks(record_json: str, names: Names) -> tuple[str, ...]:
    """What a record would give away, as "'field' holds a path".

    Raises ValueError where it is no JSON, or where a key stands twice: a reader sees the last one alone.
    """
    sentences: list[str] = []
    for field, value in _strings(json.loads(record_json, object_pairs_hook=_each_key_once), ""):
        if {"packages", "versions"} & set(field.split(".")) and _VERSION.fullmatch(value):
            continue
        sentences += (f"'{field}' holds {what}" for what in _found(value, names))
    return tuple(dict.fromkeys(sentences))


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(key for at, (key, _) in enumerate(pairs) if key in dict(pairs[:at]))
        raise ValueError(f"the key '{twice[:40]}' stands twice")
    return fields


def kept(value: str, names: Names, *, closed: bool = False) -> str:
    """A value as it may be public: itself, at most 200 characters, or WITHHELD where it names somebody.

    What is `closed` is of a vocabulary that others made, such as the name of a device: its words name nobody,
    even where a host is called the same.
    """
    value = "".join(char if unicodedata.category(char)[0] != "C" else " " for char in value)
    found = _found(value, Names() if closed else names)
    return WITHHELD if any(True for _ in found) else value[:200]


def _found(value: str, names: Names) -> Iterator[str]:
    """What of a value points at a machine or a person, by its kind."""
    yield from (kind for kind, expression in _KINDS.items() if expression.search(value))
    known = {name.lower() for name in (*names.hosts, *names.users) if len(name) > 2} - NOBODY
    if known and _words(tuple(sorted(known))).search(value):
        yield "a host or user name"


@cache
def _words(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, names))})(?![^\W_])", re.I)


def _strings(value: Any, field: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _PACKED:
                if field.rsplit(".", 1)[-1] in _OPEN:
                    yield field, key
                yield from _strings(inner, f"{field}.{key}" if field else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, field)
    elif isinstance(value, str):
        yield field or "the whole", value
