"""What a machine has kept since it was accepted: each session on its units against the acceptance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from statistics import fmean

from harness.record import Machine, Record, differing_fields
from harness.summary.device_checks import mean_in_windows, used_cards
from report.buying.clause import KEPT, Clause, DemandResult, clause, judge
from report.buying.machine import Difference, difference, differs, not_as_ordered
from report.compare.cells import Cell, cells_of
from report.trials.key import grouped_by
from report.trials.trial import TrialResult

Units = frozenset[str]
"""The UUIDs of cards as hashes; of a processor, its machine's id."""
Reading = Callable[[Record], float | None]


@dataclass(frozen=True, slots=True)
class Order:
    """What a machine was ordered by: its clause, the records that it stands on, and all their sessions."""

    clause: Clause
    records: Sequence[Record]
    sessions: Sequence[str]


@dataclass(frozen=True)
class Visit:
    """One session."""

    session: str
    trials: tuple[TrialResult, ...]

    @property
    def started_at(self) -> datetime:
        return self.trials[0].started_at

    @property
    def records(self) -> list[Record]:
        return [trial.record for trial in self.trials]

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return cells_of(self.trials)

    @cached_property
    def units(self) -> Units:
        """Those that it ran on; empty where they are not known."""
        return frozenset[str]().union(*map(_units, self.records))

    def held_to(self, rule: Clause) -> tuple[DemandResult, ...]:
        """What it reached of a clause."""
        return judge(rule, self.cells, [trial for trial in self.trials if trial.failure is not None])


@dataclass(frozen=True, slots=True)
class Life:
    """The acceptance and each session since: the last one is what is asked about."""

    visits: tuple[Visit, ...]
    rule: Clause
    """The figures of the acceptance, and how much of each must be kept."""
    results: tuple[tuple[DemandResult, ...], ...]
    """Of each visit after the first."""
    events: tuple[tuple[Difference, ...], ...]
    """What differs from each visit to the next."""
    since: tuple[Difference, ...]
    """What differs between the first and the last."""
    other_release: bool
    """Whether versions of the software differ between these."""
    worth: tuple[float, ...]
    """Now ÷ then of other units on record that had both stacks, the slowest first."""


def _units(record: Record) -> Units:
    if record.trial.asked.device == "cpu":
        return frozenset((record.machine.id,))
    return frozenset(card.unit for card in used_cards(record) if card.unit)


def visits(trials: Sequence[TrialResult]) -> list[Visit]:
    """Every session, in the order that one machine counts its own in; of several machines by their clocks."""
    counted = len({trial.machine for trial in trials}) == 1
    found = [Visit(name, tuple(own)) for name, own in grouped_by(trials, lambda trial: trial.session).items()]
    return sorted(found, key=lambda visit: (visit.trials[0].turn if counted else 0, visit.started_at))


def accepted(order: Order, found: Iterable[Visit]) -> Visit | None:
    """The first session that passed the order's clause on the machine and software that were ordered."""
    for visit in found:
        if visit.session in order.sessions or not_as_ordered(order.records, visit.records):
            continue
        if all(result.passed for result in visit.held_to(order.clause)):
            return visit
    return None


def was_accepted(order: Order, found: Iterable[Visit], here: Machine) -> bool:
    """Whether units that this machine has passed before."""
    present = {here.id, *(card.unit for card in here.gpus)}
    return accepted(order, (visit for visit in found if visit.units and visit.units <= present)) is not None


def life(order: Order, found: Sequence[Visit], session: str) -> Life | None:
    """Of a session's units from their acceptance on; null where they were not accepted before it."""
    units = next((visit.units for visit in found if visit.session == session), frozenset[str]())
    own = [visit for visit in found if visit.units == units and visit.session not in order.sessions]
    names = [visit.session for visit in own]
    first = accepted(order, own[: names.index(session)]) if units else None
    if first is None:
        return None
    works = {demand.key for demand in order.clause.demands}
    rule = clause([cell for cell in first.cells if cell.key in works], margin=1 - KEPT)
    assert rule is not None
    *between, last = own[names.index(first.session) + 1 : names.index(session) + 1]
    kept = (first, *(each for each in between if works & {cell.key for cell in each.cells}), last)
    stacks = [
        (then, now)
        for then in first.cells
        for now in last.cells
        if then.key == now.key and then.stack != now.stack
    ]
    return Life(
        visits=kept,
        rule=rule,
        results=tuple(visit.held_to(rule) for visit in kept[1:]),
        events=tuple(changes(one.records, other.records) for one, other in pairwise(kept)),
        since=changes(first.records, last.records),
        other_release=any(then.stack.versions != now.stack.versions for then, now in stacks),
        worth=_worth(stacks, [visit for visit in found if visit.units and visit.units != units]),
    )


def _worth(stacks: Sequence[tuple[Cell, Cell]], others: Sequence[Visit]) -> tuple[float, ...]:
    ratios = []
    for own in grouped_by(others, lambda visit: visit.units).values():
        cells = [cell for visit in own for cell in visit.cells]
        means = {(cell.key, cell.card, cell.stack): cell.throughput.mean for cell in cells}
        moved = [
            after / before
            for then, now in stacks
            if (before := means.get((then.key, then.card, then.stack)))
            and (after := means.get((now.key, now.card, now.stack)))
        ]
        ratios += [fmean(moved)] if moved else []
    return tuple(sorted(ratios))


def changes(before: Sequence[Record], now: Sequence[Record]) -> tuple[Difference, ...]:
    """Everything that is not as it was, each once; what either side does not know is no difference."""
    settings = (
        difference(field, was, is_now)
        for field, was, is_now in differing_fields(_used(before[0]), _used(now[0]))
        if None not in (was, is_now) and (field.endswith(" driver") or differs(field, was, is_now))
    )
    on_one_machine = [record.model_copy(update={"machine": before[0].machine}) for record in now]
    found = (*settings, *not_as_ordered(before, on_one_machine), *_read(before, now))
    return tuple(each for each in found if each.before != each.now)


def _used(record: Record) -> Machine:
    """The machine with those of its cards that the trial used; a link at rest says nothing."""
    cards = tuple(card.model_copy(update={"pcie_generation": None}) for card in used_cards(record))
    return record.machine.model_copy(update={"gpus": cards, "links": ()})


def _read(before: Sequence[Record], now: Sequence[Record]) -> Iterator[Difference]:
    """What was read while trials ran, where their means differ by more than noise."""
    for what, unit, relative, absolute, of in _READINGS:
        sides = [[value for record in side if (value := of(record)) is not None] for side in (before, now)]
        if all(sides):
            was, is_now = map(fmean, sides)
            if not math.isclose(was, is_now, rel_tol=relative, abs_tol=absolute):
                yield Difference(what, f"{was:.4g}{unit}", f"{is_now:.4g}{unit}")


def _mean(of_cards: str, of_cpu: str = "") -> Reading:
    """Within the measured windows, of all cards or of the processor."""

    def read(record: Record) -> float | None:
        seen = record.telemetry
        if seen is None:
            return None
        on_cpu = record.trial.asked.device == "cpu"
        traces = (
            [getattr(seen.cpu, of_cpu, None)] if on_cpu else [getattr(card, of_cards) for card in seen.cards]
        )
        means = [mean for trace in traces if (mean := mean_in_windows(trace, seen)) is not None]
        return fmean(means) if means else None

    return read


def _count(name: str) -> Reading:
    """Over all cards of a trial."""

    def read(record: Record) -> float | None:
        told = [getattr(card, name) for card in (record.telemetry.cards if record.telemetry else ())]
        return None if None in told or not told else sum(told)

    return read


_READINGS: tuple[tuple[str, str, float, float, Reading], ...] = (
    ("clock under load", " MHz", 0.01, 0.0, _mean("sm_mhz", "mhz")),
    ("temperature under load", " °C", 0.0, 3.0, _mean("temperature_c", "temperature_c")),
    ("power under load", " W", 0.03, 0.0, _mean("power_watts")),
    ("corrected memory errors a trial", "", 0.0, 0.0, _count("ecc_corrected")),
    ("uncorrected memory errors a trial", "", 0.0, 0.0, _count("ecc_uncorrected")),
)
"""A quantity, its unit, and by which share or how many units two sessions differ before it is told."""
