"""Study 003's small networks in each framework that has a stack here: the same scores, the same first steps.

What is right was computed once by PyTorch in float64; `golden/small_networks_reference.json` has it. In fp32
scores and first losses agree with it to 1e-5. Adam divides by the gradient's own size, so errors grow with
each step: later losses agree to 1 in 1,000. Dropout is left out, for its numbers are each framework's own.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from harness.record import Measurement
from tests.helpers.checks import golden
from tests.helpers.workload_runner import PYTHON, WORKLOADS, need_stack, need_torch, ran, run, trial

STEPS = 3
TOLERANCE = 1e-5
AFTER_A_STEP = 1e-3
GOLDEN = Path(__file__).parents[1] / "golden" / "small_networks_reference.json"
PARAMETERS = {"cifar_cnn": 3_441_592, "imdb_gru": 3_818_302}
FOLDERS = {"tensorflow": "tensorflow2", "mxnet": "gluon", "chainer": "chainer7"}
NAMES = {
    "tensorflow": "TensorFlow",
    "keras-tensorflow": "Keras",
    "mxnet-gluon": "MXNet, Gluon",
    "chainer": "Chainer",
}

STACKS = [
    pytest.param(
        stack, framework, workload, trainer, marks=getattr(pytest.mark, stack), id=f"{framework}-{workload}"
    )
    for stack, framework, workload, trainer in (
        ("tensorflow", "tensorflow", "cifar_cnn", "LowLevel"),
        ("tensorflow", "keras-tensorflow", "cifar_cnn", "KerasTrainer"),
        ("mxnet", "mxnet-gluon", "cifar_cnn", "CnnTrainer"),
        ("chainer", "chainer", "cifar_cnn", "ChainerTrainer"),
        ("tensorflow", "tensorflow", "imdb_gru", "LowLevel"),
        ("tensorflow", "keras-tensorflow", "imdb_gru", "KerasTrainer"),
        ("mxnet", "mxnet-gluon", "imdb_gru", "GruTrainer"),
    )
]

GIVEN = """
import dataclasses, importlib, json, sys
import numpy as np
from parts.small import cnn, gru, terms
framework, workload, trainer = sys.argv[1:]
work = dict(cifar_cnn=cnn, imdb_gru=gru)[workload].WORK
stream = np.random.RandomState(1)
targets = stream.randint(0, work.classes, 8).astype(np.int32)
if workload == "cifar_cnn":
    inputs = stream.random_sample((8, 3, 32, 32)).astype(np.float32)
else:
    inputs = stream.randint(0, 30000, (8, 150)).astype(np.int32)
    inputs[:4, 60:] = 0
asked = terms.terms_of(work, framework, "fair/1", 8, 1)
asked = dataclasses.replace(asked, dropouts=(0.0, 0.0, 0.0))
"""

REFERENCE = f"""
import torch
from parts.small import in_torch
module = importlib.import_module(workload)
model = module.network((0.0, 0.0, 0.0)) if workload == "cifar_cnn" else module.Network()
in_torch.load(model, work.neutral(), module.NAMES)
if trainer == "double":
    model = model.double()
x = torch.from_numpy(inputs)
x = x.double() if trainer == "double" and x.is_floating_point() else x
y = torch.from_numpy(targets).long()
scores = model.eval()(x).tolist()
model.train()
optimiser = module.optimiser(model)
losses = []
for _ in range({STEPS}):
    optimiser.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimiser.step()
    losses.append(loss.item())
print(json.dumps(dict(scores=scores, losses=losses)))
"""

FOUND = f"""
folder = {FOLDERS!r}[{{"keras-tensorflow": "tensorflow", "mxnet-gluon": "mxnet"}}.get(framework, framework)]
trainer = getattr(importlib.import_module(folder + "." + workload), trainer)(asked)
trainer.load(work.neutral())
x = trainer.arranged(inputs)
before = trainer.scores(x).tolist()
losses = [trainer.step(x, targets) for _ in range({STEPS})]
losses = [loss.asscalar() if hasattr(loss, "asscalar") else getattr(loss, "array", loss) for loss in losses]
trainer.load(work.neutral())
print(json.dumps(dict(scores=before, again=trainer.scores(x).tolist(), losses=list(map(float, losses)),
                      parameters=trainer.parameters())))
"""


def told(python: str, script: str, *arguments: str) -> dict[str, Any]:
    environ = {"PYTHONPATH": str(WORKLOADS), "PYTHONWARNINGS": "ignore"}
    done = ran("-c", GIVEN + script, *arguments, python=python, environ=environ)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def flat(rows: list[list[float]]) -> list[float]:
    return [value for row in rows for value in row]


def is_right(found: dict[str, Any], workload: str) -> None:
    right = json.loads(GOLDEN.read_text())[workload]
    assert flat(found["scores"]) == pytest.approx(flat(right["scores"]), abs=TOLERANCE)
    assert found["losses"][0] == pytest.approx(right["losses"][0], abs=TOLERANCE)
    assert found["losses"][1:] == pytest.approx(right["losses"][1:], rel=AFTER_A_STEP)
    assert right["losses"][0] - right["losses"][-1] > 10 * AFTER_A_STEP * right["losses"][0]


@pytest.mark.torch
def test_what_is_right_is_what_pytorch_computes_in_float64():
    need_torch()
    found = {name: told(PYTHON, REFERENCE, "pytorch", name, "double") for name in PARAMETERS}
    rounded = {
        name: {
            "scores": [[round(value, 9) for value in row] for row in each["scores"]],
            "losses": [round(loss, 9) for loss in each["losses"]],
        }
        for name, each in found.items()
    }
    golden(GOLDEN.name, json.dumps(rounded, indent=1) + "\n")


@pytest.mark.torch
@pytest.mark.parametrize("workload", PARAMETERS)
def test_pytorch_computes_and_learns_in_fp32_what_float64_does(workload):
    need_torch()
    is_right(told(PYTHON, REFERENCE, "pytorch", workload, "single"), workload)


@pytest.mark.parametrize(("stack", "framework", "workload", "trainer"), STACKS)
def test_a_framework_computes_and_learns_what_the_others_do(stack, framework, workload, trainer):
    found = told(need_stack(stack), FOUND, framework, workload, trainer)
    is_right(found, workload)
    assert flat(found["again"]) == flat(found["scores"])
    assert found["parameters"] == PARAMETERS[workload]


def trained(
    stack: str, workload: str, at: Path, monkeypatch: pytest.MonkeyPatch, **asked: Any
) -> Measurement:
    at.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(WORKLOADS))
    given = {"model": workload[-3:], "batch_size": 64, "data_mode": "host", "timeout_seconds": 280, **asked}
    script = WORKLOADS / FOLDERS.get(stack, "") / f"{workload}.py"
    python = need_stack(stack) if stack in FOLDERS else PYTHON
    return run(at, trial(workload, **given), script=script, python=python).measured


# 150 steps written out are a graph that takes long to make; the test above has it, too.
CONTRACTS = [
    pytest.param(*each.values, marks=[*each.marks, pytest.mark.whole], id=each.id)
    if each.id == "tensorflow-imdb_gru"
    else each
    for each in STACKS
]


@pytest.mark.parametrize(("stack", "framework", "workload", "trainer"), CONTRACTS)
def test_a_trial_keeps_the_contract_as_published(stack, framework, workload, trainer, tmp_path, monkeypatch):
    measured = trained(stack, workload, tmp_path / "out", monkeypatch, options={"framework": framework})
    assert measured.structure["parameters"] == PARAMETERS[workload]
    assert measured.framework is not None and measured.framework.name == NAMES[framework]
    assert (measured.window.samples, measured.protocol.stopped_by, measured.notes) == (192, "steps", ())
    assert measured.epochs[0].quality is not None and (measured.epochs[0].quality * 64) % 1 == 0
    assert {probe.reads_as for probe in measured.precision.probes} == {"fp32-ieee"}
    assert measured.losses[0][1] == pytest.approx(math.log(measured.structure["classes"]), abs=0.15)
    # Keras alone trains on an epoch's last batch too.
    items, partial = measured.data.train_items, framework == "keras-tensorflow"
    assert items and measured.protocol.steps_per_epoch == items // 64 + partial
    assert not measured.data.weights_sha256


@pytest.mark.whole
@pytest.mark.torch
@pytest.mark.tensorflow
def test_frameworks_see_the_same_images_in_the_same_order(tmp_path, monkeypatch):
    need_torch()
    asked = {"protocol": "fair/1", "limit": {"steps": 2, "valid_batches": 1}}
    found = [
        trained(stack, "imdb_gru", tmp_path / stack, monkeypatch, options={"framework": framework}, **asked)
        for stack, framework in (("tensorflow", "tensorflow"), ("torch", "pytorch"))
    ]
    assert found[0].data.weights_sha256 and found[0].data.weights_sha256 == found[1].data.weights_sha256
    losses = [[loss for _, loss in each.losses] for each in found]
    assert losses[0] == pytest.approx(losses[1], rel=AFTER_A_STEP)
    assert found[0].epochs[0].valid_loss == pytest.approx(found[1].epochs[0].valid_loss, rel=AFTER_A_STEP)


@pytest.mark.mxnet
def test_another_device_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(WORKLOADS))
    asked = trial(
        "cifar_cnn",
        model="cnn",
        batch_size=64,
        data_mode="host",
        gpus=2,
        options={"framework": "mxnet-gluon"},
    )
    ended = run(tmp_path, asked, script=WORKLOADS / "gluon" / "cifar_cnn.py", python=need_stack("mxnet"))
    assert ended.failed.reason == "no-device" and "runs on one CPU" in ended.failed.message
