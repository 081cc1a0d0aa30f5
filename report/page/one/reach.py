"""How long the leading session's runs took to a quality, and how many epochs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from report.analysis import Analysis
from report.compare.cells import Cell, ToTarget, targets_of, to_target
from report.page.compared_view import batch_of_devices, named_works
from report.page.one.answering import limiting_shares, repeat_line, runs_of
from report.page.pictures import panels_picture, quality_over_time
from report.page.values import AnswerPage, Chip, Quantity, Sentence, Systems
from report.trials.key import VIRTUAL_RANKS


@dataclass(frozen=True, slots=True)
class ReachRow:
    """One work, and when its runs had each target."""

    name: str
    cell: Cell
    reached: tuple[ToTarget, ...]


@dataclass(frozen=True, slots=True)
class ReachView:
    """The targets, the easiest first, and a row for each work."""

    targets: tuple[float, ...]
    unit: str
    """In which the targets are written."""
    rows: tuple[ReachRow, ...]


def page(analysis: Analysis, systems: Systems) -> AnswerPage | None:
    """Return the page of the time to a quality; null where no run had a target."""
    cells = [cell for cell in analysis.own_cells if targets_of([cell])]
    targets = targets_of(cells)
    if not targets:
        return None
    names = _row_names(cells)
    rows = [
        ReachRow(name, cell, tuple(to_target(cell, target) for target in targets))
        for name, cell in zip(names, cells, strict=True)
    ]
    quality = next(filter(None, (cell.quality_name for cell in cells)), "")
    unit = "share" if quality == "accuracy" else quality
    view = ReachView(targets, unit, tuple(rows))
    runs = [(row.name, trial) for row in rows for trial in row.cell.trials]
    at = _hardest_target(view)
    curve = quality_over_time(runs, targets[at])
    return AnswerPage(
        headline=_headline(view, systems),
        picture=panels_picture((curve,), "reach") if curve else None,
        template="reach",
        table=view,
        notes=(Sentence("reach-sure", {"runs": runs_of(cells)}), limiting_shares(cells)),
        following=repeat_line(analysis),
        cells=cells,
        chips=tuple(_chips(cells)),
        about={"model": cells[0].key.model},
    )


def ranks_of(cell: Cell) -> int:
    """Return its devices, or the virtual ranks of its one device."""
    virtual = dict(cell.key.options).get(VIRTUAL_RANKS)
    return virtual if isinstance(virtual, int) else cell.key.gpus


def _row_names(cells: Sequence[Cell]) -> Sequence[str]:
    """By their batches alone where these tell all apart."""
    batches = [batch_of_devices(cell.key.batch_size, ranks_of(cell)) for cell in cells]
    return batches if len(set(batches)) == len(cells) > 1 else list(map(str, named_works(cells)))


def _hardest_target(view: ReachView) -> int:
    """The place of the hardest target that all had, else that most had."""
    met = [sum(bool(row.reached[at].seconds.mean) for row in view.rows) for at in range(len(view.targets))]
    return max(range(len(met)), key=lambda place: (met[place], place))


def _headline(view: ReachView, systems: Systems) -> Sentence:
    """The slowest against the fastest."""
    at = _hardest_target(view)
    timed = sorted(
        ((row, row.reached[at]) for row in view.rows if row.reached[at].seconds.mean),
        key=lambda each: each[1].seconds.mean or 0.0,
    )
    data = {"own": systems.own[0], "target": Quantity(view.targets[at], view.unit), "runs": len(view.rows)}
    if not timed:
        return Sentence("reach-none", data)
    (fast, soon), (slow, late) = timed[0], timed[-1]
    data |= {"fast": fast, "soon": soon, "slow": slow, "late": late}
    times = (late.seconds.mean or 0.0) / (soon.seconds.mean or 1.0)
    return Sentence("reach" if slow is not fast else "reach-one", {**data, "times": Quantity(times, "ratio")})


def _chips(cells: Sequence[Cell]) -> Iterator[Chip]:
    fewest, most = runs_of(cells)
    if fewest < 3:
        yield Chip("care", "few-runs", "uncertainty", {"fewest": fewest, "most": most})
    epochs = (epoch for cell in cells for trial in cell.trials for epoch in trial.epochs if epoch.complete)
    seconds = [epoch.train_seconds + (epoch.valid_seconds or 0.0) for epoch in epochs]
    least, longest = min(seconds, default=0.0), max(seconds, default=0.0)
    if longest > 1.2 * least > 0:
        yield Chip("care", "epochs-differ", "uncertainty", {"least": least, "most": longest})
