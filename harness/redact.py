"""Takes what points at a machine or a person out of text: addresses, paths, names, serial numbers."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any
from urllib.parse import quote

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


def cut_addresses(text: str, *, versions: bool = False) -> str:
    """Cuts IPv4, IPv6 and hardware addresses and names of inner networks; loopback and versions stay.

    `versions` says that four numbers outside the private ranges are no address here.
    """
    text = _IPV6.sub(_ipv6, _MAC.sub("<address>", _EC2.sub("<host>", text)))
    return _NAME.sub(_inside, _IPV4.sub(partial(_ipv4, versions), text))


def _inside(match: re.Match[str]) -> str:
    return _INSIDE.sub("<host>", match.group())


def _ipv4(versions: bool, match: re.Match[str]) -> str:
    try:
        address = IPv4Address(match.group())
    except AddressValueError:
        return match.group()
    before = match.string[max(0, match.start() - 40) : match.start()]
    harmless = address.is_loopback or address.is_unspecified
    version = not address.is_private and (versions or _VERSION_BEFORE.search(before))
    return match.group() if harmless or version else "<address>"


def _ipv6(match: re.Match[str]) -> str:
    text = match.group()
    for candidate in (text, text.rstrip(":"), text.lstrip(":")):
        try:
            address = IPv6Address(candidate)
        except (AddressValueError, ValueError):
            continue
        if address.is_loopback or address.is_unspecified:
            return text
        return text.replace(candidate, "<address>")
    return text


KEPT_CHARACTERS = 8000
_OPEN = ("packages", "versions", "options", "flags", "passed_variables", "build_arguments", "structure")
"""Where a record's keys are not its schema's."""
VERSIONED = frozenset(("kernel", "driver", "driver_cuda", "vbios", "libc", "distribution", "engine_version"))

# fmt: off
NOBODY = frozenset((
    "root", "user", "users", "admin", "administrator", "ubuntu", "debian", "fedora", "centos", "alpine",
    "arch", "linux", "docker", "podman", "localhost", "localdomain", "nobody", "daemon", "runner",
    "jenkins", "vagrant", "gitlab-runner", "ec2-user", "azureuser", "container", "default", "guest",
    "test", "tests", "host", "python", "python3", "gpudyno", "none", "null", "unknown", "home", "data",
    "path", "repo", "tmp", "url", "address", "serial", "cpu", "gpu", "cuda", "rocm", "nvidia", "amd",
    "intel", "torch", "pytorch", "train", "valid", "model", "image", "windows", "darwin", "real",
    "true", "false", "bench", "unit", "venv", "slurm", "apptainer", "fake", "error",
))
"""Names that identify nobody: defaults, and the words of records and of the replacements themselves."""

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

_EDGE = "\0"
"""Stands where something invisible was removed: what stood on its two sides were two words."""

_ANSI = re.compile(
    r"(?:\x1b|\\x1b|\\u001b|\\033|\\e)(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))", re.I
)
_ESCAPE = re.compile(r"\\(?:[nrtbfv]|x[0-9a-f]{2}|u[0-9a-f]{4})|%[0-9a-f]{2}", re.I)
_URL = re.compile(r"(?<![A-Za-z0-9])([a-z][a-z0-9+.-]{1,15})://([^\s'\"`<>\0]+)", re.I)
_TOKENS = "".join(
    f"(?<!<{word}>)" for word in ("path", "repo", "data", "tmp", "url", "user", "host", "address")
)
_START = (
    rf"(?:(?<![A-Za-z0-9_~/])(?<!(?<![\w.])\.)(?<!(?<![\w.])\.\.)(?<![A-Za-z]:(?=//)){_TOKENS}|(?<=-[ILB]))"
)
_PART = r"(?:[^\s/'\"`,;:|()\[\]{}<>\\\0]|\\[ ()&'])+"
_REST = rf"(?:/+(?:{_PART})?)*"
_UNIX = re.compile(rf"{_START}/+{_PART}{_REST}")
_QUOTED = re.compile(r"(\\?[\"'`])(/[^\"'`\n\0]*?)\1")
_WINDOWS = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]:(?:\\\\?|/(?!/))[^\s\"'<>|*?:,;]*")
_FILE = re.compile(r"[\w+-][\w.+-]{0,79}\.[A-Za-z][A-Za-z0-9]{0,7}")
_TAIL = re.compile(r"/((?:site|dist)-packages|lib/python\d[\w.]*)(/.*|$)")
_VERSION = re.compile(r"[\w.+!-]{1,64}")


@dataclass(frozen=True, slots=True)
class Names:
    """What must not leave: folders with what stands for them, and this machine's names and numbers."""

    folders: tuple[tuple[str, str], ...] = ()
    """(absolute path, one of "~", "<repo>", "<data>", "<tmp>")."""
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    serials: tuple[str, ...] = ()
    """Serial numbers, hardware addresses, UUIDs, the operating system's machine id."""


def redact(text: str, names: Names, *, keep: int = KEPT_CHARACTERS) -> str:
    """The last `keep` characters of a log, from a line's beginning, without what identifies its owner."""
    text = _plain(_last(text, 4 * keep))
    for _ in range(2):
        for _, rule in _RULES:
            text = rule(text, names)
        text = text.replace(_EDGE, "")
    return _last(text, keep)


def leaks(record_json: str, names: Names) -> tuple[str, ...]:
    """What a record would give away, as "'field' holds a path".

    Raises ValueError where it is no JSON, or where a key stands twice: a reader sees the last one alone.
    """
    sentences: list[str] = []
    for field, value in _strings(json.loads(record_json, object_pairs_hook=_each_key_once), ""):
        if {"packages", "versions"} & set(field.split(".")) and _VERSION.fullmatch(value):
            continue
        rules = _VALUE_RULES if field.rsplit(".", 1)[-1] in VERSIONED else _RULES
        for what, rule in rules:
            without = rule(value, names)
            if without != value:
                sentences.append(f"'{field}' holds {what}")
            value = without
    return tuple(dict.fromkeys(sentences))


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(key for at, (key, _) in enumerate(pairs) if key in dict(pairs[:at]))
        raise ValueError(f"the key '{twice[:40]}' stands twice")
    return fields


def redact_value(field: str, value: str, names: Names) -> str:
    """One value of a fingerprint, at most 200 characters; in a version four numbers are no address."""
    value = _plain(value).replace("\n", " ")
    for _, rule in _VALUE_RULES if field in VERSIONED else _RULES:
        value = rule(value, names)
    return value.replace(_EDGE, "")[:200]


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


def _last(text: str, keep: int) -> str:
    if len(text) <= keep:
        return text
    text = text[-keep:]
    for edge in ("\n", " "):
        if edge in text[:-1]:
            return text.split(edge, 1)[1]
    return text


def _plain(text: str) -> str:
    text = _ANSI.sub(_EDGE, unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n"))
    shown = (
        char if char in "\n\t" or not unicodedata.category(char).startswith("C") else _EDGE for char in text
    )
    return _ESCAPE.sub(lambda match: match.group() + _EDGE, "".join(shown))


def _urls(text: str, names: Names) -> str:
    def shown(match: re.Match[str]) -> str:
        scheme, rest = match.groups()
        if scheme.lower() == "file":
            return _reduced(rest)
        place, _, path = rest.partition("/")
        path = re.split(r"[?#]", path)[0]
        public = any(place.lower() == host or place.lower().endswith("." + host) for host in _PUBLIC)
        return f"{scheme}://{place}/{path}".rstrip("/") if public else "<url>"

    return _URL.sub(shown, text)


def _folders(text: str, names: Names) -> str:
    for path, token in sorted(names.folders, key=lambda pair: -len(pair[0])):
        path = path.rstrip("/")
        if len(path) < 3 or not path.startswith("/"):
            continue
        for form in _forms(path):
            pattern = re.compile(rf"{_START}{re.escape(form)}(?![\w-]|\.\w)({_REST})")
            text = pattern.sub(partial(_stand_in, token), text)
    return text


def _stand_in(token: str, match: re.Match[str]) -> str:
    rest = match.group(1)
    if token == "~" and rest:
        rest = _reduced(rest).replace("<path>", "", 1)
    return token + rest


def _paths(text: str, names: Names) -> str:
    def whole(match: re.Match[str]) -> str:
        mark, path = match.groups()
        if re.search(r"\s", path) and _is_system(path):
            return match.group()
        return f"{mark}{_reduced(path)}{mark}"

    text = _WINDOWS.sub(lambda match: _reduced(re.sub(r"[\\/]+", "/", match.group()[2:])), text)
    return _UNIX.sub(lambda match: _reduced(match.group()), _QUOTED.sub(whole, text))


def _is_system(path: str) -> bool:
    path += "/"
    return path.startswith(_SYSTEM_LOCAL) or (path.startswith(_SYSTEM) and not path.startswith(_NOT_SYSTEM))


def _reduced(path: str) -> str:
    path, dots = (path.rstrip("."), "." * (len(path) - len(path.rstrip("."))))
    tidy = re.sub("/+", "/", path)
    if _is_system(tidy) or len(tidy) < 3:
        return path + dots
    tail = _TAIL.search(tidy)
    if tail:
        return f"<path>/{tail.group(1)}{tail.group(2)}{dots}"
    last = tidy.rsplit("/", 1)[1]
    return f"<path>/{last}{dots}" if _FILE.fullmatch(last) else f"<path>{dots}"


def _serials(text: str, names: Names) -> str:
    if names.serials:
        text = _words(tuple(sorted(names.serials))).sub("<serial>", text)
    return _SERIAL.sub(lambda match: match.group(1) + "<serial>", _UUID.sub("<serial>", text))


def _addresses(text: str, names: Names) -> str:
    return cut_addresses(text)


def _names(text: str, names: Names) -> str:
    for what, cut, tail in (
        ("<host>", names.hosts, r"(?:\.[a-zA-Z0-9][\w-]*)*"),
        ("<user>", names.users, ""),
    ):
        identifying = tuple(sorted(name for name in cut if len(name) > 2 and name.lower() not in NOBODY))
        if identifying:
            text = _words(identifying, tail).sub(what, text)
    return text


@cache
def _words(names: tuple[str, ...], tail: str = "") -> re.Pattern[str]:
    forms = {form for name in names for form in _forms(unicodedata.normalize("NFC", name))}
    choice = "|".join(re.escape(form) for form in sorted(forms, key=lambda form: (-len(form), form)))
    return re.compile(rf"(?<![^\W_])(?:{choice})(?![^\W_]){tail}", re.I)


def _forms(name: str) -> set[str]:
    return {name, json.dumps(name)[1:-1], quote(name), name.replace(" ", "\\ ")}


_RULES: tuple[tuple[str, Callable[[str, Names], str]], ...] = (
    ("a URL", _urls),
    ("an e-mail address", lambda text, _: _MAIL.sub("<address>", text)),
    ("a folder of this machine", _folders),
    ("a path", _paths),
    ("a serial number", _serials),
    ("a network address", _addresses),
    ("a host or user name", _names),
)
_VALUE_RULES = tuple(
    (what, (lambda text, _: cut_addresses(text, versions=True)) if rule is _addresses else rule)
    for what, rule in _RULES
)
