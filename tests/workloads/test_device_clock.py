"""The clock of a GPU against a made-up one: a queue that the host fills far ahead, drains, and idle gaps."""

from __future__ import annotations

import json

import pytest

from harness.record import Measurement
from harness.summary.statistics import summarise
from tests.helpers import records_builder as build
from tests.helpers.workload_runner import (
    printed,
    run,
    tiny_classifier,
    tiny_language_model,
    tiny_mlp,
    tiny_mnist,
    tiny_resnet,
)

pytestmark = pytest.mark.torch


REPLAY = """
import json, sys
from collections import deque
from types import SimpleNamespace
import torch
from parts.timing import clock as clock_part, step_clock

class Gpu:
    # All in nanoseconds. A launch costs the host time, and waits where the queue is full.
    def __init__(self, depth): self.host, self.free, self.depth, self.queue = 10**9, 0, depth, deque()
    def launch(self, work, issue=5_000):
        self.host += issue
        while self.queue and (self.queue[0] <= self.host or len(self.queue) >= self.depth):
            self.host = max(self.host, self.queue.popleft())
        self.free = max(self.host, self.free) + work
        self.queue.append(self.free)
    def synchronize(self, device): self.host = max(self.host, self.free) + 20_000

class Event:
    def __init__(self, enable_timing): pass
    def record(self): self.at = max(gpu.host, gpu.free)
    def query(self): return self.at <= gpu.host
    def elapsed_time(self, end): return (end.at - self.at) / 1e6

def replayed(asked):
    global gpu
    gpu = Gpu(asked.get("depth", 1000))
    torch.cuda.Event, torch.cuda.synchronize = Event, gpu.synchronize
    torch.cuda.max_memory_allocated = torch.cuda.max_memory_reserved = lambda device: 1
    step_clock.time = SimpleNamespace(perf_counter=lambda: gpu.host / 1e9, perf_counter_ns=lambda: gpu.host)
    told = []
    event = lambda kind, **more: told.extend(more.get("us", ()) if kind == "steps" else ())
    device = SimpleNamespace(type="cuda")
    epochs, steps, launches = asked["epochs"], asked["steps"], asked["launches"]
    trial = SimpleNamespace(limit={}, event=event)
    clock = clock_part.Clock(trial, device, steps_per_epoch=steps, epochs=epochs)
    loss, segments = torch.tensor(1.0), []
    for _ in range(epochs):
        clock.start()
        for _ in range(steps):
            gpu.host += asked.get("input", 0)
            clock.ready()
            for _ in range(launches):
                gpu.launch(asked["step"] // launches, asked.get("issue", 5_000))
            if asked.get("waits"): gpu.synchronize(device)
            clock.step(loss, asked["batch"])
        gpu.free += asked.get("afterwards", 0)
        segments.append(clock.stop())
    return dict(clock.series(), epochs=segments, told=told)

print(json.dumps([replayed(asked) for asked in json.loads(sys.argv[1])]))
"""


def replayed(*asked: dict[str, int]) -> list[tuple[Measurement, list[int]]]:
    """What the clock measures on a made-up GPU, and the steps that it told as it went."""
    pairs = []
    for of, series in zip(asked, json.loads(printed(REPLAY, json.dumps(asked))[-1]), strict=True):
        kind = {**build.LM, "steps_per_epoch": of["steps"], "epochs": of["epochs"], "valid_batches": 0}
        asked_of = build.trial(kind, "fp32-ieee", 1, batch_size=of["batch"])
        whole = build.measurement(kind, asked_of, 1.0, card="Constructed Card").model_dump(mode="json")
        told = series.pop("told")
        pairs.append((Measurement.model_validate(whole | series), told))
    return pairs


MLP = {"step": 3_001_276, "launches": 24, "batch": 512}
"""Three products of 4096 by 4096 and their gradients: 170,594 samples/s where the device is never idle."""


def test_a_queue_of_a_thousand_launches_hides_no_step_and_changes_no_throughput():
    published, warmed, long = replayed(
        MLP | {"epochs": 3, "steps": 50}, MLP | {"epochs": 1, "steps": 84}, MLP | {"epochs": 4, "steps": 1000}
    )
    for measurement, told in (published, warmed, long):
        summary = summarise(measurement)
        assert summary.throughput == pytest.approx(170_594, rel=2e-3)
        assert summary.step_seconds_median == pytest.approx(3.001e-3, rel=1e-3)
        assert told == list(measurement.step_us.values())
        assert measurement.step_clock == "device"
        assert "device-clock" not in {cause.name for cause in summary.causes}
        assert sum(told) / 1e6 == pytest.approx(measurement.window.seconds, rel=2e-3)


def test_one_long_launch_a_step_is_as_long_as_it_is():
    ((measurement, _),) = replayed({"step": 10_000_000, "launches": 1, "batch": 1, "epochs": 1, "steps": 100})
    assert set(measurement.step_us.values()) <= set(range(9_990, 10_011))


def test_a_device_that_waits_for_its_host_has_its_idle_gaps_in_its_steps():
    gaps, waits = replayed(
        {"step": 1_000_000, "launches": 100, "issue": 50_000, "batch": 1, "epochs": 2, "steps": 30},
        {
            "step": 1_000_000,
            "launches": 10,
            "waits": 1,
            "input": 4_000_000,
            "batch": 1,
            "epochs": 2,
            "steps": 30,
        },
    )
    assert summarise(gaps[0]).step_seconds_median == pytest.approx(5e-3, rel=1e-2)
    assert summarise(waits[0]).step_seconds_median == pytest.approx(5.02e-3, rel=2e-2)
    assert summarise(waits[0]).input_share == pytest.approx(0.8, abs=0.02)


def test_a_window_that_the_device_s_steps_do_not_fill_says_so():
    asked = MLP | {"epochs": 3, "steps": 50}
    small, large = replayed(asked | {"afterwards": 1_500_000}, asked | {"afterwards": 5_000_000})
    assert "device-clock" not in {cause.name for cause in summarise(small[0]).causes}
    summary = summarise(large[0])
    first = summary.causes[0]
    assert (first.name, first.data["steps_seconds"]) == ("device-clock", pytest.approx(0.4502, abs=1e-4))
    assert summary.verdict in ("warn", "unproven")


KERNELS = """
import importlib
from types import SimpleNamespace
from parts import trial as trial_part
import torch
from parts.timing import profiler

def event(name, begin, length, kind="kernel", annotation=False, device="CUDA"):
    return SimpleNamespace(
        name=lambda: name, start_ns=lambda: begin, duration_ns=lambda: length, activity_type=lambda: kind,
        is_user_annotation=lambda: annotation, device_type=lambda: getattr(torch.autograd.DeviceType, device))

EVENTS = [
    event("gemm", 1_000_000, 400_000),
    event("gemm on another stream", 1_300_000, 200_000),
    event("within", 1_350_000, 10_000),
    event("Memset (Device)", 2_000_000, 100_000, "gpu_memset"),
    event("Memcpy DtoD (Device -> Device)", 3_000_000, 100_000, "gpu_memcpy"),
    event("Memcpy HtoD (Pageable -> Device)", 4_000_000, 900_000, "gpu_memcpy"),
    event("Optimizer.step#SGD.step", 0, 9_000_000, "gpu_user_annotation", True),
    event("aten::mm", 0, 9_000_000, "cpu_op", False, "CPU"),
    event("Context Sync", 0, 9_000_000, "cuda_sync"),
]

class Profile:
    def __init__(self, activities): pass
    def __enter__(self): return self
    def __exit__(self, *error):
        self.profiler = SimpleNamespace(kineto_results=SimpleNamespace(events=lambda: EVENTS))

gpu, own = SimpleNamespace(type="cuda"), profiler.kernel_time
torch.cuda.synchronize, profiler.profile, profiler.SECONDS = lambda device: None, Profile, 60.0
profiler.kernel_time = lambda step, device: own(step, gpu)
workload = importlib.import_module({name!r})
if hasattr(workload, "kernel_time"):
    of_fit = workload.kernel_time
    workload.kernel_time = lambda learner, callbacks, device: of_fit(learner, callbacks, gpu)
{spoil}
trial_part.main(workload.run)
"""
LIMIT = {"steps": 3}
TRIALS = {
    "word_lm": tiny_language_model(),
    "cifar_fastai": tiny_resnet(data_mode="cached", precision="fp16-master"),
    "mnist_cnn": tiny_mnist(),
    "tensorcore_mlp": tiny_mlp(limit=LIMIT),
    "convnet": tiny_classifier(model="resnet18", batch_size=4, limit=LIMIT),
}


@pytest.mark.parametrize("name", TRIALS)
def test_a_few_more_steps_tell_what_the_kernels_took_and_change_no_figure(name, tmp_path):
    measurement = run(tmp_path, TRIALS[name], code=KERNELS.format(name=name, spoil="")).measured
    assert measurement.kernels.model_dump() == {"steps": 5, "busy_seconds": pytest.approx(0.0007)}
    assert measurement.window.steps == len(measurement.step_us.values()) == 3
    assert measurement.step_clock == "host"


def test_a_profiler_that_fails_costs_a_trial_nothing_but_its_figure(tmp_path):
    spoil = "def fails(*given): raise RuntimeError('CUPTI is not there')\nProfile.__exit__ = fails"
    code = KERNELS.format(name="tensorcore_mlp", spoil=spoil)
    assert run(tmp_path, TRIALS["tensorcore_mlp"], code=code).measured.kernels is None
