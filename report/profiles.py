"""What the profile `tuned` gains over `default`: a figure of its own, since no chart holds both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from report import names, words
from report.comparability import Key
from report.stats import Cell, Ratio, cell_ratio
from report.view import Table

OF_TUNED_ALONE = ("compile",)
"""Options that say how a work is tuned, and nothing where it is not."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """How many times as fast `tuned` trains as `default`, on one machine and in one session."""

    tuned: Cell
    default: Cell
    ratio: Ratio


def tunings(cells: Sequence[Cell]) -> tuple[Tuning, ...]:
    """Each tuned cell against the default one that differs in nothing else."""
    plain = {_place(cell, cell.key): cell for cell in cells if cell.key.profile == "default"}
    found = []
    for cell in cells:
        over = plain.get(_place(cell, _untuned(cell.key))) if cell.key.profile == "tuned" else None
        value = cell_ratio(cell, over, "throughput") if over else None
        if over is not None and value is not None:
            found.append(Tuning(cell, over, value))
    return tuple(found)


def _untuned(key: Key) -> Key:
    options = tuple(pair for pair in key.options if pair[0] not in OF_TUNED_ALONE)
    return replace(key, profile="default", options=options)


def _place(cell: Cell, key: Key) -> tuple[object, ...]:
    return key, cell.length.limit, cell.session, cell.machine, cell.card, cell.stack


def table(cells: Sequence[Cell]) -> Table | None:
    """A row for each work that was measured in both profiles."""
    found = tunings(cells)
    if not found:
        return None
    unit = found[0].tuned.rows[0].sample_unit
    rows = tuple(
        (
            f"{names.model(one.default.key.model)}{names.setting(one.default.key)}\n{names.unit_of(one.tuned)}",
            f"{one.default.key.precision}\nbatch {one.default.key.batch_size}",
            words.number(one.default.throughput.mean),
            words.number(one.tuned.throughput.mean),
            _gain(one.ratio),
        )
        for one in found
    )
    caption = (
        "What the profile 'tuned' gains over 'default' (channels_last, tuned convolutions, a fused optimiser "
        "and compilation, as far as the workload has them). No chart holds both."
    )
    rates = tuple(f"{unit.capitalize()}s / s, {name}" for name in ("default", "tuned"))
    return Table(caption, ("Model", "Precision", *rates, "Tuned over default"), rows)


def _gain(found: Ratio) -> str:
    said = f"{words.times(found.estimate)} ×"
    if found.interval is None:
        return f"{said}\nsingle runs"
    shown = f"{said}\n{words.between(found.interval, 'times')}"
    return f"{shown}, no difference shown" if found.tied else shown
