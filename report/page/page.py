"""The whole page as data: page one, and the parts below it that have something to say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from report.analysis import Analysis
from report.page.systems import Systems
from report.page.values import Chip, Headline


@dataclass(frozen=True, slots=True)
class Source:
    """What page one counts: its trials, the leading session's plan and start, and when it was written."""

    written: datetime
    started: datetime | None = None
    plan: str = ""
    software: str = ""
    """The framework that it ran, with its version."""
    trials: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class PageOne:
    """Headline, chips, one picture, one table, three notes; `template` draws picture and table of `view`."""

    subject: Headline
    """What the page is about, as its first line says."""
    source: Source
    headline: Headline
    chips: tuple[Chip, ...]
    notes: tuple[Headline, ...]
    template: str
    view: Any
    next_first: Headline | None = None
    """The next step, where it stands before the picture, since the page cannot answer its question yet."""
    constructed: bool = False
    """Whether records are labelled as made up, by a simulated device."""


@dataclass(frozen=True, slots=True)
class Part:
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
    parts: tuple[Part, ...] = ()
