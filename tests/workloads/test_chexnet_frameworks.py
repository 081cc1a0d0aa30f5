"""Study 003's network in each framework that has a stack here: the same outputs, the same first steps.

What is right was computed once by torchvision's network in float64; `golden/chexnet_reference.json` has
it. In fp32 outputs agree with it to 1e-5 (they are of the order of 1), and so does the loss of the first
step. Adam divides by the gradient's own size, so errors grow with each step: later losses agree to 1 in
1,000.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.record import Measurement
from tests.helpers.checks import golden
from tests.helpers.workload_runner import PYTHON, WORKLOADS, Ended, need_stack, need_torch, run, trial

IMAGES = 2
STEPS = 3
TOLERANCE = 1e-5
AFTER_A_STEP = 1e-3
GOLDEN = Path(__file__).parents[1] / "golden" / "chexnet_reference.json"

STACKS = [pytest.param("mxnet", "gluon", "GluonTrainer", marks=pytest.mark.mxnet, id="mxnet")]
STACKS += [pytest.param("chainer", "chainer7", "ChainerTrainer", marks=pytest.mark.chainer, id="chainer")]

GIVEN = f"""
import json, sys
import numpy as np
from parts.chexnet import data, network, protocol, weights
terms = protocol.Terms("chainer", protocol.FAIR, "fp32-ieee", {IMAGES}, 1, "single", 224, 4)
images, labels = data.batch(range({IMAGES}), terms)
"""

REFERENCE = f"""
import torch, torchvision
net = torchvision.models.densenet121(num_classes=14)
names = dict(scale="weight", shift="bias", mean="running_mean", variance="running_var")
state = {{}}
owners = [name for name, module in net.named_modules() if hasattr(module, "weight")]
for owner, layer in zip(owners, network.layers(), strict=True):
    for name, array in weights.neutral().items():
        if name.rsplit("/", 1)[0] == layer.name:
            part = name.rsplit("/", 1)[1]
            state[owner + "." + names.get(part, part)] = torch.from_numpy(array)
missing = net.load_state_dict(state, strict=False).missing_keys
assert all(name.endswith("num_batches_tracked") for name in missing), missing
net = net.double().eval()
x, y = (torch.from_numpy(array).double() for array in (images, labels))
outputs = net(x).tolist()
net.train()
adam = torch.optim.Adam(net.parameters(), terms.learning_rate, protocol.BETAS)
losses = []
for _ in range({STEPS}):
    adam.zero_grad()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(net(x), y)
    loss.backward()
    adam.step()
    losses.append(loss.item())
print(json.dumps(dict(outputs=outputs, losses=losses)))
"""

FOUND = f"""
from importlib import import_module
trainer = getattr(import_module(sys.argv[1] + ".chexnet"), sys.argv[2])(terms)
trainer.load(weights.neutral())
before = trainer.outputs(images)
losses = [trainer.step(images, labels) for _ in range({STEPS})]
losses = [float(loss.asscalar() if hasattr(loss, "asscalar") else loss.array) for loss in losses]
trainer.load(weights.neutral())
again = trainer.outputs(images)
print(json.dumps(dict(outputs=before.tolist(), again=again.tolist(), losses=losses,
                      parameters=[trainer.parameters(), network.parameters()])))
"""


def told(python: str, script: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [python, "-B", "-W", "ignore", "-c", GIVEN + script, *arguments],
        env={**os.environ, "PYTHONPATH": str(WORKLOADS), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def flat(rows: list[list[float]]) -> list[float]:
    return [value for row in rows for value in row]


@pytest.mark.torch
def test_what_is_right_is_what_torchvision_s_network_computes_in_float64():
    need_torch()
    found = told(PYTHON, REFERENCE)
    rounded = {
        "outputs": [[round(value, 9) for value in row] for row in found["outputs"]],
        "losses": [round(loss, 9) for loss in found["losses"]],
    }
    golden(GOLDEN.name, json.dumps(rounded, indent=1) + "\n")


@pytest.mark.parametrize(("stack", "folder", "trainer"), STACKS)
def test_a_framework_computes_and_learns_what_the_others_do(stack: str, folder: str, trainer: str):
    found = told(need_stack(stack), FOUND, folder, trainer)
    right = json.loads(GOLDEN.read_text())
    assert found["parameters"] == [6_968_206, 6_968_206]
    assert flat(found["outputs"]) == pytest.approx(flat(right["outputs"]), abs=TOLERANCE)
    assert flat(found["again"]) == flat(found["outputs"])
    assert found["losses"][0] == pytest.approx(right["losses"][0], abs=TOLERANCE)
    assert found["losses"][1:] == pytest.approx(right["losses"][1:], rel=AFTER_A_STEP)
    assert right["losses"][0] - right["losses"][1] > 10 * AFTER_A_STEP * right["losses"][0]


def trained(stack: str, folder: str, at: Path, monkeypatch: pytest.MonkeyPatch, **given: Any) -> Ended:
    monkeypatch.setenv("PYTHONPATH", str(WORKLOADS))
    at.mkdir()
    asked = {"model": "densenet121", "batch_size": 2, "data_mode": "host", "data": "synthetic", **given}
    script = WORKLOADS / folder / "chexnet.py"
    return run(at, trial("chexnet", **asked), script=script, python=need_stack(stack))


@pytest.mark.parametrize(("stack", "folder", "trainer"), STACKS)
def test_a_trial_keeps_the_contract_in_either_protocol(stack, folder, trainer, tmp_path, monkeypatch):
    found: dict[str, Measurement] = {}
    for protocol in ("fair/1", "published/1"):
        at = tmp_path / protocol.partition("/")[0]
        ended = trained(stack, folder, at, monkeypatch, protocol=protocol, limit={"steps": 2})
        found[protocol] = ended.measured
        assert (found[protocol].workload, found[protocol].protocol_name) == ("chexnet", protocol)
        assert found[protocol].versions[stack] == found[protocol].packages[stack]
        assert found[protocol].precision.output_dtypes == {"float32": 121}
        assert {probe.reads_as for probe in found[protocol].precision.probes} == {"fp32-ieee"}
        assert found[protocol].window.samples == 4
        assert found[protocol].protocol.stopped_by == "steps"
        assert "scaled down: 2 images a device and step, of 64" in found[protocol].notes
        assert sum(found[protocol].step_us.values()) * 1e-6 == pytest.approx(
            found[protocol].window.seconds, rel=0.05
        )
    constant = stack == "mxnet"
    assert found["fair/1"].data.distinct_batches == 4
    assert found["published/1"].data.distinct_batches == (1 if constant else 4)
    assert found["published/1"].data.sha256 != found["fair/1"].data.sha256
    assert found["published/1"].losses[0][1] != found["fair/1"].losses[0][1]


@pytest.mark.parametrize(("stack", "folder", "trainer"), STACKS)
def test_a_second_device_is_refused_by_name(stack, folder, trainer, tmp_path, monkeypatch):
    ended = trained(stack, folder, tmp_path / "two", monkeypatch, gpus=2, protocol="fair/1")
    assert ended.failed.reason == "no-device" and "runs on one CPU" in ended.failed.message


@pytest.mark.mxnet
def test_gluon_s_zoo_refuses_images_that_its_last_window_does_not_fit(tmp_path, monkeypatch):
    ended = trained("mxnet", "gluon", tmp_path / "small", monkeypatch, image_size=64, protocol="fair/1")
    assert ended.failed.reason == "unsupported" and "224 px alone" in ended.failed.message
