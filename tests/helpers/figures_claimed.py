"""Adapters for verdicts: of published claims, and on what mixed precision learns."""

from __future__ import annotations

from collections import Counter
from typing import Any

from report.analysis import Analysis
from report.claims.judged import Judged
from report.compare import precisions as parity
from report.compare.precisions import Gate, Parity
from tests.helpers.figures_read import first_trial, interval, trial


def parities(analysis: Analysis) -> list[Any]:
    return [_parity(one) for one in analysis.parities]


def _parity(found: Parity) -> dict[str, Any]:
    verdict = found.verdict
    return {
        "of": first_trial(found.of),
        "over": found.over and first_trial(found.over),
        "verdict": verdict and verdict.word,
        "margin": verdict and verdict.margin,
        "interval": verdict and interval(verdict.interval),
    }


def early_gates(analysis: Analysis) -> list[Any]:
    return [_gate(trial(row.path), gate) for row, gate in parity.early_gates(analysis.shown)]


def _gate(path: str, gate: Gate) -> dict[str, Any]:
    return {"trial": path, "verdict": gate}


def claims(analysis: Analysis) -> dict[str, Any]:
    """Every claim that met a record, by its id."""
    return {one.claim.id: _claim(one) for one in analysis.verdicts if one.compared}


def _claim(found: Judged) -> dict[str, Any]:
    verdict = found.verdict
    return {
        "verdict": verdict.word,
        "measured": found.measured,
        "interval": interval(verdict.interval),
        "margin": verdict.margin,
        "of": [first_trial(cell) for cell in found.cells],
    }


def claims_counted(analysis: Analysis) -> dict[str, Any]:
    found = analysis.verdicts
    return dict(Counter(one.verdict.word for one in found))
