"""The workloads of Bhutani 2019, each trial a process of the cpu image's stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.workload_runner import DATA, Ended, printed, run, tiny_language_model, tiny_resnet

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """The language model in fp32, eight steps."""
    asked = tiny_language_model(limit={"steps": 8, "valid_batches": 2})
    return run(tmp_path_factory.mktemp("plain"), asked)


def test_a_trial_measures_whole_steps_and_its_window_is_their_sum(plain):
    found = plain.measured
    steps, waits = found.step_us.values(), found.input_us.values()
    assert found.window.steps == len(steps) == 8
    assert found.window.samples == 8 * found.samples_per_step == 8 * 2 * 4
    assert sum(steps) == pytest.approx(found.window.seconds * 1e6, rel=0.05, abs=2000)
    assert all(0 <= wait < step for wait, step in zip(waits, steps, strict=True))
    assert [step for step, _ in found.losses] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [step for step, _ in found.gradient_norms] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert all(0 < norm < 10 for _, norm in found.gradient_norms)


def test_a_trial_cut_short_says_so_beside_the_protocol_s_own_length(plain):
    protocol, epoch = plain.measured.protocol, plain.measured.epochs[0]
    assert (protocol.epochs, protocol.steps_per_epoch) == (30, -(-(2088628 // 2 - 1) // 4))
    assert (protocol.complete, protocol.stopped_by) == (False, "steps")
    assert (epoch.complete, epoch.steps, epoch.valid_batches) == (False, 8, 2)
    assert plain.measured.quality_name == "perplexity"
    assert plain.measured.test_quality is None


def test_a_trial_tells_its_steps_as_it_goes_and_its_setup_apart(plain):
    told = [us for event in plain.events if event["event"] == "steps" for us in event["us"]]
    assert told == list(plain.measured.step_us.values())
    stages = [event["stage"] for event in plain.events if event["event"] == "stage"]
    assert stages == ["setup", "data", "setup", "train", "valid", "checkpoint", "collect"]
    assert plain.events[-1] == {"event": "end"}
    phases = [phase.name for phase in plain.measured.phases]
    assert phases == ["import", "device", "data", "model", "first_step"]


def test_fp32_is_measured_as_ieee_and_a_language_model_counts_its_weights(plain):
    precision = plain.measured.precision
    assert {probe.reads_as for probe in precision.probes} == {"fp32-ieee"}
    assert precision.output_dtypes == {"float32": 2}
    weights = 2 * 33278 * 8 + 33278 + 2 * 4 * (8 * 8 + 8 * 8 + 8 + 8)
    assert plain.measured.structure["parameters"] == weights
    assert precision.parameter_dtypes == {"float32": weights}
    assert plain.measured.flops.per_sample == 6 * (2 * 4 * 8 * 16 + 8 * 33278)


def test_the_same_seed_gives_the_same_losses_and_another_gives_others(plain, tmp_path):
    again = run(tmp_path, tiny_language_model(limit={"steps": 8, "valid_batches": 2}))
    assert again.measured.losses == plain.measured.losses
    assert again.measured.epochs[0].quality == plain.measured.epochs[0].quality
    other = run(tmp_path, tiny_language_model(limit={"steps": 8, "valid_batches": 0}, seed=2))
    assert other.measured.losses != plain.measured.losses


@pytest.mark.parametrize(
    ("told", "reads_as", "weights", "outputs", "method", "scale"),
    [
        ({"precision": "amp-bf16"}, "bf16", "float32", "bfloat16", "torch.autocast", None),
        ({"precision": "fp16-master"}, "fp16", "float16", "float16", "own master weights", "static"),
        (
            {"precision": "fp16-master", "options": {"loss_scale": "dynamic"}},
            "fp16",
            "float16",
            "float16",
            "own master weights",
            "dynamic",
        ),
    ],
)
def test_a_language_model_runs_in_the_precision_asked(
    told, reads_as, weights, outputs, method, scale, tmp_path
):
    measured = run(tmp_path, tiny_language_model(**told)).measured
    found = measured.precision
    # A dynamic scale of our own drops steps at first.
    dropped = scale == "dynamic" and method == "own master weights"
    norms = [step for step, norm in measured.gradient_norms if 0 < norm < 10]
    assert norms == [1, 2, 3] or dropped
    assert {probe.reads_as for probe in found.probes} == {reads_as}
    assert list(found.parameter_dtypes) == [weights]
    assert found.output_dtypes == {outputs: 2}
    assert found.method == method
    assert (found.loss_scale and found.loss_scale.kind) == scale


HIGH_SCALE = """
from parts import trial as trial_part
from parts.numerics import update
import word_lm
update.FIRST_DYNAMIC_SCALE = 2.0**32
trial_part.main(word_lm.run)
"""


def test_a_dynamic_scale_drops_the_steps_that_overflow_and_says_how_many(tmp_path):
    asked = tiny_language_model(
        precision="fp16-master", options={"loss_scale": "dynamic"}, limit={"steps": 25, "valid_batches": 0}
    )
    scale = run(tmp_path, asked, code=HIGH_SCALE).measured.precision.loss_scale
    assert scale.first == 2.0**32
    assert scale.skipped_steps > 5
    assert scale.last == 2.0 ** (32 - scale.skipped_steps)


def test_cached_batches_are_many_and_never_validated(tmp_path):
    found = run(tmp_path, tiny_language_model(data_mode="cached")).measured
    assert (found.data.distinct_batches, found.data.looked_at_batches) == (3, 3)
    assert len({loss for _, loss in found.losses}) == 3
    assert found.epochs[0].valid_loss is None
    assert found.protocol.complete is False


def test_the_tensor_core_preset_pads_the_vocabulary(tmp_path):
    options = {"preset": "tensor-core"}
    found = run(tmp_path, tiny_language_model(options=options, data_mode="host")).measured
    assert found.structure["vocabulary"] == 33278
    assert found.structure["padded_vocabulary"] == 33280


def test_a_trial_whose_time_is_over_leaves_the_steps_it_measured(tmp_path):
    asked = tiny_language_model(limit={}, timeout_seconds=12.0)
    ended = run(tmp_path, asked)
    assert (ended.failed.reason, ended.failed.stage) == ("timeout", "train")
    assert sum(len(event["us"]) for event in ended.events if event["event"] == "steps") > 10
    progress = [event for event in ended.events if event["event"] == "progress"]
    assert progress[-1]["total"] == 30 * 261079


@pytest.mark.data
def test_the_real_text_is_learned(tmp_path):
    limit = {"steps": 20, "valid_batches": 2}
    asked = tiny_language_model(data="real", batch_size=20, sequence_length=35, limit=limit)
    found = run(tmp_path, asked, data=DATA).measured
    assert (found.protocol.steps_per_epoch, found.protocol.valid_batches) == (2984, 622)
    assert (found.data.source, found.data.train_items, found.data.valid_items) == ("real", 2088628, 217646)
    assert found.losses[0][1] == pytest.approx(10.41, abs=0.02)
    assert found.epochs[0].quality < 4000


WHOLE = """
from parts import trial as trial_part
from parts.inputs import datasets
import word_lm
datasets.WIKITEXT_2_TOKENS, datasets.WIKITEXT_2_TYPES = (480, 200, 200), 300
trial_part.main(word_lm.run)
"""


def test_a_whole_protocol_says_so_and_tests_the_weights_of_its_best_epoch(tmp_path):
    found = run(tmp_path, tiny_language_model(limit={}), code=WHOLE).measured
    assert (found.protocol.complete, found.protocol.stopped_by) == (True, "protocol")
    assert [epoch.index for epoch in found.epochs] == list(range(1, 31))
    assert all(epoch.complete and epoch.steps == 60 for epoch in found.epochs)
    assert found.window.steps == 1800
    assert len(found.losses) == 488
    assert [step for step, _ in found.losses[48:52]] == [49, 50, 51, 55]
    assert found.epochs[-1].train_loss < found.epochs[0].train_loss
    best = min(epoch.quality for epoch in found.epochs)
    assert found.test_quality == pytest.approx(best, rel=0.5)


def test_a_language_model_is_trained_for_the_epochs_that_are_asked_for(tmp_path):
    found = run(tmp_path, tiny_language_model(limit={}, options={"epochs": 2}), code=WHOLE).measured
    assert (found.protocol.epochs, len(found.epochs), found.protocol.complete) == (2, 2, True)
    assert found.test_quality is not None


def test_apex_is_asked_for_each_part_of_a_step():
    assert printed(FAKE_APEX) == [
        "apex FP16_Optimizer",
        "static_loss_scale 1.0 dynamic_loss_scale True",
        "dynamic_loss_args {'init_scale': 65536.0, 'scale_window': 1000}",
        "zero_grad",
        "backward",
        "clip_master_grads 0.25",
        "step at 5.0",
    ]


FAKE_APEX = """
from parts.numerics import update
import torch

class Fake:
    overflow, loss_scale = False, 8.0
    def __init__(self, inner, static_loss_scale, dynamic_loss_scale, dynamic_loss_args):
        self.inner, self.param_groups = inner, inner.param_groups
        self.told = f"static_loss_scale {static_loss_scale} dynamic_loss_scale {dynamic_loss_scale}"
        self.told += f"\\ndynamic_loss_args {dynamic_loss_args}"
    def zero_grad(self): print("zero_grad")
    def backward(self, loss): print("backward"); loss.backward()
    def clip_master_grads(self, norm): print("clip_master_grads", norm)
    def step(self): print("step at", self.param_groups[0]["lr"])

made = []
def apex(device):
    return lambda *told, **more: made.append(Fake(*told, **more)) or made[0]

update.apex_optimizer = apex
model = torch.nn.Linear(2, 1)
step, method, log = update.clipped_sgd("fp16-master", model, 0.25, "dynamic", torch.device("cpu"))
print(method); print(made[0].told)
step(model(torch.ones(1, 2)).sum(), 5.0)
assert log.facts()["first"] == 8.0
"""


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """ResNet-18 as published, images augmented by two workers on the host."""
    asked = tiny_resnet(data_mode="host", options={"workers": 2}, limit={"steps": 4, "valid_batches": 2})
    return run(tmp_path_factory.mktemp("resnet"), asked)


def test_a_resnet_as_published_is_the_study_s(resnet):
    found = resnet.measured
    assert (found.data.train_items, found.data.valid_items, found.data.weights) == (48000, 12000, "random")
    assert (found.protocol.steps_per_epoch, found.protocol.valid_batches) == (6000, 1500)
    assert found.structure["parameters"] == 11755684
    assert found.structure["trainable_parameters"] == 588772
    assert found.precision.output_dtypes == {"float32": 22}
    assert (found.window.steps, found.window.samples) == (4, 32)
    epoch = found.epochs[0]
    assert (epoch.steps, epoch.complete, epoch.valid_batches) == (4, False, 2)
    assert epoch.quality * 16 == pytest.approx(round(epoch.quality * 16))
    assert found.quality_name == "accuracy"


def test_a_resnet_s_smoothed_loss_is_the_moving_average_of_its_batches(resnet):
    moving = 0.0
    for _, loss in resnet.measured.losses:
        moving = 0.98 * moving + 0.02 * loss
    assert len(resnet.measured.losses) == 4
    smoothed = resnet.measured.epochs[0].smoothed_train_loss
    assert smoothed == pytest.approx(moving / (1 - 0.98**4), rel=1e-5)
    assert smoothed != pytest.approx(resnet.measured.epochs[0].train_loss, rel=1e-5)


def test_a_lead_in_is_one_epoch(tmp_path):
    asked = tiny_resnet(options={"workers": 2, "lead_in": True}, limit={"steps": 1, "valid_batches": 1})
    found = run(tmp_path, asked).measured
    assert (found.protocol.epochs, found.protocol.steps_per_epoch) == (1, 6000)
    assert "extra_epoch" not in {phase.name for phase in found.phases}


def test_one_epoch_of_thirty_follows_the_schedule_of_thirty(resnet, tmp_path):
    limit = {"epochs": 1, "steps": 4, "valid_batches": 2}
    limited = run(tmp_path, tiny_resnet(data_mode="host", options={"workers": 2}, limit=limit)).measured
    assert limited.losses == resnet.measured.losses
    assert limited.protocol.epochs == 30


def test_a_frozen_body_costs_twice_its_forward_pass_and_no_more(resnet):
    # The forward pass of ResNet-18 at 224 pixels has 3.63 GFLOP, at 32 pixels a forty-ninth of that.
    forward = 3.63e9 / 49
    assert 1.9 * forward < resnet.measured.flops.per_sample < 2.0 * forward


@pytest.mark.parametrize(
    ("told", "outputs", "weights", "method", "scale"),
    [
        (
            {"precision": "fp16-master", "data_mode": "cached"},
            "float16",
            {"float16": 11743012, "float32": 12672},
            "fastai NonNativeMixedPrecision",
            512.0,
        ),
        (
            {"precision": "amp-bf16"},
            "bfloat16",
            {"float32": 11755684},
            "fastai MixedPrecision, torch.autocast",
            None,
        ),
        (
            {"precision": "amp-fp16", "data_mode": "cached"},
            "float16",
            {"float32": 11755684},
            "fastai MixedPrecision, torch.autocast, torch.amp.GradScaler",
            65536.0,
        ),
    ],
)
def test_a_resnet_runs_in_the_precision_asked(told, outputs, weights, method, scale, tmp_path):
    found = run(tmp_path, tiny_resnet(protocol="fair/1", **told)).measured
    assert (found.data.train_items, found.data.valid_items) == (50000, 10000)
    assert found.precision.output_dtypes == {outputs: 22}
    assert found.precision.parameter_dtypes == weights
    assert found.precision.method == method
    assert (found.precision.loss_scale and found.precision.loss_scale.first) == scale
    assert (found.data.distinct_batches, found.data.looked_at_batches) == (3, 3)
    norms = dict(found.gradient_norms)
    # torch's scale of 65,536 may overflow at first, and no such step is counted.
    assert set(norms) <= {1, 2, 3} if scale == 65536.0 else list(norms) == [1, 2, 3]
    # Some 30; one of bf16 may be five times that, and one with the loss scale still on it 500 times.
    assert all(0 < norm < 1000 for norm in norms.values())


def test_pretrained_weights_that_are_not_there_are_named(tmp_path):
    ended = run(tmp_path, tiny_resnet(weights="pretrained"))
    assert (ended.failed.stage, ended.failed.reason) == ("data", "bad-data")
    assert "'weights/resnet18-f37072fd.pth' is not in the data folder" in ended.failed.message
    assert not list(Path(tmp_path / "out").glob("measurement*"))
