"""What a machine has kept since it was accepted: each session on its units against the acceptance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from statistics import fmean

from harness.record import Machine, Record
from harness.summary.device_checks import used_cards
from report.buying.changes import changes
from report.buying.clause import KEPT, Clause, clause
from report.buying.delivery import DemandResult, judge
from report.buying.machine import Difference, not_as_ordered
from report.compare.cells import Cell
from report.trials.key import grouped_by
from report.trials.trial import TrialResult

Units = frozenset[str]
"""The UUIDs of cards as hashes; of a processor, its machine's id."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One session on the machine's units."""

    session: str
    units: Units
    trials: tuple[TrialResult, ...]
    cells: tuple[Cell, ...]

    @property
    def started_at(self) -> datetime:
        return self.trials[0].started_at

    @property
    def records(self) -> list[Record]:
        return [trial.record for trial in self.trials]

    def held_to(self, rule: Clause) -> tuple[DemandResult, ...]:
        """What it reached of a clause."""
        return judge(rule, self.cells, [trial for trial in self.trials if trial.failure is not None])


@dataclass(frozen=True, slots=True)
class StackWorth:
    """How much another stack changed the figures of other units on record that had both, now ÷ then."""

    units: int
    low: float
    mean: float
    high: float


@dataclass(frozen=True, slots=True)
class Life:
    """The acceptance and each session since: the last one is what is asked about."""

    visits: tuple[Visit, ...]
    results: tuple[tuple[DemandResult, ...], ...]
    """Of each visit after the first, in the demands of the acceptance."""
    rule: Clause
    """The figures of the acceptance, and how much of each must be kept."""
    events: tuple[tuple[Difference, ...], ...]
    """What differs from each visit to the next."""
    since: tuple[Difference, ...]
    """What differs between the first and the last."""
    other_release: bool
    """Whether versions of the software differ between these."""
    worth: StackWorth | None
    """What another stack may be worth, where other units on record tell."""

    @property
    def answer(self) -> tuple[DemandResult, ...]:
        """Of the last visit."""
        return self.results[-1]


@dataclass(frozen=True, slots=True)
class Order:
    """What a machine was ordered by: its clause, the records that it stands on, and all their sessions."""

    clause: Clause
    records: Sequence[Record]
    sessions: Sequence[str]


def units_of(record: Record) -> Units:
    """The units that a trial ran on."""
    if record.trial.asked.device == "cpu":
        return frozenset((record.machine.id,))
    units = {card.unit for card in used_cards(record)}
    units |= {record.measurement.device.unit} if record.measurement else set()
    return frozenset(unit for unit in units if unit)


def units_here(machine: Machine) -> Units:
    """Every unit that a machine has."""
    return frozenset((machine.id, *(card.unit for card in machine.gpus if card.unit)))


def visits(trials: Iterable[TrialResult], cells: Iterable[Cell]) -> list[Visit]:
    """Every session, in the order that one machine counts its own in; of several machines by their clocks."""
    of_session = grouped_by(cells, lambda cell: cell.session)
    sessions = grouped_by(trials, lambda trial: trial.session)
    counted = len({trial.machine for own in sessions.values() for trial in own}) == 1
    found = [
        Visit(
            name,
            frozenset[str]().union(*(units_of(trial.record) for trial in own)),
            tuple(own),
            tuple(of_session.get(name, ())),
        )
        for name, own in sessions.items()
    ]
    return sorted(found, key=lambda visit: (visit.trials[0].turn if counted else 0, visit.started_at))


def accepted(order: Order, found: Iterable[Visit]) -> Visit | None:
    """The first session that passed the order's clause on the machine and software that were ordered."""
    for visit in found:
        if visit.session in order.sessions or not_as_ordered(order.records, visit.records):
            continue
        if all(result.passed for result in visit.held_to(order.clause)):
            return visit
    return None


def was_accepted(order: Order, found: Sequence[Visit], here: Units) -> bool:
    """Whether units that are `here` passed before."""
    by_units = grouped_by((visit for visit in found if visit.units <= here), lambda visit: visit.units)
    return any(accepted(order, own) for units, own in by_units.items() if units)


def life(order: Order, found: Sequence[Visit], session: str) -> Life | None:
    """Of a session's units from their acceptance on; null where they were not accepted before it."""
    units = next((visit.units for visit in found if visit.session == session), frozenset[str]())
    own = [visit for visit in found if visit.units == units and visit.session not in order.sessions]
    names = [visit.session for visit in own]
    first = accepted(order, own[: names.index(session)]) if units else None
    if first is None:
        return None
    rule = _must_be_kept(order.clause, first)
    works = {demand.key for demand in rule.demands}
    since = own[names.index(first.session) + 1 : names.index(session) + 1]
    kept = (
        first,
        *(each for each in since[:-1] if works & {cell.key for cell in each.cells}),
        since[-1],
    )
    stacks = [
        (then, now)
        for then in first.cells
        for now in kept[-1].cells
        if then.key == now.key and then.stack != now.stack
    ]
    return Life(
        visits=kept,
        results=tuple(visit.held_to(rule) for visit in kept[1:]),
        rule=rule,
        events=tuple(changes(one.records, other.records) for one, other in pairwise(kept)),
        since=changes(first.records, kept[-1].records),
        other_release=any(then.stack.versions != now.stack.versions for then, now in stacks),
        worth=_worth(stacks, [visit for visit in found if visit.units and visit.units != units]),
    )


def _must_be_kept(ordered: Clause, first: Visit) -> Clause:
    """The figures of an acceptance, in the works of the order."""
    own = clause(first.cells, margin=1 - KEPT)
    assert own is not None
    keys = {demand.key for demand in ordered.demands}
    return replace(own, demands=tuple(demand for demand in own.demands if demand.key in keys))


def _worth(stacks: Sequence[tuple[Cell, Cell]], others: Sequence[Visit]) -> StackWorth | None:
    """By the newest figures of other units of the card with the very stacks of then and of now."""
    ratios = []
    for own in grouped_by(others, lambda visit: visit.units).values():
        cells = {(cell.key, cell.card, cell.stack): cell for visit in own for cell in visit.cells}
        moved = [
            after.throughput.mean / before.throughput.mean
            for then, now in stacks
            if (before := cells.get((then.key, then.card, then.stack)))
            and (after := cells.get((now.key, now.card, now.stack)))
            and before.throughput.mean
            and after.throughput.mean
        ]
        ratios += [fmean(moved)] if moved else []
    return StackWorth(len(ratios), min(ratios), fmean(ratios), max(ratios)) if ratios else None
