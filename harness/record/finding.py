"""A finding: what a check found, as data. Its words are made where it is shown, from one table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from harness.record.finding_kinds import KINDS, REMEDIES, Fault, Severity, sentence_fields
from harness.record.strict_model import Model

FindingWord = Annotated[str, Field(max_length=400)]
FindingValue = bool | int | float | FindingWord | tuple[int | FindingWord, ...]
DataKey = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]

VERDICTS: tuple[Literal["invalid", "unproven", "warn"], ...] = ("invalid", "unproven", "warn")
"""The gravest first; a note makes nothing of a trial."""


class Finding(Model):
    """One thing that a check found. `data` are its figures, units in their keys, and closed vocabularies."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
    severity: Severity
    data: Annotated[dict[DataKey, FindingValue], Field(max_length=12)] = {}

    def __hash__(self) -> int:
        return hash((self.name, self.severity, frozenset(self.data.items())))


def finding(name: str, severity: Severity | None = None, /, **data: FindingValue) -> Finding:
    """Return a finding of a name of the table; its severity is the table's unless another is given.

    Floats that are not finite become words, since JSON has none. Raises KeyError for an unknown name.
    """
    kind = KINDS[name]
    finite = {
        key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in data.items()
    }
    return Finding(name=name, severity=severity or kind.severity, data=finite)


def finding_fault(found: Finding) -> Fault:
    """Return whose fault it is; the machine's for an unknown name, so that it is looked at."""
    kind = KINDS.get(found.name)
    return kind.fault if kind else "machine"


def finding_label(found: Finding) -> str:
    """Return at most five words, for chips and cells."""
    kind = KINDS.get(found.name)
    return kind.label if kind else found.name.replace("-", " ")


def count_labels(of_trials: Iterable[Iterable[Finding]]) -> tuple[tuple[str, int], ...]:
    """Return how many trials have each label, the most frequent first; a trial counts once for each."""
    met = (name for found in of_trials for name in dict.fromkeys(map(finding_label, found)))
    return tuple(Counter(met).most_common())


def finding_sentence(found: Finding) -> str:
    """Return a clause without a full stop: the name's first with exactly the finding's data, filled in.

    Data that fit none of them, as a record of another release may have them, give the label.
    """
    kind = KINDS.get(found.name)
    values = {
        key: ", ".join(map(str, value)) if isinstance(value, tuple) else value
        for key, value in found.data.items()
    }
    for clause in kind.sentences if kind else ():
        if sentence_fields(clause) == values.keys():
            try:
                return clause.format_map(values)
            except (ValueError, TypeError):
                break
    return finding_label(found)


def finding_remedy(found: Finding) -> str:
    """Return what to do about it before any measurement; empty where nothing is needed or possible."""
    return REMEDIES.get(found.name, "").format_map(found.data)


def gravest_verdict(
    findings: tuple[Finding, ...], *others: str
) -> Literal["valid", "warn", "invalid", "unproven"]:
    """Return the verdict that findings, and other verdicts, make together."""
    severities = {found.severity for found in findings} | set(others)
    return next((verdict for verdict in VERDICTS if verdict in severities), "valid")
