import json

import pytest

from harness.record import PRECISIONS
from tests.helpers.workload_runner import WORKLOADS, ran

TORCH_S = """
import json
from parts.numerics.precision import PRECISIONS
named = lambda dtype: str(dtype).removeprefix("torch.")
rows = {label: [of.arithmetic, named(of.outputs), named(of.weights)] for label, of in PRECISIONS.items()}
print(json.dumps(rows))
"""


def test_a_device_lacks_only_precisions_of_the_table():
    rules = json.loads((WORKLOADS / "precisions.json").read_text(encoding="utf-8"))
    assert rules and {label for rule in rules for label in rule["precisions"]} <= PRECISIONS.keys()


@pytest.mark.torch
def test_the_workloads_table_promises_what_the_harness_s_does(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(WORKLOADS))
    done = ran("-c", TORCH_S)
    assert json.loads(done.stdout) == {
        label: [list(traits.arithmetic), traits.outputs, traits.weights]
        for label, traits in PRECISIONS.items()
        if traits.arithmetic
    }, done.stderr
