"""Whether a machine and its software are those that a bundle was measured on: field by field, pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.record import Machine, Record
from harness.record.differences import differing_fields

MEMORY_TOLERANCE = 0.05
"""Firmware and drivers keep a part of memory that differs from machine to machine."""

_HOST = frozenset(
    f"{part}{name}"
    for part, names in (
        ("", ("architecture", "virtual", "memory_bytes", "memory_limit_bytes")),
        ("cpu.", ("model", "sockets", "cores", "threads", "usable", "smt")),
    )
    for name in names
)
_CARD = frozenset(
    (
        *("name", "architecture", "memory_bytes", "driver", "ecc", "mig", "clocks_locked"),
        *("power_limit_watts", "power_limit_default_watts", "clock_max_mhz", "clock_memory_max_mhz"),
        *("pcie_generation_max", "pcie_width", "pcie_width_max"),
    )
)
"""What makes another card, or the same one set otherwise; clocks of the moment and firmware do not."""


def other_machine(ordered: Machine, delivered: Machine, *, device: str) -> tuple[str, ...]:
    """Each field in which another machine was delivered; what either side does not know is no difference.

    `device` is what trials run on: on a `cpu`, cards do not count.
    """
    return tuple(
        f"{_called(field)}: ordered {_shown(wanted)}, delivered {_shown(given)}"
        for field, wanted, given in differing_fields(ordered, delivered)
        if _matters(field, device) and _differs(field, wanted, given)
    )


def other_software(ordered: Record, delivered: Record) -> tuple[str, ...]:
    """Each part of the software stack, and each variable passed into it, that is not as it was."""
    pairs: list[tuple[str, Any, Any]] = []
    one, other = ordered.environment, delivered.environment
    for name in ("image", "device", "lock_sha256", "base_digest"):
        pairs.append((name, getattr(one, name), getattr(other, name)))
    if ordered.measurement and delivered.measurement:
        pairs += _both("", ordered.measurement.versions, delivered.measurement.versions)
    pairs += _both("the variable ", one.passed_variables, other.passed_variables)
    return tuple(
        f"{name}: ordered {_shown(wanted)}, delivered {_shown(given)}"
        for name, wanted, given in pairs
        if wanted != given
    )


def _both(
    prefix: str, one: Mapping[str, str | None], other: Mapping[str, str | None]
) -> list[tuple[str, Any, Any]]:
    return [(f"{prefix}{name}", one.get(name), other.get(name)) for name in sorted({*one, *other})]


def _matters(field: str, device: str) -> bool:
    if field == "gpus":
        return device != "cpu"
    if field.startswith("gpu "):
        return device != "cpu" and field.split(" ", 2)[2] in _CARD
    return field in _HOST


def _differs(field: str, wanted: Any, given: Any) -> bool:
    if wanted is None or given is None:
        return False
    if field.endswith("memory_bytes") or field == "memory_limit_bytes":
        return bool(abs(wanted - given) > MEMORY_TOLERANCE * wanted)
    if field.endswith(" driver"):
        return _driver_class(wanted) != _driver_class(given)
    if field.endswith("_watts"):
        return bool(abs(wanted - given) >= 1)
    return bool(wanted != given)


def _driver_class(version: str) -> str:
    """The branch of a driver: 580 of 580.65.06."""
    return version.split(".")[0]


def _called(field: str) -> str:
    return field.replace("cpu.", "processor's ").replace("gpu ", "card ").replace("_", " ")


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
