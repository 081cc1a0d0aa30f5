"""The table of trials: a pandas DataFrame, one row a trial, its columns as `columns` has them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas
from pandas import DataFrame

from harness.record import Finding
from harness.record.finding import sentence
from report.trials.columns import COLUMNS, PARTS, Column
from report.trials.trial import TrialResult

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


def table_of(trials: Sequence[TrialResult]) -> DataFrame:
    """One row for each trial, in their order; what is unknown or not a number is null."""
    return DataFrame({column.name: _values(column, trials) for column in COLUMNS})


def write_csv(trials: Sequence[TrialResult], path: Path) -> None:
    """All columns but the trial itself; text that a spreadsheet would compute is led by an apostrophe."""
    table = table_of(trials)
    texts = {column.name: _harmless(table[column.name]) for column in COLUMNS if column.dtype == "string"}
    table.assign(**texts).drop(columns="trial").to_csv(path, index=False)


def _harmless(texts: pandas.Series[str]) -> pandas.Series[str]:
    return texts.where(~texts.str.startswith(FORMULA).fillna(False), "'" + texts)


def _values(column: Column, trials: Sequence[TrialResult]) -> Any:
    values: list[Any] = list(trials)
    for name in () if column.dtype == "object" else column.source.split("."):
        values = [None if value is None else getattr(value, name) for value in values]
    if column.dtype == "datetime64[us, UTC]":
        return pandas.to_datetime(values, utc=True, errors="coerce").as_unit("us").array
    if column.dtype == "string":
        values = [_text(value, column) for value in values]
    return pandas.array(values, dtype=column.dtype)


def _text(value: Any, column: Column) -> str | None:
    """Pairs are JSON, clauses have semicolons between; empty text of no part is null."""
    if isinstance(value, tuple):
        pairs = column.part in PARTS
        value = json.dumps(dict(value), ensure_ascii=False) if pairs else "; ".join(map(_clause, value))
    return value if column.part else value or None


def _clause(value: Any) -> str:
    return f"{value.name}: {sentence(value)}" if isinstance(value, Finding) else str(value)
