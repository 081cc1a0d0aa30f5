from __future__ import annotations

from collections import Counter

import pytest

from harness.plan import budget, plan_file
from harness.plan.order import Planned
from harness.plan.plan_file import PlanContext
from harness.run import setup
from harness.run.choice import choose_trials
from harness.settings import Settings
from tests.helpers import ROOT

CONTEXT = PlanContext("cuda", "cuda", None, {"cifar-100": "real", "wikitext-2": "real"}, {})


@pytest.fixture(scope="module")
def mission() -> tuple[Planned, ...]:
    return plan_file.plan_trials(plan_file.load_plan(ROOT, "mission"), CONTEXT, seed=7)


def seconds(item: Planned) -> float:
    return 4000.0 if item.role == "full" else 100.0


def total(planned: tuple[Planned, ...]) -> float:
    return sum(seconds(item) for item in planned)


def test_a_budget_that_is_long_enough_drops_nothing(mission):
    assert budget.fit_budget(mission, seconds, 1e9) == (mission, ())
    assert {item.trial.asked.variant.data_mode for item in mission if item.role == "full"} == {
        "host",
        "device",
    }


def test_later_priorities_go_first_and_the_published_mode_last(mission):
    def dropped(budget_seconds: float) -> list[str]:
        return [left.what for left in budget.fit_budget(mission, seconds, budget_seconds)[1]]

    last = max(item.priority for item in mission)
    assert dropped(total(mission) - 1) == [f"repeats of priority {last} beyond 3"]
    host = tuple(item for item in mission if item.role == "timing" and item.priority < 3)
    assert {item.trial.asked.variant.data_mode for item in host} == {"host"} and len(host) == 50
    # All that is not host mode goes before a repeat of it does.
    before = dropped(1.0)[: dropped(1.0).index("repeats beyond 3")]
    assert not [what for what in before if "host mode" in what or "depth" in what]
    assert dropped(1.0)[-3:] == [
        "rows of priority 2 in host mode",
        "repeats beyond 2",
        "the middle depth resnet50",
    ]


@pytest.mark.parametrize("card", ["RTX 4090", "H100 SXM5 80GB", "RTX 2080 Ti", "T4"])
def test_eight_hours_judge_each_network_of_the_study_in_five_runs_a_side(card):
    chosen = choose_trials(setup.prepare_for_cards(ROOT, Settings(plan="mission", budget="8h"), card))
    assert chosen.seconds <= 8 * 3600 and not chosen.at_most
    held = Counter(
        (item.model, item.trial.asked.variant.precision)
        for item in chosen.planned
        if item.role == "timing" and item.trial.asked.variant.data_mode == "host"
    )
    depths = (18, 34, 50, 101, 152)
    assert {held[f"resnet{depth}", label] for depth in depths for label in ("fp32-ieee", "fp16-master")} == {
        5
    }
    whole = {item.model for item in chosen.planned if item.role == "full"}
    assert whole >= {"resnet18", "resnet34", "resnet50"}


@pytest.mark.parametrize("card", ["RTX 4090", "RTX 2080 Ti", "T4"])
def test_twenty_minutes_judge_two_gains_in_three_runs_a_side(card):
    chosen = choose_trials(setup.prepare_for_cards(ROOT, Settings(plan="mission", budget="20m"), card))
    assert chosen.seconds <= 20 * 60
    variants = Counter((item.model, item.trial.asked.variant.data_mode) for item in chosen.planned)
    assert variants == {("resnet50", "host"): 6, ("resnet152", "host"): 6}


def test_what_was_left_out_adds_up_to_what_is_missing(mission):
    for budget_seconds in (60_000, 34_000, 1.0):
        fitting, dropped = budget.fit_budget(mission, seconds, budget_seconds)
        assert sum(left.trials for left in dropped) == len(mission) - len(fitting)


def test_the_budget_that_a_line_names_is_the_one_that_was_asked_for(mission):
    fitting, dropped = budget.fit_budget(mission, seconds, 60_000, other_seconds=20_000)
    assert total(fitting) <= 40_000
    assert {left.reason for left in dropped} == {"the budget of 16.7 h"}
    _, dropped = budget.fit_budget(mission, seconds, 40)
    assert {left.reason for left in dropped} == {"the budget of 40 s"}


def test_where_nothing_fits_every_full_length_trial_goes(mission):
    fitting, _ = budget.fit_budget(mission, seconds, 1.0)
    assert {item.role for item in fitting} == {"timing"}


def test_a_plan_of_host_mode_alone_keeps_it_however_small_the_budget():
    context = PlanContext("cpu", "cpu", None, {"chest-xray14": "generated"}, {})
    fitting, _ = budget.fit_budget(
        plan_file.plan_trials(plan_file.load_plan(ROOT, "loading"), context, seed=7), seconds, 1.0
    )
    assert {item.trial.asked.variant.data_mode for item in fitting} == {"host"}
    assert max(item.trial.repeat for item in fitting) == 2
