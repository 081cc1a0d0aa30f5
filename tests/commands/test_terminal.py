from __future__ import annotations

import pytest

from commands.terminal import name_of
from harness.plan import plan
from harness.plan.plan import PlanContext
from tests.helpers import ROOT


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_no_two_trials_of_a_shipped_plan_have_one_name_in_the_terminal(kind):
    for name in plan.names(ROOT):
        asked = plan.load(ROOT, name)
        if not any(measure.is_for(kind, kind) for measure in asked.measure):
            continue
        sources = dict.fromkeys(plan.datasets(asked, kind), "real")
        weights = dict.fromkeys(plan.pretrained_models(asked, kind), True)
        planned = plan.trials(asked, PlanContext(kind, kind, None, sources, weights), seed=0)
        assert len({name_of(item.trial) for item in planned}) == len(planned), name
