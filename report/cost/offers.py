"""Each quote with the card on record that it is for, and the cards that have no quote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness.errors import UserError
from harness.record.cards import Card, find
from report.comparisons.cells import Cell
from report.comparisons.groups import ComparisonGroup
from report.cost.purchase import FILE, Purchase, Quote
from report.text import clean, short_card
from report.trials.trial import Trial

MOST = 8
"""Offers on one page."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A card on record, with the quote for it where there is one."""

    name: str
    machine: str
    card: str
    device: str
    quote: Quote | None = None

    def made(self, machine: str, card: str) -> bool:
        """Whether a figure of that machine and card is this offer's."""
        return (self.machine, self.card) == (machine, card)

    def memory_bytes(self, trials: Iterable[Trial]) -> int | None:
        """The card's memory as the framework saw it."""
        found = [trial.record.measurement for trial in trials if self.made(trial.machine, trial.card)]
        known = [one.device.memory_bytes for one in found if one and one.device.memory_bytes]
        return max(known, default=None)

    def board_watts(self, cards: Sequence[Card]) -> float | None:
        """The power limit as quoted, else on paper; null where neither says."""
        if self.quote and self.quote.watts:
            return self.quote.watts.high
        card = find(self.device, cards)
        return card.power_watts / card.devices if card else None


def usable(groups: Iterable[ComparisonGroup]) -> list[Cell]:
    """The cells of one device that money may stand on: ranked ones, the leading session's first."""
    lines = [line for group in groups for line in group.entries]
    lines.sort(key=lambda line: not line.own)
    return [line.cell for line in lines if line.cell.ranked and line.cell.key.gpus == 1]


def offers(cells: Sequence[Cell], purchase: Purchase | None) -> tuple[tuple[Offer, ...], tuple[str, ...]]:
    """The offers, quoted ones first, and a sentence for each quote that no record answers.

    Raises UserError where a quote's text fits several cards.
    """
    sides = list({(cell.machine, cell.card): cell for cell in reversed(cells)}.values())[::-1]
    found: list[Offer] = []
    missing = []
    for number, quote in enumerate(purchase.quote if purchase else (), 1):
        cell = _meant(quote.card, sides, f"quote {number}")
        if cell is None:
            asked = clean(quote.card, 60)
            missing.append(f"No ranked record on this page is of '{asked}': its quote is not used.")
        else:
            found.append(_offer(cell, quote))
    quoted = {one.card for one in found if _by_card(one)}
    spare = [c for c in sides if c.card not in quoted and not any(o.made(c.machine, c.card) for o in found)]
    found += [_offer(cell, None) for cell in (spare if purchase is None else _one_of_each(spare))]
    return _named(found[:MOST], sides), tuple(missing)


def _by_card(offer: Offer) -> bool:
    """Whether the quote named the card, and so every machine with it."""
    return offer.quote is not None and offer.quote.card.casefold() in offer.card.casefold()


def _one_of_each(cells: Sequence[Cell]) -> list[Cell]:
    return list({cell.card: cell for cell in reversed(cells)}.values())[::-1]


def _offer(cell: Cell, quote: Quote | None) -> Offer:
    return Offer(short_card(cell.card), cell.machine, cell.card, cell.trials[0].device_name, quote)


def _meant(text: str, sides: Sequence[Cell], where: str) -> Cell | None:
    """The card of that name, else of which it is a part; else the machine of that label."""
    wanted = text.casefold().strip()
    tests = (
        lambda cell: wanted in (cell.card.casefold(), short_card(cell.card).casefold()),
        lambda cell: wanted in cell.card.casefold(),
        lambda cell: wanted == cell.machine_label.casefold(),
        lambda cell: wanted in cell.machine_label.casefold(),
    )
    for test in tests:
        found = [cell for cell in sides if test(cell)]
        called = list(dict.fromkeys((cell.card, "") for cell in found))
        if test in tests[2:]:
            called = list(dict.fromkeys((cell.card, cell.machine_label) for cell in found))
        if len(called) > 1:
            shown = ", ".join(" ".join(part for part in one if part) for one in called)
            raise UserError(
                f"{FILE}: {where}: '{clean(text, 60)}' is a part of several: {clean(shown, 200)}",
                remedy="write more of the name",
            )
        if found:
            return found[0]
    return None


def _named(found: Sequence[Offer], sides: Sequence[Cell]) -> tuple[Offer, ...]:
    """Offers of one name told apart: bought or rented, by machine, else by number."""
    labels = {(cell.machine, cell.card): clean(cell.machine_label, 40) for cell in sides}
    for tell in (_deal, lambda one: labels[one.machine, one.card]):
        counted = [one.name for one in found]
        told = [replace(one, name=f"{one.name}, {tell(one)}") if tell(one) else one for one in found]
        apart = [counted.count(one.name) > 1 for one in found]
        several = {one.name: {tell(o) for o in found if o.name == one.name} for one in found}
        found = [
            new if twice and len(several[one.name]) > 1 else one
            for one, new, twice in zip(found, told, apart, strict=True)
        ]
    seen: dict[str, int] = {}
    final = []
    for one in found:
        seen[one.name] = seen.get(one.name, 0) + 1
        final.append(replace(one, name=f"{one.name} ({seen[one.name]})") if seen[one.name] > 1 else one)
    return tuple(final)


def _deal(one: Offer) -> str:
    return "" if one.quote is None else "rented" if one.quote.rented else "bought"
