"""Two sides held against each other, or against a gate's ratio."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from commands.report import analyse_clone
from harness.errors import GateError, UserError
from harness.record import machine_differences
from report import text
from report.compare.named_sides import compare_named, gate_reasons
from report.expected.software_effect import read_software_effect
from report.page import render


def compare_two(root: Path, first: str, second: str, gate: str | None) -> None:
    """Print two sides' figures; with a `gate`, a ratio, raises GateError where a work is slower than that.

    Raises UserError where the gate is no ratio.
    """
    fail_below = None if gate is None else _parse_ratio(gate)
    sides = compare_named(analyse_clone(root).on_record, first, second, read_software_effect(root))
    differ = dict.fromkeys(
        each
        for ratio in sides.comparison.ratios
        for each in machine_differences(*(cell.trials[0].record.machine for cell in (ratio.over, ratio.of)))
    )
    reasons = () if fail_below is None else gate_reasons(sides, fail_below)
    print(render.comparison_text(sides, differ, fail_below, reasons))
    refused = [reason for reason in reasons if reason.name != "undecided"]
    if refused:
        raise GateError(f"'{first}' is below {gate} of '{second}' for {text.count(len(refused), 'work')}")


def _parse_ratio(given: str) -> float:
    """Return a ratio between 0 and 10 as a user writes it."""
    with suppress(ValueError):
        if 0 < float(given) < 10:
            return float(given)
    raise UserError(f"--fail-below '{given[:40]}' is no ratio", remedy="give one such as 0.95")
