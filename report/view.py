"""What the templates are given: finished words and drawings, no records and no numbers to work on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Badge:
    """A loud label and the sentence that explains it."""

    word: str
    because: str


@dataclass(frozen=True, slots=True)
class Table:
    """A caption, columns, and rows whose first cell names the row."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing. `drawing` is SVG whose every text is escaped already."""

    name: str
    title: str
    unit: str
    drawing: str
    alt: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a figure stands on, and the line that measures it again."""

    n: str
    records: tuple[str, ...]
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContestView:
    """One contest: its charts, its table, and what is to be said with them."""

    anchor: str
    number: int
    heading: str
    setting: str
    badges: tuple[Badge, ...]
    panels: tuple[Panel, ...]
    table: Table
    notes: tuple[str, ...]
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """All contests of one workload, and why they are several."""

    anchor: str
    heading: str
    about: str
    overview: tuple[Panel, ...]
    gains: Table | None
    contests: tuple[ContestView, ...]
    apart: Table | None


@dataclass(frozen=True, slots=True)
class FailureView:
    """A trial without a measurement."""

    what: str
    reason: str
    message: str
    tail: str
    path: str


@dataclass(frozen=True, slots=True)
class ClaimsView:
    """One study's claims: those that met a record, those that did not, and their caveats."""

    anchor: str
    heading: str
    judged: Table | None
    apart: Table | None
    caveats: tuple[str, ...]
    panels: tuple[Panel, ...] = ()


@dataclass(frozen=True, slots=True)
class PageView:
    """The whole page, top to bottom."""

    title: str
    measured: str
    answer: str
    beside: str
    sureness: str
    badges: tuple[Badge, ...]
    decision: Table | None
    doubts: tuple[str, ...]
    workloads: tuple[WorkloadView, ...]
    verdicts: Table | None
    claims: tuple[ClaimsView, ...]
    notes: tuple[str, ...]
    stacks: tuple[Table, ...]
    failures: tuple[FailureView, ...]
    warnings: tuple[str, ...]
    left_over: Table | None
    left_out: Table | None
    problems: tuple[str, ...]
    glossary: Table
    written: str
