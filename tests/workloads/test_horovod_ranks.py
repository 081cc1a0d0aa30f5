"""Horovod's ranks as processes: one set of weights, one end, and what is said where one cannot go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.helpers.workload_runner import WORKLOADS, Ended, need_stack, ran, run, trial

pytestmark = pytest.mark.horovod

SPOILED = """
import os, signal
from parts import launcher, trial as trial_part
from frameworks.horovod import cifar_resnet44_horovod as own

plain = own.Training.__init__
def spoiled(self, *asked):
    plain(self, *asked)
    step, taken = self.step, []
    def killed(*batch):
        taken.append(batch)
        if os.environ.get("RANK") == "1" and len(taken) > 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(*batch)
    self.step = killed
own.Training.__init__ = spoiled

if __name__ == "__main__":
    launcher.settle()
    trial_part.main(own.run)
"""

NAMELESS = """
import socket
from frameworks.horovod import horovod_ranks as ranks
def unknown(*asked):
    raise socket.gaierror(-2, "Name or service not known")
socket.getaddrinfo = unknown
with ranks.horovod_ring():
    pass
"""


SCRIPT = WORKLOADS / "frameworks" / "horovod" / "cifar_resnet44_horovod.py"


def two(folder: Path, code: str = "", **told: Any) -> Ended:
    options = {"framework": "tensorflow-horovod", "train_images": 100}
    asked = {"model": "resnet44", "batch_size": 4, "gpus": 2, "timeout_seconds": 280.0, **told}
    whole = trial("cifar_resnet44", options=options, **asked)
    return run(folder, whole, code=code, script=SCRIPT, python=need_stack("horovod"))


def test_a_limit_of_seconds_stops_both_ranks_at_one_step(tmp_path):
    found = two(tmp_path, limit={"seconds": 1.5, "valid_batches": 1}).measured
    assert found.protocol.stopped_by == "seconds"
    assert found.window.samples == found.window.steps * 8
    assert [phase.name for phase in found.phases][:2] == ["launcher", "import"]


def test_a_rank_that_dies_is_named_and_leaves_no_process(tmp_path):
    ended = two(tmp_path, SPOILED, limit={"steps": 1000})
    assert ended.exit_code == 1
    assert (ended.failed.reason, ended.failed.stage) == ("killed", "train")
    assert ended.failed.message == "rank 1 of 2: ended by SIGKILL without a word"
    script = str(tmp_path / "own.py")
    left = [each for each in psutil.process_iter(["cmdline"]) if script in (each.info["cmdline"] or ())]
    assert left == []


def test_a_machine_whose_own_name_has_no_address_is_refused_before_horovod_dies_of_it():
    done = ran("-c", NAMELESS, python=need_stack("horovod"))
    assert done.returncode == 1
    assert "this machine's own name, which has no address: add it to /etc/hosts" in done.stderr


IN_STEP = """
import os
from pathlib import Path
from parts import launcher, trial as trial_part
from frameworks.horovod import cifar_resnet44_horovod as own

plain = own.Training.sums
def told(self, *asked):
    weights = [float(abs(weight.numpy()).sum()) for weight in self.model.trainable_variables]
    Path({folder!r}, os.environ["RANK"]).write_text(repr(weights))
    return plain(self, *asked)
own.Training.sums = told

if __name__ == "__main__":
    launcher.settle()
    trial_part.main(own.run)
"""


def test_two_ranks_of_resnet44_keep_one_set_of_weights_on_different_images(tmp_path):
    found = two(tmp_path, IN_STEP.format(folder=str(tmp_path)), limit={"steps": 3}).measured
    weights = [(tmp_path / rank).read_text() for rank in ("0", "1")]
    assert weights[0] == weights[1]
    assert found.structure == {"parameters": 662826, "classes": 10}
    assert (found.parallel, found.device.count, found.samples_per_step) == ("ddp", 2, 8)
    assert (found.protocol.steps_per_epoch, found.protocol.epochs, found.protocol.valid_batches) == (
        12,
        40,
        20,
    )
    assert found.epochs[0].quality is not None and 0 <= found.epochs[0].quality <= 1
    assert found.data.distinct_batches == 3
