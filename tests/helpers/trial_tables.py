"""Records of a test as trials, as the table of them, and as a page analyses them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from pandas import DataFrame

from harness.record import Record
from harness.record.published.cards import Card
from harness.record.published.claim_set import ClaimSet
from harness.record.store import Results, Stored
from report.analysis import Analysis, AnalysisRequest, Evidence, analyse
from report.buying.purchase import Purchase
from report.trials.reading import read_trials
from report.trials.table import table_of
from report.trials.trial import TrialResult


def trials_of(records: Iterable[Record], cards: Sequence[Card] = ()) -> tuple[TrialResult, ...]:
    """Each record under a path of its own, in the order of their start."""
    return read_trials(
        [Stored(f"results/{place:03}.json", record) for place, record in enumerate(records)], cards
    )


def analysed(records: Sequence[Record], purchase: Purchase | None = None) -> Analysis:
    """What a page says of them that leads with the session of the first."""
    stored = tuple(Stored(f"results/{place}.json", record) for place, record in enumerate(records))
    evidence = Evidence(Results(stored, (), ()), ClaimSet(), (), purchase)
    request = AnalysisRequest(datetime(2026, 2, 1, 12, tzinfo=UTC), session=records[0].session)
    return analyse(evidence, request)


def table(records: Iterable[Record], cards: Sequence[Card] = ()) -> DataFrame:
    """The same as a table."""
    return table_of(trials_of(records, cards))
