"""Offers and the mix of work: the card of each quote, lines of equal work, and each card's cell on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from harness.errors import UserError
from harness.record.published.cards import Card, find
from report import text
from report.buying.purchase import FILE, Purchase, Quote, WorkloadHours
from report.compare.cells import Cell
from report.compare.groups import ComparisonGroup
from report.compare.key import MEASURED_FIELDS, each_nearest_the_card, nearest_the_card, same_but
from report.stats.intervals import Runs
from report.trials.key import LOADER_ALONE, Key, ProtocolLength, grouped_by, without
from report.trials.trial import TrialResult

MOST_OFFERS = 8
"""Offers on one page."""

_KEYS = ("workload", "protocol", "model", "precision", "batch_size", "image_size", "sequence_length")


@dataclass(frozen=True, slots=True)
class Offer:
    """A card on record, with the quote for it where there is one."""

    name: str
    machine: str
    card: str
    device: str
    label: str
    """Of its machine."""
    quote: Quote | None = None

    def made(self, machine: str, card: str) -> bool:
        """Whether a figure of that machine and card is this offer's."""
        return (self.machine, self.card) == (machine, card)

    def memory_bytes(self, trials: Iterable[TrialResult]) -> int | None:
        """The card's memory as the framework saw it."""
        measured = [trial.record.measurement for trial in trials if self.made(trial.machine, trial.card)]
        sizes = [measurement.device.memory_bytes for measurement in measured if measurement]
        return max(filter(None, sizes), default=None)

    def board_watts(self, cards: Sequence[Card]) -> float | None:
        """The power limit as quoted, else on paper; null where neither says."""
        if self.quote and self.quote.watts:
            return self.quote.watts.high
        card = find(self.device, cards)
        return card.power_watts / card.devices if card else None


@dataclass(frozen=True, slots=True)
class MixLine:
    """One line of equal work: a cell for each offer, or the reason why there is none."""

    key: Key
    length: ProtocolLength
    cells: tuple[Cell | None, ...]
    reasons: tuple[str, ...]
    """Of each offer: empty with a cell, else 'does not fit', 'failed: …' or 'not measured'."""
    by_throughput: bool
    """A whole protocol's time is not known on each card, so a million samples are the unit of work."""
    hours: float = 0.0
    of_several: bool = False
    """Whether other lines are of the same model under another protocol, which then tells them apart."""

    @property
    def name(self) -> str:
        """As the page writes it."""
        key = self.key
        under = f", protocol {text.clean(key.protocol, 40)}" if self.of_several else ""
        return (
            f"{text.model_name(key.model)}, {key.precision}, batch {key.batch_size}, {key.data_mode}{under}"
        )

    @property
    def unit(self) -> str:
        """What is made: 'trained model', or a million of what the workload counts."""
        if not self.by_throughput:
            return "trained model"
        unit = next(cell.trials[0].sample_unit for cell in self.cells if cell)
        return f"million {text.clean(unit, 20)}s"

    @property
    def epochs(self) -> int:
        """Passes in one trained model; 1 where a million samples are the unit."""
        return 1 if self.by_throughput else max(1, self.length.epochs)

    def unit_seconds(self, cell: Cell) -> Runs:
        """Of each run of a cell: seconds for one unit of the line's work."""
        if self.by_throughput:
            rates = cell.throughput
            return Runs(tuple(1e6 / value for value in rates.values), rates.blocks)
        return cell.seconds.runs

    @property
    def counts(self) -> int:
        """How many offers have a figure."""
        return sum(cell is not None for cell in self.cells)


def ranked_cells(groups: Iterable[ComparisonGroup]) -> list[Cell]:
    """The cells of one device that a cost may stand on: ranked trainings, the leading session's first."""
    entries = [entry for group in groups for entry in group.entries]
    entries.sort(key=lambda entry: not entry.own)
    ranked = [entry.cell for entry in entries if entry.cell.ranked and entry.cell.key.gpus == 1]
    return [cell for cell in ranked if cell.key.protocol != LOADER_ALONE]


def offers_on(
    cells: Sequence[Cell], purchase: Purchase | None, own: Collection[str] = ()
) -> tuple[tuple[Offer, ...], tuple[str, ...]]:
    """The offers, quoted ones first, and a sentence for each quote that no record answers.

    Cards of one name are told apart by their machines; those in `own` are this machine. A processor is what
    its machine makes of it, so that machines of unlike labels are never one.
    Raises UserError where a quote's text fits several cards.
    """
    sides = list({(cell.machine, cell.card): cell for cell in reversed(cells)}.values())[::-1]
    offered: list[Offer] = []
    missing: list[str] = []
    quoted: set[tuple[str, str]] = set()
    for number, quote in enumerate(purchase.quote if purchase else (), 1):
        cell = _meant(quote.card, sides, f"quote {number}")
        if cell is None:
            named = text.clean(quote.card, 60)
            missing.append(f"No ranked record on this page is of '{named}': its quote is not used.")
        else:
            offered.append(_offer(cell, quote))
            by_card = quote.card.casefold() in cell.card.casefold()
            if by_card:
                quoted.add(_type(cell))
                missing += _on_others(cell, sides, own)
    spare = [
        c for c in sides if _type(c) not in quoted and not any(o.made(c.machine, c.card) for o in offered)
    ]
    offered += [_offer(cell, None) for cell in (spare if purchase is None else _one_of_each(spare))]
    return _named(offered[:MOST_OFFERS], sides, own), tuple(missing)


def _type(cell: Cell) -> tuple[str, str]:
    """What is bought: a card, or a machine's processor."""
    processor = cell.trials[0].environment.device == "cpu"
    return cell.card, cell.machine_label if processor else ""


def _on_others(measured: Cell, sides: Sequence[Cell], own: Collection[str]) -> list[str]:
    """A sentence where several machines have the card that was quoted: whose figures it is set against."""
    alike = [cell for cell in sides if _type(cell) == _type(measured)]
    if len(alike) < 2:
        return []
    machine = text.THIS if measured.machine in own else f"machine {text.clean(measured.machine_label, 40)}"
    card = text.the(text.short_card(measured.card))
    return [f"{len(alike)} machines have {card}: its quote is set against the figures of {machine}."]


def _one_of_each(cells: Sequence[Cell]) -> list[Cell]:
    return list({_type(cell): cell for cell in reversed(cells)}.values())[::-1]


def _offer(cell: Cell, quote: Quote | None) -> Offer:
    name, device = text.short_card(cell.card), cell.trials[0].device_name
    return Offer(name, cell.machine, cell.card, device, cell.machine_label, quote)


def _machine_names(cell: Cell) -> tuple[str, str]:
    """A machine's label, also as told apart from others that bear it."""
    return cell.machine_label.casefold(), cell.trials[0].record.machine.label.casefold()


def _meant(words: str, sides: Sequence[Cell], where: str) -> Cell | None:
    """The card of that name, else of which it is a part; else the machine of that label."""
    name = words.casefold().strip()
    tests: tuple[Callable[[Cell], bool], ...] = (
        lambda cell: name in (cell.card.casefold(), text.short_card(cell.card).casefold()),
        lambda cell: name in cell.card.casefold(),
        lambda cell: name in _machine_names(cell),
        lambda cell: any(name in label for label in _machine_names(cell)),
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


def _named(offers: Sequence[Offer], sides: Sequence[Cell], own: Collection[str]) -> tuple[Offer, ...]:
    """Offers of one name told apart: by machine, as bought or rented, else by number."""
    labels = {(cell.machine, cell.card): text.clean(cell.machine_label, 40) for cell in sides}
    machines = {offer.name: {o.machine for o in offers if o.name == offer.name} for offer in offers}
    offers = [
        replace(
            offer, name=text.THIS if offer.machine in own else f"machine {labels[offer.machine, offer.card]}"
        )
        if len(machines[offer.name]) > 1
        else offer
        for offer in offers
    ]
    deals = {offer.name: {_deal(o) for o in offers if o.name == offer.name} for offer in offers}
    offers = [
        replace(offer, name=f"{offer.name}, {_deal(offer)}")
        if _deal(offer) and len(deals[offer.name]) > 1
        else offer
        for offer in offers
    ]
    seen: dict[str, int] = {}
    final = []
    for offer in offers:
        seen[offer.name] = seen.get(offer.name, 0) + 1
        count = seen[offer.name]
        final.append(replace(offer, name=f"{offer.name} ({count})") if count > 1 else offer)
    return tuple(final)


def _deal(offer: Offer) -> str:
    return "" if offer.quote is None else "rented" if offer.quote.rented else "bought"


def mix_lines(
    cells: Sequence[Cell], offers: Sequence[Offer], trials: Sequence[TrialResult]
) -> tuple[MixLine, ...]:
    """Every line of equal key and length, with each offer's cell; the leading session's cells come first."""
    recorded = []
    for alike in grouped_by(cells, same_but(within=("length",))).values():
        key, length = alike[0].key, alike[0].length
        chosen = tuple(
            next((cell for cell in alike if offer.made(cell.machine, cell.card)), None) for offer in offers
        )
        measured = [cell for cell in chosen if cell]
        if measured:
            reasons = tuple(
                "" if cell else _reason(key, offer, trials)
                for cell, offer in zip(chosen, offers, strict=True)
            )
            by_throughput = any(cell.seconds.mean is None for cell in measured)
            recorded.append(MixLine(key, length, chosen, reasons, by_throughput))
    protocols = grouped_by(recorded, lambda line: (line.key.workload, line.key.model))
    several = {work for work, lines in protocols.items() if len({line.key.protocol for line in lines}) > 1}
    return tuple(
        replace(line, of_several=(line.key.workload, line.key.model) in several) for line in recorded
    )


def _reason(key: Key, offer: Offer, trials: Sequence[TrialResult]) -> str:
    """Why an offer has no figure: its own failure, or that it was not measured."""
    compared = without(key, *MEASURED_FIELDS)
    for trial in trials:
        failed = trial.failure
        own = failed is not None and failed.kind == "trial" and offer.made(trial.machine, trial.card)
        if own and failed and without(trial.key, *MEASURED_FIELDS) == compared:
            return text.failure_words(failed.reason)
    return "not measured"


def default_mix(recorded: Sequence[MixLine], hours: float) -> tuple[MixLine, ...]:
    """The work where none is given: equal shares of `hours` for each line that every offer did or failed on.

    One mode for each work, the one nearest the card; where no line is common to all, those of most offers.
    """
    whole = [line for line in recorded if "not measured" not in line.reasons]
    most = max((line.counts for line in recorded), default=0)
    widest = whole or [line for line in recorded if line.counts == most]
    nearest = each_nearest_the_card(widest, lambda line: line.key)
    best = [max(alike, key=lambda line: (line.counts, line.length.projected)) for alike in nearest]
    return tuple(replace(line, hours=hours / len(best)) for line in best)


def buyers_mix(
    recorded: Sequence[MixLine], purchase: Purchase
) -> tuple[tuple[MixLine, ...], tuple[str, ...]]:
    """The lines of the buyer's mix with their hours, and a sentence for each that is not on record.

    Raises UserError where a line of the file fits several, naming the key that tells them apart.
    """
    chosen: dict[tuple[Key, ProtocolLength], MixLine] = {}
    missing = []
    for number, work in enumerate(purchase.work, 1):
        line = _line_of(recorded, work, number)
        if line is None:
            what = text.clean(f"{work.workload}, {work.model}, {work.precision}", 120)
            hours = text.number(work.hours_per_year)
            named = ", ".join(dict.fromkeys(f"{one.key.model} {one.key.precision}" for one in recorded))
            there = f"on record are {text.clean(named, 200)}"
            missing.append(f"{hours} hours a year of '{what}' are left out: {there}.")
        else:
            before = chosen.get((line.key, line.length))
            together = work.hours_per_year + (before.hours if before else 0.0)
            chosen[line.key, line.length] = replace(line, hours=together)
    return tuple(chosen.values()), tuple(missing)


def _line_of(recorded: Sequence[MixLine], work: WorkloadHours, number: int) -> MixLine | None:
    fits = [line for line in recorded if _fits(line.key, work)]
    if not fits:
        return None
    fits = nearest_the_card(fits, lambda line: line.key)
    for name in _KEYS:
        values = sorted({str(getattr(line.key, name)) for line in fits})
        if len(values) > 1:
            raise UserError(
                f"{FILE}: work {number} fits several lines of the report, which differ in {name}: "
                f"{text.clean(', '.join(values), 120)}",
                remedy=f"add '{name}' to it",
            )
    return max(fits, key=lambda line: (line.counts, line.length.projected, _runs(line)))


def _fits(key: Key, work: WorkloadHours) -> bool:
    given = {name: getattr(work, name) for name in (*_KEYS, "data_mode")}
    return all(value is None or _same(getattr(key, name), value) for name, value in given.items())


def _same(measured: object, given: object) -> bool:
    """Names as people write them: `lstm` is LSTM."""
    return str(measured).casefold() == str(given).casefold()


def _runs(line: MixLine) -> int:
    return sum(cell.throughput.n for cell in line.cells if cell)
