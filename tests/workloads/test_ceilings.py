"""The workload that looks for what a device can do at most, on sizes that take no time."""

from __future__ import annotations

import pytest

from harness.summary.statistics import summarise
from tests.helpers.workload_runner import printed, run, tiny_ceiling

pytestmark = pytest.mark.torch


def test_a_product_s_ceiling_is_its_operations_over_the_synchronised_window(tmp_path):
    found = run(tmp_path, tiny_ceiling()).measured
    shape, window = found.structure, found.window
    assert shape["m"] == shape["n"] == shape["k"] <= 512
    assert (window.steps, window.samples) == (12, 12 * found.samples_per_step)
    operations = 2 * shape["m"] * shape["n"] * shape["k"] * window.samples
    assert found.ceilings == {"gemm_fp32-ieee_tflops": pytest.approx(operations / window.seconds / 1e12)}
    assert found.flops.per_sample * summarise(found).throughput > 0
    assert found.data.distinct_batches == 4
    assert {probe.reads_as for probe in found.precision.probes} == {"fp32-ieee"}


def test_a_ceiling_lasts_as_long_as_its_plan_says(tmp_path):
    found = run(tmp_path, tiny_ceiling(limit={"seconds": 3.0})).measured
    assert found.protocol.steps_per_epoch == 300
    assert found.window.seconds == pytest.approx(3.0, rel=0.8)


def test_another_type_is_a_ceiling_of_its_own_and_its_operands_have_that_type(tmp_path):
    found = run(tmp_path, tiny_ceiling(precision="pure-bf16")).measured
    assert list(found.ceilings) == ["gemm_bf16_tflops"]
    assert found.precision.output_dtypes == {"bfloat16": 1}
    assert summarise(found).verdict == "unproven"


def test_a_copy_counts_what_it_reads_and_what_it_writes_and_a_cpu_has_no_way_to_itself(tmp_path):
    found = run(tmp_path, tiny_ceiling(model="copy")).measured
    moved = 2 * 2**20 * found.window.samples
    assert found.ceilings == {"copy_gb_per_second": pytest.approx(moved / found.window.seconds / 1e9)}


def test_ranks_sum_messages_of_each_size_and_the_fastest_fills_the_window(tmp_path):
    found = run(tmp_path, tiny_ceiling(model="all-reduce", gpus=3)).measured
    assert (found.device.count, found.parallel) == (3, None)
    summed, window = found.all_reduce, found.window
    assert (summed.backend, summed.backend_version) == ("gloo", None)
    assert [size.message_bytes for size in summed.sizes] == [2**power for power in range(10, 19)]
    assert {size.sample_us.count for size in summed.sizes} == {20}
    assert found.structure["message_bytes"] in [size.message_bytes for size in summed.sizes]
    assert window.samples == 12 * found.samples_per_step
    assert found.sample_unit == "byte"
    # nccl-tests, doc/PERFORMANCE.md: algbw = S / t, busbw = algbw * 2 (n - 1) / n.
    algorithm = window.samples / window.seconds / 1e9
    assert found.ceilings == {
        "all_reduce_algorithm_gb_per_second": pytest.approx(algorithm),
        "all_reduce_bus_gb_per_second": pytest.approx(algorithm * 4 / 3),
    }
    assert summarise(found).verdict == "unproven"


BROKEN = """
import importlib
from parts.numerics import update
import torch

def broken(name):
    raise RuntimeError("built for another torch")
importlib.import_module = broken
print(update.apex_optimizer(torch.device("cuda")))
"""


def test_an_apex_that_breaks_is_none():
    assert printed(BROKEN) == ["None"]
