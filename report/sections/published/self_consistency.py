"""What published sources say beside their own data → one table for the page, and one for each rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from report import text
from report.claims.self_consistency.inconsistency import Inconsistency
from report.claims.self_consistency.rules import Rule
from report.sections.view import Table

COLUMNS = ("Study", "Published", "Its own data", "Apart", "Source")


@dataclass(frozen=True, slots=True)
class RuleView:
    """A rule, and all that breaks it."""

    heading: str
    sentence: str
    table: Table
    caveats: tuple[str, ...]


def table(found: Mapping[Rule, Sequence[Inconsistency]]) -> Table | None:
    """All findings in one table; null where everything fits together."""
    rows = tuple(_row(each) for several in found.values() for each in several)
    return Table("Published figures held against their own sources", COLUMNS, rows) if rows else None


def by_rule(found: Mapping[Rule, Sequence[Inconsistency]]) -> tuple[RuleView, ...]:
    """The findings of each rule, with what may explain them."""
    return tuple(
        RuleView(
            rule.name,
            rule.sentence,
            Table(rule.name, COLUMNS, tuple(_row(each) for each in several)),
            tuple(dict.fromkeys(text.clean(caveat, 300) for each in several for caveat in each.caveats)),
        )
        for rule, several in found.items()
    )


def _row(found: Inconsistency) -> tuple[str, ...]:
    return (
        text.clean(found.study, 40),
        text.clean(found.said, 240),
        text.clean(found.own, 240),
        "–" if found.factor is None else f"{text.times(found.factor)} ×",
        "\n".join(_sources(found.sources)),
    )


def _sources(sources: Sequence[str]) -> Iterator[str]:
    """Each repository or page once, and after it what of it is meant."""
    within: dict[str, list[str]] = {}
    for source in sources:
        origin, _, part = source.partition(", ")
        within.setdefault(origin, []).append(part)
    for origin, parts in within.items():
        yield text.clean(", ".join([origin, "; ".join(filter(None, parts))]).removesuffix(", "), 300)
