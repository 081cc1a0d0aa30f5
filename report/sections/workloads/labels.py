"""How well each label is told after training: a row for each label, a column for each line."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import Measurement
from report import text
from report.comparisons.cells import Cell
from report.sections.view import Table, tabled
from report.trials.key import FRAMEWORK

MEAN = "Mean of all labels"
CAPTION = (
    "Area under the ROC curve (AUC) of each label on the test images after training: the mean of its runs. "
    "0.5 is a guess, and 1 is without a mistake. A dash: no test image has the label, or each has it."
)


def table(cells: Sequence[Cell]) -> Table | None:
    """The AUC of each label, the same label on one line; null where no trial was tested by label."""
    found = [(_name(cell), measured) for cell in cells if (measured := _tested(cell))]
    labels = dict.fromkeys(label for _, runs in found for run in runs for label in run.test_qualities)
    if not labels:
        return None
    rows = [{"Label": text.clean(label, 60)} for label in labels] + [{"Label": MEAN}]
    for name, runs in found:
        for row, label in zip(rows, labels, strict=False):
            row[name] = _mean([run.test_qualities.get(label) for run in runs])
        rows[-1][name] = _mean([run.test_quality for run in runs])
    return tabled(CAPTION, rows)


def _tested(cell: Cell) -> list[Measurement]:
    runs = (trial.record.measurement for trial in cell.trials if trial.verdict != "invalid")
    return [run for run in runs if run is not None and run.quality_name == "auc" and run.test_qualities]


def _name(cell: Cell) -> str:
    """'PyTorch, fair/1, fp32-ieee\\nCPU of this machine\\n1 run, 5 epochs, generated images'"""
    runs = _tested(cell)
    used = runs[0].framework
    framework = used.name if used else str(dict(cell.key.options).get(FRAMEWORK, ""))
    what = ", ".join(part for part in (framework, cell.key.protocol, cell.key.precision) if part)
    epochs = text.count(max((len(run.epochs) for run in runs), default=0), "epoch")
    of = f"{text.count(len(runs), 'run')}, {epochs}" + (
        ", generated data" if cell.key.data_source != "real" else ""
    )
    return f"{text.clean(what, 80)}\n{text.unit_name(cell.card, cell.machine_label)}\n{of}"


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return text.number(sum(known) / len(known)) if known and len(known) == len(values) else "–"
