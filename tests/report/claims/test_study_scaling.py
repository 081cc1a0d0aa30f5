"""UniLu 2019's sentences, judged on constructed records of virtual ranks and of devices."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from harness.record import Record
from harness.record.published.cards import load_cards
from report.claims.judge import judge
from report.compare.cells import cells_of, own_and_other_cells
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.here import claims_here
from tests.helpers.records_devices import CARD, LEAD, ON
from tests.helpers.trial_tables import trials_of

CLAIMS = {claim.id: claim for claim in claims_here().claims if claim.study.startswith("002")}
CARDS = load_cards(ROOT)
FOUR_OVER_ONE = "002-emulated-time-to-75-4-ranks-longer-than-1"
TWELVE_OVER_FOUR = "002-emulated-time-to-75-12-ranks-longer-than-4"
BATCH, IMAGES = 128, 50_000
RESNET44: dict[str, Any] = {
    "workload": "cifar_resnet44",
    "protocol": "published/1",
    "model": "resnet44",
    "image_size": 32,
    "quality": "accuracy",
    "unit": "image",
    "epochs": 40,
    "valid_batches": 0,
}


def learned(
    ranks: int,
    *,
    virtual: bool = False,
    best: float = 0.88,
    bounce: float = 0.0,
    order: int = 0,
    **options: Any,
) -> list[Record]:
    """Three runs whose accuracy rises to `best`, the slower the more ranks share a step.

    `bounce` is what every second of the first ten epochs falls back by.
    """
    noise = random.Random(1000 * ranks)

    def accuracy(epoch: int) -> float:
        rising = 0.1 + (best - 0.1) * (1 - math.exp(-epoch / (4.0 * ranks**0.4))) + noise.gauss(0, 0.004)
        return rising - (bounce * noise.uniform(0.8, 1.2) if epoch in (2, 4, 6, 8, 10) else 0.0)

    if ranks > 1:
        options |= {"virtual_ranks": ranks} if virtual else {"parallel": "ddp"}
    made = build.series_of(
        {**RESNET44, "steps_per_epoch": IMAGES // (BATCH * ranks)},
        "fp32-ieee",
        0.05,
        on=ON,
        card=CARD,
        session=LEAD,
        first_order=order,
        batch_size=BATCH,
        mode="device",
        gpus=1 if virtual else ranks,
        options=options,
    )
    return [
        build.changed(
            record,
            measurement__parallel=options.get("parallel"),
            measurement__samples_per_step=BATCH * ranks,
            measurement__window__samples=record.measurement.window.steps * BATCH * ranks,
            measurement__epochs=tuple(
                epoch.model_copy(update={"quality": accuracy(epoch.index)})
                for epoch in record.measurement.epochs
            ),
        )
        for record in made
        if record.measurement
    ]


def up_to_twelve(*, virtual: bool) -> list[Record]:
    """One to twelve ranks, of which twelve do not have 80 % in 40 epochs."""
    records: list[Record] = []
    for place, ranks in enumerate((1, 2, 4, 8, 12)):
        records += learned(ranks, virtual=virtual, best=0.79 if ranks == 12 else 0.88, order=20 * place)
    return records


def word(claim: str, records: list[Record]) -> str | None:
    """The verdict's word; null where the records judge nothing of the claim."""
    found = judge([CLAIMS[claim]], *own_and_other_cells(cells_of(trials_of(records)), LEAD, ()), CARDS)
    return found[0].verdict.state if found else None


def test_epochs_to_75_percent_grow_with_the_number_of_virtual_ranks():
    records = up_to_twelve(virtual=True)
    assert {word(claim, records) for claim in (FOUR_OVER_ONE, TWELVE_OVER_FOUR)} == {"holds"}


def test_an_order_of_epochs_needs_both_of_its_ranks_and_a_run_that_had_the_target():
    some = [*learned(1), *learned(4, virtual=True, order=20)]
    assert word(TWELVE_OVER_FOUR, some) is None
    assert word(TWELVE_OVER_FOUR, [*some, *learned(12, virtual=True, best=0.6, order=40)]) is None


@pytest.mark.parametrize(("best", "told"), [(0.79, "holds"), (0.88, "fails")])
def test_twelve_ranks_do_not_have_80_percent_where_the_best_of_40_epochs_is_below_it(best, told):
    assert word("002-emulated-12-accuracy", learned(12, virtual=True, best=best)) == told


def test_accuracy_bounces_more_without_shared_statistics_by_the_falls_of_the_first_ten_epochs():
    apart = learned(12, virtual=True, bounce=0.1)
    rough, smooth = (
        learned(12, virtual=True, bounce=bounce, sync_batchnorm=True, order=20) for bounce in (0.2, 0.0)
    )
    assert word("002-emulated-accuracy-bounces", [*apart, *smooth]) == "holds"
    assert word("002-emulated-accuracy-bounces", [*apart, *rough]) == "fails"
    assert word("002-emulated-accuracy-bounces", apart) is None


def test_devices_stand_for_the_study_s_own_sentence_and_virtual_ranks_do_not():
    assert word("002-post-time-to-75-scales-worse", up_to_twelve(virtual=False)) == "holds"
    assert word("002-post-time-to-75-scales-worse", up_to_twelve(virtual=True)) is None
