"""A small clone in a temporary folder: a plan of stand-in trials, and what runs them for real."""

from __future__ import annotations

import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.engine.interface import Built
from harness.engine.venv import VenvEngine
from harness.image.images import load_images
from harness.machine.devices import Selection
from harness.plan import plan_file
from harness.record import Cpu, Load, Machine, Session, session_id
from harness.run import runner, session
from harness.run.ready import ReadyRun, ready_run
from harness.run.setup import RunSetup
from harness.settings import Settings
from harness.telemetry import recorder
from tests.helpers import ROOT, TESTS, wait_for

FAKE = TESTS / "helpers" / "fake_workload.py"
MACHINE = Machine(
    id="0123456789ab", label="stand-in", system="Linux", architecture="x86_64", cpu=Cpu(model="a stand-in")
)

# What else this machine does takes half a second to see, before each trial.
runner.read_load = Load

PLAN = """
name = "mine"
title = "stand-ins"
repeats = {repeats}
blocks = {blocks}
timeout_seconds = {timeout}

[[measure]]
workload = "fake"
protocol = "published/1"
model = "none"
precision = ["fp32-ieee", "amp-bf16"]
batch_size = 8
data_mode = "cached"
options = {{ {options} }}
"""


def make(
    folder: Path, *, options: str = "", repeats: int = 2, timeout: float = 60.0, blocks: int = 1
) -> Path:
    """A clone with one plan, 'mine', of two variants."""
    (folder / "plans").mkdir(parents=True)
    (folder / "workloads").mkdir()
    shutil.copytree(ROOT / "docker", folder / "docker")
    shutil.copy(FAKE, folder / "workloads" / "fake.py")
    text = PLAN.format(repeats=repeats, timeout=timeout, options=options, blocks=blocks)
    (folder / "plans" / "mine.toml").write_text(text)
    return folder


def hasten(root: Path) -> None:
    """A trial that starts from now on does not sleep; the one that runs goes on as it does."""
    wait_for(lambda: any(root.glob("results/.state/work/*/*/out/events.jsonl")))
    path = root / "workloads" / "fake.py"
    path.write_text(path.read_text().replace("time.sleep(", "float("))


@contextmanager
def unwatched() -> Iterator[None]:
    """A process that watches a trial costs as much as the stand-in itself."""
    watches, recorder.start_sampling = recorder.start_sampling, lambda work, device, pids: None
    try:
        yield
    finally:
        recorder.start_sampling = watches


def open_session(root: Path) -> Session:
    """The clone's open session of its plan, or a new one."""
    opened = session.find_open_session(root, "mine")
    if opened is not None:
        return opened
    loaded = plan_file.load_plan(root, "mine")
    planned = plan_file.plan_trials(loaded, plan_file.PlanContext("cpu", "cpu", None, {}, {}), seed=1)
    trials, blocks = zip(*((item.trial, item.block) for item in planned), strict=True)
    number = session.next_session_number(root / "state", root, MACHINE.id)
    now = datetime.now(UTC)
    new = Session(
        session=1,
        id=session_id(now, secrets.token_hex(3)),
        plan=loaded.name,
        plan_sha256=loaded.sha256,
        machine=MACHINE.id,
        label=MACHINE.label,
        started_at=now,
        order_seed=1,
        trials=trials,
        blocks=blocks,
        number=number,
    )
    return session.open_session(root, new)


def bench(root: Path, **settings: Any) -> RunSetup:
    """What a line of `run` on this interpreter, as it is, stands on."""
    return RunSetup(
        root=root,
        settings=Settings(plan="mine", **settings),
        machine=MACHINE,
        selection=Selection("cpu"),
        image=load_images(root).image("cpu"),
        engine=VenvEngine(root, python=sys.executable),
        plan=plan_file.load_plan(root, "mine"),
        passed={},
        notes=(),
    )


def built(root: Path) -> Built:
    """This interpreter, as it is, in the place of an image's environment."""
    setup = bench(root)
    return setup.engine.build(setup.image, lambda line, done=0, total=None: None)


def ready(root: Path) -> ReadyRun:
    """A run on this interpreter, as it is, whose trials see no data."""
    return ready_run(bench(root), (built(root),), {})


class Quiet:
    """A watcher that keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def trial_begins(self, trial, number, count):
        self.lines.append(f"{number}/{count}")

    def trial_goes_on(self, progress):
        self.lines.append(progress.stage)

    def trial_ends(self, record):
        self.lines.append(record.status)

    def say(self, line):
        self.lines.append(line)
