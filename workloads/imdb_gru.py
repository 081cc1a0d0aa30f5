"""Karmanov 2018's GRU on the reviews of IMDB, in PyTorch: seconds of three epochs, and the accuracy after.

The network, its data and the protocol of every framework stand in `parts/small/`. Protocol `published/1` is
the notebook of PyTorch 0.3.1 (June 2018, a P100): Adam at 0.001, batch 64, three epochs in an order that is
drawn anew, whole batches alone, PyTorch's own initial weights. The clock starts before the first step, and
building the model is not in it. `fair/1` begins with the weights that all frameworks begin with.

Not the study's: the test reviews are seen after each epoch, outside the clock, where it saw them once at the
end; and each batch is gathered by itself.

Data mode `host` keeps the reviews in the host's memory, as published; `device` on the device.
"""

from parts.trial import Trial, main  # isort: skip  (its clock starts with this line)

from typing import Any

import torch
from torch import nn

from parts.small import in_torch
from parts.small.gru import BETAS, CLASSES, EMBEDDED, EPSILON, RATE, UNITS, WORDS, WORK

NAMES = {
    "embedding": "embedding.weight",
    "gru/input": "gru.weight_ih_l0",
    "gru/state": "gru.weight_hh_l0",
    "gru/input_bias": "gru.bias_ih_l0",
    "gru/state_bias": "gru.bias_hh_l0",
    "dense/weight": "dense.weight",
    "dense/bias": "dense.bias",
}


class Network(nn.Module):
    """Word numbers as (items, 150) to two scores."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, EMBEDDED)
        self.gru = nn.GRU(EMBEDDED, UNITS, batch_first=True)
        self.dense = nn.Linear(UNITS, CLASSES)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """The scores, of what the last step put out."""
        return self.dense(self.gru(self.embedding(words))[0][:, -1])


def optimiser(model: nn.Module) -> torch.optim.Optimizer:
    """The study's Adam."""
    return torch.optim.Adam(model.parameters(), lr=RATE, betas=BETAS, eps=EPSILON)


def run(trial: Trial) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    return in_torch.run(trial, WORK, Network, NAMES, optimiser, __file__)


if __name__ == "__main__":
    main(run, __file__)
