"""Parts of the workloads by themselves; what only a GPU does is shown with torch's own calls replaced."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.files import unit_hash
from tests.helpers.workload_runner import printed

pytestmark = pytest.mark.torch

HEAD = """
import json
from types import SimpleNamespace
from unittest import mock
import torch
from parts.trial import Failed

def failure(call):
    try:
        call()
    except Failed as failed:
        return [failed.reason, str(failed)]
    return None

def tell(value):
    print(json.dumps(value))
"""


def in_torch(code: str, *modules: str) -> Any:
    """What the code tells, run beside the workloads' modules."""
    return json.loads(printed(HEAD + code, modules=modules)[-1])


CLOCK = """
calls = []

class Event:
    def __init__(self, enable_timing): pass
    def record(self): calls.append("event")
    def query(self): return "synchronize" in calls[1:]
    def elapsed_time(self, end): return 2.5

torch.cuda.Event = Event
torch.cuda.synchronize = lambda device: calls.append("synchronize")
torch.cuda.max_memory_allocated = torch.cuda.max_memory_reserved = lambda device: 7

from parts.timing import clock, step_clock
step_clock.FIRST_LOSSES = 2
trial = SimpleNamespace(limit={"steps": 3}, event=lambda *told, **more: None)
clock = clock.Clock(trial, SimpleNamespace(type="cuda"), steps_per_epoch=5, epochs=2)
clock.start()
while not clock.limit_reached():
    clock.ready()
    clock.norm(torch.tensor(3.0))
    clock.step(torch.tensor(2.0), 4)
before_stop = list(calls)
epoch = clock.stop()
tell({"calls": before_stop, "after": calls[len(before_stop):], "epoch": epoch, "series": clock.series()})
"""


def test_a_gpu_s_clock_waits_for_the_device_before_and_after_a_segment_and_never_in_a_step():
    told = in_torch(CLOCK)
    assert told["calls"] == ["synchronize", "event"] + 3 * ["event"]
    assert told["after"] == ["synchronize"]
    assert told["series"]["step_us"] == [2500, 2500, 2500]
    assert told["series"]["step_clock"] == "device"
    assert told["series"]["memory"]["allocated_peak_bytes"] == 7
    assert told["series"]["window"]["samples"] == 12
    assert told["series"]["gradient_norms"] == [[1, 3.0], [2, 3.0]]
    assert (told["epoch"]["steps"], told["epoch"]["complete"]) == (3, False)


def test_a_step_s_loss_holds_nothing_of_what_it_was_taken_from():
    told = in_torch(
        """
from parts.timing import clock
trial = SimpleNamespace(limit={}, event=lambda *told, **more: None)
timed = clock.Clock(trial, torch.device("cpu"), steps_per_epoch=1, epochs=1)
large = torch.ones(64, 64)
losses = large[0, 0], large.sum(), torch.nn.MSELoss()(large, large.double().float() + 1)
tell([timed._keep(loss).untyped_storage().nbytes() for loss in losses])
"""
    )
    assert told == [4, 4, 4]


CHOICE = """
from parts import device
def seen(cuda, hip, here, asked):
    with mock.patch.multiple(torch.version, cuda=cuda, hip=hip), \
         mock.patch.multiple(torch.cuda, is_available=lambda: here, device_count=lambda: int(here),
                             current_device=lambda: 0):
        return failure(lambda: device.choose(asked, 1))
tell([
    seen("13.0", None, True, "cuda"),
    seen(None, "7.2", True, "rocm"),
    seen(None, "7.2", True, "cuda"),
    seen("13.0", None, True, "rocm"),
    seen("13.0", None, False, "cuda"),
    seen("13.0", None, True, "cpu"),
])
"""


UNITS = """
from parts import device

def seen(name):
    card = SimpleNamespace(name=name, uuid="01ABCDEF-0000", major=9, minor=0, total_memory=1)
    with mock.patch.multiple(torch.cuda, get_device_properties=lambda place: card):
        return device.facts("cuda", torch.device("cuda", 0))["unit"]

tell([seen("NVIDIA H100"), seen("NVIDIA H100 MIG 1g.10gb")])
"""


def test_a_card_is_known_by_the_hash_that_the_driver_s_uuid_gives_and_a_slice_of_one_is_not():
    assert in_torch(UNITS) == [unit_hash("GPU-01abcdef-0000"), None]


def test_a_device_of_another_kind_never_stands_in_for_the_one_asked():
    right, also_right, on_rocm, on_cuda, unseen, on_cpu = in_torch(CHOICE)
    assert right is None
    assert also_right is None
    assert on_cpu is None
    assert on_rocm[0] == on_cuda[0] == unseen[0] == "no-device"
    assert "'cuda' device is asked" in on_rocm[1]
    assert "(built for rocm) sees 1 GPUs" in on_rocm[1]
    assert "(built for cuda) sees 0 GPUs" in unseen[1]


GATES = """
from parts.numerics import precision
def refused(label, capability, target=None):
    hip = target and "7.2"
    with mock.patch.object(torch.version, "hip", hip), \
         mock.patch.multiple(torch.cuda, get_device_name=lambda device: "Card",
                             get_device_capability=lambda device: capability,
                             get_device_properties=lambda device: SimpleNamespace(gcnArchName=target or "")):
        return failure(lambda: precision.switch(label, SimpleNamespace(type="cuda")))
tell({
    "turing bf16": refused("amp-bf16", (7, 5)),
    "turing tf32": refused("fp32-tf32", (7, 5)),
    "turing fp16": refused("fp16-master", (7, 5)),
    "ampere bf16": refused("pure-bf16", (8, 0)),
    "hopper tf32": refused("fp32-tf32", (9, 0)),
    "gfx942 tf32": refused("fp32-tf32", (9, 4), "gfx942:sramecc+:xnack-"),
    "gfx942 bf16": refused("amp-bf16", (9, 4), "gfx942:sramecc+:xnack-"),
    "gfx906 bf16": refused("amp-bf16", (9, 0), "gfx906:sramecc+:xnack-"),
    "gfx906 fp16": refused("amp-fp16", (9, 0), "gfx906:sramecc+:xnack-"),
})
"""


def test_a_precision_that_a_card_only_emulates_is_refused_by_name():
    told = in_torch(GATES)
    refused = {name: reason[1] for name, reason in told.items() if reason}
    assert refused == {
        "turing bf16": "'amp-bf16' is asked; Card only emulates bf16",
        "turing tf32": "'fp32-tf32' is asked; Card has no TF32",
        "gfx942 tf32": "'fp32-tf32' is asked; torch on ROCm has no TF32 for Card's convolutions",
        "gfx906 bf16": "'amp-bf16' is asked; Card has no bf16",
    }


PRECISION = """
from parts.numerics import precision
cpu = torch.device("cpu")
precision.prepare("fp32-ieee", cpu)
names = ("fp32-ieee", "amp-bf16", "fp16-master")
torch.backends.cudnn.benchmark = True
benchmark = []
convolution = torch.nn.functional.conv2d
torch.nn.functional.conv2d = lambda *given: (benchmark.append(torch.backends.cudnn.benchmark),
                                             convolution(*given))[1]
def switches(name):
    precision._set_fp32(name)
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    return [matmul.fp32_precision, cudnn.fp32_precision, cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision,
            matmul.allow_tf32, cudnn.allow_tf32, torch.get_float32_matmul_precision()]
tell({
    "switches": {name: switches(name) for name in ("tf32", "ieee")},
    "read": sorted(precision._flags()),
    "probes": {name: [p["reads_as"] for p in precision.probes(name, cpu)] for name in names},
    "words": [precision.arithmetic.reads_as(error, "float32") for error in (2e-3, 2e-2)],
    "random": [torch.manual_seed(1) and torch.rand(1).item(),
               (torch.manual_seed(1), precision.probes("amp-bf16", cpu), torch.rand(1).item())[2]],
    "benchmark": [sorted(set(benchmark)), torch.backends.cudnn.benchmark],
})
"""


def test_switches_are_set_both_ways_and_the_arithmetic_is_read_from_its_error():
    told = in_torch(PRECISION)
    assert told["switches"] == {
        "tf32": [*4 * ["tf32"], True, True, "high"],
        "ieee": [*4 * ["ieee"], False, False, "highest"],
    }
    assert {"cuda.matmul.allow_tf32", "cudnn.allow_tf32", "float32_matmul_precision"} <= set(told["read"])
    assert told["benchmark"] == [[False], True], "a probe asks about the switch, not about the fastest kernel"
    assert told["probes"] == {
        "fp32-ieee": ["fp32-ieee", "fp32-ieee"],
        "amp-bf16": ["bf16", "bf16"],
        "fp16-master": ["fp16", "fp16"],
    }
    assert told["words"] == ["tf32", "bf16"]
    assert told["random"][0] == told["random"][1]


FROZEN = """
import cifar_fastai as study
from fastai.callback.core import Callback

class Rates(Callback):
    order = 70
    def __init__(self): self.seen = []
    def before_batch(self): self.seen.append([round(group["lr"], 9) for group in self.opt.hypers])

def trained(label):
    torch.manual_seed(0)
    cpu = torch.device("cpu")
    pictures = torch.randint(0, 256, (32, 3, 32, 32), dtype=torch.uint8), torch.arange(32)
    prepare = study.Preparation("device", 32, study.CIFAR_STATS, cpu)
    data = study.loaders(pictures, pictures, 8, 32, prepare, 0)
    model = study.network("resnet18", 512, 100, None)
    learner = study.learner_of(data, model)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    rates = Rates()
    callbacks = study.precision_callbacks(label)[1]
    learner.fit_one_cycle(1, study.RATES, cbs=[*callbacks, study.Input(None, prepare), rates], **study.CYCLE)
    # A weight that went through half and came back has moved by the rounding alone.
    rounding = {True: 2e-3, False: 1e-9}
    moved = [name for name, weight in learner.model.named_parameters()
             if not torch.allclose(weight, before[name], atol=rounding[weight.dim() == 4])]
    norms = [name + ".weight" for name, part in model.named_modules() if "BatchNorm" in type(part).__name__]
    return {"moved": sorted(moved), "rates": rates.seen[0],
            "norms": sorted(norms + [name.replace("weight", "bias") for name in norms])}

tell({label: trained(label) for label in ("fp32-ieee", "fp16-master")})
"""


def test_a_frozen_body_trains_its_batch_norms_alone_at_a_tenth_of_the_head_s_rate():
    for told in in_torch(FROZEN, "fastai.vision.all").values():
        head = {"1.4.weight", "1.4.bias", "1.8.weight", "1.8.bias"}
        assert set(told["moved"]) == set(told["norms"]) | head
        assert told["rates"] == pytest.approx([3e-4 / 25, 3e-4 / 25, 3e-3 / 25])


RECURRENT = """
import word_lm

def called(dtype):
    layer, fused, told = word_lm.LSTM(4, 4, 2), torch._VF.lstm, {}
    def watched(sequence, state, weights, *more):
        told["types"] = sorted({str(part.dtype) for part in (sequence, *state, *weights)})
        told["autocast"] = torch.is_autocast_enabled("cpu")
        return fused(sequence, state, weights, *more)
    state = torch.zeros(2, 3, 4), torch.zeros(2, 3, 4)
    with mock.patch.object(torch._VF, "lstm", watched, create=True), torch.autocast("cpu", dtype=dtype):
        output, after = layer(torch.randn(5, 3, 4), state)
    output.float().sum().backward()
    told["output"] = str(output.dtype)
    told["gradients"] = sorted({str(weight.grad.dtype) for weight in layer.parameters()})
    return told

tell(called(torch.bfloat16))
"""


def test_a_recurrent_layer_under_bf16_leaves_autocast_which_would_run_it_in_fp16_on_a_gpu():
    told = in_torch(RECURRENT)
    assert (told["types"], told["autocast"]) == (["torch.bfloat16"], False)
    assert (told["output"], told["gradients"]) == ("torch.bfloat16", ["torch.float32"])
