"""A plan on a terminal: in the order of importance, whole, and no wider than it."""

from __future__ import annotations

import re
from dataclasses import replace

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


def test_what_the_plan_names_first_stands_first_in_whatever_order_it_runs(mission):
    setup, chosen = mission
    lines, measure = plan.plan_lines(setup, chosen), setup.plan.measure[0]
    first = next(line for line in lines if re.match(r"\w+ \S+/\d", line))
    assert first.startswith(f"{measure.workload} {measure.protocol}, {measure.role}: ")
    assert plan.plan_lines(setup, replace(chosen, planned=chosen.planned[::-1])) == lines
