"""Records of a test as trials, and as the table of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pandas import DataFrame

from harness.record import Record
from harness.record.published.cards import Card
from harness.record.store import Stored
from report.trials.reading import read
from report.trials.table import table_of
from report.trials.trial import TrialResult


def trials_of(records: Iterable[Record], cards: Sequence[Card] = ()) -> tuple[TrialResult, ...]:
    """Each record under a path of its own, in the order of their start."""
    return read([Stored(f"results/{place:03}.json", record) for place, record in enumerate(records)], cards)


def table(records: Iterable[Record], cards: Sequence[Card] = ()) -> DataFrame:
    """The same as a table."""
    return table_of(trials_of(records, cards))
