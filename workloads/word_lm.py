"""A word-level recurrent language model on WikiText-2: speed and perplexity, fp32 against half precision.

Protocol `published/1` is the language model of Bhutani 2019, Apex's example as it stood in January 2019
(28bdc04e): two recurrent layers of 200 units on embeddings of 200, dropout 0.2 on both sides of the recurrent
part, plain SGD of rate 20, gradients clipped to a norm of 0.25, batch 20, sequences of 35 tokens with the
state carried on, the rate divided by 4 after every epoch whose validation loss is no new best; 30 epochs, as
the study ran it, where the option `epochs` asks for no other number. Validation reads batches of 10. The
study's figures were printed as images alone, so what can be held against it is the ratio of half to full
precision, and the perplexities that the example's own page gives.

`preset = "tensor-core"` has the sizes to which the example moved nine days after the study: 1504 units,
dropout 0.65, and a vocabulary padded to a multiple of 8, to be run at batch 24.

"fp16-master" follows one of the example's two scripts; which one the study ran is lost. `fp16_path` names it
(see `parts/numerics/update.py`): "fp16_optimizer" is Apex's own FP16_Optimizer where it is installed, else
the same by our own master weights, and the record's `method` says which ran. In both scripts the whole model
is half, and so is the loss.
"""

from parts.trial import Trial, main  # isort: skip  (its clock starts with this line)

from typing import Any

import torch

from parts.device import choose, facts, seed_everything, software
from parts.inputs import datasets
from parts.networks import recurrent
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
from parts.numerics import flops, precision
from parts.numerics.update import clipped_sgd
from parts.timing import kernels
from parts.timing.clock import Clock

TITLE = "Language model: recurrent networks on WikiText-2"
ABOUT = "A recurrent network learns to predict the next word of WikiText-2, as in Apex's example."
BPTT = 35
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
        model = LanguageModel(recurrent, variant["model"], words, options)
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
        trial.stage("test")
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
