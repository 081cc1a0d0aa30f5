"""A word-level recurrent language model on WikiText-2: speed and perplexity, fp32 against half precision.

Protocol `published/1` is the language model of study 004, Apex's example as it stood in January 2019
(28bdc04e): two recurrent layers of 200 units on embeddings of 200, dropout 0.2 on both sides of the recurrent
part, plain SGD of rate 20, gradients clipped to a norm of 0.25, batch 20, sequences of 35 tokens with the
state carried on, the rate divided by 4 after every epoch whose validation loss is no new best; 30 epochs, as
the study ran it, where the option `epochs` asks for no other number. Validation reads batches of 10. The
study's figures were printed as images alone, so what can be held against it is the ratio of half to full
precision, and the perplexities that the example's own page gives.

`preset = "tensor-core"` has the sizes to which the example moved nine days after the study: 1504 units,
dropout 0.65, and a vocabulary padded to a multiple of 8, to be run at batch 24.

"fp16-master" follows one of the example's two scripts; which one the study ran is lost. `fp16_path` names it
(see `parts/update.py`): "fp16_optimizer" is Apex's own FP16_Optimizer where it is installed, else the same by
our own master weights, and the record's `method` says which ran. In both scripts the whole model is half, and
so is the loss.
"""

from parts.trial import Failed, Trial, main  # isort: skip  (its clock starts with this line)

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from parts import datasets, flops, kernels, precision, recurrent
from parts.clock import Clock, stopwatch
from parts.device import choose, facts, seed_everything, software
from parts.update import SgdStep, clipped_sgd

SMALLER_RATE = 4.0
VALID_BATCH_SIZE = 10
BPTT = 35
INITIAL_RANGE = 0.1
CACHED_BATCHES = 64
KINDS = ("RNN_TANH", "RNN_RELU", "GRU", "LSTM")
OPTIONS: dict[str, Any] = {
    "preset": "apex",
    "epochs": 30,
    "emsize": 200,
    "nhid": 200,
    "layers": 2,
    "dropout": 0.2,
    "lr": 20.0,
    "clip": 0.25,
    "tied": False,
    "pad_vocabulary": 1,
    "fp16_path": "fp16_optimizer",
    "loss_scale": "static",
    "static_loss_scale": 1.0,
}
PRESETS = {"apex": {}, "tensor-core": {"emsize": 1504, "nhid": 1504, "dropout": 0.65, "pad_vocabulary": 8}}

Batch = tuple[torch.Tensor, torch.Tensor]


class LanguageModel(nn.Module):
    """Embedding, recurrent layers, and a decoder to a score for each word of the vocabulary."""

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
            nonlinearity = kind.removeprefix("RNN_").lower()
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
    fixed: tuple[Batch, ...] = ()
    """Where there are some, these come round and round instead."""

    def __len__(self) -> int:
        return math.ceil((len(self.rows) - 1) / self.bptt)

    def __iter__(self) -> Iterator[Batch]:
        for number in range(len(self)):
            yield self.fixed[number % len(self.fixed)] if self.fixed else self.batch(number)

    def batch(self, number: int) -> Batch:
        """Tokens as (rows, columns) and the token below each, flat; the last batch is what is left."""
        first = number * self.bptt
        last = min(first + self.bptt, len(self.rows) - 1)
        return self.rows[first:last], self.rows[first + 1 : last + 1].flatten()


@dataclass(frozen=True)
class Task:
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


def run(trial: Trial) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    trial.choose("protocol", trial.asked["protocol"], ("published/1",))
    variant, options = trial.variant, chosen_options(trial)
    label, batch_size, cached = variant["precision"], variant["batch_size"], variant["data_mode"] == "cached"
    with trial.phase("device"):
        device = choose(trial.asked["device"], variant["gpus"])
        arithmetic = precision.prepare(label, device)

    trial.stage("data")
    with trial.phase("data"):
        corpus = datasets.wikitext_2(trial.data_folder, trial.asked["data"])
        home = torch.device("cpu") if variant["data_mode"] == "host" else device
        bptt = variant["sequence_length"] or BPTT
        train = Text(in_columns(corpus.train, batch_size, home), bptt)
        valid = Text(in_columns(corpus.valid, VALID_BATCH_SIZE, home), bptt)
        if cached:
            fixed = tuple(train.batch(number) for number in range(CACHED_BATCHES))
            train = Text(train.rows, bptt, fixed)

    trial.stage("setup")
    with trial.phase("model"):
        seed_everything(trial.seed)
        words = -(-corpus.types // options["pad_vocabulary"]) * options["pad_vocabulary"]
        model = LanguageModel(variant["model"], words, options)
        shape = (bptt, batch_size)
        operations = flops.of_tokens(model, model.recurrent, model.decoder, shape, flops.value_bytes(label))
        model.to(device, precision.weight_type(label))
        task = Task(model, label, device)
        step, method, scale_log = clipped_sgd(label, model, options, variant["profile"] == "tuned", device)
    with trial.phase("first_step"), precision.rehearsal(model, device) as output_types:
        task.loss(*train.batch(0), model.first_state(batch_size))[0].backward()

    clock = Clock(trial, device, steps_per_epoch=len(train), epochs=options["epochs"])
    valid_batches = 0 if cached else trial.valid_batches(len(valid))
    epochs = train_epochs(trial, task, clock, step, train, valid, valid_batches, options["lr"], batch_size)
    ended = clock.ended(epochs, whole=valid_batches == len(valid))
    test_loss = None
    if valid_batches == len(valid) and len(epochs) == clock.epochs and epochs[-1]["complete"]:
        test = Text(in_columns(corpus.test, VALID_BATCH_SIZE, home), bptt)
        test_loss = validation_loss(task, test, len(test))

    trial.stage("collect")
    series = clock.series()

    def again() -> None:
        model.train()
        step(task.loss(*train.batch(0), model.first_state(batch_size))[0], options["lr"])

    protocol = {"steps_per_epoch": len(train), "epochs": options["epochs"], "valid_batches": len(valid)}
    return {
        "device": facts(trial.asked["device"], device),
        "versions": software(),
        "precision": dict(
            arithmetic,
            output_dtypes=output_types,
            parameter_dtypes=precision.parameter_types(model),
            method=method,
            loss_scale=scale_log.facts() if scale_log else None,
        ),
        "data": {
            "name": corpus.name,
            "source": trial.asked["data"],
            "sha256": corpus.sha256,
            "train_items": len(corpus.train),
            "valid_items": len(corpus.valid),
            **clock.batches(),
        },
        "protocol": dict(protocol, **ended),
        "sample_unit": "token",
        "samples_per_step": batch_size * bptt,
        "epochs": epochs,
        "quality_name": "perplexity",
        "test_quality": None if test_loss is None else perplexity(test_loss),
        "flops": operations,
        "structure": {
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "vocabulary": corpus.types,
            "padded_vocabulary": words,
        },
        "notes": ["cached batches: nothing is validated"] if cached else [],
        "kernels": kernels.kernel_time(again, device),
        **series,
    }


def train_epochs(
    trial: Trial,
    task: Task,
    clock: Clock,
    step: SgdStep,
    train: Text,
    valid: Text,
    valid_batches: int,
    rate: float,
    batch_size: int,
) -> list[dict[str, Any]]:
    """Training and validation until the protocol or the trial's limit ends; one record an epoch.

    Leaves the model as it was after the epoch of the best validation.
    """
    epochs: list[dict[str, Any]] = []
    best, best_weights = math.inf, None
    while len(epochs) < clock.epochs and not clock.over():
        trial.stage("train")
        task.model.train()
        state = task.model.first_state(batch_size)
        clock.start()
        for tokens, targets in train:
            clock.ready(tokens)
            loss, state = task.loss(tokens, targets, detached(state))
            clock.norm(step(loss, rate))
            clock.step(loss, targets.numel())
            if clock.over():
                break
        epoch = clock.stop()
        if valid_batches:
            trial.stage("valid")
            with stopwatch(task.device) as taken:
                loss = validation_loss(task, valid, valid_batches)
            epoch.update(valid_seconds=taken[0], valid_batches=valid_batches, valid_loss=loss)
            epoch.update(quality=perplexity(loss))
            if loss < best:
                best, best_weights = loss, copy_on_host(task.model)
            else:
                rate /= SMALLER_RATE
        epochs.append(epoch)
        trial.event("epoch", **epoch)
    if best_weights:
        task.model.load_state_dict(best_weights)
    return epochs


@torch.no_grad()
def validation_loss(task: Task, valid: Text, limit: int) -> float:
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


def copy_on_host(model: nn.Module) -> dict[str, torch.Tensor]:
    """The model's weights, kept off the device so that its peak memory is the training's."""
    return {name: weight.detach().cpu().clone() for name, weight in model.state_dict().items()}


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


def chosen_options(trial: Trial) -> dict[str, Any]:
    """The preset's options under the variant's own."""
    trial.choose("model", trial.variant["model"], KINDS)
    preset = (trial.variant.get("options") or {}).get("preset", "apex")
    options = trial.options({**OPTIONS, **trial.choose("preset", preset, PRESETS)})
    trial.choose("fp16_path", options["fp16_path"], ("main", "fp16_optimizer"))
    trial.choose("loss_scale", options["loss_scale"], ("static", "dynamic"))
    return options


if __name__ == "__main__":
    main(run, __file__)
