"""The systems of a page: what each is called, and which colour it has in all pictures and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from report import text
from report.analysis import Analysis
from report.page.values import System


class OnCard(Protocol):
    """A cell, a trial, an offer, or whatever else is of a card in a machine."""

    @property
    def machine(self) -> str:
        """Its id."""

    @property
    def card(self) -> str:
        """The name of its device or devices."""


class Systems:
    """All systems whose figures stand on the page, this machine's first, then those compared with it."""

    def __init__(self, systems: Sequence[System]) -> None:
        self.all = tuple(systems)
        self._by_place = {(system.machine, system.card): system for system in systems}

    def of(self, measured: OnCard) -> System:
        """The system that something was measured on, or an offer is of."""
        return self._by_place[measured.machine, measured.card]

    @property
    def own(self) -> tuple[System, ...]:
        """Those of this machine."""
        return tuple(system for system in self.all if system.own)


def systems_of(analysis: Analysis) -> Systems:
    """This machine's systems, then those of the leading pair, then all others of the groups and cells."""
    own = {trial.machine for trial in analysis.own}
    leading = (cell for pair in analysis.expectations[:1] for cell in pair.cells)
    here, beside = (*analysis.measured_here, *analysis.own_cells), (*analysis.grouped, *analysis.cells)
    measured: tuple[OnCard, ...] = (*here, *leading, *beside, *analysis.trials)
    places = dict.fromkeys((each.machine, each.card) for each in measured)
    ordered = sorted(places, key=lambda place: place[0] not in own)
    found = [
        System(machine, card, text.short_card(card), slot, machine in own)
        for slot, (machine, card) in enumerate(ordered)
    ]
    return Systems(_told_apart(found, analysis))


def _told_apart(found: Sequence[System], analysis: Analysis) -> list[System]:
    """Systems that share a name are told apart by their machines' labels, and those by the start of an id."""
    counted = Counter(system.name for system in found)
    labels = {trial.machine: text.clean(trial.machine_label, 40) for trial in analysis.trials}
    own = [system for system in found if system.own]

    def named(system: System) -> str:
        if counted[system.name] == 1:
            return system.name
        if own == [system]:
            return text.THIS
        label = labels.get(system.machine, system.machine[:4])
        # Machines that share a label have an id in brackets behind it.
        short = label.rpartition("(")[2].rstrip(")") if label.endswith(")") else label
        return f"{system.name} {short}"

    return [replace(system, name=named(system)) for system in found]
