"""Records of a test as the table of trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pandas import DataFrame

from harness.record import Record
from harness.record.published.cards import Card
from harness.record.store import Stored
from report.trials.reading import read


def table(records: Iterable[Record], cards: Sequence[Card] = ()) -> DataFrame:
    """Each record under a path of its own, in the order of their start."""
    return read([Stored(f"results/{place:03}.json", record) for place, record in enumerate(records)], cards)
