"""What Karmanov 2018's network is in every framework: terms, weights, data and operations, without any of
them."""

from __future__ import annotations

import hashlib
import json
import struct
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers.workload_runner import module

network = module("parts.chexnet.network")
synthetic = module("parts.chexnet.synthetic")
protocol = module("parts.chexnet.protocol")
arithmetic = module("parts.numerics.arithmetic")
step_clock = module("parts.timing.step_clock")
trial = module("parts.trial")


def terms(framework: str = "pytorch", *, fair: bool = False, **told: Any) -> Any:
    variant = protocol.FAIR if fair else protocol.VARIANTS[framework]
    given = {"batch_size": 2, "devices": 1, "parallel": "dp", "image_size": 8, **told}
    return protocol.Terms(framework, variant, "fp32-ieee", **given)


def test_the_network_has_the_published_body_and_the_head_of_fourteen():
    of_1000_classes = 7_978_856
    body = of_1000_classes - 1000 * 1025
    assert network.parameters() == body + 14 * 1025 == 6_968_206
    assert sum(isinstance(layer, network.Convolution) for layer in network.layers()) == 120


def test_the_weights_are_those_of_one_safetensors_file_whose_hash_is_asserted(monkeypatch):
    arrays = network.neutral_weights()
    content = network.safetensors_file(arrays)
    assert hashlib.sha256(content).hexdigest() == network.WEIGHTS_SHA256
    (length,) = struct.unpack("<Q", content[:8])
    header, numbers = json.loads(content[8 : 8 + length]), content[8 + length :]
    assert header.keys() == arrays.keys()
    for name, array in arrays.items():
        first, last = header[name]["data_offsets"]
        assert np.array_equal(np.frombuffer(numbers[first:last], "<f4").reshape(array.shape), array)
    monkeypatch.setattr(network, "WEIGHTS_SEED", 122)
    with pytest.raises(trial.Failed, match="where e8a3501838cc"):
        network.neutral_weights()


def test_the_same_images_come_whatever_the_number_of_devices():
    one = synthetic.batches(terms(fair=True, batch_size=4))
    two = synthetic.batches(terms(fair=True, batch_size=2, devices=2))
    assert synthetic.sha256(one) == synthetic.sha256(two)
    assert synthetic.sha256(one) != synthetic.sha256(synthetic.batches(terms(batch_size=4)))
    images, labels = (np.concatenate(part) for part in zip(*one, strict=True))
    assert images.dtype == labels.dtype == np.float32
    assert len({image.tobytes() for image in images}) == len(images) == 16
    assert 0 <= images.min() < 0.01 and 0.99 < images.max() <= 1


def test_the_fair_labels_have_both_classes_in_every_column():
    labels = np.concatenate([labels for _, labels in synthetic.batches(terms(fair=True, batch_size=4))])
    assert set(labels.ravel()) == {0.0, 1.0}
    assert ((labels.mean(axis=0) > 0) & (labels.mean(axis=0) < 1)).all()


@pytest.mark.parametrize(
    ("framework", "images", "labels", "rate"),
    [
        ("pytorch", "uniform", "uniform", 4e-4),
        ("tensorflow", "uniform", "uniform", 4e-4),
        ("keras-tensorflow", "uniform", "uniform", 4e-4),
        ("mxnet-gluon", 1.0, 1.0, 4e-4),
        ("chainer", "uniform", 0.0, 1e-4),
    ],
)
def test_each_framework_s_published_manner_is_that_of_its_notebook(framework, images, labels, rate):
    asked = terms(framework, devices=4)
    assert asked.learning_rate == pytest.approx(rate)
    for array, kind in zip(synthetic.batches(asked)[0], (images, labels), strict=True):
        if kind == "uniform":
            assert len(set(array.ravel())) > 100
        else:
            assert set(array.ravel()) == {kind}


def test_an_epoch_has_the_study_s_steps():
    steps = [terms(batch_size=64, devices=devices).steps_per_epoch for devices in (1, 4)]
    assert steps == [1364, 341]


def asking(frameworks: tuple[str, ...] = ("tensorflow", "keras-tensorflow"), **told: Any) -> Any:
    reads_files = told.pop("reads_files", False)
    variant = {
        "model": "densenet121",
        "data_mode": "host",
        "profile": "default",
        "layout": "contiguous",
        "precision": "fp32-ieee",
        "batch_size": 4,
        "gpus": 1,
        "image_size": None,
        "options": told.pop("options", {}),
    }
    asked = trial.TrialProcess.__new__(trial.TrialProcess)
    asked.variant, asked.asked = {**variant, **told}, {"protocol": told.pop("protocol", "fair/1")}
    return protocol.terms(asked, dict.fromkeys(frameworks, ("dp",)), reads_files=reads_files)


def test_a_scaled_down_trial_says_so_in_its_notes():
    asked = asking(image_size=64, options={"framework": "keras-tensorflow"})
    assert (asked.framework, asked.variant) == ("keras-tensorflow", protocol.FAIR)
    assert asked.notes == [
        "scaled down: 4 images a device and step, of 64",
        "scaled down: images of 64 px, of 224",
    ]
    assert asking(batch_size=64).notes == []


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"options": {"framework": "chainer"}}, "there are: keras-tensorflow, tensorflow"),
        ({"options": {"parallel": "ddp"}}, "parallel 'ddp' is not known; there are: dp"),
        ({"options": {"data": "files"}}, "data 'files' is not known"),
        ({"protocol": "other/1"}, "protocol 'other/1' is not known"),
        ({"precision": "amp-fp16"}, "precision 'amp-fp16' is not known"),
    ],
)
def test_what_a_workload_does_not_have_is_refused_by_name(told, words):
    with pytest.raises(trial.Failed, match=words):
        asking(**told)


@pytest.mark.parametrize(
    ("rounded", "reads_as"), [(np.float32, "fp32-ieee"), (np.float16, "tf32")], ids=["fp32", "ten-bit"]
)
def test_probes_tell_an_arithmetic_by_its_error(rounded, reads_as):
    def product(left: Any, right: Any) -> Any:
        return left.astype(rounded).astype(np.float32) @ right.astype(rounded).astype(np.float32)

    def convolution(images: Any, kernels: Any) -> Any:
        halves = (half.astype(rounded).astype(np.float64) for half in (images, kernels))
        return arithmetic._convolution(*halves).astype(np.float32)

    found = arithmetic.probes({"matmul": product, "convolution": convolution})
    assert [probe["reads_as"] for probe in found] == [reads_as, reads_as]


def test_a_step_that_outlasts_the_limit_of_seconds_is_the_only_one_and_one_batch_validates_it(monkeypatch):
    now = [0]
    monkeypatch.setattr(step_clock.time, "perf_counter_ns", lambda: now[0])
    for step_seconds, steps, batches in ((25, 1, 1), (4, 3, 7)):
        told = SimpleNamespace(limit={"seconds": 12}, event=lambda *given, **more: None)
        clock = step_clock.StepClock(told, steps_per_epoch=50, epochs=2)
        clock.start()
        while not clock.limit_reached():
            clock.ready()
            now[0] += step_seconds * 10**9
            clock.step(1.0, 4)
        assert clock.limit_reached() == "seconds"
        assert clock.stop()["steps"] == steps
        assert clock.valid_batches(7) == batches
        assert clock.valid_batches(0) == 0


def test_a_clock_without_torch_waits_around_a_segment_and_reads_losses_at_its_end():
    calls: list[Any] = []
    told = SimpleNamespace(limit={"steps": 3}, event=lambda *given, **more: None)
    clock = step_clock.StepClock(
        told,
        steps_per_epoch=5,
        epochs=2,
        synchronise=lambda: calls.append("wait"),
        values=lambda losses: calls.append(list(losses)) or [2.0 for _ in losses],
        reads_freely=False,
    )
    clock.start()
    while not clock.limit_reached():
        clock.ready(np.arange(16.0).reshape(4, 4))
        clock.step(f"loss {len(clock.step_us) + 1}", 4)
    epoch = clock.stop()
    assert calls == ["wait", "wait", ["loss 1", "loss 2", "loss 3"]]
    assert (epoch["steps"], epoch["train_loss"], epoch["complete"]) == (3, 2.0, False)
    series = clock.series()
    assert (series["step_clock"], series["window"]["samples"]) == ("host", 12)
    assert series["memory"]["process_peak_bytes"] > 10**7
    assert clock.batches() == {"distinct_batches": 1, "looked_at_batches": 3}
