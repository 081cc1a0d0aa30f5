"""A word-level recurrent language model on WikiText-2: speed and perplexity, fp32 against half precision.

Protocol `published/1` is the language model of Bhutani 2019, Apex's example as it stood in January 2019
(28bdc04e): a two-layer LSTM of 200 units on embeddings of 200, dropout 0.2 on both sides of the recurrent
part, plain SGD of rate 20, gradients clipped to a norm of 0.25, batch 20, sequences of 35 tokens with the
state carried on, the rate divided by 4 after every epoch whose validation loss is no new best; 30 epochs, as
the study ran it, where the option `epochs` asks for no other number. Validation reads batches of 10. The
study's figures were printed as images alone, so what can be held against it is the ratio of half to full
precision, and the perplexities that the example's own page gives.

`preset = "tensor-core"` has the sizes to which the example moved nine days after the study: 1504 units,
dropout 0.65, and a vocabulary padded to a multiple of 8, to be run at batch 24.

"fp16-master" follows the example's main_fp16_optimizer.py (see `parts/numerics/update.py`): Apex's own
FP16_Optimizer where it is installed, else the same by our own master weights, and the record's `method` says
which ran. The whole model is half, and so is the loss.
"""

from __future__ import annotations

from parts.trial import Failed, TrialProcess, main  # isort: skip  (its clock starts with this line)

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import _VF, nn

from parts.device import choose, facts, seed_everything, software
from parts.inputs import datasets
from parts.numerics import flops, precision
from parts.numerics.update import SgdStep, clipped_sgd
from parts.timing import profiler
from parts.timing.clock import Clock, stopwatch
from parts.timing.measurement import make_measurement
from parts.training.batches import Batch, Rotated

TITLE = "Language model: recurrent networks on WikiText-2"
ABOUT = "A recurrent network learns to predict the next word of WikiText-2, as in Apex's example."
LAYERS = 2
BPTT = 35
RATE, SMALLER_RATE, CLIP = 20.0, 4.0, 0.25
VALID_BATCH_SIZE = 10
INITIAL_RANGE = 0.1
CACHED_BATCHES = 64
OPTIONS: dict[str, Any] = {
    "preset": "apex",
    "epochs": 30,
    "emsize": 200,
    "nhid": 200,
    "dropout": 0.2,
    "tied": False,
    "loss_scale": "static",
}
PRESETS = {"apex": {}, "tensor-core": {"emsize": 1504, "nhid": 1504, "dropout": 0.65}}
VOCABULARY_MULTIPLE = {"apex": 1, "tensor-core": 8}

State = tuple[torch.Tensor, ...]


class LSTM(nn.LSTM):
    """torch's LSTM, in bf16 where autocast is entered with it.

    Autocast casts a fused recurrent layer to fp16 on CUDA and HIP, whatever type it was entered with. Under
    bf16 this layer leaves it and casts input, state and weights itself; the gradients of the weights come
    back in the weights' own type.
    """

    def forward(self, sequence: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        """Return output and state as torch's layer gives them."""
        kind, dtype = sequence.device.type, torch.bfloat16
        entered = kind != "meta" and torch.is_autocast_enabled(kind)
        if not entered or torch.get_autocast_dtype(kind) is not dtype:
            return super().forward(sequence, state)
        with torch.autocast(kind, enabled=False):
            output, *states = _VF.lstm(
                sequence.to(dtype),
                tuple(part.to(dtype) for part in state),
                [weight.to(dtype) for weight in self._flat_weights],
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        return output, tuple(states)


class LanguageModel(nn.Module):
    """Embedding, recurrent layers, and a decoder to a score for each word."""

    def __init__(self, words: int, options: dict[str, Any]) -> None:
        super().__init__()
        width, units, dropout = options["emsize"], options["nhid"], options["dropout"]
        if options["tied"] and width != units:
            raise Failed("unsupported", f"tied weights need nhid = emsize, not {units} and {width}")
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.Embedding(words, width)
        self.recurrent = LSTM(width, units, LAYERS, dropout=dropout)
        self.decoder = nn.Linear(units, words)
        nn.init.uniform_(self.encoder.weight, -INITIAL_RANGE, INITIAL_RANGE)
        nn.init.uniform_(self.decoder.weight, -INITIAL_RANGE, INITIAL_RANGE)
        nn.init.zeros_(self.decoder.bias)
        if options["tied"]:
            self.decoder.weight = self.encoder.weight

    def forward(self, tokens: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """Return scores as (tokens, vocabulary), and the state to go on from."""
        embedded = self.dropout(self.encoder(tokens))
        output, state = self.recurrent(embedded, state)
        return self.decoder(self.dropout(output)).flatten(0, 1), state

    def first_state(self, batch_size: int) -> State:
        """Return zeros in the type and on the device of the weights."""
        zeros = self.decoder.weight.new_zeros((LAYERS, batch_size, self.recurrent.hidden_size))
        return zeros, zeros.clone()


@dataclass(frozen=True)
class Text:
    """A split as (rows, columns), read `bptt` rows at a time."""

    rows: torch.Tensor
    bptt: int

    def __len__(self) -> int:
        return math.ceil((len(self.rows) - 1) / self.bptt)

    def __iter__(self) -> Iterator[Batch]:
        return (self.batch(number) for number in range(len(self)))

    def batch(self, number: int) -> Batch:
        """Return tokens as (rows, columns) and the token below each, flat; the last batch is what is left."""
        first = number * self.bptt
        last = min(first + self.bptt, len(self.rows) - 1)
        return self.rows[first:last], self.rows[first + 1 : last + 1].flatten()


@dataclass(frozen=True)
class LanguageTask:
    """What training and validation share."""

    model: LanguageModel
    label: str
    device: torch.device

    def loss(self, tokens: torch.Tensor, targets: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """Return cross-entropy in nats per word, and the state, in the trial's precision."""
        tokens, targets = tokens.to(self.device), targets.to(self.device)
        with precision.autocast(self.label, self.device):
            output, state = self.model(tokens, state)
            return nn.functional.cross_entropy(output, targets), state


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, as far as its limit lets it go."""
    trial.choose("protocol", trial.asked["protocol"], ("published/1",))
    trial.choose("model", trial.variant["model"], ("LSTM",))
    variant, options = trial.variant, chosen_options(trial)
    label, batch_size, mode = variant["precision"], variant["batch_size"], variant["data_mode"]
    with trial.phase("device"):
        device = choose(trial.asked["device"], variant["gpus"])
        arithmetic = precision.prepare(label, device)

    trial.stage("data")
    with trial.phase("data"):
        corpus = datasets.wikitext_2(trial.data_folder, trial.asked["data"])
        home = torch.device("cpu") if mode == "host" else device
        text = Text(split_into_columns(corpus.train, batch_size, home), variant["sequence_length"] or BPTT)
        valid = Text(split_into_columns(corpus.valid, VALID_BATCH_SIZE, home), text.bptt)
        fixed = [text.batch(number) for number in range(CACHED_BATCHES)] if mode == "cached" else []
        train = Rotated(fixed, len(text)) if fixed else text

    trial.stage("setup")
    with trial.phase("model"):
        seed_everything(trial.seed)
        multiple = VOCABULARY_MULTIPLE[options["preset"]]
        model = LanguageModel(-(-corpus.types // multiple) * multiple, options)
        shape = (text.bptt, batch_size)
        size = flops.value_bytes(label)
        operations = flops.token_operations(model, model.recurrent, model.decoder, shape, size)
        model.to(device, precision.weight_type(label))
        task = LanguageTask(model, label, device)
        step, method, scale_log = clipped_sgd(label, model, CLIP, options["loss_scale"], device)
    with trial.phase("first_step"), precision.rehearsal(model, device) as output_types:
        task.loss(*text.batch(0), model.first_state(batch_size))[0].backward()

    clock = Clock(trial, device, steps_per_epoch=len(train), epochs=options["epochs"])
    # Fixed batches are not validated.
    valid_batches = 0 if fixed else trial.valid_batches(len(valid))
    epochs = train_epochs(trial, task, clock, step, train, valid, valid_batches)
    test_quality = None
    if valid_batches == len(valid) and len(epochs) == clock.epochs and epochs[-1]["complete"]:
        trial.stage("test")
        test = Text(split_into_columns(corpus.test, VALID_BATCH_SIZE, home), text.bptt)
        test_quality = perplexity(validation_loss(task, test, len(test)))

    trial.stage("collect")

    def again() -> None:
        model.train()
        step(task.loss(*text.batch(0), model.first_state(batch_size))[0], RATE)

    return make_measurement(
        clock,
        epochs,
        clock.series(),
        device=facts(trial.asked["device"], device),
        versions=software(),
        precision=precision.effective_precision(arithmetic, model, output_types, method, scale_log),
        data=datasets.facts(corpus, len(corpus.train), len(corpus.valid)),
        sample_unit="token",
        samples_per_step=batch_size * text.bptt,
        structure={
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "vocabulary": corpus.types,
            "padded_vocabulary": model.decoder.out_features,
        },
        valid_batches=len(valid),
        validated=valid_batches,
        quality_name="perplexity",
        tested={"test_quality": test_quality},
        flops=operations,
        kernels=profiler.kernel_time(again, device),
        notes=["cached batches: nothing is validated"] if fixed else [],
    )


def chosen_options(trial: TrialProcess) -> dict[str, Any]:
    """Return the preset's options under the variant's own."""
    preset = (trial.variant.get("options") or {}).get("preset", "apex")
    options = trial.options({**OPTIONS, **trial.choose("preset", preset, PRESETS)})
    trial.choose("loss_scale", options["loss_scale"], ("static", "dynamic"))
    return options


def train_epochs(
    trial: TrialProcess,
    task: LanguageTask,
    clock: Clock,
    update: SgdStep,
    train: Text | Rotated,
    valid: Text,
    valid_batches: int,
) -> list[dict[str, Any]]:
    """Train and validate until the protocol or the trial's limit ends; one record an epoch.

    Leaves the model as it was after the epoch of the best validation.
    """
    model, batch_size = task.model.train(), trial.variant["batch_size"]
    state, rate = model.first_state(batch_size), RATE
    best, best_weights = math.inf, None

    def step(batch: Batch) -> None:
        nonlocal state
        tokens, targets = batch
        clock.ready(tokens)
        loss, state = task.loss(tokens, targets, tuple(part.detach() for part in state))
        clock.norm(update(loss, rate))
        clock.step(loss, targets.numel())

    def after(epoch: dict[str, Any]) -> None:
        nonlocal state, rate, best, best_weights
        if valid_batches:
            trial.stage("valid")
            batches = clock.valid_batches(valid_batches)
            with stopwatch(task.device) as taken:
                loss = validation_loss(task, valid, batches)
            epoch.update(valid_seconds=taken[0], valid_batches=batches, valid_loss=loss)
            epoch.update(quality=perplexity(loss))
            if loss < best:
                trial.stage("checkpoint")
                # Kept off the device, so that its peak memory is the training's.
                best, weights = loss, model.state_dict().items()
                best_weights = {name: weight.detach().cpu().clone() for name, weight in weights}
            else:
                rate /= SMALLER_RATE
        model.train()
        state = model.first_state(batch_size)

    epochs = clock.run(lambda: train, step, after=after)
    if best_weights:
        model.load_state_dict(best_weights)
    return epochs


@torch.no_grad()
def validation_loss(task: LanguageTask, valid: Text, limit: int) -> float:
    """Return the mean loss per word over the first `limit` batches; the state is carried on.

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


def split_into_columns(tokens: Any, columns: int, device: torch.device) -> torch.Tensor:
    """Return the corpus as (rows, columns): each column a text that reads downwards; what fills no row is
    cut."""
    rows = len(tokens) // columns
    flat = torch.frombuffer(tokens, dtype=torch.int32)[: rows * columns].long()
    return flat.view(columns, rows).t().contiguous().to(device)


def perplexity(loss: float) -> float:
    """Return e to the power of a loss in nats per word; infinite where that has no float."""
    return math.exp(loss) if loss < 700 else math.inf


if __name__ == "__main__":
    main(run)
