"""Claims of tensorcore 2022, the records that they are held against, and their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.record import Claim, Record
from harness.record.published.cards import load_cards
from report.claims.claimed_work import matches, side_terms
from report.claims.judge import Judged, judge, obstacles
from report.compare import cells as stats
from report.compare.cells import own_and_other_cells
from report.trials.key import Value
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.trial_tables import trials_of

CARDS = load_cards(ROOT)
CARD = "Tesla T4"
SESSION = "20260131-aaaaaa"
ON = build.machine(CARD, label="t4", digits="a")
KIND = {**build.LM, "workload": "tensorcore_mlp", "model": "mlp"}
SECONDS = 0.1 * 1.1 * 2983 * 30


def series(precision: str = "fp32-ieee", seconds: float = 0.1, **changes: Any) -> list[Record]:
    values: dict[str, Any] = {"on": ON, "card": CARD, "session": SESSION, "batch_size": 512, "spread": 0.002}
    kind = changes.pop("kind", KIND)
    found = build.series_of(kind, precision, seconds, **{**values, **changes})
    return [build.changed(record, measurement__device__capability="7.5") for record in found]


def claim(**changes: Any) -> Claim:
    side = {"card": "T4", "model": "mlp", "precision": "fp32-ieee", "batch_size": 512}
    values: dict[str, Any] = {
        "id": "constructed",
        "study": "001",
        "kind": "absolute",
        "workload": "tensorcore_mlp",
        "protocol": "published/1",
        "metric": "protocol_seconds",
        "of": side,
        "value": SECONDS,
        "unit": "s",
        "half_digit": 0.5,
        "runs": 1,
        "source": "constructed",
    }
    return Claim.model_validate({**values, **changes})


def ratio(**changes: Any) -> Claim:
    side = {"model": "mlp", "batch_size": 512}
    values = {
        "kind": "ratio",
        "of": {**side, "precision": "amp-fp16"},
        "over": {**side, "precision": "fp32-ieee"},
        "value": 2.0,
        "unit": "x",
        "half_digit": 0.005,
        "card_class": "matrix-units",
    }
    return claim(**{**values, **changes})


def verdict(asked: Claim, records: Sequence[Record]) -> Judged | None:
    cells = stats.cells_of(trials_of(records))
    return next(iter(judge([asked], *own_and_other_cells(cells, SESSION, ()), CARDS)), None)


def judged(asked: Claim, records: Sequence[Record]) -> Judged:
    found = verdict(asked, records)
    assert found is not None
    return found


def word(asked: Claim, records: Sequence[Record]) -> str | None:
    """The verdict's word; null where the records judge nothing of the claim."""
    found = verdict(asked, records)
    return found.verdict.state if found else None


def lacks(asked: Claim, records: Sequence[Record]) -> set[str]:
    """What keeps the claim away from the only cell of the records, which has all that its side names."""
    (cell,) = stats.cells_of(trials_of(records))
    assert word(asked, records) is None and matches(asked, cell)
    return set(obstacles(asked, cell, CARDS))


def side_lacks(asked: Claim, records: Sequence[Record]) -> list[tuple[str, Value, Value]]:
    """What the only cell of the records has otherwise than the side: a field, its value, what is asked."""
    (cell,) = stats.cells_of(trials_of(records))
    assert word(asked, records) is None
    return [(each.field, each.of, each.over) for each in side_terms(asked, cell)]
