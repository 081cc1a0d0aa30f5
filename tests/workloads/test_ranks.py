"""One trial as several processes, for real: ranks on a CPU that meet over gloo at the loopback interface."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.helpers import wait_for
from tests.helpers.workload_runner import PYTHON, WORKLOADS, lay_out, run, tiny_classifier

pytestmark = pytest.mark.torch

# Sums over other numbers of values differ in the last bits of fp32.
TOLERANCE = 1e-5


tiny = partial(tiny_classifier, gpus=2)

SPOILED = """
from parts import trial as trial_part
import os, signal
from parts import launcher
import convnet
from parts.training.fit import TrainingStep

plain, steps = TrainingStep.__call__, 0
def spoiled(self, images, labels):
    global steps
    steps += 1
    if os.environ.get("RANK") == "1":
        {spoil}
    return plain(self, images, labels)
TrainingStep.__call__ = spoiled

if __name__ == "__main__":
    launcher.settle()
    trial_part.main(convnet.run)
"""
"""The workload with a line of its own in rank 1's step."""


def left(folder: Path) -> list[int]:
    """Processes that still write below a trial's folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(file.path.startswith(str(folder)) for file in process.open_files()):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def test_two_and_four_ranks_have_the_loss_of_one_process_on_the_same_global_batch(tmp_path):
    losses = {}
    for count in (1, 2, 4):
        folder = tmp_path / str(count)
        folder.mkdir()
        found = run(folder, tiny(gpus=count, batch_size=4 // count)).measured
        losses[count] = [loss for _, loss in found.losses]
        assert (found.samples_per_step, found.window.samples) == (4, 20)
        assert found.device.count == count
    assert losses[2] == pytest.approx(losses[1], rel=TOLERANCE)
    assert losses[4] == pytest.approx(losses[1], rel=TOLERANCE)
    assert len(set(losses[1][:4])) == 4, "the batches differ"


def test_a_limit_of_seconds_stops_all_ranks_at_one_step_and_the_trial_tells_of_its_progress(tmp_path):
    ended = run(tmp_path, tiny(limit={"seconds": 1.5}))
    found = ended.measured
    assert found.protocol.stopped_by == "seconds"
    assert found.window.samples == found.window.steps * found.samples_per_step
    told = [us for event in ended.events if event["event"] == "steps" for us in event["us"]]
    assert told == list(found.step_us.values())
    assert ended.events[-1] == {"event": "end"}
    assert [phase.name for phase in found.phases][:2] == ["launcher", "import"]


def test_copies_that_run_each_for_itself_are_trained_apart_at_the_same_time(tmp_path):
    found = run(tmp_path, tiny(options={"parallel": "each"})).measured
    assert found.parallel == "each"
    assert (found.samples_per_step, found.window.samples) == (2, 10)
    assert re.fullmatch(
        r"2 copies at once, [\d.e+]+ images/s in all; the steps are rank 0's", found.notes[-1]
    )


@pytest.mark.parametrize(
    ("spoil", "reason", "message"),
    [
        ("steps > 4 and os.kill(os.getpid(), signal.SIGKILL)", "killed", "ended by SIGKILL without a word"),
        ("if steps > 4: raise MemoryError('no more')", "out-of-memory", "MemoryError"),
    ],
)
def test_a_rank_that_dies_is_named_and_leaves_no_process(spoil, reason, message, tmp_path):
    ended = run(tmp_path, tiny(limit={"steps": 1000}), code=SPOILED.format(spoil=spoil))
    assert ended.exit_code == 1
    assert (ended.failed.reason, ended.failed.stage) == (reason, "train")
    assert ended.failed.message.startswith(f"rank 1 of 2: {message}")
    assert left(tmp_path) == []
    assert not (tmp_path / "out" / "measurement.json").exists()


def test_ranks_end_when_their_launcher_is_killed(tmp_path):
    asked = tiny(limit={"seconds": 200}, timeout_seconds=300.0)
    environ = {**os.environ, **lay_out(tmp_path, asked), "OMP_NUM_THREADS": "1"}
    with (tmp_path / "log").open("wb") as log:
        command = [PYTHON, "-B", WORKLOADS / "convnet.py"]
        launcher = subprocess.Popen(command, env=environ, stdout=log, stderr=log)
    try:
        events = tmp_path / "out" / "events.jsonl"
        wait_for(lambda: events.exists() and '"progress"' in events.read_text(), 40)
        assert len(left(tmp_path)) == 3
    finally:
        launcher.send_signal(signal.SIGKILL)
        launcher.wait()
    wait_for(lambda: left(tmp_path) == [])
