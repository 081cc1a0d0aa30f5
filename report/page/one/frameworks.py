"""Page one of one network in several frameworks: which is the fastest, and which cannot be told apart."""

from __future__ import annotations

from report import text
from report.compare.ranking import Work
from report.page.systems import Systems
from report.page.values import Chip, Headline, quantity


def headline(work: Work, systems: Systems) -> Headline:
    """The fastest, with those that tie with it, and the first that does not."""
    first, *others = work.ranked
    tied = [line for line in others if line.scaled is None or line.scaled.tied is not False]
    slower = next((line for line in others if line not in tied), None)
    return Headline(
        "frameworks",
        {
            "model": text.model_name(first.cell.key.model),
            "own": systems.of(first.cell),
            "tied": [first.name, *(line.name for line in tied)],
            "slower": {"name": slower.name, "times": quantity(slower.scaled)} if slower else None,
        },
    )


def chips(work: Work) -> list[Chip]:
    """What is not ranked or no longer kept up."""
    unranked = [line.name for line in work.alike if not line.cell.ranked]
    retired = [line.name for line in work.alike if line.used and line.used.retired]
    found = [Chip("care", "not-ranked", "workloads", {"names": unranked})] if unranked else []
    found += [Chip("care", "retired", "workloads", {"count": len(retired)})] if retired else []
    return [*found, Chip("good", "one-protocol")]
