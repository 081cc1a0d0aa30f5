"""The same thing as both sides: what a session of selfcheck says, and the rate over sessions."""

from __future__ import annotations

import random

import pytest

from harness.plan.plan_file import PlanContext, load_plan, plan_trials
from harness.record import Record, canonical_json
from report.compare.sides import side_checks
from report.trials.key import key_of
from tests.helpers import ROOT
from tests.helpers.records_builder import LM, machine, measurement, record, trial

CARD = "Constructed Card"


def session(
    number: int, noise: random.Random, *, slower: float = 1.0, runs: int = 5, verdict: str = "unproven"
) -> list[Record]:
    """A constructed session: both sides alike but for chance, B's steps `slower` times as long."""
    found = []
    on = machine(CARD, label="one")
    for repeat in range(1, runs + 1):
        for place, (side, factor) in enumerate((("A", 1.0), ("B", slower))):
            asked = trial(LM, "fp32-ieee", repeat, options={"side": side})
            seconds = 0.1 * factor * noise.lognormvariate(0, 0.01)
            measured = measurement(LM, asked, seconds, card=CARD, complete=False, seed=noise.randrange(10**6))
            name = f"20260131-{number:06x}"
            found.append(
                record(
                    asked,
                    measured,
                    on=on,
                    session=name,
                    order=100 * number + 2 * repeat + place,
                    plan="selfcheck",
                    verdict=verdict,
                )
            )
    return found


def test_the_same_thing_shows_no_difference_in_nine_sessions_of_ten():
    noise = random.Random(11)
    results = [one for number in range(60) for one in session(number, noise)]
    passed = [check.passed for check in side_checks(results)]
    assert len(passed) == 60 and sum(map(bool, passed)) >= 54


def test_a_side_that_is_slower_is_seen():
    (found,) = side_checks(session(1, random.Random(3), slower=1.05))
    assert found.passed is False
    assert found.interval is not None and found.interval.estimate == pytest.approx(1.05, abs=0.02)
    assert found.line().endswith("A DIFFERENCE WHERE THERE IS NONE")


def test_an_interval_that_holds_one_by_its_width_alone_says_so():
    noise = random.Random(4)
    unsteady = [
        session(1, noise, slower=factor, runs=5)[index] for factor in (0.5, 2.0) for index in range(6)
    ]
    wide, narrow = side_checks(unsteady)[0], side_checks(session(1, random.Random(4)))[0]
    assert wide.passed and "too wide to show much" in wide.line()
    assert narrow.passed and narrow.line().endswith("no difference shown")


def test_too_few_valid_runs_decide_nothing():
    short, invalid = session(1, random.Random(3), runs=2), session(1, random.Random(3), verdict="invalid")
    assert [one.passed for records in (short, invalid) for one in side_checks(records)] == [None, None]


def test_records_of_other_plans_are_not_sides():
    other = [one.model_copy(update={"plan": "quick"}) for one in session(1, random.Random(3))]
    assert side_checks(other) == ()


def test_the_sides_differ_in_nothing_but_their_name_and_stand_in_one_row():
    planned = plan_trials(
        load_plan(ROOT, "selfcheck"), PlanContext("cuda", "cuda", None, {"wikitext-2": "real"}, {}), seed=1
    )
    asked = {item.trial.asked.variant.options["side"]: item.trial.asked for item in planned}
    plain = [
        canonical_json(
            one.model_copy(update={"variant": one.variant.model_copy(update={"options": {}})}).model_dump(
                mode="json"
            )
        )
        for one in asked.values()
    ]
    assert set(asked) == {"A", "B"} and plain[0] == plain[1]
    assert [item.trial.repeat for item in planned] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    one, other = (session(1, random.Random(3))[index] for index in (0, 1))
    assert one.trial.id != other.trial.id
    assert key_of(one) == key_of(other)
