"""Claims of tensorcore 2022, the records that they are held against, and their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.record import Claim, Record
from harness.record.published.cards import load_cards
from report.claims.judge import Judged, judge
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


def verdict(asked: Claim, records: Sequence[Record]) -> Judged:
    cells = stats.cells_of(trials_of(records))
    (found,) = judge([asked], *own_and_other_cells(cells, SESSION, ()), CARDS)
    return found


def word(asked: Claim, records: Sequence[Record]) -> str:
    return verdict(asked, records).verdict.word


def lacks(asked: Claim, records: Sequence[Record]) -> list[tuple[str, Value, Value]]:
    """What keeps the claim away from the records: a field, what they have, and what it asks for."""
    found = verdict(asked, records)
    assert found.verdict.word == "not comparable"
    return [(each.field, each.of, each.over) for each in found.differences]
