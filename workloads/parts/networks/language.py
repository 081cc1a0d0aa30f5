"""The language model of Apex's example, its text, loop and measurement, in any precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from parts.inputs import datasets
from parts.networks import recurrent
from parts.numerics import precision
from parts.numerics.precision import ScaleLog
from parts.timing.clock import Clock, stopwatch
from parts.trial import Failed, TrialProcess

BPTT = 35
KINDS = ("RNN_TANH", "RNN_RELU", "GRU", "LSTM")
OPTIONS: dict[str, Any] = {
    "epochs": 30,
    "emsize": 200,
    "nhid": 200,
    "layers": 2,
    "dropout": 0.2,
    "lr": 20.0,
    "clip": 0.25,
    "tied": False,
    "fp16_path": "fp16_optimizer",
    "loss_scale": "static",
    "static_loss_scale": 1.0,
}
"""The example's own."""
SMALLER_RATE = 4.0
VALID_BATCH_SIZE = 10
INITIAL_RANGE = 0.1


class LanguageModel(nn.Module):
    """Embedding, recurrent layers, and a decoder to a score for each word."""

    def __init__(self, kind: str, words: int, options: dict[str, Any]) -> None:
        super().__init__()
        width, units, layers = options["emsize"], options["nhid"], options["layers"]
        if options["tied"] and width != units:
            raise Failed("unsupported", f"tied weights need nhid = emsize, not {units} and {width}")
        inner_dropout = options["dropout"] if layers > 1 else 0.0
        self.dropout = nn.Dropout(options["dropout"])
        self.encoder = nn.Embedding(words, width)
        if kind in ("LSTM", "GRU"):
            self.recurrent: nn.RNNBase = getattr(recurrent, kind)(width, units, layers, dropout=inner_dropout)
        else:
            nonlinearity = kind.split("_")[1].lower()
            self.recurrent = recurrent.RNN(
                width, units, layers, nonlinearity=nonlinearity, dropout=inner_dropout
            )
        self.decoder = nn.Linear(units, words)
        nn.init.uniform_(self.encoder.weight, -INITIAL_RANGE, INITIAL_RANGE)
        nn.init.uniform_(self.decoder.weight, -INITIAL_RANGE, INITIAL_RANGE)
        nn.init.zeros_(self.decoder.bias)
        if options["tied"]:
            self.decoder.weight = self.encoder.weight

    def forward(self, tokens: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        """Scores as (tokens, vocabulary), and the state to go on from."""
        embedded = self.dropout(self.encoder(tokens))
        output, state = self.recurrent(embedded, state)
        return self.decoder(self.dropout(output)).flatten(0, 1), state

    def first_state(self, batch_size: int) -> Any:
        """Zeros in the type and on the device of the weights."""
        shape = (self.recurrent.num_layers, batch_size, self.recurrent.hidden_size)
        zeros = self.decoder.weight.new_zeros(shape)
        return (zeros, zeros.clone()) if isinstance(self.recurrent, nn.LSTM) else zeros


@dataclass(frozen=True)
class Text:
    """A split as (rows, columns), read `bptt` rows at a time."""

    rows: torch.Tensor
    bptt: int
    fixed: tuple[tuple[torch.Tensor, torch.Tensor], ...] = ()
    """Where there are some, these come round and round instead."""

    def __len__(self) -> int:
        return math.ceil((len(self.rows) - 1) / self.bptt)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for number in range(len(self)):
            yield self.fixed[number % len(self.fixed)] if self.fixed else self.batch(number)

    def batch(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens as (rows, columns) and the token below each, flat; the last batch is what is left."""
        first = number * self.bptt
        last = min(first + self.bptt, len(self.rows) - 1)
        return self.rows[first:last], self.rows[first + 1 : last + 1].flatten()


@dataclass(frozen=True)
class Texts:
    """WikiText-2 where the data mode wants it: in columns to train on, in ten to validate and test on."""

    corpus: Any
    train: Text
    valid: Text
    home: torch.device


def texts(trial: TrialProcess, device: torch.device) -> Texts:
    """The trial's data; raises Failed where it is not there or not whole."""
    corpus = datasets.wikitext_2(trial.data_folder, trial.asked["data"])
    home = torch.device("cpu") if trial.variant["data_mode"] == "host" else device
    bptt = trial.variant["sequence_length"] or BPTT
    train = Text(in_columns(corpus.train, trial.variant["batch_size"], home), bptt)
    return Texts(corpus, train, Text(in_columns(corpus.valid, VALID_BATCH_SIZE, home), bptt), home)


@dataclass(frozen=True)
class LanguageTask:
    """What training and validation share."""

    model: LanguageModel
    label: str
    device: torch.device

    def loss(self, tokens: torch.Tensor, targets: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        """Cross-entropy in nats per word, and the state, in the trial's precision."""
        tokens, targets = tokens.to(self.device), targets.to(self.device)
        with precision.autocast(self.label, self.device):
            output, state = self.model(tokens, state)
            return nn.functional.cross_entropy(output, targets), state


def refuse_unknown(trial: TrialProcess, options: dict[str, Any]) -> None:
    """Raises Failed for a model or an option that the example does not have."""
    trial.choose("model", trial.variant["model"], KINDS)
    trial.choose("fp16_path", options["fp16_path"], ("main", "fp16_optimizer"))
    trial.choose("loss_scale", options["loss_scale"], ("static", "dynamic"))


UpdateStep = Callable[[torch.Tensor, float], torch.Tensor | None]
"""Takes a loss and a rate; gives the norm of the gradients, or none where it did not compute it."""


def measured(
    trial: TrialProcess,
    task: LanguageTask,
    texts: Texts,
    options: dict[str, Any],
    update: tuple[UpdateStep, str, ScaleLog | None],
    arithmetic: dict[str, Any],
) -> dict[str, Any]:
    """Rehearses a step, trains, tests after the whole protocol; the measurement's own part.

    `update` is the step, what a record calls it, and its loss scale. Fixed batches are not validated.
    """
    step, method, scale_log = update
    model, train, valid = task.model, texts.train, texts.valid
    batch_size = trial.variant["batch_size"]
    with trial.phase("first_step"), precision.rehearsal(model, task.device) as output_types:
        task.loss(*train.batch(0), model.first_state(batch_size))[0].backward()
    clock = Clock(trial, task.device, steps_per_epoch=len(train), epochs=options["epochs"])
    valid_batches = 0 if train.fixed else trial.valid_batches(len(valid))
    epochs = train_epochs(trial, task, clock, step, texts, valid_batches, options["lr"])
    test_quality = None
    if valid_batches == len(valid) and len(epochs) == clock.epochs and epochs[-1]["complete"]:
        trial.stage("test")
        test = Text(in_columns(texts.corpus.test, VALID_BATCH_SIZE, texts.home), train.bptt)
        test_quality = perplexity(validation_loss(task, test, len(test)))
    trial.stage("collect")
    return {
        **clock.told(epochs, len(valid), valid_batches),
        "precision": dict(
            arithmetic,
            output_dtypes=output_types,
            parameter_dtypes=precision.parameter_types(model),
            method=method,
            loss_scale=scale_log.facts() if scale_log else None,
        ),
        "data": {
            "name": texts.corpus.name,
            "source": trial.asked["data"],
            "sha256": texts.corpus.sha256,
            "train_items": len(texts.corpus.train),
            "valid_items": len(texts.corpus.valid),
            **clock.batches(),
        },
        "sample_unit": "token",
        "samples_per_step": batch_size * train.bptt,
        "quality_name": "perplexity",
        "test_quality": test_quality,
        "structure": {
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "vocabulary": texts.corpus.types,
            "padded_vocabulary": model.decoder.out_features,
        },
    }


def train_epochs(
    trial: TrialProcess,
    task: LanguageTask,
    clock: Clock,
    step: UpdateStep,
    texts: Texts,
    valid_batches: int,
    rate: float,
) -> list[dict[str, Any]]:
    """Training and validation until the protocol or the trial's limit ends; one record an epoch.

    Leaves the model as it was after the epoch of the best validation.
    """
    epochs: list[dict[str, Any]] = []
    best, best_weights = math.inf, None
    while len(epochs) < clock.epochs and not clock.over():
        trial.stage("train")
        task.model.train()
        state = task.model.first_state(trial.variant["batch_size"])
        clock.start()
        for tokens, targets in texts.train:
            clock.ready(tokens)
            loss, state = task.loss(tokens, targets, detached(state))
            clock.norm(step(loss, rate))
            clock.step(loss, targets.numel())
            if clock.over():
                break
        epoch = clock.stop()
        if valid_batches:
            trial.stage("valid")
            batches = clock.valid_batches(valid_batches)
            with stopwatch(task.device) as taken:
                loss = validation_loss(task, texts.valid, batches)
            epoch.update(valid_seconds=taken[0], valid_batches=batches, valid_loss=loss)
            epoch.update(quality=perplexity(loss))
            if loss < best:
                trial.stage("checkpoint")
                # Kept off the device, so that its peak memory is the training's.
                best, weights = loss, task.model.state_dict().items()
                best_weights = {name: weight.detach().cpu().clone() for name, weight in weights}
            else:
                rate /= SMALLER_RATE
        epochs.append(epoch)
        trial.event("epoch", **epoch)
    if best_weights:
        task.model.load_state_dict(best_weights)
    return epochs


@torch.no_grad()
def validation_loss(task: LanguageTask, valid: Text, limit: int) -> float:
    """Mean loss per word over the first `limit` batches; the state is carried on.

    The example divided by one row more than it had read, so its loss on the whole split is 1/21764 lower.
    """
    task.model.eval()
    state = task.model.first_state(VALID_BATCH_SIZE)
    total, words = torch.zeros((), dtype=torch.float64, device=task.device), 0
    for number in range(limit):
        tokens, targets = valid.batch(number)
        loss, state = task.loss(tokens, targets, state)
        total += loss.double() * targets.numel()
        words += targets.numel()
    return total.item() / words


def in_columns(tokens: Any, columns: int, device: torch.device) -> torch.Tensor:
    """The corpus as (rows, columns): each column a text that reads downwards; what fills no row is cut."""
    rows = len(tokens) // columns
    flat = torch.frombuffer(tokens, dtype=torch.int32)[: rows * columns].long()
    return flat.view(columns, rows).t().contiguous().to(device)


def detached(state: Any) -> Any:
    """The state's values without the past that led to them."""
    return tuple(part.detach() for part in state) if isinstance(state, tuple) else state.detach()


def perplexity(loss: float) -> float:
    """e to the power of a loss in nats per word; infinite where that has no float."""
    return math.exp(loss) if loss < 700 else math.inf
