"""Figures that cannot be are kept out of charts. Every record here is constructed."""

from __future__ import annotations

from typing import Any

import pytest
from pandas import DataFrame

from harness.record import DeviceUsed, Flops, Record
from harness.record.published.cards import load_cards
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.records_watched import card, record, telemetry
from tests.helpers.trial_tables import table

CARDS = load_cards(ROOT)
A100 = "NVIDIA A100-SXM4-40GB"


def flagged(trials: DataFrame) -> list[set[str]]:
    """What speaks against each trial, beside that a faster one of as many steps is shorter."""
    return [{cause.name for cause in trial.causes} - {"short-window"} for trial in trials["trial"]]


def on_a100(flops: float = 1e9, *, device: str = A100, gpus: int = 1, **changes: Any) -> Record:
    """A trial of 64 samples in 0.3 s, which is 213 a second, of so many operations each."""
    measured = {"device": DeviceUsed(kind="cuda", name=device), "flops": Flops(per_sample=flops)}
    made = record(measured=measured, **changes)
    variant = made.trial.asked.variant.model_copy(update={"gpus": gpus})
    asked = made.trial.asked.model_copy(update={"variant": variant})
    trial = made.trial.from_request(asked, made.trial.repeat, seed=made.trial.seed, timeout_seconds=600.0)
    return made.model_copy(update={"trial": trial})


def test_more_than_its_peak_is_flagged_and_the_trial_is_no_result_any_more():
    trials = table([on_a100(24.3e9), on_a100(200e9, repeat=2)], CARDS)
    assert flagged(trials) == [set(), {"above-peak"}]
    assert list(trials["verdict"]) == ["valid", "invalid"]
    assert [trial.verdict for trial in trials["trial"]] == ["valid", "invalid"]


@pytest.mark.parametrize(("clock_max_mhz", "doubted"), [(2520, True), (3105, False), (None, True)])
def test_a_card_whose_clock_goes_above_the_reference_may_do_as_much_more(clock_max_mhz, doubted):
    made = on_a100(device="NVIDIA GeForce RTX 4090")
    gpus = tuple(gpu.model_copy(update={"clock_max_mhz": clock_max_mhz}) for gpu in made.machine.gpus)
    flops = 1.05 * 82.6e12 / table([made])["samples_per_second"].iloc[0]
    fast = build.changed(made, measurement__flops=Flops(per_sample=flops), machine__gpus=gpus)
    assert flagged(table([fast], CARDS)) == [{"above-peak"} if doubted else set()]


def test_two_devices_of_more_than_twice_one_are_flagged():
    pairs = [on_a100(gpus=2, step_seconds=0.3 / gain, order=order) for order, gain in ((2, 1.9), (3, 2.3))]
    assert flagged(table([on_a100(), *pairs], CARDS)) == [set(), set(), {"above-linear"}]


def test_two_devices_of_a_host_that_feeds_them_faster_are_not_flagged_by_one_of_another_host_or_stack():
    fed = on_a100(gpus=2, step_seconds=0.1)
    elsewhere = build.changed(fed, machine__id="e" * 12)
    newer = build.changed(fed, measurement__versions={"torch": "2.99.0"})
    assert flagged(table([on_a100(), elsewhere])) == flagged(table([on_a100(), newer])) == [set(), set()]


def test_a_trial_that_was_over_before_its_steps_can_have_been_is_invalid():
    short = record().model_copy(update={"wall_seconds": 60.0})
    assert flagged(table([short, record(repeat=2)])) == [{"contradicts-itself"}, set()]


def test_a_trial_without_figures_has_no_flag():
    asked = build.trial(build.CIFAR, "fp32-ieee", 1)
    on = build.machine("Constructed", label="x")
    failed = build.record(asked, None, on=on, failure=build.out_of_memory())
    assert flagged(table([failed, on_a100()], CARDS)) == [set(), set()]


def test_a_hot_start_is_a_warning_of_its_trial():
    starts = [
        record(repeat=at, seen=telemetry(card(start_temperature_c=degrees)))
        for at, degrees in enumerate((60.0, 61.0, 70.0), start=1)
    ]
    assert list(table(starts)["verdict"]) == ["valid", "valid", "warn"]
