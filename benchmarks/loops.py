"""One process of benchmarks/overhead.py: our loop, the bare one, and the bare one again; needs PyTorch.

    python -m benchmarks.loops MODEL ROUNDS BLOCK_SECONDS [--backwards] [--host PYTHON]

The workloads' folder has to be on the path.
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
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.interleaved import interleaved

from parts.trial import TrialProcess  # isort: skip
from parts.networks.vision import torchvision  # isort: skip

import torch
from torch import nn

import word_lm
from parts.networks import language, recurrent
from parts.timing.clock import Clock, stopwatch

WORKLOADS = Path(__file__).resolve().parents[1] / "workloads"
BATCHES = 4
WARM_UP_STEPS = 5
ROUNDS = 4
IMAGES, PIXELS = 16, 96
COLUMNS, TOKENS, WORDS = 20, 35, 33278
RATE = 1e-3
SIDES = {"first": "ours", "second": "bare", "control": "bare"}


def main(arguments: Sequence[str]) -> None:
    """Runs the rounds of three loops over one model, the telemetry beside ours, and prints their seconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=STEPS)
    parser.add_argument("rounds", type=int)
    parser.add_argument("block_seconds", type=float)
    parser.add_argument("--backwards", action="store_true")
    parser.add_argument("--host", default=sys.executable, help="the interpreter with gpudyno, which samples")
    given = parser.parse_args(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    step, samples, what = STEPS[given.model](device)
    steps = _steps_of_a_block(step, device, given.block_seconds)
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock(trial_in(Path(folder)), device, steps_per_epoch=steps, epochs=1)
        sampler = _sampler(given.host, Path(folder) / "telemetry.jsonl", device)

        def block(kind: str) -> float:
            sampler.send_signal(signal.SIGCONT if kind == "ours" else signal.SIGSTOP)
            loop = _ours if kind == "ours" else _bare
            with stopwatch(device) as taken:
                loop(step, steps, samples, clock)
            return taken[0]

        try:
            for kind in SIDES.values():
                block(kind)
            sides = {side: partial(block, kind) for side, kind in SIDES.items()}
            seconds = interleaved(sides, given.rounds, backwards=given.backwards)
        finally:
            sampler.send_signal(signal.SIGCONT)
            sampler.terminate()
            sampler.wait(10)
    # The parent reads it; the steps are those of one side in a round.
    said = {"what": f"{what} on {device.type}", "steps": 2 * steps, "seconds": seconds}
    print(json.dumps(said), flush=True)


def _ours(step: Callable[[int], torch.Tensor], steps: int, samples: int, clock: Clock) -> None:
    clock.start()
    for number in range(steps):
        clock.ready()
        loss = step(number)
        clock.step(loss, samples)
    clock.stop()


def _bare(step: Callable[[int], torch.Tensor], steps: int, samples: int, clock: Clock) -> None:
    for number in range(steps):
        step(number)


BuiltStep = tuple[Callable[[int], torch.Tensor], int, str]


def _resnet18(device: torch.device) -> BuiltStep:
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

    return step, IMAGES, f"ResNet-18, {IMAGES} images of {PIXELS} px"


def _lstm(device: torch.device) -> BuiltStep:
    torch.manual_seed(1)
    model = language.LanguageModel(recurrent, "LSTM", WORDS, word_lm.OPTIONS).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    inputs = [torch.randint(WORDS, (TOKENS, COLUMNS), device=device) for _ in range(BATCHES)]

    def step(number: int) -> torch.Tensor:
        optimiser.zero_grad()
        tokens = inputs[number % BATCHES]
        scores, _ = model(tokens, model.first_state(COLUMNS))
        loss = nn.functional.cross_entropy(scores, tokens.flatten())
        loss.backward()
        optimiser.step()
        return loss

    return step, COLUMNS * TOKENS, f"LSTM, {COLUMNS} × {TOKENS} tokens"


STEPS: dict[str, Callable[[torch.device], BuiltStep]] = {"resnet18": _resnet18, "lstm": _lstm}


def _steps_of_a_block(step: Callable[[int], Any], device: torch.device, seconds: float) -> int:
    """As many steps as take about that long; the first ones, and a busy moment, are slower than the rest."""
    steps = WARM_UP_STEPS
    for _ in range(ROUNDS):
        with stopwatch(device) as taken:
            for number in range(steps):
                step(number)
        steps = max(1, round(steps * seconds / taken[0]))
    return steps


def trial_in(folder: Path) -> TrialProcess:
    """A trial without limits that reads and writes in one folder."""
    asked = {"id": "loops", "seed": 1, "timeout_seconds": 86400, "asked": {"variant": {"limit": {}}}}
    (folder / "trial.json").write_text(json.dumps(asked), encoding="utf-8")
    return TrialProcess({"GPUDYNO_IN": str(folder), "GPUDYNO_OUT": str(folder)})


def _sampler(python: str, out: Path, device: torch.device) -> subprocess.Popen[bytes]:
    """The telemetry as it runs beside a trial, once its first sample is there."""
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
