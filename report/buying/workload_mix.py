"""The card of each offer, and the buyer's works with each card's own measurement of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.errors import UserError
from harness.record.published.cards import Card, find_card, means_card
from report import text
from report.buying.purchase import FILE, Offer, Purchase, PurchaseWork
from report.compare.cells import Cell
from report.trials.key import LOADER_ALONE, Key, grouped_by
from report.trials.trial import TrialResult

_KEYS = ("workload", "protocol", "model", "precision", "batch_size", "image_size", "sequence_length")
DATA_MODES = ("cached", "device", "host")
"""From what shows the card alone to what shows the whole machine: the first on record is meant."""
PRECISIONS = ("fp32-ieee", "amp-fp16", "amp-bf16")
"""What speeds are of where no work is given."""


@dataclass(frozen=True, slots=True)
class OfferedCard:
    """The card of an offer, or that of the hours; `machine` is empty where no record is of it."""

    name: str
    machine: str
    card: str
    device: str
    offer: Offer | None = None

    @property
    def measured(self) -> bool:
        return bool(self.machine)

    def made(self, of: Cell | TrialResult) -> bool:
        """Return whether something was measured on such a card; of a processor, in this machine."""
        trial = of.trials[0] if isinstance(of, Cell) else of
        any_machine = trial.environment.device != "cpu" and self.measured
        return self.card == of.card and (any_machine or self.machine == of.machine)


@dataclass(frozen=True, slots=True)
class WorkLine:
    """One line of the buyer's work, with each card's cell of that very work."""

    name: str
    precision: str | None
    """The label of its arithmetic; null where the buyer does not say."""
    hours: float
    cells: tuple[Cell | None, ...]
    alike: tuple[Cell, ...] = ()
    """The cells on record, of any card, that the line may mean."""
    measured: bool = False
    """Whether each card that is compared has it on record, so that these enter the sum."""

    @property
    def peak_bytes(self) -> float | None:
        """The most memory that it took on a GPU; null where that was not measured."""
        on_gpu = (cell for cell in self.alike if cell.trials[0].environment.device != "cpu")
        return max((peak for cell in on_gpu if (peak := cell.figures["peak_bytes"].mean)), default=None)


def timed_cells(cells: Iterable[Cell]) -> list[Cell]:
    """Return the valid trainings on one device, settled windows and real data first."""
    timed = [cell for cell in cells if cell.verdict != "invalid" and cell.throughput.mean]
    trained = [cell for cell in timed if cell.key.gpus == 1 and cell.key.protocol != LOADER_ALONE]
    return sorted(trained, key=lambda cell: (not cell.ranked, cell.key.data_source == "generated"))


def offered_cards(
    cells: Sequence[Cell], purchase: Purchase, sold: Sequence[Card]
) -> tuple[tuple[OfferedCard, ...], int | None]:
    """Return the offers' cards in the file's order, and the place of the one that the hours are on.

    That is behind them where it is no offer's, and null where the file does not name it. Processors in
    machines of unlike labels are never one. Raises UserError where a name fits several cards.
    """
    sides = [of[0] for of in grouped_by(cells, lambda cell: (cell.machine, cell.card)).values()]

    def card_of(words: str, where: str, offer: Offer | None = None) -> OfferedCard:
        cell, named = meant(words, sides, where, sold), text.clean(words, 60)
        if cell is None:
            return OfferedCard(text.short_card(named), "", named, named, offer)
        return OfferedCard(
            text.short_card(cell.card), cell.machine, cell.card, cell.trials[0].device_name, offer
        )

    found = [card_of(offer.card, f"offer {n}", offer) for n, offer in enumerate(purchase.offer, 1)]
    if not purchase.hours_on:
        return tuple(found), None
    base = card_of(purchase.hours_on, "'hours_on'")
    places = [(one.machine, one.card.casefold()) for one in (*found, base)]
    place = places.index(places[-1])
    return (*found, *([base] if place == len(found) else [])), place


def _type(cell: Cell) -> tuple[str, str]:
    """Return what is bought: a card, or a machine's processor."""
    processor = cell.trials[0].environment.device == "cpu"
    return cell.card, cell.machine_label if processor else ""


def _machine_names(cell: Cell) -> tuple[str, str]:
    """Return a machine's label with its id where others have the same label, and the label alone."""
    return cell.machine_label.casefold(), cell.trials[0].record.machine.label.casefold()


def meant(words: str, sides: Sequence[Cell], where: str, sold: Sequence[Card]) -> Cell | None:
    """Return the card of that name, else of which it is a part, as its driver says or as it is `sold`.

    Else the machine of that label. Raises UserError where it fits several.
    """
    name = words.casefold().strip()

    def shop_name(cell: Cell) -> str:
        card = find_card(cell.trials[0].device_name, sold)
        return card.name if card else ""

    tests: tuple[Callable[[Cell], bool], ...] = (
        lambda cell: name in (cell.card.casefold(), text.short_card(cell.card).casefold()),
        lambda cell: means_card(name, cell.card) or means_card(name, shop_name(cell)),
        lambda cell: name in _machine_names(cell),
        lambda cell: any(means_card(name, label) for label in _machine_names(cell)),
    )
    for test in tests:
        fitting = [cell for cell in sides if test(cell)]
        called = list(dict.fromkeys(map(_type, fitting)))
        if test in tests[2:]:
            called = list(dict.fromkeys((cell.card, cell.machine_label) for cell in fitting))
        if len(called) > 1:
            shown = ", ".join(" ".join(part for part in parts if part) for parts in called)
            raise UserError(
                f"{FILE}: {where}: '{text.clean(words, 60)}' is a part of several: {text.clean(shown, 200)}",
                remedy="write more of the name, or the machine's label",
            )
        if fitting:
            return fitting[0]
    return None


def work_lines(
    cells: Sequence[Cell], cards: Sequence[OfferedCard], purchase: Purchase
) -> tuple[WorkLine, ...]:
    """Return the lines of the buyer's work; without one works that every card has on record, and precisions.

    Raises UserError where a line fits several works on these cards, naming the key that distinguishes them.
    """
    places = [(key, of) for key, of in grouped_by(cells, lambda cell: cell.key).items()]
    recorded = [(key, tuple(next(filter(one.made, of), None) for one in cards), of) for key, of in places]
    if not purchase.work:
        common = [(key, own, of) for key, own, of in recorded if all(own)]
        lines = [WorkLine(_name(key), key.precision, 0.0, own, tuple(of)) for key, own, of in common]
        return (
            *lines,
            *(WorkLine(f"new work in {label}", label, 0.0, (None,) * len(cards)) for label in PRECISIONS),
        )
    return tuple(_buyers_line(work, n, recorded, len(cards)) for n, work in enumerate(purchase.work, 1))


Recorded = tuple[Key, tuple[Cell | None, ...], list[Cell]]


def _buyers_line(work: PurchaseWork, number: int, recorded: Sequence[Recorded], cards: int) -> WorkLine:
    fits = [one for one in recorded if fits_work(one[0], work)]
    alike = tuple(cell for _, _, of in fits for cell in of)
    modes = grouped_by((one for one in fits if any(one[1])), lambda one: DATA_MODES.index(one[0].data_mode))
    fits = modes[min(modes)] if modes else []
    if not fits:
        return WorkLine(_written(work), work.precision, work.hours_per_year, (None,) * cards, alike)
    for name in _KEYS:
        values = sorted({str(getattr(key, name)) for key, *_ in fits})
        if len(values) > 1:
            raise UserError(
                f"{FILE}: work {number} fits several lines of the report, which differ in {name}: "
                f"{text.clean(', '.join(values), 120)}",
                remedy=f"add '{name}' to it",
            )
    key, own, of = max(fits, key=lambda one: (sum(map(bool, one[1])), len(one[2])))
    return WorkLine(_name(key), key.precision, work.hours_per_year, own, tuple(of))


def _name(key: Key) -> str:
    return f"{text.model_name(key.model)}, {key.precision}, batch {key.batch_size}"


def _written(work: PurchaseWork) -> str:
    batch = work.batch_size and f"batch {work.batch_size}"
    parts = (text.model_name(work.model or work.workload), work.precision, batch)
    return text.clean(", ".join(part for part in parts if part), 80)


def fits_work(key: Key, work: PurchaseWork) -> bool:
    """Return whether a key has the names that are given, as people write them: `lstm` is LSTM."""
    asked = {
        name: str(value).casefold()
        for name in (*_KEYS, "data_mode")
        if (value := getattr(work, name)) is not None
    }
    shown = text.model_name(key.model).casefold()
    return all(value in (str(getattr(key, name)).casefold(), shown) for name, value in asked.items())
