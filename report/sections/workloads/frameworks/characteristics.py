"""What each framework on the page is, as its own workload told when it trained."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import FrameworkUsed
from report import text
from report.comparisons.cells import Cell
from report.sections.view import Table, tabled, told
from report.sections.workloads.frameworks.lines import Line
from report.trials.pairs import grouped_by

BENEATH = ("cuda", "cudnn", "hip", "libc", "numpy", "python", "system", "torchvision")
"""Versions that are not the framework's own."""
LINES = (
    "Lines of code hold more than a comment or a docstring. The first are the framework's own; those of "
    "shared parts that it needs stand below."
)


def table(lines: Sequence[Line]) -> Table:
    """A row for each framework, in the order in which the page has them; without a column that all lack."""
    rows = [_row(name, same[0]) for name, same in grouped_by(lines, lambda line: line.framework).items()]
    caption = "The frameworks on this page, as their workloads tell of them."
    if any(line.used and line.used.lines for line in lines):
        caption += f" {LINES}"
    return tabled(caption, told(rows))


def differences(lines: Sequence[Line]) -> tuple[str, ...]:
    """What each does otherwise than the others, a sentence for each framework that does something."""
    said = []
    for same in grouped_by(lines, lambda line: line.framework).values():
        found = dict.fromkeys(each for line in same if line.used for each in line.used.differs)
        if found and same[0].used:
            said.append(f"{text.clean(same[0].used.name, 40)}: {text.clean('; '.join(found), 400)}.")
    return tuple(said)


def _row(name: str, line: Line) -> dict[str, str]:
    used = line.used
    if used is None:
        unknown = ("State", "Step compiled by", "Devices share a step by", "Data layout", "Loader", "Lines")
        row = {"Framework": text.clean(name, 40), "Version": _versions(line.cell)}
        return row | dict.fromkeys(unknown, "–")
    return {
        "Framework": text.clean(used.name, 40),
        "Version": text.clean(used.version, 40),
        "State": _state(used),
        "Step compiled by": text.clean(used.compiled or "nothing: eager", 80),
        "Devices share a step by": text.clean(", ".join(used.ways.values()) or "one device alone", 80),
        "Data layout": text.clean(used.layout or "–", 40),
        "Loader": text.clean(used.loader or "–", 80),
        "Lines": _lines(used),
    }


def _state(used: FrameworkUsed) -> str:
    if used.retired:
        return "retired"
    return f"dormant: last release {used.dormant_since}" if used.dormant_since else "alive"


def _lines(used: FrameworkUsed) -> str:
    """'173', and below it '559 shared in PyTorch, 927 by all'"""
    if used.lines is None:
        return "–"
    own, of_framework, of_all = used.lines.own, used.lines.framework_parts, used.lines.shared_parts
    within = f"{of_framework:,} shared in it, " if of_framework else ""
    return f"{own:,}\n{within}{of_all:,} shared by all"


def _versions(cell: Cell) -> str:
    own = [f"{name} {value}" for name, value in cell.stack.versions if value and name not in BENEATH]
    return text.clean(", ".join(own) or "–", 60)
