"""The workloads of tensorcore 2022: its two networks, its arithmetic of memory, and who waits for whom."""

from __future__ import annotations

import pytest

from tests.helpers.workload_runner import run, tiny_mlp, tiny_mnist

pytestmark = pytest.mark.torch


def peak_bytes(width, batch_size):
    """The peak that fp32 training needs in CUDA's allocator, which rounds up to 512 bytes, by arithmetic."""
    layers, batches = 3, 50
    weight, bias, values, one = (
        -(-4 * count // 512) * 512 for count in (width**2, width, batch_size * width, 1)
    )
    # It is reached in the backward pass of the last layer, with the new gradients of its weight and bias, the
    # loss and its gradient, and `layers` + 2 tensors of a batch's size: what was kept, gradients passed on.
    return 2 * (batches * values + layers * (weight + bias) + one) + weight + bias + (layers + 2) * values


def test_the_published_peak_is_what_the_arithmetic_gives():
    data, parameters, activation = 838_860_800, 201_375_744, 8_388_608
    assert data == 2 * 50 * 512 * 4096 * 4
    assert parameters == 3 * (4096 * 4096 + 4096) * 4
    assert 8 * activation == 4096 * 4096 * 4, "one weight's gradient is eight of the thirteen"
    assert peak_bytes(4096, 512) == data + 2 * parameters + 13 * activation + 17_408 == 1_350_681_600


@pytest.mark.parametrize(("width", "batch_size"), [(512, 64), (256, 128)])
def test_on_a_cpu_the_tensors_of_the_recipe_take_what_the_arithmetic_gives(width, batch_size, tmp_path):
    asked = tiny_mlp(options={"width": width}, batch_size=batch_size, limit={"steps": 2})
    memory = run(tmp_path, asked).measured.memory
    predicted = peak_bytes(width, batch_size)
    # A CPU's allocator does not round, so it is below by the two 512-byte blocks of a loss and its gradient.
    assert predicted - 1024 < memory.allocated_peak_bytes <= predicted
    assert memory.process_peak_bytes > memory.allocated_peak_bytes


def test_the_recipe_runs_as_published_and_counts_what_it_does(tmp_path):
    found = run(tmp_path, tiny_mlp(options={"width": 128})).measured
    assert (found.window.steps, found.window.samples) == (150, 150 * 8)
    assert (found.protocol.complete, found.protocol.stopped_by) == (True, "protocol")
    assert [epoch.steps for epoch in found.epochs] == [50, 50, 50]
    assert "first_step" not in {phase.name for phase in found.phases}
    assert found.structure["parameters"] == 3 * (128 * 128 + 128)
    # Products: three forward, three for weights, and two for inputs, since data needs no gradient.
    assert found.flops.per_sample == 8 * 2 * 128 * 128
    assert (found.data.distinct_batches, found.data.looked_at_batches) == (16, 16)
    assert found.notes == ("scaled down: width 128 (published 4096), batch 8 (published 512)",)


def test_the_recipe_warmed_rehearses_first_and_is_long(tmp_path):
    asked = tiny_mlp(protocol="warmed/1", limit={"steps": 60}, precision="amp-fp16")
    found = run(tmp_path, asked).measured
    assert found.phases[-1].name == "first_step"
    assert (found.protocol.steps_per_epoch, found.protocol.epochs) == (1000, 100)
    assert (found.window.steps, found.protocol.stopped_by) == (60, "steps")
    assert found.precision.output_dtypes == {"float16": 3}
    scale = found.precision.loss_scale
    assert (scale.first, scale.last * 2**scale.skipped_steps) == (65536.0, 65536.0)


def test_warming_changes_no_value_that_is_computed(tmp_path):
    losses = [
        run(tmp_path, tiny_mlp(protocol=protocol, limit={"steps": 5})).measured.losses
        for protocol in ("published/1", "warmed/1")
    ]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("mode", ["host", "device"])
def test_the_small_network_is_the_study_s_in_every_data_mode(mode, tmp_path):
    found = run(tmp_path, tiny_mnist(data_mode=mode)).measured
    assert found.structure == {"parameters": 1199882, "classes": 10}
    assert (found.protocol.steps_per_epoch, found.protocol.epochs) == (1875, 20)
    assert (found.window.steps, found.window.samples) == (3, 96)
    assert found.precision.output_dtypes == {"float32": 4}
    assert (found.data.distinct_batches, found.data.looked_at_batches) == (3, 3)
