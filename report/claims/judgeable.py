"""Which claims the trials of a plan could judge: the judge's own answer to records that it would leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.record import Claim
from harness.record import Trial as Asked
from harness.record.published.cards import Card
from report.claims.constructed import SESSION, Device, sweep_place, would_leave
from report.claims.judge import judge
from report.claims.judged import Judged
from report.comparisons.batch_sweeps import batch_sweeps, without_sweeps
from report.comparisons.cells import cells_of
from report.comparisons.groups import comparison_groups
from report.metrics import CLAIMED
from report.trials.table import table_of


@dataclass(frozen=True, slots=True)
class Judgeable:
    """A claim that a plan's trials can judge, and the variants of them that it takes."""

    claim: Claim
    trials: frozenset[str]
    """The ids of all trials of the cells that the verdict would rest on."""


@dataclass(frozen=True, slots=True)
class Way:
    """A plan that would judge a claim here, and how long each of the trials takes that its verdict needs."""

    plan: str
    seconds_by_trial: Mapping[str, float]
    image: str | None = None
    """That has to be asked for by its name; null where the device's own serves."""

    @property
    def line(self) -> str:
        """What is given to `--plan`, with what has to stand behind it."""
        return line_of(self.plan, self.image)

    @property
    def seconds(self) -> float:
        """Of all its trials."""
        return sum(self.seconds_by_trial.values())


def line_of(plan: str, image: str | None) -> str:
    """A plan's name as it is given to `--plan`, with the image where that has to be named."""
    return f"{plan} --image {image}" if image else plan


def judgeable(
    claims: Iterable[Claim], planned: Sequence[Asked], device: Device, cards: Sequence[Card]
) -> tuple[Judgeable, ...]:
    """The claims that meet their records and enough of them, were the plan run on that device.

    Whatever the verdict: the figures are constructed, and only what keeps a claim away is looked at.
    """
    trials = would_leave(planned, device)
    cells = cells_of(table_of(trials))
    failed = [trial for trial in trials if trial.failure is not None]
    groups = comparison_groups(without_sweeps(cells, SESSION), SESSION, baseline=None)
    judged = judge(claims, groups, cards, batch_sweeps(cells, failed))
    return tuple(_of(found, planned) for found in judged if found.compared and not _lacks_runs(found))


def _lacks_runs(judged: Judged) -> bool:
    """Whether neither an interval came of it nor bounds that hold for certain."""
    verdict = judged.verdict
    return verdict.word == "inconclusive" and verdict.interval is None and verdict.bounds is None


def _of(judged: Judged, planned: Sequence[Asked]) -> Judgeable:
    trials = [trial.record.trial for cell in judged.cells for trial in cell.trials]
    if judged.claim.metric == "batch_ratio":
        sweeps = {sweep_place(trial) for trial in trials}
        trials = [trial for trial in planned if sweep_place(trial) in sweeps]
    return Judgeable(judged.claim, frozenset(trial.id for trial in trials))


def needs_run(claim: Claim) -> bool:
    """Whether its verdict needs a run on the reader's machine; else it follows from data or code alone."""
    return CLAIMED[claim.metric].needs_run
