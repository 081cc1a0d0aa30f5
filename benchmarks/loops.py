"""One process of benchmarks/overhead.py: our loop and the bare one in turn over one model; needs PyTorch.

The workloads' folder has to be on the path. Both loops train ResNet-18, whose step takes 100 ms and more on
two cores; the telemetry's sampler runs beside ours and is stopped in the bare one. A round runs each loop
twice, there and back, so that a steady drift cancels in it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from parts.trial import TrialProcess  # isort: skip

import torch
import torchvision
from torch import nn

from parts.timing.clock import Clock, stopwatch

WARM_UP_STEPS = 5
BATCHES, IMAGES, PIXELS = 4, 16, 96
RATE = 1e-3

TrainOneStep = Callable[[int], torch.Tensor]


def main(arguments: Sequence[str]) -> None:
    """Run the rounds and print each loop's seconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--block-seconds", type=float, default=1.0, help="of a loop, about")
    parser.add_argument("--backwards", action="store_true")
    parser.add_argument("--host", default=sys.executable, help="the interpreter with gpudyno, which samples")
    given = parser.parse_args(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    step = make_resnet18_step(device)
    steps = block_steps(step, device, given.block_seconds)
    order = ("ours", "theirs")[:: -1 if given.backwards else 1]
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock(make_trial(Path(folder)), device, steps_per_epoch=steps, epochs=1)
        sampler = start_sampler(given.host, Path(folder) / "telemetry.jsonl", device)
        try:
            # The first round is not counted.
            for _ in range(1 + given.rounds):
                took = dict.fromkeys(order, 0.0)
                for loop in (*order, *reversed(order)):
                    sampler.send_signal(signal.SIGCONT if loop == "ours" else signal.SIGSTOP)
                    with stopwatch(device) as taken:
                        our_loop(step, steps, clock) if loop == "ours" else bare_loop(step, steps)
                    took[loop] += taken[0]
                for loop in order:
                    seconds[loop].append(took[loop])
        finally:
            sampler.send_signal(signal.SIGCONT)
            sampler.terminate()
            sampler.wait(10)
    print(json.dumps({loop: each[1:] for loop, each in seconds.items()}), flush=True)


def our_loop(step: TrainOneStep, steps: int, clock: Clock) -> None:
    """Train as every workload does."""
    clock.start()
    for number in range(steps):
        clock.ready()
        clock.step(step(number), IMAGES)
    clock.stop()


def bare_loop(step: TrainOneStep, steps: int) -> None:
    """Train, and measure nothing."""
    for number in range(steps):
        step(number)


def make_resnet18_step(device: torch.device) -> TrainOneStep:
    """Return a step of ResNet-18."""
    torch.manual_seed(1)
    model = torchvision.models.resnet18(num_classes=100).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    inputs = [torch.randn(IMAGES, 3, PIXELS, PIXELS, device=device) for _ in range(BATCHES)]
    targets = torch.randint(100, (IMAGES,), device=device)

    def step(number: int) -> torch.Tensor:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs[number % BATCHES]), targets)
        loss.backward()
        optimiser.step()
        return loss

    return step


def block_steps(step: TrainOneStep, device: torch.device, seconds: float) -> int:
    """Return how many steps take about that long; the first ones are slower than the rest."""
    steps = WARM_UP_STEPS
    for _ in range(4):
        with stopwatch(device) as taken:
            bare_loop(step, steps)
        steps = max(1, round(steps * seconds / taken[0]))
    return steps


def make_trial(folder: Path) -> TrialProcess:
    """Return a trial without limits that reads and write in one folder."""
    asked = {"id": "loops", "seed": 1, "timeout_seconds": 86400, "asked": {"variant": {"limit": {}}}}
    (folder / "trial.json").write_text(json.dumps(asked), encoding="utf-8")
    return TrialProcess({"GPUDYNO_IN": str(folder), "GPUDYNO_OUT": str(folder)})


def start_sampler(python: str, out: Path, device: torch.device) -> subprocess.Popen[bytes]:
    """Start the telemetry as it runs beside a trial; return once its first sample is there."""
    kind = "cpu" if device.type == "cpu" else "rocm" if torch.version.hip else "cuda"
    own = str(os.getpid())
    argv = [python, "-m", "harness.telemetry.sampler", str(out), "--kind", kind]
    process = subprocess.Popen([*argv, "--pids", own, "--parent", own])
    for _ in range(100):
        if process.poll() is None and out.exists() and out.read_text(encoding="utf-8").count("\n") > 1:
            return process
        time.sleep(0.1)
    process.kill()
    raise SystemExit("the telemetry did not begin")


if __name__ == "__main__":
    main(sys.argv[1:])
