"""The language model of Bhutani 2019 on its own stack, torch 1.0: protocol `published/1` of `word_lm`.

The protocol stands at the head of `workloads/word_lm.py`, and the model, its text and its loop are the same
code. What differs is the library: torch's own recurrent layers and SGD as they were, and the "FP16" of the
example's two scripts without Apex (see `master_weights.py`); `fp16_path` names the script. Operations and
kernel times are unknown: this torch can count neither.
"""

from __future__ import annotations

from parts.trial import TrialProcess, main  # isort: skip  (its clock starts with this line)

from frameworks.era2019 import torch_of_2019  # noqa: F401  # isort: skip  (before the shared parts)

from typing import Any

from torch import nn

from frameworks.era2019 import precisions
from frameworks.era2019.master_weights import clipped_sgd
from parts.device import choose, seed_everything
from parts.networks import language
from parts.networks.language import LanguageModel, Task
from parts.numerics import precision


def run(trial: TrialProcess) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    trial.choose("protocol", trial.asked["protocol"], ("published/1",))
    variant, options = trial.variant, chosen_options(trial)
    label = variant["precision"]
    with trial.phase("device"):
        device = choose(trial.asked["device"], variant["gpus"])
        arithmetic = precisions.prepare(label, device)

    trial.stage("data")
    with trial.phase("data"):
        texts = language.texts(trial, device)

    trial.stage("setup")
    with trial.phase("model"):
        seed_everything(trial.seed)
        model = LanguageModel(nn, variant["model"], texts.corpus.types, options)
        model.to(device, precision.weight_type(label))
        update = clipped_sgd(label, model, options)
    return language.measured(trial, Task(model, label, device), texts, options, update, arithmetic)


def chosen_options(trial: TrialProcess) -> dict[str, Any]:
    """The variant's options over the example's; refuses what the example or this torch does not have."""
    trial.choose("data_mode", trial.variant["data_mode"], ("host", "device"))
    trial.choose("profile", trial.variant["profile"], ("default",))
    options = trial.options(language.OPTIONS)
    language.refuse_unknown(trial, options)
    return options


if __name__ == "__main__":
    main(run, __file__)
