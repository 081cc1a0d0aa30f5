"""A whole order on this processor, by the verbs: from a quote to the answer on delivery."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import copied, invoked
from tests.helpers.workload_runner import PYTHON

PARTS = (
    "commands",
    "docker",
    "harness",
    "report",
    "results/cards.toml",
    "results/tables",
    "tasks.py",
    "workloads",
)
PLAN = """
name = "order"
title = "a small work, for a test"
repeats = 2

[[measure]]
workload = "llm_step"
protocol = "synthetic/1"
devices = ["cpu"]
model = "tiny"
precision = "fp32-ieee"
batch_size = 2
sequence_length = 64
data_mode = "cached"
limit = { steps = 60 }
"""


class Person:
    """Someone with a clone and a state of their own, who types lines; all share the cpu image's stack."""

    def __init__(self, folder: Path, threads: str) -> None:
        self.root = copied(folder / "clone", *PARTS)
        self.environ = {"GPUDYNO_STATE": str(folder / "state"), "OMP_NUM_THREADS": threads}
        (self.root / "plans").mkdir()
        (self.root / "plans" / "order.toml").write_text(PLAN)
        (self.root / ".venvs").symlink_to(Path(PYTHON).parents[2])

    def types(self, *words: str, code: int = 0, answers: str = "") -> str:
        """What a line says; it has to end with `code`."""
        done = invoked(self.root, *words, given=answers, **self.environ)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.mark.torch
@pytest.mark.whole
def test_an_order_is_quoted_measured_verified_and_accepted(tmp_path):
    supplier, buyer = Person(tmp_path / "supplier", "1"), Person(tmp_path / "buyer", "2")
    buyer.types("quote")
    assert "# [[offer]]" in (buyer.root / "purchase.toml").read_text()
    here = ("--device", "cpu", "--engine", "venv")

    supplier.types("run", "--plan", "order", *here)
    offer = tmp_path / "offer.tar.gz"
    # Half a machine's speed is left to whatever else this one does meanwhile.
    supplier.types("bundle", "--out", str(offer), "--margin", "0.5")

    assert "level: recomputed" in buyer.types("bundle", "--verify", str(offer))

    delivered = Person(tmp_path / "delivered", "1")
    assert delivered.types("accept", str(offer), *here).endswith("PASS\n")
