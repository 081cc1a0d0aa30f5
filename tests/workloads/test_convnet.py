"""Image classifiers on synthetic images, on one device."""

from __future__ import annotations

import json
from functools import partial

import pytest

from harness.plan.names import library_models
from tests.helpers import ROOT
from tests.helpers.workload_runner import printed, run, tiny_classifier

pytestmark = pytest.mark.torch


tiny = partial(tiny_classifier, model="resnet18", batch_size=4)


def test_a_classifier_is_trained_on_batches_that_come_round_and_are_never_one(tmp_path):
    found = run(tmp_path, tiny()).measured
    assert (found.data.source, found.data.distinct_batches) == ("synthetic", 4)
    assert (found.protocol.steps_per_epoch, found.protocol.epochs) == (100, 100)
    assert (found.window.steps, found.window.samples, found.samples_per_step) == (5, 20, 4)
    assert found.structure == {"parameters": 11181642, "classes": 10, "image_size": 32}
    # A forward pass of ResNet-18 at 224 pixels has 3.63 GFLOP; both gradients cost as much again.
    assert 2.8 < found.flops.per_sample / (3.63e9 / 49) < 3.0
    assert len({loss for _, loss in found.losses[:4]}) == 4
    assert found.parallel is None


@pytest.mark.parametrize(
    ("told", "outputs", "method"),
    [
        (
            {"precision": "amp-bf16", "profile": "tuned", "options": {"compile": False}},
            "bfloat16",
            "torch.autocast",
        ),
        (
            {"precision": "amp-fp16", "layout": "channels_last", "batch_size": 2},
            "float16",
            "torch.autocast, torch.amp.GradScaler",
        ),
    ],
)
def test_a_classifier_runs_in_the_precision_layout_and_profile_asked(told, outputs, method, tmp_path):
    found = run(tmp_path, tiny(**told)).measured.precision
    assert found.output_dtypes == {outputs: 21}
    assert found.method == method


def test_the_listed_models_are_those_that_the_libraries_build():
    code = "import timm, torchvision.models as m; print(*m.list_models(module=m), *timm.list_models())"
    assert library_models(ROOT) == set(printed(code)[-1].split())


@pytest.mark.whole
def test_a_tuned_classifier_is_compiled_before_its_window_and_never_in_it(tmp_path):
    found = run(tmp_path, tiny(profile="tuned", limit={"steps": 20})).measured
    assert found.phases[-1].name == "compile"
    assert max(found.step_us.values()) * 1e-6 < found.phases[-1].seconds


NAMES = """
import json
from functools import partial
import torch
import convnet as classifiers

told = {}
names = ("inception_v3", "resnet50", "resnet101", "efficientnet_b0", "efficientnet_b7", "timm/resnet26")
with torch.device("meta"):
    for name in names:
        model = classifiers.classifier(name, 1000).train()
        size = classifiers.image_size(name, model)
        loss = classifiers.summed_loss(model(torch.zeros(2, 3, size, size)), torch.zeros(2, dtype=torch.long))
        told[name] = [size, sum(weight.numel() for weight in model.parameters()), loss.dim()]
print(json.dumps(told))
"""


def test_the_study_s_models_are_found_with_the_sizes_they_were_made_for():
    # Parameters as the models' papers and packages give them; Inception's auxiliary classifier is in.
    assert json.loads(printed(NAMES)[-1]) == {
        "inception_v3": [299, 27161264, 0],
        "resnet50": [224, 25557032, 0],
        "resnet101": [224, 44549160, 0],
        "efficientnet_b0": [224, 5288548, 0],
        "efficientnet_b7": [600, 66347960, 0],
        "timm/resnet26": [224, 15995176, 0],
    }


THREADS = """
import json, threading
import torch
from torch import nn
from parts.numerics import precision
from parts.launcher import Place
from parts.training.parallel import spread
from parts.training.setting import Setting

class Threads(nn.Module):
    # As DataParallel has it: a thread enters autocast with the type that is torch's default.
    def __init__(self, module, device_ids):
        super().__init__()
        self.module = module
    def forward(self, images):
        def work():
            with torch.autocast("cpu", dtype=torch.float16):
                outputs.append(self.module(images))
        outputs = []
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return outputs[0]

nn.DataParallel = Threads
cpu, model = torch.device("cpu"), nn.Conv2d(3, 4, 3)
threads = spread(model, Setting(None, "amp-bf16", cpu, "dp", Place(), 2, {}))
with precision.rehearsal(model, cpu) as seen, precision.autocast("amp-bf16", cpu):
    threads(torch.randn(2, 3, 8, 8)).sum().backward()
print(json.dumps(seen))
"""


def test_a_thread_of_data_parallel_runs_in_the_trial_s_type_and_not_in_autocast_s_default():
    assert json.loads(printed(THREADS)[-1]) == {"bfloat16": 1}
