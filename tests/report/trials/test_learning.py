"""What the epochs of a trial say of its learning, on constructed epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.record import Epoch, Measurement
from report.trials import learning
from tests.helpers import records_builder as build

RISING = [0.2, 0.5, 0.4, 0.62, 0.61, 0.7, 0.74, 0.72, 0.76, 0.77, 0.3]


def measured(values: Sequence[float | None], quality: str = "accuracy", **changes: Any) -> Measurement:
    kind = build.CIFAR | {"quality": quality}
    epochs = [
        Epoch(index=place, steps=489, train_seconds=10.0, valid_seconds=2.0, quality=value)
        for place, value in enumerate(values, 1)
    ]
    asked = build.trial(kind, "fp32-ieee", 1)
    return build.measurement(kind, asked, 0.1, card="Constructed Card", **{"epochs": epochs, **changes})


def test_a_target_is_reached_at_the_end_of_the_first_epoch_that_has_it_training_and_validation_added_up():
    assert learning.target_place(measured(RISING), 0.6) == learning.Reached(4, 48.0)
    assert learning.target_place(measured(RISING), 0.2) == learning.Reached(1, 12.0)


def test_a_target_that_no_epoch_had_is_not_reached_whatever_came_near():
    assert learning.target_place(measured(RISING), 0.78) is None
    assert learning.target_place(measured([]), 0.1) is None


def test_a_perplexity_or_a_loss_is_reached_from_above():
    falling = [300.0, 150.0, 160.0, 90.0]
    for quality in ("perplexity", "loss"):
        assert learning.target_place(measured(falling, quality), 155.0) == learning.Reached(2, 24.0)
        assert learning.target_place(measured(falling, quality), 80.0) is None
        assert learning.best_quality(measured(falling, quality)) == 90.0


def test_an_epoch_that_ended_early_or_was_not_validated_reaches_nothing_though_its_seconds_count():
    epochs = [
        Epoch(index=1, steps=9, train_seconds=1.0, valid_seconds=1.0, quality=0.9, complete=False),
        Epoch(index=2, steps=9, train_seconds=1.0, valid_seconds=1.0),
        Epoch(index=3, steps=9, train_seconds=1.0, quality=None),
        Epoch(index=4, steps=9, train_seconds=1.0, valid_seconds=1.0, quality=0.5),
    ]
    assert learning.target_place(measured([], epochs=epochs), 0.5) == learning.Reached(4, 7.0)
    assert learning.best_quality(measured([], epochs=epochs)) == 0.5


def test_validations_on_a_part_of_the_batches_are_told_from_those_on_all():
    whole = build.CIFAR["valid_batches"]
    for batches, told in ((None, None), (whole, None), (5, 5)):
        epoch = Epoch(index=1, steps=9, train_seconds=1.0, quality=0.9, valid_batches=batches)
        assert learning.validated_batches(measured([], epochs=[epoch])) == told
        assert learning.target_place(measured([], epochs=[epoch]), 0.9) == learning.Reached(1, 1.0)


def test_early_falls_are_the_mean_loss_from_one_of_the_first_ten_epochs_to_the_next():
    assert learning.early_fall(measured(RISING)) == pytest.approx((0.1 + 0.01 + 0.02) / 9)
    assert learning.early_fall(measured(RISING[:9])) is None
    assert learning.early_fall(measured([*RISING[:4], None, *RISING[5:]])) is None
    loss = [1 - value for value in RISING]
    assert learning.early_fall(measured(loss, "loss")) == pytest.approx((0.1 + 0.01 + 0.02) / 9)


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=30), st.floats(0.01, 1.0), st.floats(0.01, 1.0))
def test_a_harder_target_is_never_reached_sooner_and_the_best_is_always_reached(values, first, second):
    run = measured(values)
    easy, hard = (learning.target_place(run, target) for target in sorted((first, second)))
    assert hard is None or (easy is not None and easy.epochs <= hard.epochs and easy.seconds <= hard.seconds)
    assert learning.target_place(run, max(values)) is not None
