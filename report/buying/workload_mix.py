"""Candidates and the mix of work: the card of each offer, lines of equal work, each card's cell on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from harness.errors import UserError
from harness.record.published.cards import means_card
from report import text
from report.buying.purchase import FILE, Offer, Purchase, PurchaseWork
from report.compare.cells import Cell
from report.compare.partial_key import MEASURED_FIELDS, each_nearest_the_card, nearest_the_card, same_but
from report.stats.intervals import Runs
from report.trials.key import LOADER_ALONE, Key, ProtocolLength, grouped_by, without
from report.trials.trial import TrialResult

MOST_CARDS = 8
"""On one page: so many besides what the buyer's file names are left out."""

NO_FAILURE = ("", "no record", "not measured")
"""Reasons for a missing cell that are no failure of the card."""
_KEYS = ("workload", "protocol", "model", "precision", "batch_size", "image_size", "sequence_length")


@dataclass(frozen=True, slots=True)
class OfferedCard:
    """A card on record, with the offer for it where there is one; or an offer that no record is of."""

    name: str
    machine: str
    """Empty without a record."""
    card: str
    device: str
    offer: Offer | None = None

    @property
    def measured(self) -> bool:
        return bool(self.machine)

    def made(self, machine: str, card: str) -> bool:
        """Return whether a figure of that machine and card is this candidate's."""
        return (self.machine, self.card) == (machine, card)

    def memory_bytes(self, trials: Iterable[TrialResult]) -> int | None:
        """Return the card's memory as the framework saw it."""
        measured = [trial.record.measurement for trial in trials if self.made(trial.machine, trial.card)]
        sizes = [measurement.device.memory_bytes for measurement in measured if measurement]
        return max(filter(None, sizes), default=None)


@dataclass(frozen=True, slots=True)
class MixLine:
    """One line of equal work: a cell for each candidate, or the reason why there is none."""

    key: Key
    length: ProtocolLength
    cells: tuple[Cell | None, ...]
    reasons: tuple[str, ...]
    """For each candidate: empty with a cell, else the reason of its failure or 'not measured'."""
    by_throughput: bool
    """A whole protocol's time is not known on each card, so a million samples are the unit of work."""
    hours: float = 0.0
    of_several: bool = False
    """Whether other lines are of the same model under another protocol, which then distinguishes them."""

    @property
    def precision(self) -> str:
        """The label of its arithmetic."""
        return self.key.precision

    @property
    def name(self) -> str:
        """The line as the page writes it."""
        key = self.key
        under = f", protocol {text.clean(key.protocol, 40)}" if self.of_several else ""
        return (
            f"{text.model_name(key.model)}, {key.precision}, batch {key.batch_size}, {key.data_mode}{under}"
        )

    def unit_seconds(self, cell: Cell) -> Runs:
        """Return the seconds that each run of a cell takes for one unit of the line's work."""
        if self.by_throughput:
            rates = cell.throughput
            return Runs(tuple(1e6 / value for value in rates.values), rates.blocks)
        return cell.seconds.runs

    def failed(self, place: int) -> bool:
        """Whether a candidate tried the work and failed."""
        return self.reasons[place] not in NO_FAILURE

    def on(self, places: Sequence[int]) -> MixLine:
        """Return the line with the candidates at these places alone."""
        cells = tuple(self.cells[i] for i in places)
        return replace(self, cells=cells, reasons=tuple(self.reasons[i] for i in places))

    @property
    def counts(self) -> int:
        """How many offers have a figure."""
        return sum(cell is not None for cell in self.cells)


@dataclass(frozen=True, slots=True)
class UnrecordedLine:
    """A line of the buyer's work that no record is of, as it was written."""

    work: PurchaseWork
    cells: tuple[None, ...]

    @property
    def hours(self) -> float:
        """Return the hours of a year."""
        return self.work.hours_per_year

    @property
    def precision(self) -> str | None:
        """The label of its arithmetic; null where the buyer does not say."""
        return self.work.precision

    @property
    def name(self) -> str:
        """The line as the page writes it."""
        work, batch = self.work, self.work.batch_size
        parts = (text.model_name(work.model or work.workload), work.precision, batch and f"batch {batch}")
        return text.clean(", ".join(part for part in parts if part), 80)

    def on(self, places: Sequence[int]) -> UnrecordedLine:
        """Return the line with the candidates at these places alone."""
        return replace(self, cells=(None,) * len(places))


WorkLine = MixLine | UnrecordedLine


def timed_cells(cells: Iterable[Cell]) -> list[Cell]:
    """Return the valid trainings on one device by real data, settled windows first."""
    timed = [cell for cell in cells if cell.verdict != "invalid" and cell.throughput.mean]
    trained = [cell for cell in timed if cell.key.gpus == 1 and cell.key.protocol != LOADER_ALONE]
    return sorted(
        (cell for cell in trained if cell.key.data_source != "generated"), key=lambda cell: not cell.ranked
    )


def candidates(cells: Sequence[Cell], purchase: Purchase) -> tuple[OfferedCard, ...]:
    """Return the offers, then the other cards on record, and last the offers that no record is of.

    A processor is what its machine makes of it, so that machines of unlike labels are never one.
    Raises UserError where an offer's text fits several cards.
    """
    sides = [of[0] for of in grouped_by(cells, lambda cell: (cell.machine, cell.card)).values()]
    found: list[OfferedCard] = []
    by_card: set[tuple[str, str]] = set()
    for number, offer in enumerate(purchase.offer, 1):
        cell = meant(offer.card, sides, f"offer {number}")
        found.append(_candidate(cell, offer) if cell else _unrecorded(offer.card, offer))
        if cell and means_card(offer.card, cell.card):
            by_card.add(_type(cell))
    on = purchase.hours_on
    base = meant(on, sides, "'hours_on'") if on else None
    if base and not any(one.made(base.machine, base.card) for one in found):
        found.append(_candidate(base))
        by_card.add(_type(base))
    elif on and not base and on.casefold() not in (one.card.casefold() for one in found):
        found.append(_unrecorded(on))
    spare = [
        cell
        for cell in sides
        if _type(cell) not in by_card and not any(one.made(cell.machine, cell.card) for one in found)
    ]
    others = [_candidate(cell) for cell in {_type(cell): cell for cell in reversed(spare)}.values()][::-1]
    found += others[: max(0, MOST_CARDS - len(found))]
    return tuple(sorted(found, key=lambda one: not one.measured))


def _type(cell: Cell) -> tuple[str, str]:
    """Return what is bought: a card, or a machine's processor."""
    processor = cell.trials[0].environment.device == "cpu"
    return cell.card, cell.machine_label if processor else ""


def _candidate(cell: Cell, offer: Offer | None = None) -> OfferedCard:
    name, device = text.short_card(cell.card), cell.trials[0].device_name
    return OfferedCard(name, cell.machine, cell.card, device, offer)


def _unrecorded(words: str, offer: Offer | None = None) -> OfferedCard:
    named = text.clean(words, 60)
    return OfferedCard(text.short_card(named), "", named, named, offer)


def _machine_names(cell: Cell) -> tuple[str, str]:
    """Return a machine's label with its id where others have the same label, and the label alone."""
    return cell.machine_label.casefold(), cell.trials[0].record.machine.label.casefold()


def meant(words: str, sides: Sequence[Cell], where: str) -> Cell | None:
    """Return the card of that name, else of which it is a part; else the machine of that label."""
    name = words.casefold().strip()
    tests: tuple[Callable[[Cell], bool], ...] = (
        lambda cell: name in (cell.card.casefold(), text.short_card(cell.card).casefold()),
        lambda cell: means_card(name, cell.card),
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


def mix_lines(
    cells: Sequence[Cell], offers: Sequence[OfferedCard], trials: Sequence[TrialResult]
) -> tuple[MixLine, ...]:
    """Return every line of equal key and length, with each candidate's cell; the leading session's first."""
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


def _reason(key: Key, offer: OfferedCard, trials: Sequence[TrialResult]) -> str:
    """Return why a candidate has no figure: its own failure, or that it was not measured."""
    if not offer.measured:
        return "no record"
    compared = without(key, *MEASURED_FIELDS)
    for trial in trials:
        failed = trial.failure
        own = failed is not None and failed.kind == "trial" and offer.made(trial.machine, trial.card)
        if own and failed and without(trial.key, *MEASURED_FIELDS) == compared:
            return text.failure_words(failed.reason)
    return "not measured"


def default_mix(recorded: Sequence[MixLine], hours: float) -> tuple[MixLine, ...]:
    """Return the work where none is given: equal shares of `hours` for each line that every offer ran.

    One mode for each work, the one nearest the card; where no line is common to all, those of most offers.
    """
    whole = [line for line in recorded if "not measured" not in line.reasons]
    most = max((line.counts for line in recorded), default=0)
    widest = whole or [line for line in recorded if line.counts == most]
    nearest = each_nearest_the_card(widest, lambda line: line.key)
    best = [max(alike, key=lambda line: (line.counts, line.length.projected)) for alike in nearest]
    return tuple(replace(line, hours=hours / len(best)) for line in best)


def buyers_mix(
    recorded: Sequence[MixLine], purchase: Purchase, offers: Sequence[OfferedCard]
) -> tuple[WorkLine, ...]:
    """Return the lines of the buyer's mix with their hours, on record or not.

    Raises UserError where a line of the file fits several, naming the
    key that distinguishes them.
    """
    chosen: dict[object, WorkLine] = {}
    for number, work in enumerate(purchase.work, 1):
        line, hours = _line_of(recorded, work, number), work.hours_per_year
        if line is None:
            chosen[number] = UnrecordedLine(work, tuple(None for _ in offers))
            continue
        before = chosen.get((line.key, line.length))
        chosen[line.key, line.length] = replace(line, hours=hours + (before.hours if before else 0.0))
    return tuple(chosen.values())


def _line_of(recorded: Sequence[MixLine], work: PurchaseWork, number: int) -> MixLine | None:
    fits = [line for line in recorded if fits_work(line.key, work)]
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

    def support(line: MixLine) -> tuple[int, bool, int]:
        runs = sum(cell.throughput.n for cell in line.cells if cell)
        return line.counts, line.length.projected, runs

    return max(fits, key=support)


def fits_work(key: Key, work: PurchaseWork) -> bool:
    """Return whether a key has the names that are given, as people write them: `lstm` is LSTM."""
    names = [name for name in (*_KEYS, "data_mode") if getattr(work, name) is not None]
    return all(str(getattr(key, name)).casefold() == str(getattr(work, name)).casefold() for name in names)
