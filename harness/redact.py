"""Finds what points at a machine or a person in text: addresses, paths, names, serial numbers."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any
from urllib.parse import quote

from harness.engines import ENGINES

_MAIL = re.compile(r"[\w.%+-]{1,64}@(?!sha\d+:|\d+(?:\.\d+){0,2}[A-Za-z]*(?![\w.]))\w[\w.-]{0,200}")
"""`name@place`; image digests (`name@sha256:…`) and versions (`name@1.2`) stay."""
_SERIAL = re.compile(
    r"(\b(?:serial(?:[\s_-]*(?:number|num|no))?|s/n|asset[\s_-]?tag|board[\s_-]?id|machine[\s_-]?id)\b\.?\\?[\"']?"
    r"\s*(?:[:=#]|\bis\b|(?=[\w-]*\d))\s*\\?[\"']?)([\w-]{4,64})",
    re.I,
)
_UUID = re.compile(
    r"(?:GPU-|MIG-)?(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])", re.I
)
_MAC = re.compile(
    r"(?<![0-9A-Za-z])(?:(?:[0-9a-f]{2}[:-]){5,}[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}"
    r"|(?:[0-9a-f]{4}:){3}[0-9a-f]{4})(?![0-9A-Za-z:])",
    re.I,
)
_IPV4 = re.compile(r"(?<![0-9A-Za-z])(?<!\d\.)\d{1,3}(?:\.\d{1,3}){3}(?![0-9A-Za-z])(?!\.\d)")
_EC2 = re.compile(r"(?<![0-9A-Za-z])ip(?:-\d{1,3}){4}(?:\.[\w-]+)*", re.I)
_IPV6 = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,8}(?:%\w+)?(?![0-9A-Za-z])", re.I)
_INSIDE = re.compile(
    r"(?<![0-9A-Za-z_])(?:(?=[\w.-]*[\d-])[A-Za-z][\w-]*|[a-z][\w-]*\.[\w-]+)(?:\.[\w-]+)*"
    r"\.(?:local|lan|internal|intranet|corp|localdomain|home\.arpa)(?![0-9A-Za-z_.])"
)
_NAME = re.compile(r"[\w.-]{1,300}")
"""As much as a host's name has, and no more at once: the search in it takes the square of its length."""

_VERSION_BEFORE = re.compile(
    r"(?:[\w\]]==|\b(?:nvidia|cud|cub|nccl|torch|triton|rocm)[\w-]*[-_]|\b(?:version|driver|v)[\s:=\"']{0,4})$",
    re.I,
)


def _addresses(text: str, *, versions: bool) -> bool:
    """Addresses, and names of inner networks; loopback stays.

    `versions` says that four numbers outside the private ranges are no address here.
    """
    return bool(
        _EC2.search(text)
        or _MAC.search(text)
        or any(_is_ipv6(found) for found in _IPV6.findall(text))
        or any(_is_ipv4(found, versions=versions) for found in _IPV4.finditer(text))
        or any(_INSIDE.search(name) for name in _NAME.findall(text))
    )


def _is_ipv4(match: re.Match[str], *, versions: bool) -> bool:
    try:
        address = IPv4Address(match.group())
    except AddressValueError:
        return False
    if address.is_loopback or address.is_unspecified:
        return False
    before = match.string[max(0, match.start() - 40) : match.start()]
    return address.is_private or not (versions or _VERSION_BEFORE.search(before))


def _is_ipv6(text: str) -> bool:
    for candidate in (text, text.rstrip(":"), text.lstrip(":")):
        with suppress(ValueError):
            address = IPv6Address(candidate)
            return not (address.is_loopback or address.is_unspecified)
    return False


WITHHELD = "withheld"
"""Stands for a value that would name somebody."""

_OPEN = ("packages", "versions", "options", "flags", "passed_variables", "build_arguments", "structure")
"""Where a record's keys are not its schema's."""
VERSIONED = frozenset(("kernel", "driver", "driver_cuda", "vbios", "libc", "distribution", "engine_version"))

# fmt: off
NOBODY = frozenset((
    "root", "user", "users", "admin", "administrator", "ubuntu", "debian", "fedora", "centos", "alpine",
    "arch", "linux", "localhost", "localdomain", "nobody", "daemon", "runner",
    "jenkins", "vagrant", "gitlab-runner", "ec2-user", "azureuser", "container", "default", "guest",
    "test", "tests", "host", "python", "python3", "gpudyno", "none", "null", "unknown", "home", "data",
    "path", "repo", "tmp", "url", "address", "serial", "cpu", "gpu", "cuda", "rocm", "nvidia", "amd",
    "intel", "torch", "pytorch", "train", "valid", "model", "image", "windows", "darwin", "real",
    "true", "false", "bench", "unit", "error", WITHHELD, *ENGINES,
))
"""Names that identify nobody: defaults, and the words of records."""

_SYSTEM = (
    "/bin/", "/boot/", "/dev/", "/etc/", "/lib/", "/lib32/", "/lib64/", "/proc/", "/sbin/", "/sys/",
    "/usr/", "/opt/rocm", "/opt/conda/", "/opt/venv/", "/opt/nvidia/", "/workloads/", "/var/run/docker.sock",
)
_NOT_SYSTEM = ("/dev/disk/", "/dev/mapper/", "/dev/serial/", "/dev/shm/", "/usr/home/", "/usr/local/")
_SYSTEM_LOCAL = ("/usr/local/bin/", "/usr/local/cuda", "/usr/local/lib/", "/usr/local/nvidia/")
_PUBLIC = (
    "pytorch.org", "python.org", "github.com", "github.io",
    "nvidia.com", "amd.com", "githubusercontent.com", "readthedocs.io", "huggingface.co", "fast.ai",
    "docker.io", "docker.com", "gcr.io", "quay.io", "toronto.edu", "kernel.org", "debian.org",
    "ubuntu.com", "wikipedia.org", "arxiv.org",
)
# fmt: on

_PACKED = frozenset({"microseconds", "packed"})
"""Deflated numbers: the models refuse anything else there, and their letters spell paths by chance."""

_URL = re.compile(r"(?<![A-Za-z0-9])([a-z][a-z0-9+.-]{1,15})://([^\s'\"`<>]+)", re.I)
_START = r"(?:(?<![A-Za-z0-9_~/])(?<!(?<![\w.])\.)(?<!(?<![\w.])\.\.)(?<![A-Za-z]:(?=//))|(?<=-[ILB]))"
_PART = r"(?:[^\s/'\"`,;:|()\[\]{}<>\\\0]|\\[ ()&'])+"
_REST = rf"(?:/+(?:{_PART})?)*"
_UNIX = re.compile(rf"{_START}/+{_PART}{_REST}")
_WINDOWS = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]:(?:\\\\?|/(?!/))[^\s\"'<>|*?:,;]*")
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
        sentences += (f"'{field}' holds {what}" for what in _found(field.rsplit(".", 1)[-1], value, names))
    return tuple(dict.fromkeys(sentences))


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(key for at, (key, _) in enumerate(pairs) if key in dict(pairs[:at]))
        raise ValueError(f"the key '{twice[:40]}' stands twice")
    return fields


def kept(field: str, value: str, names: Names, *, closed: bool = False) -> str:
    """A value as it may be public: itself, at most 200 characters, or WITHHELD where it names somebody.

    What is `closed` is of a vocabulary that others made, such as the name of a device: its words name nobody,
    even where a host is called the same.
    """
    value = "".join(char if unicodedata.category(char)[0] != "C" else " " for char in value)
    found = _found(field, value, Names() if closed else names)
    return WITHHELD if any(True for _ in found) else value[:200]


def _found(field: str, value: str, names: Names) -> Iterator[str]:
    """What of a value points at a machine or a person, by its kind."""
    held = {
        "a URL": _urls(value),
        "an e-mail address": _MAIL.search(value),
        "a path": _paths(value),
        "a serial number": _SERIAL.search(value) or _UUID.search(value),
        "a network address": _addresses(value, versions=field in VERSIONED),
        "a host or user name": _names(value, names),
    }
    yield from (kind for kind, found in held.items() if found)


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


def _urls(text: str) -> bool:
    for scheme, rest in _URL.findall(text):
        place = rest.partition("/")[0].lower()
        public = any(place == host or place.endswith("." + host) for host in _PUBLIC)
        if scheme.lower() != "file" and not public:
            return True
        if "@" in place or re.search("[?#]", rest):
            return True
    return False


def _paths(text: str) -> bool:
    if _WINDOWS.search(text):
        return True
    return any(len(path) > 2 and not _is_system(path) for path in _UNIX.findall(_URL.sub("", text)))


def _is_system(path: str) -> bool:
    path += "/"
    return path.startswith(_SYSTEM_LOCAL) or (path.startswith(_SYSTEM) and not path.startswith(_NOT_SYSTEM))


def _names(text: str, names: Names) -> bool:
    known = {*names.hosts, *names.users}
    identifying = tuple(sorted(name for name in known if len(name) > 2 and name.lower() not in NOBODY))
    return bool(identifying and _words(identifying).search(text))


@cache
def _words(names: tuple[str, ...]) -> re.Pattern[str]:
    forms = {form for name in names for form in _forms(unicodedata.normalize("NFC", name))}
    choice = "|".join(re.escape(form) for form in sorted(forms, key=lambda form: (-len(form), form)))
    return re.compile(rf"(?<![^\W_])(?:{choice})(?![^\W_])", re.I)


def _forms(name: str) -> set[str]:
    return {name, json.dumps(name)[1:-1], quote(name), name.replace(" ", "\\ ")}
