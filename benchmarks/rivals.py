"""One process of benchmarks/peers.py: our step, the peer's, and the peer's again; needs PyTorch and timm.

    python -m benchmarks.rivals CASE PROFILE ROUNDS [--backwards]

The workloads' folder has to be on the path. `--backwards` builds and runs the control first and ours last.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.loops import (  # isort: skip  (before timm)
    BATCHES,
    COLUMNS,
    TOKENS,
    WARM_UP_STEPS,
    WORDS,
    synchronise,
    trial_in,
)
import timm
import torch
from timm.optim import create_optimizer_v2
from torch import nn

import word_lm
from benchmarks.interleaved import interleaved, report
from convnet import TrainingStep
from parts.networks import language, recurrent
from parts.numerics import precision
from parts.numerics.update import Update, clipped_sgd
from parts.timing.clock import Clock

CLASSES = 1000
RATE = 1e-4
LABEL = "fp32-default"

Run = Callable[[], None]
Whose = Literal["ours", "theirs"]


@dataclass(frozen=True)
class Size:
    """Of the classifiers' images and batches."""

    pixels: int
    batch: int


SIZES = {"resnet18": Size(96, 16), "resnet50": Size(64, 16), "efficientnet_b0": Size(64, 16)}
"""A step of each takes 200 ms or more on two cores."""

SIDES: dict[str, Whose] = {"first": "ours", "second": "theirs", "control": "theirs"}


def main(arguments: Sequence[str]) -> None:
    """Builds and warms the three sides, runs their rounds, and prints their seconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=(*SIZES, "lstm"))
    parser.add_argument("profile", choices=("default", "tuned"))
    parser.add_argument("rounds", type=int)
    parser.add_argument("--backwards", action="store_true")
    given = parser.parse_args(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    precision.switch(LABEL, device)
    order = list(SIDES)[:: -1 if given.backwards else 1]
    with tempfile.TemporaryDirectory() as folder:
        tuned = given.profile == "tuned"
        steps = {side: _side(given.case, SIDES[side], tuned, device, Path(folder)) for side in order}
        for _ in range(WARM_UP_STEPS):
            for side in order:
                steps[side]()
        sides = {side: _timed(steps[side], device) for side in SIDES}
        seconds = interleaved(sides, given.rounds, backwards=given.backwards)
    report(_what(given.case, device), 2, seconds)


def _timed(run: Run, device: torch.device) -> Callable[[], float]:
    def seconds() -> float:
        synchronise(device)
        began = time.perf_counter()
        run()
        synchronise(device)
        return time.perf_counter() - began

    return seconds


def _what(case: str, device: torch.device) -> str:
    if case == "lstm":
        return f"{COLUMNS} × {TOKENS} tokens on {device.type}, ours over a plain loop"
    size = SIZES[case]
    return f"{size.batch} images of {size.pixels} px on {device.type}, ours over timm {timm.__version__}"


def _side(case: str, whose: Whose, tuned: bool, device: torch.device, folder: Path) -> Run:
    if case == "lstm":
        made = _language_model if whose == "ours" else _plain_language_model
        step, samples = made(tuned, device), COLUMNS * TOKENS
    else:
        made_of_images = _classifier if whose == "ours" else _timm
        size = SIZES[case]
        step, samples = made_of_images(case, size, tuned, device), size.batch
    return _clocked(step, samples, device, folder) if whose == "ours" else lambda: _done(step())


def _done(loss: torch.Tensor) -> None:
    """A peer leaves its loss where it is."""


def _clocked(step: Callable[[], torch.Tensor], samples: int, device: torch.device, folder: Path) -> Run:
    """The step as a workload's loop has it: the clock on it, its events written."""
    clock = Clock(trial_in(folder), device, steps_per_epoch=1_000_000, epochs=1)
    clock.start()

    def run() -> None:
        clock.ready()
        clock.step(step(), samples)
        clock.over()

    return run


def _made(case: str, tuned: bool, device: torch.device) -> tuple[nn.Module, torch.optim.Optimizer]:
    """timm's model and its optimiser, as its training benchmark makes them; on both sides."""
    torch.manual_seed(1)
    layout = torch.channels_last if tuned else torch.contiguous_format
    model = timm.create_model(case, num_classes=CLASSES).to(device, memory_format=layout).train()
    more = {"fused": True} if tuned else {}
    optimiser = create_optimizer_v2(model, opt="sgd", lr=RATE, **more)
    return (torch.compile(model) if tuned else model), optimiser


def _images(size: Size, tuned: bool, device: torch.device) -> torch.Tensor:
    layout = torch.channels_last if tuned else torch.contiguous_format
    shape = (size.batch, 3, size.pixels, size.pixels)
    return torch.randn(shape, device=device).contiguous(memory_format=layout)


def _classifier(case: str, size: Size, tuned: bool, device: torch.device) -> Callable[[], torch.Tensor]:
    model, optimiser = _made(case, tuned, device)
    batches = [
        (_images(size, tuned, device), torch.randint(CLASSES, (size.batch,), device=device))
        for _ in range(BATCHES)
    ]
    train = TrainingStep(model, Update(LABEL, optimiser, device), LABEL, device)
    steps = 0

    def step() -> torch.Tensor:
        nonlocal steps
        steps += 1
        return train(*batches[steps % BATCHES])

    return step


def _timm(case: str, size: Size, tuned: bool, device: torch.device) -> Callable[[], torch.Tensor]:
    model, optimiser = _made(case, tuned, device)
    images, loss_of = _images(size, tuned, device), nn.CrossEntropyLoss().to(device)

    def step() -> torch.Tensor:
        optimiser.zero_grad()
        output = model(images)
        labels = torch.empty((len(output),), device=device, dtype=torch.long).random_(CLASSES)
        loss = loss_of(output, labels)
        loss.backward()
        optimiser.step()
        return loss

    return step


def _language_model(tuned: bool, device: torch.device) -> Callable[[], torch.Tensor]:
    torch.manual_seed(1)
    options = word_lm.OPTIONS
    model = language.LanguageModel(recurrent, "LSTM", WORDS, options).to(device).train()
    task = language.Task(model, LABEL, device)
    update, _, _ = clipped_sgd(LABEL, model, options, tuned, device)
    batches = _tokens(device)
    state, steps = model.first_state(COLUMNS), 0

    def step() -> torch.Tensor:
        nonlocal state, steps
        steps += 1
        tokens, targets = batches[steps % BATCHES]
        loss, state = task.loss(tokens, targets, language.detached(state))
        update(loss, RATE)
        return loss

    return step


class PlainLanguageModel(nn.Module):
    """The same sizes, written for nothing else."""

    def __init__(self, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.lstm = nn.LSTM(width, width, layers, dropout=dropout)
        self.drop = nn.Dropout(dropout)
        self.decode = nn.Linear(width, WORDS)

    def forward(
        self, tokens: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """Scores as (tokens, vocabulary), and the state to go on from."""
        output, state = self.lstm(self.drop(self.embed(tokens)), state)
        return self.decode(self.drop(output)).view(-1, WORDS), state


def _plain_language_model(tuned: bool, device: torch.device) -> Callable[[], torch.Tensor]:
    torch.manual_seed(1)
    options = word_lm.OPTIONS
    model = PlainLanguageModel(options["nhid"], options["layers"], options["dropout"]).to(device).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE, foreach=False, fused=tuned)
    batches = _tokens(device)
    zeros = torch.zeros(options["layers"], COLUMNS, options["nhid"], device=device)
    state, steps = (zeros, zeros.clone()), 0

    def step() -> torch.Tensor:
        nonlocal state, steps
        steps += 1
        tokens, targets = batches[steps % BATCHES]
        state = (state[0].detach(), state[1].detach())
        optimiser.zero_grad()
        scores, state = model(tokens, state)
        loss = nn.functional.cross_entropy(scores, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), options["clip"])
        optimiser.step()
        return loss

    return step


def _tokens(device: torch.device) -> list[tuple[torch.Tensor, torch.Tensor]]:
    shape = (TOKENS, COLUMNS)
    draws = [torch.randint(WORDS, shape, device=device) for _ in range(BATCHES)]
    return [(tokens, tokens.roll(-1, 0).flatten()) for tokens in draws]


if __name__ == "__main__":
    main(sys.argv[1:])
