"""Adapters for how things ran: each trial, its device's limits, and what is to be known beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from report.comparisons import selfcheck as checking
from report.comparisons.selfcheck import Check
from report.sections.limits import roofline
from report.sections.workloads import trials as traces
from report.trials import ceilings, pairs
from report.trials.ceilings import RooflinePoint
from report.trials.trial import Trial
from tests.helpers.figures_read import Report, interval, table, trial


def trials(report: Report) -> dict[str, Any]:
    """Every trial that is shown, by its session: its verdict, and what else there is to tell of it."""
    sessions: dict[str, Any] = {}
    for row in report.shown:
        session, _, name = trial(row.path).partition("/")
        verdict = row.verdict if row.failure is None else f"failed: {row.failure.reason}"
        told = {key: value for key, value in _trial(row).items() if value}
        sessions.setdefault(session, {})[name] = {"verdict": verdict, **told} if told else verdict
    return sessions


def _trial(row: Trial) -> dict[str, Any]:
    return {
        "because": row.causes,
        "worth_knowing": row.summary.notes if row.summary else (),
        "warnings": row.record.warnings,
        "block": row.record.block if row.record.block > 1 else None,
        "attempt": row.record.attempt if row.record.attempt > 1 else None,
        "steps_cut": row.summary and row.summary.steady.first_step,
        "bound": row.bottleneck,
        "validated": row.validated,
    }


def run_quality(report: Report) -> dict[str, Any]:
    """A table for each group, in their order; how long trials were set up, and what went on before them."""
    views = [view for workload in report.view.workloads for view in workload.groups]
    rows = [row for row in report.shown if row.summary is not None]
    return {
        "groups": [table(view.states) for view in views],
        "setup": list(dict.fromkeys(traces.setup(row) for row in rows)),
        "before": list(dict.fromkeys(traces.before(row) for row in rows)),
    }


def bottlenecks(report: Report) -> dict[str, Any] | None:
    found = report.view.bottleneck
    return (
        None
        if found is None
        else {
            "told": found.sentences,
            "machines_differ_in": table(found.differences),
            "remarks": table(found.remarks),
        }
    )


def limits(report: Report) -> list[Any]:
    """Of each device of the leading session: ceilings, where its works stand below them, and what is said."""
    rows = report.analysis.with_ceilings
    known = ceilings.ceilings(row.record for row in rows)
    devices: dict[ceilings.Device, list[Trial]] = {}
    for row in rows:
        device = ceilings.device_of(row.record)
        if device is not None and row.verdict != "invalid" and not row.is_ceiling:
            devices.setdefault(device, []).append(row)
    found = [_device(own, report, known.get(device, {})) for device, own in devices.items()]
    told = [
        {"table": table(view.table), "notes": view.notes, "paper": table(view.sheet)}
        for view in report.view.limits
    ]
    with_works = [one for one in found if one["works"]]
    return [{**numbers, **words} for numbers, words in zip(with_works, told, strict=True)]


def _device(rows: Sequence[Trial], report: Report, measured: Mapping[str, float]) -> dict[str, Any]:
    used = rows[0].record.measurement
    assert used is not None
    works = [
        (work[0], roofline._typical(work, report.cards, measured))
        for work in pairs.grouped_by(rows, lambda row: row.key).values()
    ]
    roofs = roofline._roofs(used.device, report.cards, measured)
    slopes = roofline._slopes(used.device, report.cards, measured)
    return {
        "device": used.device.name,
        "ceilings": measured,
        "roofs": [[roof.label, roof.flops_per_second, roof.measured] for roof in roofs],
        "bandwidths": [[slope.bytes_per_second, slope.measured] for slope in slopes],
        "works": [_work(row, reached) for row, reached in works if reached],
    }


def _work(row: Trial, found: RooflinePoint) -> dict[str, Any]:
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


def warnings(report: Report) -> tuple[str, ...]:
    return report.view.warnings


def failures(report: Report) -> list[Any]:
    failed = [row for row in report.own if row.failure is not None]
    return [
        {
            "trial": trial(row.path),
            "what": told.what,
            "reason": told.reason,
            "message": told.message,
        }
        for row, told in zip(failed, report.view.failures, strict=True)
    ]


def stacks(report: Report) -> list[Any]:
    return [table(one) for one in report.view.stacks]


def accounts(report: Report) -> dict[str, Any]:
    """How many of the trials that were started are shown, and of each machine why the rest is not."""
    return {"told": report.view.counted, "of_machines": table(report.view.accounts)}


def left_out(report: Report) -> Any:
    return table(report.view.left_out)


def notes(report: Report) -> tuple[str, ...]:
    return report.view.notes


def unreadable(report: Report) -> tuple[str, ...]:
    return report.view.problems


def selfcheck(report: Report) -> dict[str, Any]:
    found = checking.checks([stored.record for stored in report.analysis.evidence.results.records])
    return {"told": report.view.selfcheck, "checks": [_check(one) for one in found]}


def _check(found: Check) -> dict[str, Any]:
    return {
        "session": found.session,
        "what": found.what,
        "n": found.n,
        "interval": interval(found.interval),
        "passed": found.passed,
        "told": found.line(),
    }
