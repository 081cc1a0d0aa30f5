"""Whatever the code is called and however it is cut, a reader finds the same figures."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from report.claims.answers import WAYS
from report.compare.cells import Cell, cells_of
from report.trials.reading import read
from report.trials.trial import TrialResult
from tests.helpers.cases import CASES, analysis_of
from tests.helpers.checks import GOLDEN
from tests.helpers.figures import figures_of
from tests.helpers.here import analysis_here, evidence_here
from tests.helpers.plain import differences, laid_out

MOST_SHOWN = 20
HELD = [name for name, case in CASES.items() if case.held]
RECORDS = "trial", "speed", "low", "high", "memory", "verdict", "findings"
ANSWERS = "session", "claim", "answer", "times", "low", "high"


@pytest.mark.parametrize("name", HELD)
def test_the_figures_of_these_records_are_those_that_were_held(name: str):
    path, found = GOLDEN / "figures" / f"{name}.json", figures_of(analysis_of(CASES[name]))
    if os.environ.get("GPUDYNO_ACCEPT") == "1":
        path.write_text(f"{laid_out(found)}\n", encoding="utf-8")
    _fail_where_other(differences(json.loads(path.read_text(encoding="utf-8")), found))


def test_every_golden_file_has_its_case():
    assert {path.stem for path in (GOLDEN / "figures").glob("*.json")} == set(HELD)


def test_each_committed_record_has_the_speed_range_memory_verdict_and_findings_that_were_held():
    results, cards = evidence_here().results, evidence_here().cards
    trials = read(results.records, cards, results.sessions)
    cells = {trial.path: cell for cell in cells_of(trials) for trial in cell.trials}
    ordered = sorted(trials, key=lambda trial: trial.path)
    found = {trial.path: _record_row(trial, cells.get(trial.path)) for trial in ordered}
    held = _held("records.csv", RECORDS, [*found.values()])
    _fail_where_other(differences(held, [found.get(row["trial"]) for row in held]))


def test_each_committed_session_gives_the_claims_that_it_meets_the_answers_that_were_held():
    sessions = dict.fromkeys(Path(row["trial"]).parent.name[-15:] for row in _read("records.csv"))
    found = {(row["session"], row["claim"]): row for session in sessions for row in _answer_rows(session)}
    held = _held("answers.csv", ANSWERS, [*found.values()])
    _fail_where_other(differences(held, [found.get((row["session"], row["claim"])) for row in held]))


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


def _fail_where_other(apart: Iterator[str]) -> None:
    lines = list(apart)
    if lines:
        shown = "\n".join(lines[:MOST_SHOWN])
        pytest.fail(
            f"{len(lines)} figures differ; GPUDYNO_ACCEPT=1 takes the new ones\n{shown}", pytrace=False
        )
