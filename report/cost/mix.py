"""The buyer's mix: which lines of equal work it asks for, and which cell of each card did them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harness.errors import UserError
from report import text
from report.comparisons.cells import Cell
from report.cost.offers import Offer
from report.cost.purchase import FILE, Purchase, WorkloadHours
from report.trials.key import Key, ProtocolLength
from report.trials.pairs import (
    MEASURED_FIELDS,
    each_nearest_the_card,
    grouped_by,
    nearest_the_card,
    same_but,
    without,
)
from report.trials.trial import Trial

_KEYS = ("workload", "protocol", "model", "precision", "batch_size", "image_size", "sequence_length")


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

    @property
    def name(self) -> str:
        """As the page writes it."""
        key = self.key
        return f"{text.model_name(key.model)}, {key.precision}, batch {key.batch_size}, {key.data_mode}"

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

    @property
    def counts(self) -> int:
        """How many offers have a figure."""
        return sum(cell is not None for cell in self.cells)


def lines(cells: Sequence[Cell], offers: Sequence[Offer], trials: Sequence[Trial]) -> tuple[MixLine, ...]:
    """Every line of equal key and length, with each offer's cell; the leading session's cells come first."""
    found = []
    for mine in grouped_by(cells, same_but(within=("length",))).values():
        key, length = mine[0].key, mine[0].length
        chosen = tuple(
            next((cell for cell in mine if offer.made(cell.machine, cell.card)), None) for offer in offers
        )
        there = [cell for cell in chosen if cell]
        if there:
            reasons = tuple(
                "" if cell else _reason(key, offer, trials)
                for cell, offer in zip(chosen, offers, strict=True)
            )
            by_throughput = any(cell.seconds.mean is None for cell in there)
            found.append(MixLine(key, length, chosen, reasons, by_throughput))
    return tuple(found)


def _reason(key: Key, offer: Offer, trials: Sequence[Trial]) -> str:
    """Why an offer has no figure: its own failure, or that it was not measured."""
    wanted = without(key, *MEASURED_FIELDS)
    for trial in trials:
        failed = trial.failure
        own = failed is not None and failed.kind == "trial" and offer.made(trial.machine, trial.card)
        if own and failed and without(trial.key, *MEASURED_FIELDS) == wanted:
            return text.failure_words(failed.reason)
    return "not measured"


def without_purchase(found: Sequence[MixLine]) -> tuple[MixLine, ...]:
    """The mix where none is given: an hour of each line on which every offer has a figure or failed.

    One mode for each work, the one nearest the card; where no line is common to all, those of most offers.
    """
    whole = [line for line in found if "not measured" not in line.reasons]
    most = max((line.counts for line in found), default=0)
    kept = whole or [line for line in found if line.counts == most]
    nearest = each_nearest_the_card(kept, lambda line: line.key)
    best = [max(alike, key=lambda line: (line.counts, line.length.projected)) for alike in nearest]
    return tuple(replace(line, hours=1.0) for line in best)


def asked(found: Sequence[MixLine], purchase: Purchase) -> tuple[tuple[MixLine, ...], tuple[str, ...]]:
    """The lines of the buyer's mix with their hours, and a sentence for each that is not on record.

    Raises UserError where a line of the file fits several, naming the key that tells them apart.
    """
    kept: dict[tuple[Key, ProtocolLength], MixLine] = {}
    missing = []
    for number, work in enumerate(purchase.work, 1):
        line = _asked(found, work, number)
        if line is None:
            what = text.clean(f"{work.workload}, {work.model}, {work.precision}", 120)
            missing.append(
                f"{text.number(work.hours)} hours a week of '{what}' are left out: none is on record."
            )
        else:
            before = kept.get((line.key, line.length))
            hours = work.hours + (before.hours if before else 0.0)
            kept[line.key, line.length] = replace(line, hours=hours)
    return tuple(kept.values()), tuple(missing)


def _asked(found: Sequence[MixLine], work: WorkloadHours, number: int) -> MixLine | None:
    fits = [line for line in found if _fits(line.key, work)]
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
    return all(value is None or getattr(key, name) == value for name, value in given.items())


def _runs(line: MixLine) -> int:
    return sum(cell.throughput.n for cell in line.cells if cell)


def reader(line: MixLine) -> Callable[[Cell], tuple[float, ...]]:
    """What gives a cell's runs, in seconds for one unit of the line's work."""

    def read(cell: Cell) -> tuple[float, ...]:
        if line.by_throughput:
            return tuple(1e6 / value for value in cell.throughput.values)
        return cell.seconds.values

    return read
