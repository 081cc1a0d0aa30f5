"""A whole order on this processor, by the verbs: from a quote to an answer a year after delivery."""

from __future__ import annotations

import re
import tarfile
from datetime import timedelta
from pathlib import Path

import pytest

from harness.record import Record, Session, Trace, TraceStats
from harness.record.series import Series
from harness.record.store import read_all, write_record, write_session
from harness.summary.device_checks import mean_in_windows
from harness.summary.statistics import judge_trial
from report.buying.purchase import parse_purchase
from tests.commands.test_quote import WHOLE
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
repeats = 4

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
YEAR = timedelta(days=365)
MHZ = 1000.0
"""That the constructed year later divides by how much slower it is: no such processor reads as this."""


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


def clock_of(record: Record) -> float | None:
    return mean_in_windows(record.telemetry.cpu.mhz, record.telemetry) if record.telemetry else None


def a_year_later(root: Path, *, slower: float) -> str:
    """Writes a CONSTRUCTED session: the machine's last one, a year on, slower, and at another clock."""
    results = read_all(root)
    last = max(results.sessions, key=lambda session: session.number or 0)
    name, label = f"{last.started_at + YEAR:%Y%m%d}-c0ffee", "constructed-slower"
    later = last.model_copy(
        update={
            "id": name,
            "label": label,
            "number": (last.number or 0) + 1,
            "started_at": last.started_at + YEAR,
            "notes": ("constructed: no figure of this session was measured",),
        }
    )
    write_session(root, later)
    slowed = [
        _slowed(stored.record, later, slower)
        for stored in results.records
        if stored.record.session == last.id
    ]
    for record in slowed:
        write_record(root, later, record)
    return name


def _slowed(record: Record, session: Session, slower: float) -> Record:
    measured = record.measurement
    assert measured is not None
    steps = Series.of([round(value * slower) for value in measured.step_us.values()])
    window = measured.window.model_copy(update={"seconds": measured.window.seconds * slower})
    epochs = tuple(
        epoch.model_copy(update={"train_seconds": epoch.train_seconds * slower}) for epoch in measured.epochs
    )
    seen = record.telemetry
    assert seen is not None and seen.cpu.mhz is not None
    clock = TraceStats(mean=Trace.of([MHZ / slower] * seen.cpu.mhz.mean.count, 1.0))
    changed = record.model_copy(
        update={
            "session": session.id,
            "started_at": record.started_at + YEAR,
            "wall_seconds": record.wall_seconds * slower,
            "machine": record.machine.model_copy(update={"label": session.label}),
            "telemetry": seen.model_copy(update={"cpu": seen.cpu.model_copy(update={"mhz": clock})}),
            "measurement": measured.model_copy(update={"step_us": steps, "window": window, "epochs": epochs}),
        }
    )
    return changed.model_copy(update={"summary": judge_trial(changed)})


@pytest.mark.torch
@pytest.mark.whole
def test_an_order_is_quoted_measured_verified_accepted_and_asked_about_a_year_later(tmp_path):
    supplier, buyer = Person(tmp_path / "supplier", "1"), Person(tmp_path / "buyer", "2")
    buyer.types("quote", "--yes", answers="\n".join(WHOLE[:-1]) + "\n")
    assert parse_purchase((buyer.root / "purchase.toml").read_text()).budget == 60000
    here = ("--device", "cpu", "--engine", "venv")

    supplier.types("run", "--plan", "order", *here)
    offer = tmp_path / "offer.tar.gz"
    # Half a machine's speed is left to whatever else this one does meanwhile.
    supplier.types("bundle", "--out", str(offer), "--margin", "0.5")

    assert "each summary computed from raw samples" in buyer.types("bundle", "--verify", str(offer))

    delivered = Person(tmp_path / "delivered", "1")
    assert delivered.types("accept", str(offer), *here).endswith("PASS\n")
    (kept,) = tmp_path.glob("offer-*.tar.gz")
    with tarfile.open(kept) as archive:
        assert "purchase.toml" not in archive.getnames()

    later = a_year_later(delivered.root, slower=1.5)
    said = delivered.types("accept", str(offer), "--records", later, *here, code=3)
    assert "NOT KEPT: 1 of 1 figures" in said
    assert re.search(r"slower by 33\.\d %, 95 % interval", said)
    # A sample of the clock falls into the measured window where that is long enough.
    records = [stored.record for stored in read_all(delivered.root).records]
    sampled = any(clock_of(record) is not None for record in records if record.session != later)
    assert (f"MHz → {MHZ / 1.5:.0f} MHz" in said) == sampled
    beside = sorted(path.name for path in tmp_path.glob("offer-*"))
    assert beside == [kept.name, f"offer-{later}.svg", f"offer-{later}.tar.gz"]
    buyer.types("bundle", "--verify", str(tmp_path / beside[-1]))
