"""The language model of Bhutani 2019 on its own stack, torch 1.0: protocol `published/1` of `word_lm`.

The protocol stands at the head of `workloads/word_lm.py`, and the model, its text and its loop are the same
code. What differs is the library: torch's own recurrent layers and SGD as they were, and the "FP16" of the
example's two scripts without Apex (see `master_weights.py`); `fp16_path` names the script. Operations and
kernel times are unknown: this torch can count neither.
"""

from __future__ import annotations

from parts.trial import Trial, main  # isort: skip  (its clock starts with this line)

from frameworks.era2019 import torch_of_2019  # noqa: F401  # isort: skip  (before the shared parts)

from typing import Any

import torch
from torch import nn

from frameworks.era2019 import precisions
from frameworks.era2019.master_weights import clipped_sgd
from parts.device import choose, facts, seed_everything, software
from parts.inputs import datasets
from parts.networks.language import (
    VALID_BATCH_SIZE,
    LanguageModel,
    Task,
    Text,
    in_columns,
    perplexity,
    train_epochs,
    validation_loss,
)
from parts.numerics import precision
from parts.timing.clock import Clock

BPTT = 35
KINDS = ("RNN_TANH", "RNN_RELU", "GRU", "LSTM")
OPTIONS = {
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


def run(trial: Trial) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    trial.choose("protocol", trial.asked["protocol"], ("published/1",))
    variant, options = trial.variant, chosen_options(trial)
    label, batch_size = variant["precision"], variant["batch_size"]
    with trial.phase("device"):
        device = choose(trial.asked["device"], variant["gpus"])
        arithmetic = precisions.prepare(label, device)

    trial.stage("data")
    with trial.phase("data"):
        corpus = datasets.wikitext_2(trial.data_folder, trial.asked["data"])
        home = torch.device("cpu") if variant["data_mode"] == "host" else device
        bptt = variant["sequence_length"] or BPTT
        train = Text(in_columns(corpus.train, batch_size, home), bptt)
        valid = Text(in_columns(corpus.valid, VALID_BATCH_SIZE, home), bptt)

    trial.stage("setup")
    with trial.phase("model"):
        seed_everything(trial.seed)
        model = LanguageModel(nn, variant["model"], corpus.types, options)
        model.to(device, precision.weight_type(label))
        task = Task(model, label, device)
        step, method, scale_log = clipped_sgd(label, model, options)
    with trial.phase("first_step"), precision.rehearsal(model, device) as output_types:
        task.loss(*train.batch(0), model.first_state(batch_size))[0].backward()

    clock = Clock(trial, device, steps_per_epoch=len(train), epochs=options["epochs"])
    valid_batches = trial.valid_batches(len(valid))
    epochs = train_epochs(trial, task, clock, step, train, valid, valid_batches, options["lr"], batch_size)
    ended = clock.ended(epochs, whole=valid_batches == len(valid))
    test_loss = None
    if valid_batches == len(valid) and len(epochs) == clock.epochs and epochs[-1]["complete"]:
        trial.stage("test")
        test = Text(in_columns(corpus.test, VALID_BATCH_SIZE, home), bptt)
        test_loss = validation_loss(task, test, len(test))

    trial.stage("collect")
    series = clock.series()
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
        "structure": {
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "vocabulary": corpus.types,
            "padded_vocabulary": corpus.types,
        },
        **series,
    }


def chosen_options(trial: Trial) -> dict[str, Any]:
    """The variant's options over the example's; refuses what the example or this torch does not have."""
    trial.choose("model", trial.variant["model"], KINDS)
    trial.choose("data_mode", trial.variant["data_mode"], ("host", "device"))
    trial.choose("profile", trial.variant["profile"], ("default",))
    options = trial.options(OPTIONS)
    trial.choose("fp16_path", options["fp16_path"], ("main", "fp16_optimizer"))
    trial.choose("loss_scale", options["loss_scale"], ("static", "dynamic"))
    return options


if __name__ == "__main__":
    main(run, __file__)
