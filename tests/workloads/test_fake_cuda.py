"""Each workload's branch for a GPU, to a whole measurement on a fake CUDA. Its figures mean nothing.

What it cannot show: kernels, cuDNN, NCCL, torch.compile, memory, or a device that runs beside the host.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.record import TrialSpec
from tests.fake_cuda.fake_cuda import LIMIT
from tests.helpers import TESTS
from tests.helpers.workload_runner import (
    FRAMEWORKS,
    PYTHON,
    Ended,
    card,
    run,
    tiny_ceiling,
    tiny_classifier,
    tiny_decoder,
    tiny_language_model,
    tiny_mlp,
    tiny_mnist,
    tiny_resnet,
    tiny_resnet44,
)

FAKE = str(TESTS / "fake_cuda" / "python")
FRAMEWORKS.setdefault(FAKE, FRAMEWORKS[PYTHON])

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def _two_cards_are_visible(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")


def on_fake(folder: Path, asked: TrialSpec, **more: str) -> Ended:
    return run(folder, asked, python=FAKE, **more)


STUDIES = (
    *((tiny_language_model, precision) for precision in ("fp32-tf32", "amp-fp16", "amp-bf16", "fp16-master")),
    *((tiny_resnet, precision) for precision in ("amp-fp16", "fp16-master")),
    (tiny_mlp, "amp-fp16"),
    (tiny_mnist, "amp-fp16"),
    (tiny_resnet44, "fp32-ieee"),
    *((tiny_classifier, precision) for precision in ("fp32-ieee", "amp-bf16")),
)


@pytest.mark.parametrize(
    ("asked", "precision"), STUDIES, ids=[f"{make.__name__}-{label}" for make, label in STUDIES]
)
def test_a_study_is_measured_on_a_gpu_by_the_device_s_own_clock(tmp_path, asked, precision):
    of_study = {"options": {"virtual_ranks": 3, "train_images": 100}} if asked is tiny_resnet44 else {}
    found = on_fake(tmp_path, asked(device="cuda", precision=precision, **of_study)).measured
    assert (found.device.kind, found.step_clock, found.device.simulated) == ("cuda", "device", True)
    assert found.window.steps > 0
    assert found.memory.allocated_peak_bytes == 2**30


@pytest.mark.parametrize("parallel", ["dp", "ddp", "each"])
def test_two_cards_train_together_or_each_for_itself(tmp_path, parallel):
    asked = tiny_classifier(device="cuda", gpus=2, options={"parallel": parallel})
    found = on_fake(tmp_path, asked).measured
    assert (found.device.count, found.parallel) == (2, parallel)


@pytest.mark.parametrize("model", ["gemm", "copy"])
def test_a_ceiling_is_measured_on_a_gpu(tmp_path, model):
    assert on_fake(tmp_path, tiny_ceiling(model=model, device="cuda")).measured.device.kind == "cuda"


ARITHMETIC = ("fp32-ieee", "tf32", "fp16", "bf16", "fp8")


def test_a_card_is_checked_in_every_arithmetic_over_its_link_and_in_its_memory(tmp_path):
    found = on_fake(tmp_path, card(device="cuda", precision="pure-fp16")).measured
    checked = found.card
    assert (found.step_clock, found.device.simulated) == ("device", True)
    assert {replay.arithmetic for replay in checked.replays} == set(ARITHMETIC)
    assert {replay.differing for replay in checked.replays} == {0}
    assert set(found.ceilings) == {f"gemm_{arithmetic}_tflops" for arithmetic in ARITHMETIC} | {
        "copy_gb_per_second",
        "host_to_device_pinned_gb_per_second",
        "device_to_host_pinned_gb_per_second",
    }
    names = {phase.name for phase in found.phases}
    assert {"product fp8", "replay bf16", "copy", "device-to-host", "memory pattern"} < names


@pytest.mark.parametrize(("batch_size", "fits"), [(16, False), (4, True)])
def test_a_batch_that_does_not_fit_fails_by_that_name(tmp_path, monkeypatch, batch_size, fits):
    precise = {"precision": "amp-fp16", "layout": "channels_last"}
    asked = tiny_classifier(device="cuda", batch_size=batch_size, **precise)
    monkeypatch.setenv(LIMIT, "120000")
    ended = on_fake(tmp_path, asked)
    assert (ended.measured.window.steps if fits else ended.failed.reason) == (5 if fits else "out-of-memory")


def test_a_compiled_decoder_is_compiled_on_a_gpu_before_its_window(tmp_path):
    asked = tiny_decoder(device="cuda", precision="amp-bf16", options={"compile": True}, limit={"steps": 5})
    found = on_fake(tmp_path, asked).measured
    (compiling,) = (phase.seconds for phase in found.phases if phase.name == "compile")
    assert (found.step_clock, found.window.steps) == ("device", 5)
    assert found.window.seconds < compiling


def test_a_card_that_is_not_there_is_no_device(tmp_path):
    failed = on_fake(tmp_path, tiny_classifier(device="cuda", gpus=3, options={"parallel": "ddp"})).failed
    assert failed.reason == "no-device"
