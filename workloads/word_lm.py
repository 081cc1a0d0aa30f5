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

from parts.trial import TrialProcess, main  # isort: skip  (its clock starts with this line)

from dataclasses import replace
from typing import Any

from parts.device import choose, seed_everything
from parts.networks import language
from parts.networks.language import LanguageModel, LanguageTask, Text
from parts.numerics import flops, precision
from parts.numerics.update import clipped_sgd
from parts.timing import kernels

TITLE = "Language model: recurrent networks on WikiText-2"
ABOUT = "A recurrent network learns to predict the next word of WikiText-2, as in Apex's example."
CACHED_BATCHES = 64
OPTIONS: dict[str, Any] = {**language.OPTIONS, "preset": "apex", "pad_vocabulary": 1}
PRESETS = {"apex": {}, "tensor-core": {"emsize": 1504, "nhid": 1504, "dropout": 0.65, "pad_vocabulary": 8}}


def run(trial: TrialProcess) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    trial.choose("protocol", trial.asked["protocol"], ("published/1",))
    variant, options = trial.variant, chosen_options(trial)
    label, batch_size, cached = variant["precision"], variant["batch_size"], variant["data_mode"] == "cached"
    with trial.phase("device"):
        device = choose(trial.asked["device"], variant["gpus"])
        arithmetic = precision.prepare(label, device)

    trial.stage("data")
    with trial.phase("data"):
        texts = language.texts(trial, device)
        if cached:
            fixed = tuple(texts.train.batch(number) for number in range(CACHED_BATCHES))
            texts = replace(texts, train=Text(texts.train.rows, texts.train.bptt, fixed))

    trial.stage("setup")
    with trial.phase("model"):
        seed_everything(trial.seed)
        words = -(-texts.corpus.types // options["pad_vocabulary"]) * options["pad_vocabulary"]
        model = LanguageModel(variant["model"], words, options)
        shape = (texts.train.bptt, batch_size)
        operations = flops.of_tokens(model, model.recurrent, model.decoder, shape, flops.value_bytes(label))
        model.to(device, precision.weight_type(label))
        task = LanguageTask(model, label, device)
        update = clipped_sgd(label, model, options, variant["profile"] == "tuned", device)
    measured = language.measured(trial, task, texts, options, update, arithmetic)

    def again() -> None:
        model.train()
        update[0](task.loss(*texts.train.batch(0), model.first_state(batch_size))[0], options["lr"])

    return {
        **measured,
        "flops": operations,
        "notes": ["cached batches: nothing is validated"] if cached else [],
        "kernels": kernels.kernel_time(again, device),
    }


def chosen_options(trial: TrialProcess) -> dict[str, Any]:
    """The preset's options under the variant's own."""
    preset = (trial.variant.get("options") or {}).get("preset", "apex")
    options = trial.options({**OPTIONS, **trial.choose("preset", preset, PRESETS)})
    language.refuse_unknown(trial, options)
    return options


if __name__ == "__main__":
    main(run)
