"""What the templates are given: finished words, and charts to be drawn; no records, no numbers to work on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from report.charts.drawing import Chart


@dataclass(frozen=True, slots=True)
class Badge:
    """A loud label and the sentence that explains it."""

    word: str
    because: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A figure that page one leads with, and what it is."""

    value: str
    label: str


@dataclass(frozen=True, slots=True)
class Question:
    """What a reader asks, its answer, and the part of the page that has more of it; empty where none has."""

    heading: str
    sentences: tuple[str, ...]
    anchor: str


@dataclass(frozen=True, slots=True)
class Table:
    """A caption, columns, and rows whose first cell names the row."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    keys: tuple[tuple[str, str], ...] = ()
    """The card and precision of each row, where rows can be filtered by them."""


def tabled(caption: str, rows: Sequence[Mapping[str, str]], keys: Sequence[tuple[str, str]] = ()) -> Table:
    """A table of rows that hold their cells by column, all of them the same columns."""
    columns = tuple(rows[0]) if rows else ()
    return Table(caption, columns, tuple(tuple(row.values()) for row in rows), tuple(keys))


def told(rows: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """The rows without the columns in which each of them has a dash."""
    known = {column for row in rows for column, value in row.items() if value != "–"}
    return [{column: value for column, value in row.items() if column in known} for row in rows]


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart, and what it shows in words. Its name is its own on the page."""

    name: str
    title: str
    unit: str
    chart: Chart
    alt: str


@dataclass(frozen=True, slots=True)
class LimitsView:
    """How close one device's work comes to its limits, and what is to be said with that."""

    device: str
    panel: Panel | None
    table: Table
    notes: tuple[str, ...]
    sheet: Table | None = None
    """The device on paper beside what was measured on it."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a figure stands on, and the line that measures it again."""

    n: str
    records: tuple[str, ...]
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupView:
    """One group: its charts, its table, and what is to be said with them."""

    anchor: str
    number: int
    heading: str
    setting: str
    badges: tuple[Badge, ...]
    panels: tuple[Panel, ...]
    table: Table
    states: Table
    trials: Table
    traces: tuple[Panel, ...]
    untraced: str
    notes: tuple[str, ...]
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """All groups of one workload, and why they are several."""

    anchor: str
    heading: str
    about: str
    overview: tuple[Panel, ...]
    tables: tuple[Table, ...]
    groups: tuple[GroupView, ...]
    apart: Table | None


@dataclass(frozen=True, slots=True)
class BottleneckView:
    """What limits the speed: what the lines wait for, and how the computers around the cards differ."""

    sentences: tuple[str, ...]
    differences: Table | None
    remarks: Table | None


@dataclass(frozen=True, slots=True)
class FailureView:
    """A trial without a measurement."""

    what: str
    reason: str
    message: str
    path: str


@dataclass(frozen=True, slots=True)
class StudyView:
    """One metric of a study drawn again, with what was measured on this machine in it."""

    study: str
    panel: Panel
    measured: bool
    """Whether anything of this report stands in it."""
    claims: frozenset[str]
    """The ids of those that stand in it."""
    notes: tuple[str, ...]
    folded: Table | None
    """What the picture has no room for."""


@dataclass(frozen=True, slots=True)
class ClaimsView:
    """One study's claims: those that met a record, those that did not, and their caveats."""

    anchor: str
    heading: str
    judged: Table | None
    apart: Table | None
    caveats: tuple[str, ...]
    drawn: tuple[StudyView, ...] = ()
    leads: bool = True
    """Whether it is open on the page: this machine stands in it, or nothing was measured at all."""
    folded: str = ""
    """What is folded away; empty where nothing is."""


@dataclass(frozen=True, slots=True)
class FleetView:
    """Many units of one card: what is said of them, and their order drawn and listed."""

    card: str
    sentences: tuple[str, ...]
    panel: Panel
    table: Table


@dataclass(frozen=True, slots=True)
class FrameworkWorkView:
    """One work that several frameworks did alike on one machine."""

    heading: str
    sentences: tuple[str, ...]
    panel: Panel | None
    timelines: Panel | None
    """What each made of its devices; null where none was watched."""
    figures: Table
    load: Table | None
    """Of several devices, what the first carries."""


@dataclass(frozen=True, slots=True)
class FrameworksView:
    """What the frameworks are, and how they stand against each other."""

    characteristics: Table
    differences: tuple[str, ...]
    """What each does otherwise than the others."""
    works: tuple[FrameworkWorkView, ...]
    pairs: Table | None
    """Each against itself: several devices against one, real data against synthetic."""

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All of its charts, in their order."""
        drawn = (panel for work in self.works for panel in (work.panel, work.timelines))
        return tuple(panel for panel in drawn if panel is not None)


@dataclass(frozen=True, slots=True)
class CostView:
    """What cards cost for the buyer's work."""

    answer: str
    turn: str
    setting: str = ""
    offers: Table | None = None
    running: Table | None = None
    works: Table | None = None
    ratios: Table | None = None
    sensitivities: Table | None = None
    panels: tuple[Panel, ...] = ()
    quotes: Table | None = None
    rules: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """One of the page's parts below page one: its template, its place, and what the contents call it."""

    name: str
    anchor: str
    title: str


@dataclass(frozen=True, slots=True)
class PageView:
    """The whole page, top to bottom."""

    title: str
    measured: str
    answer: str
    beside: str
    sureness: str
    counted: str
    """How many of the trials that were started are shown."""
    badges: tuple[Badge, ...]
    facts: tuple[Fact, ...]
    questions: tuple[Question, ...]
    """Page one: what a reader asks, each with its answer."""
    decision: Table | None
    """Every line, short enough for a comment; the page itself has each figure in its workload alone."""
    expected: Table | None
    mix: Table | None
    changes: tuple[str, ...]
    caveats: tuple[str, ...]
    bottleneck: BottleneckView | None
    filters: tuple[tuple[str, tuple[str, ...]], ...]
    """What a reader may filter by: cards, workloads, precisions, each with its values."""
    workloads: tuple[WorkloadView, ...]
    study: StudyView | None
    """What page one draws where there are no prices: the study that says most of this machine."""
    picture: Panel | None
    """What it draws where there is neither."""
    checked: str
    """How many published claims this machine can check, and what came of it."""
    verdicts: Table | None
    unmet: Table | None
    """What would make the other claims comparable."""
    claims: tuple[ClaimsView, ...]
    notes: tuple[str, ...]
    stacks: tuple[Table, ...]
    accounts: Table | None
    """Of each machine what it started, and why the rest is not shown."""
    reruns: Table | None
    """What others measured of the same work."""
    reading: str
    """What reading cannot show, and what would."""
    failures: tuple[FailureView, ...]
    warnings: tuple[str, ...]
    left_over: Table | None
    left_out: Table | None
    problems: tuple[str, ...]
    glossary: Table
    selfcheck: str
    """How often the same measured against itself showed no difference."""
    written: str
    costs: CostView | None = None
    frameworks: FrameworksView | None = None
    acceptance: tuple[str, ...] = ()
    """What a delivered machine must reach, and how often that rule is wrong."""
    fleets: tuple[FleetView, ...] = ()
    """Where several units of one card are on record: their order, and which of them stand out."""
    limits: tuple[LimitsView, ...] = ()
    self_consistency: Table | None = None
    """What published sources say otherwise than their own data."""
    parts: tuple[Part, ...] = ()
    """The parts that have something to say, in their order."""
