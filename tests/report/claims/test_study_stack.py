"""Constructed: an absolute figure of Bhutani 2019 is held against the study's own stack and card alone."""

from __future__ import annotations

from typing import Any

import pytest

from harness.record import Claim, Record
from harness.record.published.cards import load_cards
from harness.record.published.claims import same_card
from report.claims.judge import judge
from report.claims.judged import Judged
from report.compare import cells, groups
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.here import claims_here
from tests.helpers.trial_tables import trials_of

STUDY = {"torch": "1.0.0", "fastai": "1.0.41", "cuda": "10.0.130", "python": "3.7.16"}
SESSION = "20260131-aaaaaa"
CLAIM = next(claim for claim in claims_here().claims if claim.id == "004-2080ti-resnet50-fp32-seconds")
STEP_SECONDS = CLAIM.value / (30 * 489 * 1.1)


def records(versions: dict[str, str], card: str = "NVIDIA GeForce RTX 2080 Ti") -> list[Record]:
    """Five whole runs of the published ResNet-50, as long as the study's own."""
    told: dict[str, Any] = {"batch_size": 98, "mode": "host", "repeats": 5, "spread": 0.002}
    on = build.machine(card, label="card", digits="a")
    found = build.series_of(
        build.CIFAR,
        "fp32-ieee",
        STEP_SECONDS,
        on=on,
        card=card,
        session=SESSION,
        weights="pretrained",
        **told,
    )
    return [build.changed(record, measurement__versions=versions) for record in found]


def judged(found: list[Record], *, claim: Claim = CLAIM) -> Judged:
    grouped = groups.comparison_groups(cells.cells_of(trials_of(found)), SESSION, baseline=None)
    (one,) = judge([claim], grouped, load_cards(ROOT))
    return one


def test_a_figure_that_is_met_on_the_study_s_own_stack_and_card_is_reproduced():
    assert judged(records(STUDY)).verdict.word == "reproduced"


@pytest.mark.parametrize(
    ("used", "claimed", "same"),
    [
        ("2.13.0+cpu", "2.13.0", True),
        ("2.13.0+cu130", "2.13", True),
        ("2.13.0+cpu", "2.13.0+cpu", True),
        ("2.13.0", "2.13.0+cpu", False),
        ("2.13.10", "2.13.1", False),
    ],
)
def test_a_build_is_of_the_release_that_was_published_and_another_release_is_not(used, claimed, same):
    given = CLAIM.model_copy(update={"stack": f"PyTorch {claimed}, fastai 1.0.41"})
    word = judged(records({**STUDY, "torch": used}), claim=given).verdict.word
    assert word == ("reproduced" if same else "not comparable")


def test_a_processor_is_the_one_that_a_publication_names_with_its_maker_or_without():
    for published, there in (
        ("AMD EPYC", "AMD EPYC"),
        ("EPYC 9B14", "AMD EPYC 9B14"),
        ("RTX 9999", "NVIDIA RTX 9999"),
    ):
        assert same_card(published, there, ())
    assert not same_card("AMD EPYC 9B14", "AMD EPYC 9B45", ())


@pytest.mark.parametrize(
    ("versions", "card", "field", "here"),
    [
        ({**STUDY, "fastai": "2.8.12", "torch": "2.13.0", "cuda": "13.0"}, "RTX 2080 Ti", "fastai", "2.8.12"),
        ({**STUDY, "cuda": "9.0.176"}, "RTX 2080 Ti", "CUDA", "9.0.176"),
        (STUDY, "RTX 2070", "card", "NVIDIA GeForce RTX 2070"),
    ],
)
def test_the_same_figure_on_another_stack_or_card_is_not_comparable(versions, card, field, here):
    found = judged(records(versions, f"NVIDIA GeForce {card}"))
    assert found.verdict.word == "not comparable"
    assert [(each.field, each.here) for each in found.differences] == [(field, here)]
