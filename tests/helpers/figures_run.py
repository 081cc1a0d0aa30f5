"""Adapters for how things ran: each trial, its device's limits, and what is to be known beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.record.published.cards import find_card
from report.analysis import Analysis
from report.compare.sides import SideCheck, side_checks
from report.page.parts import limits as page_limits
from report.trials import ceilings
from report.trials.ceilings import RooflinePoint
from report.trials.key import grouped_by
from report.trials.trial import TrialResult
from tests.helpers.figures_read import interval, trial


def trials(analysis: Analysis) -> dict[str, Any]:
    """How many trials are shown, by session and verdict, and what else there is to tell of some."""
    sessions: dict[str, Any] = {}
    for row in analysis.shown:
        session, _, name = trial(row.path).partition("/")
        verdict = row.verdict if row.failure is None else f"failed: {row.failure.reason}"
        of = sessions.setdefault(session, {"told": {}})
        of[verdict] = of.get(verdict, 0) + 1
        if told := {key: value for key, value in _trial(row).items() if value}:
            of["told"][name] = told
    return sessions


def _trial(row: TrialResult) -> dict[str, Any]:
    return {
        "because": sorted({found.name for found in row.causes}),
        "worth_knowing": sorted({found.name for found in row.summary.notes}) if row.summary else (),
        "block": row.record.block if row.record.block > 1 else None,
        "attempt": row.record.attempt if row.record.attempt > 1 else None,
        "steps_cut": row.summary and row.summary.steady.first_step,
    }


def limits(analysis: Analysis) -> list[Any]:
    """Of each device of the leading session: ceilings, and where its works stand below them."""
    rows = analysis.with_ceilings
    known = ceilings.ceilings(row.record for row in rows)
    devices: dict[ceilings.Device, list[TrialResult]] = {}
    for row in rows:
        device = ceilings.device_of(row.record)
        if device is not None and row.verdict != "invalid" and not row.is_ceiling:
            devices.setdefault(device, []).append(row)
    found = [_device(own, analysis, known.get(device, {})) for device, own in devices.items()]
    return [one for one in found if one["works"]]


def _device(rows: Sequence[TrialResult], analysis: Analysis, measured: Mapping[str, float]) -> dict[str, Any]:
    used = rows[0].record.measurement
    assert used is not None
    works = [
        (work[0], page_limits._typical(work, analysis.evidence.cards, measured))
        for work in grouped_by(rows, lambda row: row.key).values()
    ]
    card = find_card(used.device.name, analysis.evidence.cards)
    sheet = page_limits._sheet(used.device, card, measured, rows)
    roofs = [one for row in sheet if row.unit == "TFLOP/s" for one in row.limits]
    return {
        "device": used.device.name,
        "ceilings": measured,
        "roofs": [[speed * 1e12, not paper] for _, speed, paper in roofs],
        "bandwidths": [
            [speed * 1e9, not paper]
            for row in sheet
            if row.name == "bandwidth"
            for _, speed, paper in row.limits
        ],
        "works": [_work(row, reached) for row, reached in works if reached],
    }


def _work(row: TrialResult, found: RooflinePoint) -> dict[str, Any]:
    return {
        "of": [row.key.workload, row.key.model, row.key.precision, row.key.batch_size, row.key.data_mode],
        "flops_per_second": found.flops_per_second,
        "bytes_per_second": found.bytes_per_second,
        "flops_per_byte": found.intensity,
        "of_peak_on_paper": found.utilization,
        "of_measured_product": found.compute_share,
        "of_measured_copy": found.memory_share,
        "bound": [found.bound.kind, found.bound.share],
    }


def failures(analysis: Analysis) -> list[Any]:
    failed = [row for row in analysis.own if row.failure is not None]
    return [{"trial": trial(row.path), "reason": row.failure and row.failure.reason} for row in failed]


def accounts(analysis: Analysis) -> list[Any]:
    """Of each machine how many sessions and trials were planned, and how many of each are shown."""
    return [
        {
            "machine": one.machine,
            "sessions": [one.sessions_shown, one.sessions, one.absent_sessions],
            "trials": [one.shown, one.planned],
        }
        for one in analysis.accounts
    ]


def unreadable(analysis: Analysis) -> int:
    """Problems of the files."""
    return len(analysis.evidence.results.problems)


def selfcheck(analysis: Analysis) -> list[Any]:
    found = side_checks([stored.record for stored in analysis.evidence.results.records])
    return [_check(one) for one in found]


def _check(found: SideCheck) -> dict[str, Any]:
    return {
        "session": found.session,
        "what": found.what,
        "n": found.n,
        "interval": interval(found.interval),
        "passed": found.passed,
    }
