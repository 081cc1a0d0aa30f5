"""Whether a machine and its software equal a bundle's: field by field, pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.record import Machine, Record
from harness.record.machine import differing_fields
from report import text
from report.trials.key import Term, stack_differences, stack_of

MEMORY_TOLERANCE = 0.05
"""Firmware and drivers keep a part of memory that differs from machine to machine."""

_HOST = frozenset(
    (
        *("architecture", "virtual", "memory_bytes", "memory_limit_bytes"),
        *("cpu.model", "cpu.sockets", "cpu.cores", "cpu.threads", "cpu.usable", "cpu.smt"),
    )
)
_CARD = frozenset(
    (
        *("name", "architecture", "memory_bytes", "driver", "ecc", "mig", "clocks_locked"),
        *("power_limit_watts", "power_limit_default_watts", "clock_max_mhz", "clock_memory_max_mhz"),
        *("pcie_generation_max", "pcie_width", "pcie_width_max"),
    )
)
"""What makes another card, or the same one set otherwise; clocks of the moment and firmware do not."""


def other_machine(ordered: Machine, delivered: Machine, *, device: str) -> tuple[Term, ...]:
    """Return each field in which a delivered machine is not the ordered one, its values as they are shown.

    What one side does not know is none. `device` is what trials run on: on a `cpu`, cards do not count.
    """
    found = []
    for field, before, after in differing_fields(ordered, delivered):
        if _matters(field, device) and _differs(field, before, after):
            words = field.replace("gpu ", "card ").replace("cpu.", "processor ")
            called = words.removesuffix("_bytes").removesuffix("_watts").replace("_", " ")
            found.append(Term(called, _shown(after, field), _shown(before, field)))
    return tuple(found)


def other_software(ordered: Record, delivered: Record) -> tuple[Term, ...]:
    """Return each part of the software stack, and each variable passed into it, that is not as it was."""
    stacks = tuple(
        replace(
            stack_of(record),
            driver=None,
            variables=tuple(sorted(record.environment.passed_variables.items())),
        )
        for record in (ordered, delivered)
    )
    return tuple(Term(name, now, before) for name, (before, now) in stack_differences(stacks))


def not_as_ordered(ordered: Sequence[Record], delivered: Sequence[Record]) -> tuple[Term, ...]:
    """Return every field in which a delivered trial's machine or software is another, each once."""
    first, seen = ordered[0], dict[Term, None]()
    machines: dict[str, Machine] = {record.machine.canonical(): record.machine for record in delivered}
    for machine in machines.values():
        seen |= dict.fromkeys(other_machine(first.machine, machine, device=first.trial.asked.device))
    by_work = {(record.trial.asked.workload, record.measurement is None): record for record in ordered}
    for record in delivered:
        like = by_work.get((record.trial.asked.workload, record.measurement is None))
        if like is not None:
            seen |= dict.fromkeys(other_software(like, record))
    return tuple(seen)


def _matters(field: str, device: str) -> bool:
    if field == "gpus":
        return device != "cpu"
    if field.startswith("gpu "):
        return device != "cpu" and field.split(" ", 2)[2] in _CARD
    return field in _HOST


def _differs(field: str, ordered: Any, delivered: Any) -> bool:
    """Return whether a field differs by more than firmware, drivers and rounding change by themselves."""
    if ordered is None or delivered is None:
        return False
    if field.endswith("memory_bytes") or field == "memory_limit_bytes":
        return bool(abs(ordered - delivered) > MEMORY_TOLERANCE * ordered)
    if field.endswith(" driver"):
        # 580 of 580.65.06 is a driver's branch.
        return bool(ordered.split(".")[0] != delivered.split(".")[0])
    if field.endswith("_watts"):
        return bool(abs(ordered - delivered) >= 1)
    return bool(ordered != delivered)


def _shown(value: Any, field: str = "") -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if field.endswith("_bytes"):
        return f"{text.number(value / 2**30)} GiB"
    unit = " W" if field.endswith("_watts") else ""
    return f"{value:g}{unit}" if isinstance(value, float) else str(value)
