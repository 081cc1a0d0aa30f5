"""Pages of constructed cards with prices, and what their tables of costs say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from harness.record import Energy, Record, Telemetry, Trace
from harness.record.claims import ClaimSet
from harness.record.store import Results, Stored
from report.cost.purchase import parse_purchase
from report.sections.view import CostView, PageView, Table
from tests.helpers import records_builder as build
from tests.helpers.purchase_builder import FILE
from tests.helpers.views import view_of

LEAD = "20260131-aaaaaa"
A, B = "Constructed Card A", "Constructed Card B"


def looked(records: Sequence[Record], purchase: str | None = FILE) -> PageView:
    results = Results(tuple(Stored(f"results/{n}.json", record) for n, record in enumerate(records)), (), ())
    bought = parse_purchase(purchase) if purchase else None
    lead = LEAD if any(record.session == LEAD for record in records) else None
    return view_of(results, ClaimSet(), (), bought, session=lead, now=datetime(2026, 2, 1, tzinfo=UTC))


def money(records: Sequence[Record], purchase: str | None = FILE) -> CostView:
    costs = looked(records, purchase).costs
    assert costs is not None
    return costs


def column(table: Table | None, name: str) -> dict[str, str]:
    """The figures of a column by card, without what stands beneath them."""
    assert table is not None
    place = next(n for n, heading in enumerate(table.columns) if heading.startswith(name))
    return {row[0].partition("\n")[0]: row[place].partition("\n")[0] for row in table.rows}


def beneath(table: Table | None) -> dict[str, str]:
    """What stands beneath each card."""
    assert table is not None
    return {row[0].partition("\n")[0]: row[0].partition("\n")[2] for row in table.rows}


def of(card: str) -> list[Record]:
    return [record for record in build.two_cards() if record.machine.label.endswith(card[-1].lower())]


def powered(records: Sequence[Record], watts: dict[str, float]) -> list[Record]:
    """The records with a power that telemetry would have told."""
    watched = []
    for record in records:
        joules = 100 * watts[record.machine.label[-1]]
        energy = Energy(
            joules=joules, method="counter", scope="cards", window_seconds=100.0, samples=100, band=0.05
        )
        telemetry = Telemetry(
            source="nvml",
            interval_seconds=1.0,
            seconds=100.0,
            samples=100,
            seconds_per_value=1.0,
            times=Trace.of([0.5], 0.1),
            energy=energy,
            ended="constructed",
        )
        watched.append(record.model_copy(update={"telemetry": telemetry}))
    return watched
