"""What differs between two machines, or one machine's two days."""

from __future__ import annotations

from typing import Any

from harness.record.machine import Machine

_NOT_THE_MACHINE = ("id", "label")


def differences(a: Machine, b: Machine) -> tuple[str, ...]:
    """Every field that is not the same, as "field: a → b"; what is not known is "unknown". Pure."""
    return tuple(
        f"{field}: {_shown(mine)} → {_shown(theirs)}" for field, mine, theirs in differing_fields(a, b)
    )


def differing_fields(a: Machine, b: Machine) -> tuple[tuple[str, Any, Any], ...]:
    """Every field that is not the same, with both values; null is unknown. Pure."""
    left, right = _fields(a), _fields(b)
    return tuple(
        (field, left.get(field), right.get(field))
        for field in dict.fromkeys((*left, *right))
        if left.get(field) != right.get(field)
    )


def _fields(machine: Machine) -> dict[str, Any]:
    found = machine.model_dump(exclude={*_NOT_THE_MACHINE, "gpus", "cpu"})
    found |= {f"cpu.{field}": value for field, value in machine.cpu.model_dump().items()}
    found["gpus"] = len(machine.gpus)
    for at, card in enumerate(machine.gpus):
        found |= {f"gpu {at} {field}": value for field, value in card.model_dump(exclude={"index"}).items()}
    return found


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return "unknown" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
