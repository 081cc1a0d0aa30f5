"""What cards are on paper, as the model of expected values reads them: one device of a card, in one row.

results/cards.toml has the cards that trials are judged by. results/tables/cards.csv adds the cards that only
published figures name: their specifications are second hand, and nothing is judged by them.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from harness.errors import UserError
from harness.record import PRECISIONS, Model, Precision, first_problem
from harness.record.published.cards import OTHER_MODEL, Card

FOLDER = Path("results") / "tables"
FILE = FOLDER / "cards.csv"
NAMES_SHOWN = 4
EPOCH = 2019

PositiveNumber = Annotated[float, Field(gt=0)]
AnyModel = TypeVar("AnyModel", bound=Model)


class CardSpecs(Model):
    """One device of a card: dense peaks in TFLOP/s, null where it has no such path or no source says."""

    name: str
    vendor: str
    architecture: str
    year: Annotated[int, Field(ge=2010, le=2100)]
    form: str
    fp32_tflops: PositiveNumber
    tf32_tflops: PositiveNumber | None = None
    fp16_tflops: PositiveNumber | None = None
    bandwidth_gbs: PositiveNumber
    memory_gb: PositiveNumber
    power_watts: PositiveNumber
    source: str = ""
    note: str = ""

    def peak_tflops(self, precision: Precision) -> float:
        """Return the peak in a label's own arithmetic; where the card has no such path, that of FP32."""
        peaks = {"32": None, "tf32": self.tf32_tflops, "16": self.fp16_tflops}
        return peaks[arithmetic(precision)] or self.fp32_tflops

    def features(self, precision: Precision) -> NDArray[np.float64]:
        """Return what the model knows of the card: logarithms of its specifications, and its year."""
        logs = np.log(
            [
                self.peak_tflops(precision),
                self.fp32_tflops,
                self.bandwidth_gbs,
                self.memory_gb,
                self.power_watts,
            ]
        )
        return np.append(logs, (self.year - EPOCH) / 4)


def csv_rows(root: Path, name: Path, kind: type[AnyModel]) -> Iterator[tuple[int, AnyModel]]:
    """Yield a table's rows with their lines, without empty fields; raises UserError with a wrong one."""
    for line, row in read_rows(root, name, kind):
        if isinstance(row, str):
            raise UserError(f"{name}, line {line}, {row}", remedy="correct it")
        yield line, row


def read_rows(root: Path, name: Path, kind: type[AnyModel]) -> Iterator[tuple[int, AnyModel | str]]:
    """Yield each row with its line; in place of a wrong one the column and what is wrong there."""
    try:
        text = (root / name).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{name} cannot be read ({error.strerror})", remedy="restore it from git") from None
    rows = csv.reader(text.splitlines())
    columns = next(rows, [])
    for cells in rows:
        line, found = rows.line_num, {key: cell for key, cell in zip(columns, cells, strict=False) if cell}
        if cells and len(cells) != len(columns):
            first = min(len(cells), len(columns)) + 1
            yield line, f"column {first}: {len(cells)} cells for {len(columns)} columns"
        if len(cells) != len(columns):
            continue
        try:
            yield line, kind.model_validate(found)
        except ValidationError as error:
            wrong = str(error.errors()[0]["loc"][0])
            at = columns.index(wrong) + 1 if wrong in columns else len(columns) + 1
            yield line, f"column {at}: {first_problem(error)}"


def load_specs(root: Path, cards: Sequence[Card]) -> dict[str, CardSpecs]:
    """Return every card's specifications by its name; raises UserError with the row that is wrong."""
    found = {card.name: specs for card in cards if (specs := _card_specs(card))}
    for place, specs in csv_rows(root, FILE, CardSpecs):
        if specs.name in found:
            raise UserError(
                f"{FILE}, line {place}: '{specs.name}' has its specifications already", remedy="keep one row"
            )
        found[specs.name] = specs
    return found


def _card_specs(card: Card) -> CardSpecs | None:
    """Return the part of the card that a framework sees as one device; null where a figure is unknown."""
    known = card.model_dump(include={"bandwidth_gbs", "memory_gb", "power_watts"})
    known |= {f"{name}_tflops": getattr(card.peaks, name) for name in ("fp32", "tf32", "fp16")}
    of_device = {name: value / card.devices for name, value in known.items() if value}
    if not card.launch or not {*known} - {"tf32_tflops", "fp16_tflops"} <= {*of_device}:
        return None
    named = card.model_dump(include={"name", "vendor", "form", "source"})
    architecture, year = card.architecture.split()[0], int(card.launch[:4])
    return CardSpecs(**named, **of_device, architecture=architecture, year=year)


def named(name: str, specs: Mapping[str, CardSpecs]) -> CardSpecs:
    """Return the card of that name, or with all its words; raises UserError with the nearest names."""
    wanted = name.casefold().split()
    exact = [card for key, card in specs.items() if key.casefold().split() == wanted]
    fitting = exact or [card for key, card in specs.items() if set(wanted) <= set(key.casefold().split())]
    if len(fitting) == 1 and not OTHER_MODEL & set(fitting[0].name.casefold().split()) - set(wanted):
        return fitting[0]
    keys = {key.casefold(): key for key in specs}
    near = [keys[key] for key in difflib.get_close_matches(name.casefold(), keys, NAMES_SHOWN, cutoff=0.75)]
    names = [card.name for card in fitting][:NAMES_SHOWN] or near
    required = ", ".join(key for key, field in CardSpecs.model_fields.items() if field.is_required())
    near_words = f"use {' or '.join(names)}, or " if names else ""
    raise UserError(
        f"'{name[:60]}' is no one card of the tables",
        remedy=f"{near_words}give {FILE} a row with {required}, also fp16_tflops and tf32_tflops",
    )


Arithmetic = Literal["32", "tf32", "16"]


def arithmetic(precision: Precision) -> Arithmetic:
    """Return what kind of product a label's kernels use."""
    kind = PRECISIONS[precision].arithmetic[-1]
    return "tf32" if kind == "tf32" else "32" if kind == "fp32-ieee" else "16"
