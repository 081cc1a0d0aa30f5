"""Records of older schemas, lifted to this one: the only place that knows how they were."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from harness.record.finding import UNWORDED
from harness.record.finding_kinds import KINDS

_NAMED = re.compile(r"([a-z][a-z0-9-]{0,39}): (.*)", re.DOTALL)
_CHANGED = "changed within the session"
_LATE_EXIT = "after its measurement was written"


def from_schema_1(raw: dict[str, Any]) -> dict[str, Any]:
    """A record whose causes, notes and warnings were sentences `name: clause`.

    Each keeps its name, and its clause as one text: no figure is read out of it, since the summary of an
    older method is made again from the raw samples.
    """
    lifted = raw | {"record": 2, "warnings": list(_warnings(raw.get("warnings") or ()))}
    summary = raw.get("summary")
    if isinstance(summary, dict):
        findings = [*named(summary.get("causes") or ()), *named(summary.get("notes") or (), "note")]
        kept = {key: value for key, value in summary.items() if key not in ("causes", "notes")}
        lifted["summary"] = kept | {"findings": findings}
    return lifted


def named(sentences: Iterable[Any], severity: str | None = None) -> Iterator[dict[str, Any]]:
    """Raw findings of sentences `name: clause`."""
    for sentence in sentences:
        found = _NAMED.fullmatch(str(sentence))
        name, clause = found.groups() if found else ("unnamed", str(sentence))
        usual = KINDS[name].severity if name in KINDS else "warn"
        yield {"name": name, "severity": severity or usual, "data": {UNWORDED: clause[:400]}}


def _warnings(sentences: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for sentence in sentences:
        text = str(sentence)
        name = "changed" if _CHANGED in text else "late-exit" if _LATE_EXIT in text else "telemetry"
        clause = text.removeprefix("telemetry: ")[:400]
        yield {"name": name, "severity": KINDS[name].severity, "data": {UNWORDED: clause}}
