"""Patterns of what points at a machine or a person: network addresses, e-mail addresses, serial numbers."""

from __future__ import annotations

import re
from functools import partial
from ipaddress import AddressValueError, IPv4Address, IPv6Address

_MAIL = re.compile(r"[\w.%+-]{1,64}@(?!sha\d+:|\d+(?:\.\d+){0,2}[A-Za-z]*(?![\w.]))\w[\w.-]{0,200}")
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
_VERSION_BEFORE = re.compile(
    r"(?:[\w\]]==|\b(?:nvidia|cud|cub|nccl|torch|triton|rocm)[\w-]*[-_]|\b(?:version|driver|v)[\s:=\"']{0,4})$",
    re.I,
)


def cut_mails(text: str) -> str:
    """Cuts `name@place`; image digests (`name@sha256:…`) and versions (`name@1.2`) stay."""
    return _MAIL.sub("<address>", text)


def cut_serials(text: str) -> str:
    """Cuts UUIDs, and what is called a serial number, an asset tag or a machine id."""
    return _SERIAL.sub(lambda found: found.group(1) + "<serial>", _UUID.sub("<serial>", text))


def cut_addresses(text: str, *, versions: bool = False) -> str:
    """Cuts IPv4, IPv6 and hardware addresses and names of inner networks; loopback and versions stay.

    `versions` says that four numbers outside the private ranges are no address here.
    """
    text = _IPV6.sub(_ipv6, _MAC.sub("<address>", _EC2.sub("<host>", text)))
    return _INSIDE.sub("<host>", _IPV4.sub(partial(_ipv4, versions), text))


def _ipv4(versions: bool, found: re.Match[str]) -> str:
    try:
        address = IPv4Address(found.group())
    except AddressValueError:
        return found.group()
    before = found.string[max(0, found.start() - 40) : found.start()]
    harmless = address.is_loopback or address.is_unspecified
    version = not address.is_private and (versions or _VERSION_BEFORE.search(before))
    return found.group() if harmless or version else "<address>"


def _ipv6(found: re.Match[str]) -> str:
    text = found.group()
    for kept in (text, text.rstrip(":"), text.lstrip(":")):
        try:
            address = IPv6Address(kept)
        except (AddressValueError, ValueError):
            continue
        if address.is_loopback or address.is_unspecified:
            return text
        return text.replace(kept, "<address>")
    return text
