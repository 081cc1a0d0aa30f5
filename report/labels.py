"""The loud labels: what a reader must know before believing a figure."""

from __future__ import annotations

from collections.abc import Sequence

from harness.summary import cause_name
from report import words
from report.contests import Contest
from report.doubts import FLOOR_RUNS, HEADLINE_RUNS
from report.matching import smaller
from report.stats import Cell
from report.view import Badge


def badges(contest: Contest) -> tuple[Badge, ...]:
    """The labels of all the lines that a contest draws."""
    return of_cells([line.cell for line in contest.lines])


def of_cells(cells: Sequence[Cell]) -> tuple[Badge, ...]:
    """Each label once, the gravest first."""
    found = [*_data(cells), *_software(cells), *_sureness(cells)]
    return tuple(badge for badge in found if badge is not None)


def _data(cells: Sequence[Cell]) -> list[Badge | None]:
    reduced = dict.fromkeys(note for cell in cells for note in smaller(cell))
    random_body = any(cell.key.weights == "random" for cell in cells)
    return [
        _badge(
            any(cell.key.data_source == "generated" for cell in cells),
            "GENERATED DATA",
            "random data of the real shape stood in for the real set: no claim is judged on it",
        ),
        _badge(
            bool(reduced),
            "scaled down",
            f"smaller than the protocol, so that it ends soon: {words.clean('; '.join(reduced), 200)}",
        ),
        _badge(
            random_body,
            "random body",
            "without pretrained weights: accuracy and loss say nothing about the study",
        ),
    ]


def _software(cells: Sequence[Cell]) -> list[Badge | None]:
    environments = [row.environment for cell in cells for row in cell.rows]
    reasons = dict.fromkeys(
        words.clean(reason, 160) for found in environments for reason in found.unpinned_because
    )
    return [
        _badge(
            any(not found.pinned for found in environments),
            "unpinned",
            "the software is not what the lock says" + (f": {'; '.join(reasons)}" if reasons else ""),
        ),
        _badge(
            any(found.base_substituted for found in environments),
            "base substituted",
            "the image stands on another base than the one that is pinned",
        ),
    ]


def _sureness(cells: Sequence[Cell]) -> list[Badge | None]:
    fewest = fewest_runs(cells)
    bound = [cell for cell in cells if input_bound(cell)]
    return [
        _badge(
            any(cell.verdict == "unproven" for cell in cells),
            "unproven window",
            "the measured window is too short to show that the speed had settled: shown, never ranked",
        ),
        _badge(
            any(cell.verdict != "unproven" and _has_unproven(cell) for cell in cells),
            "unproven trials",
            "some windows did not show a settled speed where most of their line did; those trials are drawn "
            "as crosses and take no part in any mean",
        ),
        _badge(
            any(row.verdict == "invalid" for cell in cells for row in cell.rows),
            "invalid trials",
            "some trials broke a rule; they are drawn as crosses and take no part in any mean",
        ),
        _badge(
            0 < fewest < FLOOR_RUNS,
            f"quick look, n = {fewest}",
            f"{words.count(fewest, 'run')} where {FLOOR_RUNS} are the floor and {HEADLINE_RUNS} a headline",
        ),
        _badge(
            any(cell.length.projected and cell.seconds.n for cell in cells),
            "projected totals",
            "the whole protocol's time is worked out from a shorter run",
        ),
        _badge(
            bool(bound),
            "input-bound",
            "waiting for input took over 10 % of the time: a faster card would not shorten that part",
        ),
        _badge(
            any(cell.key.data_mode == "host" for cell in cells),
            "host loader",
            "the loader runs on the host as published: this ranks whole machines, not cards",
        ),
    ]


def fewest_runs(cells: Sequence[Cell]) -> int:
    """The runs of the figure that has the fewest; a whole run beside projections does not count."""
    most: dict[object, int] = {}
    for cell in cells:
        place = (cell.key, cell.session, cell.card, cell.stack)
        most[place] = max(most.get(place, 0), cell.throughput.n)
    return min((n for n in most.values() if n), default=0)


def input_bound(cell: Cell) -> bool:
    """Whether a trial waited for input for more than a tenth of its time."""
    return any(cause_name(cause) == "input-bound" for row in cell.rows for cause in row.causes)


def _badge(shown: bool, word: str, because: str) -> Badge | None:
    return Badge(word, because) if shown else None


def standing(cell: Cell) -> str:
    """One line's own state, for its row in the table."""
    said = [cell.verdict if cell.verdict != "valid" else ""]
    said.append("projected" if cell.length.projected else "whole run")
    said.append("generated data" if cell.key.data_source == "generated" else "")
    said.append("random body" if cell.key.weights == "random" else "")
    said.append("unpinned" if any(not row.environment.pinned for row in cell.rows) else "")
    said.append("base substituted" if any(row.environment.base_substituted for row in cell.rows) else "")
    said.append("input-bound" if input_bound(cell) else "")
    return ", ".join(part for part in said if part)


def _has_unproven(cell: Cell) -> bool:
    return any(row.verdict == "unproven" for row in cell.rows)
