"""Karmanov 2018's CheXNet on Apache MXNet's Gluon; the protocol is in `parts/chexnet/protocol.py`.

DenseNet-121 is the model zoo's with a layer of 14 outputs, hybridised as in the study, and trained by
`gluon.Trainer`. MXNet's engine works behind the host on a CPU too, so each step is waited for until its
update is done: otherwise a step's time would be that of giving the orders. The study waited at each
seventh batch alone, and ran out of memory where it never did.
"""

from __future__ import annotations

from parts.trial import Failed, TrialProcess, main  # isort: skip  (its clock starts with this line)

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from parts.chexnet import network, process
from parts.chexnet.protocol import BETAS, CLASSES, IMAGE_SIZE, Terms, terms
from parts.chexnet.training import Trainer
from parts.timing.step_clock import StepClock
from parts.trial import versions

LAYERS = (gluon.nn.Conv2D, gluon.nn.BatchNorm, gluon.nn.Dense)
OWN_NAMES = {"scale": "gamma", "shift": "beta", "mean": "running_mean", "variance": "running_var"}
FRAMEWORK = {"name": "MXNet, Gluon", "version": mx.__version__}


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, as far as its limit lets it go."""
    asked = terms(trial, {"mxnet-gluon": ("single",)})
    process.refuse_all_but_one_cpu(trial, "this MXNet has no build for a card of today")
    if asked.image_size != IMAGE_SIZE:
        raise Failed("unsupported", "the model zoo's DenseNet pools 7 × 7 features, those of 224 px alone")
    with trial.phase("model"):
        trainer = GluonTrainer(asked)
        found = process.one_cpu(trial, trainer.output_types, network.parameters(), matmul, convolution)
    clock_of = partial(
        StepClock,
        synchronise=mx.nd.waitall,
        values=lambda losses: [float(loss.asscalar()) for loss in losses],
    )
    found.update(versions=dict(versions(), mxnet=mx.__version__, numpy=np.__version__), framework=FRAMEWORK)
    return process.measure_training(trial, asked, trainer, clock_of, lambda batch: found)


def matmul(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return MXNet's product."""
    return mx.nd.dot(mx.nd.array(left), mx.nd.array(right)).asnumpy()


def convolution(images: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return MXNet's convolution, without padding."""
    shape = {"kernel": weights.shape[2:], "num_filter": len(weights), "no_bias": True}
    return mx.nd.Convolution(mx.nd.array(images), mx.nd.array(weights), **shape).asnumpy()


class GluonTrainer(Trainer):
    """The zoo's network and Gluon's Adam."""

    def __init__(self, asked: Terms) -> None:
        self.asked = asked
        self.net = gluon.model_zoo.vision.densenet121(classes=CLASSES)
        self.net.initialize()
        self.output_types = _types_of_first_pass(self.net)
        self.net.hybridize()
        self.loss = gluon.loss.SigmoidBinaryCrossEntropyLoss(from_sigmoid=not asked.variant.loss_of_logits)

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        for own, layer in zip(_layers(self.net), network.layers(), strict=True):
            kinds = OWN_NAMES if isinstance(layer, network.Norm) else {"weight": "weight", "bias": "bias"}
            for part, name in kinds.items():
                if f"{layer.name}/{part}" in arrays:
                    getattr(own, name).set_data(mx.nd.array(arrays[f"{layer.name}/{part}"]))
        first, second = BETAS
        adam = {
            "learning_rate": self.asked.learning_rate,
            "beta1": first,
            "beta2": second,
            "epsilon": self.asked.variant.adam_epsilon,
            "wd": 0.0,
        }
        self.trainer = gluon.Trainer(self.net.collect_params(), "adam", adam)

    def outputs(self, images: np.ndarray) -> np.ndarray:
        with autograd.predict_mode():
            return self.net(mx.nd.array(images)).asnumpy()

    def step(self, images: np.ndarray, labels: np.ndarray) -> mx.nd.NDArray:
        x, y = mx.nd.array(images), mx.nd.array(labels)
        with autograd.record():
            out = self.net(x)
            losses = self.loss(out if self.asked.variant.loss_of_logits else out.sigmoid(), y)
        losses.backward()
        self.trainer.step(len(images))
        loss = losses.mean()
        mx.nd.waitall()
        return loss


def _layers(block: gluon.Block) -> Iterator[gluon.Block]:
    """Yield the layers that have weights, in the order in which an image passes."""
    if isinstance(block, LAYERS):
        yield block
    for child in block._children.values():
        yield from _layers(child)


def _types_of_first_pass(net: gluon.Block) -> dict[str, int]:
    """Pass an image, from which the layers learn their shapes, and counts the types that they put out."""
    counted: Counter[str] = Counter()

    def count(layer: gluon.Block, given: Any, out: mx.nd.NDArray) -> None:
        counted[np.dtype(out.dtype).name] += 1

    hooked = [layer for layer in _layers(net) if not isinstance(layer, gluon.nn.BatchNorm)]
    hooks = [layer.register_forward_hook(count) for layer in hooked]
    with autograd.predict_mode():
        net(mx.nd.zeros((1, 3, IMAGE_SIZE, IMAGE_SIZE)))
    for hook in hooks:
        hook.detach()
    return dict(counted)


if __name__ == "__main__":
    main(run)
