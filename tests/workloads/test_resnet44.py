"""ResNet-44 on CIFAR-10: its network, its virtual ranks against real ones, and what several devices train."""

from __future__ import annotations

import json

import pytest

from tests.helpers.workload_runner import printed, run, tiny_resnet44

pytestmark = pytest.mark.torch


RANKS = """
import json, sys
from types import SimpleNamespace
import torch
from torch import distributed, multiprocessing
from cifar_resnet44 import resnet44
from parts.launcher import Place
from parts.training.fit import TrainingStep
from parts.training.parallel import share_buffers, spread
from parts.training.setting import Setting
from parts.numerics.update import Update

RANKS, CPU = 3, torch.device("cpu")

def stepped(place, virtual_ranks):
    torch.manual_seed(1)
    inputs, targets = torch.randn(12, 3, 32, 32).double(), torch.arange(12) % 10
    model = resnet44().double()
    variant = {"batch_size": 4, "profile": "default", "data_mode": "device"}
    setting = Setting(
        SimpleNamespace(variant=variant, seed=1), "fp32-ieee", CPU, "ddp", place, 1,
        {"virtual_ranks": virtual_ranks},
    )
    update = Update("fp32-ieee", torch.optim.SGD(model.parameters(), lr=0.1), CPU)
    step = TrainingStep(spread(model, setting), torch.nn.functional.cross_entropy, update, setting)
    part = slice(place.rank * 4, place.rank * 4 + 4) if place.count > 1 else slice(None)
    step(inputs[part], targets[part])
    if place.count > 1:
        share_buffers(model)
    return model.state_dict()

def rank(number, folder):
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=number, world_size=RANKS
    )
    torch.save(stepped(Place(number, RANKS), 1), f"{folder}/{number}.pt")
    distributed.destroy_process_group()

if __name__ == "__main__":
    torch.set_num_threads(1)
    multiprocessing.start_processes(rank, (sys.argv[1],), RANKS, start_method="fork")
    real = torch.load(f"{sys.argv[1]}/0.pt", weights_only=True)
    virtual, whole = stepped(Place(), RANKS), stepped(Place(), 1)
    def apart(one, other):
        pairs = [(one[name], other[name]) for name in one if one[name].is_floating_point()]
        return max(float((a - b).abs().max()) for a, b in pairs)
    print(json.dumps([apart(real, virtual), apart(real, whole)]))
"""


def test_a_step_of_three_virtual_ranks_is_one_of_three_real_ranks(tmp_path):
    virtual, one_large_batch = json.loads(printed(RANKS, str(tmp_path))[-1])
    assert virtual < 1e-10, "weights, and the statistics of rank 0"
    assert one_large_batch > 1e-3, "batch norm over the whole batch is another step"


def test_the_network_has_the_study_s_parameters_and_an_epoch_is_that_of_all_virtual_ranks(tmp_path):
    found = run(tmp_path, tiny_resnet44(options={"virtual_ranks": 3, "train_images": 100})).measured
    assert found.structure == {"parameters": 662826, "classes": 10}
    assert (found.samples_per_step, found.protocol.steps_per_epoch, found.protocol.epochs) == (12, 8, 40)
    assert found.notes == ("3 virtual ranks on one device; batch norm: each by itself",)
    assert 0 <= found.epochs[0].quality <= 1
    assert (found.epochs[0].valid_batches, found.protocol.valid_batches) == (1, 20)


def test_two_processes_share_epochs_and_a_validation_of_unequal_parts(tmp_path):
    limit = {"steps": 2, "valid_batches": 1}
    found = run(tmp_path, tiny_resnet44(gpus=2, options={"train_images": 100}, limit=limit)).measured
    assert (found.parallel, found.device.count, found.samples_per_step) == ("ddp", 2, 8)
    assert found.protocol.steps_per_epoch == 12
    assert found.epochs[0].valid_batches == 1
