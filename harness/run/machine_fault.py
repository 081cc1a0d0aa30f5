"""Failures of the machine that every trial after them would meet: the driver's, the loader's, the links'."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.record import Record
from harness.redact import WITHHELD, redact_value

NO_STEP_SECONDS = 600.0
"""How long several devices may be silent before their first step."""
NO_STEP = (
    "its devices made no first step in {minutes:.0f} min, as where they do not reach each other's memory; "
    "try NCCL_P2P_DISABLE=1"
)
_SAID = re.compile(
    r"\b(?:Error \d{2,4}: [^(\n]+|CUDA driver error: .+|CUDA unknown error[^(\n]*"
    r"|CUDA error: (?!device-side|an illegal|out of memory|invalid).+"
    r"|NCCL (?:error|failure)[^\n]*|hip\w*Error\w+[^\n]*"
    r"|(?:ImportError|ModuleNotFoundError): .+|\S+\.so[.\d]*: cannot open shared object file.*)"
)
_FOLDERS = re.compile(r"(?<![:/\w])(?:/[^\s/:()']+)+/")


def fault_words(log: str) -> str:
    """Return what the driver or the loader said last in a log, without folders; empty where neither did."""
    said = [found[0].strip() for found in _SAID.finditer(log)]
    words = _FOLDERS.sub("", said[-1])[:200] if said else ""
    return words if redact_value(words) != WITHHELD else ""


def repeated_fault(ran: Sequence[Record]) -> str:
    """Return in what the last two trials failed alike on the same devices by the machine's fault, else ''."""
    if len(ran) < 2 or ran[-2].cards_given != ran[-1].cards_given:
        return ""
    before, last = (_fault(record) for record in ran[-2:])
    return last if last == before else ""


def faulty_trials(records: Sequence[Record]) -> frozenset[str]:
    """Return the ids of the trials that a fault of the machine failed, where it ended a line with them."""
    ordered = sorted(records, key=lambda record: record.started_at)
    fault = repeated_fault(ordered)
    return frozenset(record.trial.id for record in ordered if fault and _fault(record) == fault)


def _fault(record: Record) -> str:
    failure = record.failure
    if failure is None:
        return ""
    words = fault_words(failure.message)
    if failure.reason == "no-device" or NO_STEP[-20:] in failure.message:
        words = words or failure.message
    return words
