"""What a reader must know before believing the headline: at most six chips, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from harness.record.finding import counted
from report.analysis import Analysis
from report.claims.matching import smaller
from report.compare.cells import Cell, fewest_runs
from report.page.values import Chip
from report.stats.intervals import BLOCKS_NEEDED, FLOOR_RUNS, HEADLINE_RUNS, Ranking
from report.text import model_name
from report.trials.trial import TrialResult

MOST = 6
MOST_GOOD = 2
MOST_NAMED = 2
_ORDER = {"stop": 0, "care": 1, "good": 2}


def chips(analysis: Analysis, cells: Sequence[Cell], more: Sequence[Chip] = ()) -> tuple[Chip, ...]:
    """Of the cells that the headline is of; `more` are those of a purpose of its own."""
    found = [*_data(cells), *more, *_runs(analysis, cells), *_software(cells)]
    found.sort(key=lambda chip: _ORDER[chip.kind])
    good = [chip for chip in found if chip.kind == "good"][:MOST_GOOD]
    others = [chip for chip in found if chip.kind != "good"]
    return (*others[: MOST - len(good)], *good)


def _data(cells: Sequence[Cell]) -> Iterator[Chip]:
    if not cells:
        return
    if any(cell.key.data_source == "generated" for cell in cells):
        yield Chip("stop", "generated-data", "workloads")
    elif all(cell.key.data_source == "real" for cell in cells):
        yield Chip("good", "real-data")
    if any(cell.verdict == "unproven" for cell in cells):
        yield Chip("care", "too-short", "uncertainty")
    if fewest_runs(cells):
        yield confidence(cells)
    if any(cell.key.weights == "random" for cell in cells):
        yield Chip("care", "random-weights", "workloads")
    if any(smaller(cell) for cell in cells):
        yield Chip("care", "scaled-down", "workloads")
    if any(cell.length.projected and cell.seconds.n for cell in cells):
        yield Chip("care", "projected", "uncertainty")


def confidence(cells: Sequence[Cell]) -> Chip:
    """How far the figures carry: in three levels, by runs, sessions, length and data."""
    runs, blocks = fewest_runs(cells), max((cell.blocks for cell in cells), default=0)
    weak = any(cell.verdict == "unproven" or cell.key.data_source == "generated" for cell in cells)
    level = 3 if runs >= HEADLINE_RUNS and blocks >= BLOCKS_NEEDED else 2
    level = 1 if weak or runs < FLOOR_RUNS else level
    return Chip(
        "good" if level == 3 else "care",
        "confidence",
        "uncertainty",
        {"level": level, "runs": runs, "blocks": max(blocks, 1)},
    )


def trials_of(analysis: Analysis, cells: Sequence[Cell]) -> list[TrialResult]:
    """Those that page one counts: of the leading session, and of those of the cells that it is about."""
    sessions = {(cell.machine, cell.session) for cell in cells}
    beside = (trial for trial in analysis.trials if trial.session != analysis.lead)
    return [*analysis.own, *(trial for trial in beside if (trial.machine, trial.session) in sessions)]


def invalid_of(trials: Sequence[TrialResult]) -> list[TrialResult]:
    """Those that finished and count nowhere."""
    return [trial for trial in trials if trial.verdict == "invalid" and trial.failure is None]


def _runs(analysis: Analysis, cells: Sequence[Cell]) -> Iterator[Chip]:
    trials = trials_of(analysis, cells)
    of, failed, invalid = len(trials), [trial for trial in trials if trial.failure], invalid_of(trials)
    if failed:
        reasons = Counter(trial.failure.reason for trial in failed if trial.failure)
        ((reason, _),) = reasons.most_common(1)
        works = dict.fromkeys(
            f"{model_name(trial.key.model)} batch {trial.key.batch_size}" for trial in failed
        )
        data = {"count": len(failed), "of": of, "reason": reason, "works": [*works]}
        yield Chip("care", "failed", "ran", data)
    if invalid:
        causes = counted(trial.causes for trial in invalid)
        cause = causes[0][0] if causes else ""
        yield Chip("care", "invalid", "uncertainty", {"count": len(invalid), "of": of, "cause": cause})
    if trials and not failed and not invalid:
        yield Chip("good", "all-finished", data={"of": of})
    if any(pair.blocks_assumed and pair.ranking is Ranking.RANKED for pair in analysis.expectations[:1]):
        yield Chip("care", "few-hours", "uncertainty")
    if any(cause.name == "busy-machine" for trial in trials for cause in trial.causes):
        yield Chip("care", "busy", "uncertainty")


def _software(cells: Sequence[Cell]) -> Iterator[Chip]:
    environments = [trial.environment for cell in cells for trial in cell.trials]
    if any(not used.pinned for used in environments):
        yield Chip("care", "unpinned", "ran")
    if any(used.base_substituted for used in environments):
        yield Chip("care", "other-base", "ran")
    if len({cell.machine for cell in cells}) > 1:
        if len({cell.stack for cell in cells}) == 1:
            yield Chip("good", "same-software", "ran")
        else:
            yield Chip("care", "other-software", "ran", {"in": _differing(cells)[:MOST_NAMED]})


def _differing(cells: Sequence[Cell]) -> list[str]:
    """The parts of the software that are not the same for all cells."""
    stacks = [{"driver": cell.stack.driver, **dict(cell.stack.versions)} for cell in cells]
    names = dict.fromkeys(name for stack in stacks for name in stack)
    return [name for name in names if len({stack.get(name) for stack in stacks}) > 1]
