"""What ran: trials, attempts, failures, software and machines, what was left out, and the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from report.analysis import Analysis
from report.page.values import Systems
from report.trials.key import grouped_by
from report.trials.trial import TrialResult


@dataclass(frozen=True, slots=True)
class RanView:
    """All that ran."""

    trials: tuple[tuple[TrialResult, ...], ...]
    """Runs of one work on one system that ended alike."""
    failures: tuple[tuple[TrialResult, ...], ...]
    """Trials of a system that ended at one stage with one message."""
    stacks: tuple[tuple[TrialResult, ...], ...]
    """The trials of each system and environment, finished ones first."""
    arithmetic: tuple[tuple[TrialResult, ...], ...]
    """Trials whose precision was probed alike, by its label."""
    folders: tuple[tuple[str, int], ...]
    """The folders of the records, and how many of each folder are on the page."""


def view(analysis: Analysis, systems: Systems) -> RanView | None:
    """Return what ran in the leading session and in those compared with it; null without a trial."""
    trials = [*analysis.own, *(trial for trial in analysis.shown if trial.session != analysis.lead)]
    if not trials:
        return None
    measured = [trial for trial in trials if trial.record.measurement]
    return RanView(
        trials=_group_alike(trials, _ending_key),
        failures=_group_alike([trial for trial in trials if trial.failure], _failure_key),
        stacks=_group_alike(sorted(trials, key=lambda trial: trial.failure is not None), _environment_key),
        arithmetic=_group_alike(sorted(measured, key=lambda trial: trial.key.precision), _probe_key),
        folders=tuple(Counter(trial.path.rpartition("/")[0] for trial in trials).items()),
    )


def _group_alike(
    trials: Iterable[TrialResult], what: Callable[[TrialResult], Hashable]
) -> tuple[tuple[TrialResult, ...], ...]:
    return tuple(map(tuple, grouped_by(trials, what).values()))


def _ending_key(trial: TrialResult) -> Hashable:
    what = tuple(dict.fromkeys(found.name for found in trial.causes))
    reason = trial.failure and trial.failure.reason
    place = trial.machine, trial.card, trial.key.model, trial.key.precision, trial.key.batch_size
    return *place, trial.samples_per_second is None, trial.verdict, what, reason


def _failure_key(trial: TrialResult) -> Hashable:
    assert trial.failure is not None
    failure = trial.failure
    return trial.machine, trial.card, failure.stage, failure.reason, failure.message


def _environment_key(trial: TrialResult) -> Hashable:
    used = trial.environment
    place = trial.machine, trial.card
    return *place, used.image, used.lock_sha256, used.base_digest, trial.stack.driver


def _probe_key(trial: TrialResult) -> Hashable:
    assert trial.record.measurement is not None
    found = trial.record.measurement.precision
    reads = frozenset((probe.operation, probe.reads_as) for probe in found.probes)
    return found.label, image_of(trial), found.method, reads, tuple(found.flags.items())


def image_of(trial: TrialResult) -> str:
    """The image, with the device where its name does not say it."""
    used = trial.environment
    return used.image if used.image == used.device else f"{used.image} ({used.device})"
