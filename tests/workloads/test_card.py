"""The check of one device, with parts of a fraction of a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.summary.statistics import summarise
from tests.helpers.workload_runner import Ended, card, printed, run

pytestmark = pytest.mark.torch


def checked(folder: Path, **told: Any) -> Ended:
    folder.mkdir(exist_ok=True)
    return run(folder, card(**told))


def test_two_processes_of_one_check_hold_its_parts_its_load_and_the_same_bits(tmp_path):
    first, second = (checked(tmp_path / name).measured for name in ("first", "second"))
    found = first.card
    window = first.window
    assert (window.steps, window.samples) == (8, 8 * first.samples_per_step)
    assert first.ceilings["gemm_fp32-ieee_tflops"] == pytest.approx(
        2 * 256**3 * window.samples / window.seconds / 1e12
    )
    assert set(first.ceilings) == {"gemm_fp32-ieee_tflops", "gemm_bf16_tflops", "copy_gb_per_second"}
    works = [(each.computation, each.arithmetic, each.differing) for each in found.replays]
    assert works == [
        (work, name, 0) for name in ("fp32-ieee", "bf16") for work in ("product", "training-step")
    ]
    assert all(each.replays >= 3 and each.bits_promised for each in found.replays)
    assert [each.sha256 for each in found.replays] == [each.sha256 for each in second.card.replays]
    kept = found.memory_pattern
    assert (kept.passes, kept.wrong_words) == (2, 0)
    assert 0 < kept.tested_bytes <= 256 * 2**20
    assert summarise(first).verdict == "unproven"


FAULTY = """
import torch
from parts.numerics import card_faults
cpu = torch.device("cpu")
multiply, calls = torch.mm, []

def faulty(left, right, out):
    multiply(left, right, out=out)
    calls.append(1)
    if len(calls) in (3, 5):
        out[7, 9] += 1.0
    return out

torch.mm = faulty
found = card_faults.replay_product("fp32-ieee", torch.float32, cpu, small=True)
print(found["differing"], found["largest_relative_difference"] > found["bound"])
torch.mm = multiply
write, words = card_faults._pattern, []

def leaking(into, number, turned):
    write(into, number, turned)
    words.append(number)
    if len(words) == 2:
        into[5] ^= 4

card_faults._pattern = leaking
print(card_faults.pattern_kept(cpu, small=True)["wrong_words"])
blocks = card_faults._blocks(cpu, 64, 3)
for number, block in enumerate(blocks):
    write(block, number, number == 2)
print(len(set(torch.cat(blocks).tolist())))
"""


def test_a_wrong_value_of_a_replay_and_a_bit_that_the_memory_lost_are_counted():
    assert printed(FAULTY) == ["2 True", "1", "192"]


SHARED = """
from types import SimpleNamespace
import torch
from parts import device

torch.cuda.mem_get_info = lambda gpu: (2**60, 2**60)
for integrated in (0, 1):
    torch.cuda.get_device_properties = lambda gpu, told=integrated: SimpleNamespace(is_integrated=told)
    print(device.free_bytes(torch.device("cuda")) == 2**60, device.free_bytes(torch.device("cuda")) < 2**50)
"""


def test_a_gpu_that_shares_the_host_s_memory_has_no_more_of_it_than_the_host():
    assert printed(SHARED) == ["True False", "False True"]
