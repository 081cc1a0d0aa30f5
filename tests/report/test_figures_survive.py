"""Whatever the code is called and however it is cut, a reader finds the same figures."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from report.analysis import Analysis
from report.claims.answers import WAYS
from report.compare.cells import Cell, cells_of
from report.compare.precisions import early_gates, parities
from report.stats.intervals import Interval
from report.trials.reading import read_trials
from report.trials.trial import TrialResult
from tests.helpers.cases import CASES, analysis_of
from tests.helpers.checks import GOLDEN
from tests.helpers.here import analysis_here, evidence_here

MOST_SHOWN = 20
HELD = {name: case for name, case in CASES.items() if case.held}
RECORDS = "trial", "speed", "low", "high", "memory", "verdict", "findings"
PARITY = {"holds": "parity", "fails": "worse", "open": "inconclusive"}
ANSWERS = "session", "claim", "answer", "times", "low", "high"
FIGURES = "case", "what", "of", "answer", "figure", "low", "high"


def test_constructed_records_have_the_ratios_verdicts_costs_and_demands_that_were_held():
    found = [row for name, case in HELD.items() for row in _figure_rows(name, analysis_of(case))]
    _fail_where_other(_held("figures.csv", FIGURES, found), found)


def test_each_committed_record_has_the_speed_range_memory_verdict_and_findings_that_were_held():
    results, cards = evidence_here().results, evidence_here().cards
    trials = read_trials(results.records, cards, results.sessions)
    cells = {trial.path: cell for cell in cells_of(trials) for trial in cell.trials}
    ordered = sorted(trials, key=lambda trial: trial.path)
    found = {trial.path: _record_row(trial, cells.get(trial.path)) for trial in ordered}
    held = _held("records.csv", RECORDS, [*found.values()])
    _fail_where_other(held, [found.get(row["trial"], {}) for row in held])


def test_each_committed_session_gives_the_claims_that_it_meets_the_answers_that_were_held():
    sessions = dict.fromkeys(Path(row["trial"]).parent.name[-15:] for row in _read("records.csv"))
    found = {(row["session"], row["claim"]): row for session in sessions for row in _answer_rows(session)}
    held = _held("answers.csv", ANSWERS, [*found.values()])
    _fail_where_other(held, [found.get((row["session"], row["claim"]), {}) for row in held])


def _record_row(trial: TrialResult, cell: Cell | None) -> Mapping[str, str]:
    """Return a record's figures; the range is that of its repeats' mean, and empty where it ran once."""
    interval = cell.throughput.interval if cell else None
    ends = (interval.low, interval.high) if interval else (None, None)
    figures = map(_written, (trial.samples_per_second, *ends, trial.peak_bytes))
    findings = " ".join(found.name for found in trial.findings)
    return dict(zip(RECORDS, (trial.path, *figures, trial.verdict, findings), strict=True))


def _answer_rows(session: str) -> Iterator[Mapping[str, str]]:
    """The answers to claims that a record met, where that session leads; of the others none is measured."""
    for answer in analysis_here(session).answers:
        if answer.cell is not None or answer.state not in WAYS:
            figures = map(_written, (answer.times, answer.low, answer.high))
            yield dict(zip(ANSWERS, (session, answer.claim.id, answer.state, *figures), strict=True))


def _figure_rows(case: str, analysis: Analysis) -> Iterator[Mapping[str, str]]:
    for what, of, answer, *figures in (*_shown(analysis), *_bought(analysis)):
        written = [*map(_written, figures), "", "", ""][:3]
        yield dict(zip(FIGURES, (case, what, of, answer, *written), strict=True))


def _shown(analysis: Analysis) -> Iterator[tuple[Any, ...]]:
    """Return ratios, parities and answers to claims."""
    for comparison in filter(None, (analysis.comparison, *analysis.beside)):
        for ratio in comparison.ratios:
            of = f"{_first(ratio.of)} over {_first(ratio.over)}"
            ends = _ends(ratio.interval)
            yield f"{ratio.speed} by {comparison.factor}", of, ratio.order, ratio.estimate, *ends
    for parity in (parity for parity in parities(analysis.page_cells) if parity.verdict):
        found = parity.verdict.interval
        yield (
            "parity",
            _first(parity.of),
            PARITY[parity.verdict.state],
            found and found.estimate,
            *_ends(found),
        )
    for trial, gate in early_gates(analysis.shown):
        yield "early gate", _name(trial), gate
    for answer in (answer for answer in analysis.answers if answer.cell):
        yield "claim", answer.claim.id, answer.state, answer.times, answer.low, answer.high


def _bought(analysis: Analysis) -> Iterator[tuple[Any, ...]]:
    """Return what a delivered machine must reach, and what offers cost: best, low and high."""
    for demand in analysis.clause.demands if analysis.clause else ():
        yield (
            "demand",
            f"{demand.cell.card} {demand.cell.key.model} {demand.cell.key.precision}",
            "",
            demand.figure.estimate,
            *_ends(demand.figure),
        )
    if analysis.costs is not None:
        model = analysis.costs.model
        for place, offer in model.offers.items():
            ends = {"hours": offer.hours, "cost of a year": model.cost(place).cost}
            for what, (low, best, high) in ends.items():
                yield what, analysis.costs.offers[place].name, "", best, low, high


def _ends(of: Interval | None) -> tuple[float | None, float | None]:
    return (of.low, of.high) if of else (None, None)


def _first(cell: Cell) -> str:
    return _name(cell.trials[0])


def _name(trial: TrialResult) -> str:
    return f"{trial.session[-6:]}/{Path(trial.path).stem}"


def _written(value: float | None) -> str:
    """Return an integer whole, and of a float the digits that are no rounding of a sum's order."""
    if isinstance(value, int):
        return str(value)
    return "" if value is None else f"{value:.9g}"


def _held(name: str, columns: Sequence[str], found: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    if os.environ.get("GPUDYNO_ACCEPT") == "1":
        with (GOLDEN / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)
    return _read(name)


def _read(name: str) -> list[dict[str, str]]:
    with (GOLDEN / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _fail_where_other(held: Sequence[Mapping[str, str]], found: Sequence[Mapping[str, str]]) -> None:
    pairs = zip_longest(held, found, fillvalue={})
    lines = [
        f"held: {list(one.values())}\nfound: {list(other.values())}" for one, other in pairs if one != other
    ]
    if lines:
        shown = "\n".join(lines[:MOST_SHOWN])
        pytest.fail(
            f"{len(lines)} figures differ; GPUDYNO_ACCEPT=1 takes the new ones\n{shown}", pytrace=False
        )
