"""The same thing as both sides: what a session of selfcheck says, and the rate over sessions."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from harness.plan.plan_file import PlanContext, load_plan, plan_trials
from harness.record import Record, canonical_json
from report.compare.cells import cells_of
from report.compare.comparison import compare_sides
from report.trials.key import key_of
from tests.helpers import ROOT
from tests.helpers.records_builder import LM, machine, measurement, record, trial
from tests.helpers.trial_tables import trials_of

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


def orders(records: list[Record]) -> list[str]:
    return [ratio.order for ratio in compare_sides("side", cells_of(trials_of(records))).ratios]


def test_the_same_thing_shows_no_difference_in_nine_sessions_of_ten():
    noise = random.Random(11)
    found = Counter(order for number in range(60) for order in orders(session(number, noise)))
    assert found.total() == 60 and found["equal"] + found["not-shown"] >= 54


@pytest.mark.parametrize(
    ("how", "shown"),
    [
        ({"slower": 1.05}, ["slower"]),
        ({"runs": 2}, ["not-shown"]),
        ({"verdict": "invalid"}, []),
    ],
)
def test_a_side_that_is_slower_is_seen_and_too_few_runs_decide_nothing(how, shown):
    assert orders(session(1, random.Random(3), **how)) == shown


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
