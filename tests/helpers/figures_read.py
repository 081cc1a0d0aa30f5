"""What the adapters read: the report's own values, made as the page makes them, and the shapes they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.record.cards import FILE as CARDS
from harness.record.cards import Card, load_cards
from harness.record.claims import ClaimSet, load_claims
from harness.record.store import Shelf, read_all
from harness.summary.statistics import METHOD, judge_trial
from report import frame, suspect
from report.acceptance.clause import MARGIN
from report.comparability import Key, Length
from report.comparisons import cells as stats
from report.comparisons import expectation, groups, parity, speedups
from report.comparisons.cells import Cell, Figure, Ratio
from report.comparisons.expectation import Expectation
from report.comparisons.groups import Contest
from report.comparisons.parity import Parity
from report.comparisons.speedups import Speedup
from report.comparisons.unit_spread import UnitBand
from report.cost import inputs
from report.cost.purchase import Purchase
from report.frame import Row
from report.page import build
from report.sections import batch_sweep, roofline
from report.sections.view import PageView, Table
from report.stats.intervals import Interval

__all__ = ["MARGIN", "Report", "read"]


@dataclass(frozen=True)
class Report:
    """The values of one page. `every_row` has the ceilings of devices too, which are no training."""

    root: Path
    purchase: Purchase | None
    margin: float
    shelf: Shelf
    claims: ClaimSet
    cards: Sequence[Card]
    every_row: Sequence[Row]
    rows: Sequence[Row]
    lead: str | None
    standing: Sequence[Cell]
    cells: Sequence[Cell]
    contests: Sequence[Contest]
    gains: Sequence[Speedup]
    parities: Sequence[Parity]
    expected: Sequence[Expectation]
    view: PageView

    @property
    def own(self) -> list[Row]:
        """The leading session's trials."""
        return [row for row in self.rows if row.session == self.lead]

    @property
    def shown(self) -> list[Row]:
        """The leading session's trials, and those that stand beside them."""
        paths = {row.path for contest in self.contests for line in contest.lines for row in line.cell.rows}
        return [row for row in self.rows if row.session == self.lead or row.path in paths]

    @property
    def workloads(self) -> dict[str, tuple[list[Cell], list[Row]]]:
        """By workload, in the page's order: all cells of the machines that stand on it, and its failures."""
        beside = {(line.cell.session, line.cell.machine) for c in self.contests for line in c.lines}
        near = [cell for cell in self.cells if (cell.session, cell.machine) in beside]
        failed = [row for row in self.own if row.failure is not None]
        return {
            name: (
                [cell for cell in near if cell.key.workload == name],
                [row for row in failed if row.key.workload == name],
            )
            for name in dict.fromkeys(contest.base.workload for contest in self.contests)
        }


def read(
    root: Path,
    session: str | None,
    *,
    now: datetime,
    baseline: str | None,
    purchase: Purchase | None,
    margin: float,
) -> Report:
    """The report's values for one page, step by step as `report.page.look` takes them."""
    shelf, claims = read_all(root), load_claims(root)
    cards = load_cards(root) if (root / CARDS).exists() else ()
    named = ((stored.path, stored.record) for stored in shelf.records)
    plausible = stats.plausible(frame.rows(named, judged=judge_trial, method=METHOD))
    every = suspect.marked(roofline.bounded(plausible, cards), cards)
    rows = [row for row in every if not roofline.is_ceiling(row)]
    lead = build.leading(rows, shelf.sessions, session=session, machine=None, now=now)
    cells = stats.cells(rows)
    standing = batch_sweep.without_rungs(cells, lead)
    failed = [row for row in rows if row.session == lead and row.failure is not None]
    found = groups.contests(standing, lead, baseline=baseline, claims=claims.claims, failed=failed)
    drawn = [line.cell for contest in found for line in contest.lines]
    buyer = inputs.buyer(found, rows, purchase)
    return Report(
        root=root,
        purchase=purchase,
        margin=margin,
        shelf=shelf,
        claims=claims,
        cards=cards,
        every_row=every,
        rows=rows,
        lead=lead,
        standing=standing,
        cells=cells,
        contests=found,
        gains=speedups.speedups(drawn),
        parities=parity.parities(drawn),
        expected=expectation.expectations(found, buyer) or expectation.expectations(found),
        view=build.look(
            shelf, claims, cards, purchase, baseline=baseline, session=session, margin=margin, now=now
        ),
    )


def trial(path: str) -> str:
    """A trial's path without date and machine: `20260131-aaaaaa/word_lm-r1-0123456789ab`."""
    parts = Path(path).with_suffix("").parts
    return f"{parts[-2][-15:]}/{parts[-1]}"


def trials_of(cell: Cell) -> list[str]:
    """Without the session, which is one for all."""
    return [trial(row.path).partition("/")[2] for row in cell.rows]


def first_trial(cell: Cell) -> str:
    """What a cell is called where it stands as a side of a ratio."""
    return trial(cell.rows[0].path)


def key(of: Key) -> dict[str, Any]:
    """The fields that keep figures apart here, with their values. Hashes by their start."""
    fields = {
        "workload": of.workload,
        "protocol": of.protocol,
        "model": of.model,
        "precision": of.precision or None,
        "batch_size": of.batch_size or None,
        "data_source": of.data_source,
        "data_sha256": of.data_sha256 and of.data_sha256[:12],
        "data_mode": of.data_mode,
        "weights": of.weights,
        "weights_sha256": of.weights_sha256 and of.weights_sha256[:12],
        "image_size": of.image_size,
        "sequence_length": of.sequence_length,
        "layout": of.layout,
        "profile": of.profile,
        "devices": of.gpus,
        "options": dict(of.options) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def length(of: Length) -> dict[str, Any]:
    return {
        "steps_per_epoch": of.steps_per_epoch,
        "epochs": of.epochs,
        "validation_batches": of.valid_batches,
        "projected": of.projected,
        "limit": dict(of.limit),
    }


def figure(of: Figure) -> dict[str, Any] | None:
    """A metric over trials; null where none has it. `apart` holds values that take no part in the mean.

    The interval is its low and high end, and how it was made.
    """
    if not of.values and not of.apart:
        return None
    apart = {"apart": [float(value) for value in of.apart]} if of.apart else {}
    return {
        "n": of.n,
        "values": [float(value) for value in of.values],
        "mean": None if of.mean is None else float(of.mean),
        "interval": of.interval and [of.interval.low, of.interval.high, of.interval.method],
        **apart,
    }


def interval(of: Interval | None) -> dict[str, Any] | None:
    return (
        None
        if of is None
        else {
            "low": of.low,
            "estimate": of.estimate,
            "high": of.high,
            "n": of.n,
            "df": of.df,
            "level": of.level,
            "method": of.method,
            "comparisons": of.comparisons,
            "notes": of.notes,
        }
    )


def ratio(of: Ratio | None) -> dict[str, Any] | None:
    """A ratio with its interval; `n` counts the runs of each side."""
    if of is None:
        return None
    ends = of.interval
    return {
        "estimate": of.estimate,
        "low": ends and ends.low,
        "high": ends and ends.high,
        "n": of.n,
        "level": ends and ends.level,
        "method": ends and ends.method,
        "comparisons": ends and ends.comparisons,
        "notes": ends and ends.notes,
    }


def band(of: UnitBand) -> dict[str, Any]:
    return {"low": of.low, "high": of.high, "measured": of.measured, "units": of.units}


def table(of: Table | None) -> dict[str, Any] | None:
    return None if of is None else {"caption": of.caption, "columns": of.columns, "rows": of.rows}
