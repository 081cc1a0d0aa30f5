from __future__ import annotations

from collections import Counter

import pytest

from harness.plan import plan_file, selection
from harness.plan.order import Planned
from harness.plan.plan_file import PlanContext
from harness.run import on_paper
from harness.run.choice import choose
from harness.settings import Settings
from tests.helpers import ROOT

SECOND_MODES = ("full-length trials in device mode", 10)
CONTEXT = PlanContext("cuda", "cuda", None, {"cifar-100": "real", "wikitext-2": "real"}, {})


@pytest.fixture(scope="module")
def mission() -> tuple[Planned, ...]:
    return plan_file.trials(plan_file.load(ROOT, "mission"), CONTEXT, seed=7)


def seconds(item: Planned) -> float:
    return 4000.0 if item.role == "full" else 100.0


def total(planned: tuple[Planned, ...]) -> float:
    return sum(seconds(item) for item in planned)


def whats(fitted: selection.Fitted) -> list[str]:
    return [left.what for left in fitted.left_out]


def test_a_budget_that_is_long_enough_drops_only_the_full_length_trials_that_say_the_same_twice(mission):
    fitted = selection.fit(mission, seconds, 1e9)
    assert [(left.what, left.trials) for left in fitted.left_out] == [SECOND_MODES]
    modes = Counter(item.trial.asked.variant.data_mode for item in fitted.planned if item.role == "full")
    assert modes == {"host": 10, "device": 2}


def test_repeats_beyond_five_go_first(mission):
    everything = total(selection.one_full_each(mission))
    fitted = selection.fit(mission, seconds, everything - 1)
    assert whats(fitted)[1:] == ["repeats beyond 5"]
    assert max(item.trial.repeat for item in fitted.planned) == 5


def test_then_repeats_and_later_rows_go_and_every_depth_stays(mission):
    tight = selection.fit(mission, seconds, 58_000)
    assert whats(tight)[1:] == [
        "repeats beyond 5",
        "repeats beyond 3",
        "rows of priority 3",
        "repeats beyond 2",
    ]
    models = {item.model for item in tight.planned if item.role == "full"}
    assert models == {f"resnet{depth}" for depth in (18, 34, 50, 101, 152)} | {"LSTM"}


@pytest.mark.parametrize("card", ["RTX 4090", "H100 SXM5 80GB", "RTX 2080 Ti"])
def test_eight_hours_hold_all_five_networks_of_the_study_and_both_precisions(card):
    setup = on_paper.prepare(ROOT, Settings(plan="mission", budget="8h"), card)
    chosen = choose(setup)
    assert chosen.seconds <= 8 * 3600 and not chosen.at_most
    held = Counter(
        (item.model, item.trial.asked.variant.precision) for item in chosen.planned if item.role == "timing"
    )
    for model in ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152"):
        assert held[model, "fp32-ieee"] >= 2 and held[model, "fp16-master"] >= 2


def test_without_host_mode_its_full_length_trials_come_back_on_the_device(mission):
    fitted = selection.fit(mission, seconds, 34_000)
    host = "host mode (no published duration or ratio can be judged)"
    assert whats(fitted)[4:6] == ["rows of priority 2", host]
    assert all(what.startswith("the full-length trial of ") for what in whats(fitted)[6:])
    assert all(item.trial.asked.variant.data_mode != "host" for item in fitted.planned)
    assert fitted.seconds <= 34_000


def test_what_was_left_out_adds_up_to_what_is_missing(mission):
    for budget_seconds in (1e9, 60_000, 34_000, 1.0):
        fitted = selection.fit(mission, seconds, budget_seconds)
        kept = {item.trial.id for item in fitted.planned}
        # What comes back for host mode is counted with it, and again where it goes after all.
        assert sum(left.trials for left in fitted.left_out) >= len(mission) - len(kept)
    all_but_the_last = selection.fit(mission, seconds, 60_000)
    assert sum(left.trials for left in all_but_the_last.left_out) == len(mission) - len(
        all_but_the_last.planned
    )


def test_the_budget_that_a_line_names_is_the_one_that_was_asked_for(mission):
    fitted = selection.fit(mission, seconds, 60_000, other_seconds=20_000)
    assert fitted.seconds <= 40_000
    assert {left.reason for left in fitted.left_out[1:]} == {"the budget of 16.7 h"}
    short = selection.fit(mission, seconds, 40)
    assert {left.reason for left in short.left_out[1:]} == {"the budget of 40 s"}


def test_where_nothing_fits_every_full_length_trial_goes(mission):
    fitted = selection.fit(mission, seconds, 1.0)
    assert {item.role for item in fitted.planned} == {"timing"} and fitted.seconds > 1.0


def test_a_plan_of_host_mode_alone_keeps_it_however_small_the_budget():
    context = PlanContext("cpu", "cpu", None, {"chest-xray14": "generated"}, {})
    fitted = selection.fit(plan_file.trials(plan_file.load(ROOT, "loading"), context, seed=7), seconds, 1.0)
    assert {item.trial.asked.variant.data_mode for item in fitted.planned} == {"host"}
    assert max(item.trial.repeat for item in fitted.planned) == 2
