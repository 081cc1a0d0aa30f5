"""The operations of a training step: two counts against each other, and both against known figures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.helpers.workload_runner import printed

pytestmark = pytest.mark.torch

SCRIPT = """
import json
import torchvision
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from parts.numerics import flops
import word_lm

def resnet(name):
    with torch.device("meta"):
        return getattr(torchvision.models, name)(weights=None)

def frozen(model):
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            layer.weight.requires_grad_(False)
    return model

def language_model(**told):
    model = word_lm.LanguageModel(50, dict(word_lm.OPTIONS, **told))
    return flops.token_operations(model, model.recurrent, model.decoder, (7, 3), 4)

names = ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152"]
told = {
    "whole": {name: flops.image_operations(resnet(name), 224, 2, 4) for name in names},
    "frozen": {name: flops.image_operations(frozen(resnet(name)), 224, 2, 4) for name in names},
    "words": language_model(emsize=8, nhid=16),
}
with FlopCounterMode(display=False) as forward:
    resnet("resnet50")(torch.zeros(1, 3, 224, 224, device="meta"))
told["forward"] = forward.get_total_flops()

class Hidden(nn.Module):
    # Its second product is no layer, so the layers' sizes do not know of it.
    def __init__(self):
        super().__init__()
        self.layer, self.weight = nn.Conv2d(3, 4, 1), nn.Parameter(torch.zeros(4, 4))
    def forward(self, images):
        return self.layer(images).mean((2, 3)) @ self.weight
told["hidden"] = flops.image_operations(Hidden(), 4, 2, 4)

line = nn.Sequential(nn.Conv2d(3, 4, 1, bias=False), nn.Flatten(), nn.ReLU())
with flops.Traffic() as traffic:
    line(torch.zeros(2, 3, 5, 5, device="meta")).view(-1)
told["traffic"] = traffic.values
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return json.loads(printed(SCRIPT)[-1])


def test_a_resnet_50_costs_8_178_gflop_forward_and_24_30_where_all_of_it_trains(told):
    assert told["forward"] / 1e9 == pytest.approx(8.178, abs=0.0005)
    assert told["whole"]["resnet50"]["per_sample"] / 1e9 == pytest.approx(24.30, abs=0.005)


@pytest.mark.parametrize("name", ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152"])
def test_a_frozen_body_has_no_gradients_of_its_weights_to_count(told, name):
    whole, frozen = (told[part][name]["per_sample"] for part in ("whole", "frozen"))
    # Of a forward pass and two gradients, one is left out for every convolution.
    assert frozen == pytest.approx(whole * 2 / 3, rel=0.015)
    assert frozen < whole * 2 / 3


def test_an_lstm_costs_what_one_counts_by_hand(told):
    first, second, decoder = 4 * (8 + 16) * 16, 4 * (16 + 16) * 16, 16 * 50
    assert told["words"]["per_sample"] == 3 * 2 * (first + second + decoder)


def test_counts_that_disagree_give_no_figure_and_say_so(told):
    assert told["hidden"]["per_sample"] is None
    assert "torch counts" in told["hidden"]["method"]


def test_traffic_is_what_operations_read_and_write_and_a_view_moves_nothing(told):
    images, weights, output = 2 * 3 * 25, 4 * 3, 2 * 4 * 25
    # Reading images and weights and writing the output of the convolution, then of the ReLU; the zeros once.
    assert told["traffic"] == images + (images + weights + output) + 2 * output
