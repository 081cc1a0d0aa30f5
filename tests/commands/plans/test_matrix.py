"""A plan on a terminal: in the order of importance, whole, and no wider than it."""

from __future__ import annotations

import re

import pytest

from commands import plan
from harness.run.choice import choose_trials
from harness.run.setup import prepare_for_cards
from harness.settings import Settings
from tests.helpers import ROOT


@pytest.fixture(scope="module")
def mission():
    setup = prepare_for_cards(ROOT, Settings(plan="mission", engine="venv", budget="8h"), "4x RTX 4090")
    return setup, choose_trials(setup)


def test_each_trial_and_each_reason_has_its_line_and_none_is_wider_than_a_terminal(mission):
    setup, chosen = mission
    lines = plan.plan_lines(setup, chosen)
    rows = [int(found[1]) for line in lines if (found := re.match(r" +(\d+) × ", line))]
    assert sum(rows) == len(chosen.planned)
    left = [int(found[1]) for line in lines if (found := re.match(r"  left out: (\d+) × ", line))]
    assert left == [item.trials for item in chosen.left_out] != []
    assert max(map(len, lines)) <= plan.WIDTH


def test_what_the_plan_names_first_stands_first_whatever_its_name(mission):
    setup, chosen = mission
    first = plan.sort_by_importance(setup.plan, reversed(chosen.planned))[0].trial.asked
    measure = setup.plan.measure[0]
    assert (first.workload, first.protocol) == (measure.workload, measure.protocol)
    late = [item for item in chosen.planned if item.trial.asked.workload == "word_lm"]
    raised = [*late, *(item for item in chosen.planned if item not in late)]
    assert [item.trial.id for item in plan.sort_by_importance(setup.plan, raised)] == [
        item.trial.id for item in plan.sort_by_importance(setup.plan, chosen.planned)
    ]
