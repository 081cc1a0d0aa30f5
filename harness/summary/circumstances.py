"""What happened to trials, counted: for the terminal, and for what is sent to others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.record import Finding, Record
from harness.record.finding import label

MOST_NAMED = 8


def sentences(records: Iterable[Record]) -> tuple[str, ...]:
    """'12 of 12 measured trials: machine was busy before', what most trials met first."""
    return of_findings([record.summary.causes for record in records if record.summary])


def of_findings(trials: Sequence[Sequence[Finding]]) -> tuple[str, ...]:
    """The same, of the findings of each measured trial."""
    counted = Counter(name for found in trials for name in dict.fromkeys(map(label, found)))
    return tuple(
        f"{n} of {len(trials)} measured trials: {name}" for name, n in counted.most_common(MOST_NAMED)
    )
