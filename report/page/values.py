"""What the templates are given: quantities with their ranges, systems, chips and pictures; no sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Literal

from report import text
from report.analysis import CLASS_MACHINES, Analysis
from report.buying.cost_model import Range
from report.buying.workload_mix import OfferedCard
from report.charts.drawing import Chart
from report.compare.cells import Cell, Figure
from report.compare.comparison import MeanRatio
from report.compare.ratio import WorkRatio
from report.stats.intervals import Interval
from report.text import THIS
from report.trials.trial import TrialResult

QuantitySource = Figure | MeanRatio | WorkRatio | Interval | Range | float | None


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in `unit` with its 95 % range; null where it is not known.

    `unit` is a name that the filter `value` writes: seconds, ratio, bytes, share, count, hours, or a unit
    that follows the number as it is ('images/s', 'EUR').
    """

    value: float | None
    unit: str
    low: float | None = None
    high: float | None = None
    digits: int = 3
    """So many at least of a figure without a range."""

    def __bool__(self) -> bool:
        """Whether it is known."""
        return self.value is not None


_COUNTS = re.compile(r"cpu-\d+-|\d+x-|.*\([0-9a-f]{4}\)$")
"""The label of a machine that nobody named, and one that several machines have."""
OFFERED = "offered"
"""The mark of an offer without a machine, which distinguishes it from a card of its name on record."""


@dataclass(frozen=True, slots=True)
class NamedSystem:
    """A card in a machine as the page calls it; `slot` is its colour in every picture and table head."""

    machine: str
    card: str
    name: str
    slot: int
    own: bool
    """Whether the page is about its machine."""
    here: bool = False
    """Whether the page is made on its machine."""

    @property
    def title(self) -> str:
        """Its name in a key, which says which one is this machine."""
        return f"{THIS}, {self.name}" if self.here and self.name != THIS else self.name


@dataclass(frozen=True, slots=True)
class Chip:
    """What a reader must know before believing the headline; worded by `name` in the template."""

    kind: Literal["stop", "care", "good"]
    """Forbids a use, asks for care, or is as it should be."""
    name: str
    anchor: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence by its state, which the template words, and the values in it."""

    state: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart with a name of its own on the page, and what it shows for those who cannot see it."""

    name: str
    chart: Chart
    alt: str
    title: str = ""
    """The name of its title on page one, which the template words."""


def quantity(of: QuantitySource, unit: str = "ratio") -> Quantity:
    """A value with its range; without one where it has none, or one without width."""
    value, low, high = _value_and_ends(of)
    if low is None or high is None or low == high:
        return Quantity(value, unit)
    return Quantity(value, unit, low, high)


def _value_and_ends(of: QuantitySource) -> tuple[float | None, float | None, float | None]:
    if isinstance(of, tuple):
        low, value, high = of
        return value, low, high
    if isinstance(of, Interval):
        return of.estimate, of.low, of.high
    if isinstance(of, Figure | MeanRatio | WorkRatio):
        mean = of.mean if isinstance(of, Figure) else of.estimate
        return mean, of.interval.low if of.interval else None, of.interval.high if of.interval else None
    return of, None, None


def rate_unit(cell: Cell) -> str:
    """'images/s'"""
    return f"{cell.trials[0].sample_unit}s/s"


def rate(cell: Cell) -> Quantity:
    """Samples a second with the range of their mean."""
    return quantity(cell.throughput, rate_unit(cell))


OnCard = Cell | TrialResult | OfferedCard
"""What is of a card in a machine."""


class Systems:
    """All systems whose figures are on the page, this machine's first, then those compared with it."""

    def __init__(self, systems: Sequence[NamedSystem]) -> None:
        self.all = tuple(systems)
        self._by_place = {(system.machine, system.card): system for system in systems}

    def of(self, measured: OnCard) -> NamedSystem:
        """The system that something was measured on, or an offer is of."""
        return self._by_place[measured.machine, measured.card]

    @property
    def own(self) -> tuple[NamedSystem, ...]:
        """Those of this machine."""
        return tuple(system for system in self.all if system.own)


def systems_of(analysis: Analysis) -> Systems:
    """This machine's systems, then those compared with it, then all others."""
    checked = [check.longest for check in analysis.checks]
    leading = analysis.leading_trials
    own = {trial.machine for trial in (*leading, *checked)}
    offers = analysis.costs.offers if analysis.costs else ()
    measured: tuple[OnCard, ...] = (*offers, *leading, *checked, *analysis.page_cells, *analysis.shown)
    places = dict.fromkeys((each.machine, each.card) for each in measured)

    def comes_last(place: tuple[str, str]) -> tuple[bool, bool]:
        return place[0] not in own, place[0] in own and place[1] != text.one_device(place[1])

    ordered = sorted(places, key=comes_last)
    slots: dict[tuple[str, str], int] = {}
    found = [
        NamedSystem(
            machine,
            card,
            text.short_card(card),
            slots.setdefault((machine, text.one_device(card)), len(slots)),
            machine in own,
            machine in own and machine == analysis.request.machine,
        )
        for machine, card in ordered
    ]
    return Systems(_tell_apart(found, analysis))


def _tell_apart(found: Sequence[NamedSystem], analysis: Analysis) -> list[NamedSystem]:
    """Tell systems of one name apart by their machines' labels, else by the start of an id.

    Equal labels do not tell them apart, and one that counts cores or cards says nothing more than the name.
    """
    counted = Counter(name for _, name in {(system.machine, _model_name(system)) for system in found})
    labels = {trial.machine: text.clean(trial.machine_label, 40) for trial in analysis.trials}
    own = [system for system in found if system.own]

    def named(system: NamedSystem) -> str:
        if counted[_model_name(system)] == 1:
            return system.name
        label = labels.get(system.machine, "") or (system.machine[:4] or OFFERED)
        said = not _COUNTS.match(label)
        if own == [system] and (system.here or not said):
            return text.THIS if system.here else system.name
        short = label if said else system.machine[:4]
        if said and len(found) >= CLASS_MACHINES and len(counted) == 1:
            return label
        return f"{system.name} {short}"

    return [replace(system, name=named(system)) for system in found]


def _model_name(system: NamedSystem) -> str:
    return text.short_card(text.one_device(system.card))


@dataclass(frozen=True, slots=True)
class Source:
    """What page one counts, of all its sessions together, and when it was written."""

    written: datetime
    days: tuple[date, date] | None = None
    """The first and the last; null where nothing ran."""
    sessions: tuple[str, ...] = ()
    """The leading one first, as in `plans`."""
    plans: tuple[str, ...] = ()
    software: tuple[str, ...] = ()
    """The frameworks that they ran, with their versions; empty where these are many."""
    trials: int = 0
    failed: int = 0
    missing: int = 0
    """How many more the sessions planned, of which there is no record."""


@dataclass(frozen=True, slots=True)
class SystemRuns:
    """When a system's trials on the page ran, and its shortest and longest window."""

    name: str
    days: tuple[date, date]
    windows: Quantity


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """What one question puts into the frame of page one."""

    headline: Sentence
    picture: Picture | None
    template: str
    """The template of its table."""
    table: Any
    notes: tuple[Sentence, ...]
    following: Sentence
    """The next step."""
    cells: Sequence[Cell] = ()
    """The cells that answer."""
    chips: tuple[Chip, ...] = ()
    """What is to be known of this question's answers alone."""
    about: Mapping[str, Any] = field(default_factory=dict)
    unanswered: bool = False
    """Whether the next step comes before the picture, since the page cannot answer its question yet."""


@dataclass(frozen=True, slots=True)
class PageOne:
    """The frame of every question: its answer, what it is about, and its chips."""

    answer: AnswerPage
    about: Sentence
    """What the page is about, as its first line says."""
    source: Source
    chips: tuple[Chip, ...]
    constructed: bool
    """Whether records are labelled as made up, by a simulated device."""
    ran: tuple[SystemRuns, ...] = ()
    """What to cite, of every system on page one."""


@dataclass(frozen=True, slots=True)
class PagePart:
    """One part below page one: the name of its template and anchor, its title, and what is in it."""

    name: str
    title: str
    view: Any


@dataclass(frozen=True, slots=True)
class Page:
    """Page one and the parts below it, whose templates read the analysis and call a card by its system."""

    analysis: Analysis
    systems: Systems
    one: PageOne
    parts: tuple[PagePart, ...] = ()
    gallery: tuple[PageOne, ...] = ()
    """What others measured, where nothing of one's own is on record."""
    inside: tuple[tuple[str, str], ...] = ()
    """Files that the HTML takes along: the name of each, and its content in base64."""
