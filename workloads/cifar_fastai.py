"""fastai's ResNets on CIFAR-100: seconds and accuracy, fp32 against half precision.

Protocol `published/1` is Bhutani 2019 (fastai 1.0.41, January 2019), with its traps:

- training and test images are pooled, and a random fifth of all 60,000 (NumPy's seed 42) is the validation
  split;
- images grow from 32 to 224 pixels; flips, warps of 0.2, rotations of 10 degrees, zooms of 1.1 and lighting
  of 0.2 come in one interpolation with reflected edges, then CIFAR's mean and deviation;
- the body has ImageNet weights (V1) and stays frozen except its batch norms, so that the backward pass goes
  through it and computes no gradient of a convolution; a head of two layers is trained;
- 30 one-cycle epochs with decoupled weight decay of 0.01 on every weight, at rates of 3e-4 in the body and
  3e-3 in the head; ResNet-18 in fp32 alone had 1e-2 everywhere. ResNet-18 had one epoch more before the 30,
  outside the published time: it runs where the trial has no limit. The option `lead_in` asks for it alone;
- "FP16" is a half model, batch norms in fp32, with fp32 master weights and a static loss scale of 512; the
  batch size grew with it, so the plan gives one for each precision;
- cuDNN tunes its convolutions; the last training batch is dropped unless whole;
- its training loss is fastai's moving average over the steps, given besides the mean of each epoch.

Protocol `fair/1` is the same on the official split of 50,000 and 10,000, with the same rates in every
precision.
"""

from parts.trial import TrialProcess, main  # isort: skip  (its clock starts with this line)

import io
from functools import partial
from typing import Any

import fastai
import fastai.callback.schedule
import numpy as np
import torch
import torchvision
from fastai.callback.progress import ProgressCallback
from fastai.layers import AdaptiveConcatPool2d, Flatten
from fastai.learner import Learner
from fastai.losses import CrossEntropyLossFlat
from fastai.metrics import accuracy
from fastai.optimizer import Adam
from fastai.torch_core import apply_init
from torch import nn

from parts.device import choose, facts, seed_everything, software
from parts.inputs import datasets
from parts.numerics import flops, precision
from parts.numerics.update import LABELS
from parts.timing.clock import Clock
from parts.timing.measurement import make_measurement
from parts.training.batches import Batch, image_tensors
from parts.training.fastai_learner import (
    Input,
    Loaders,
    Measured,
    Preparation,
    Rehearsal,
    ScaleRecorder,
    kernel_time,
    loaders,
    precision_callbacks,
)
from parts.training.fastai_protocol import (
    BODIES,
    EPOCHS,
    OPTIONS,
    RATE_OF_RESNET18_FP32,
    RATES,
    image_parts,
    leads_in,
    pooled_split,
)

TITLE = "Image classification: ResNets on CIFAR-100, with fastai"
ABOUT = "A ResNet with a pretrained, frozen body learns CIFAR-100's 100 classes (Bhutani 2019)."
PROTOCOLS = ("published/1", "fair/1")
IMAGE_SIZE = 224
WEIGHT_DECAY = 0.01
MOMENTUMS = (0.95, 0.85, 0.95)
CYCLE = {"div": 25.0, "div_final": 25.0e4, "pct_start": 0.3, "moms": MOMENTUMS}
CIFAR_STATS = ((0.491, 0.482, 0.447), (0.247, 0.243, 0.261))


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, as far as its limit lets it go."""
    protocol = trial.choose("protocol", trial.asked["protocol"], PROTOCOLS)
    variant, options = trial.variant, trial.options(OPTIONS)
    features, weights_file = trial.choose("model", variant["model"], BODIES)
    trial.choose("profile", variant["profile"], ("default",))
    trial.choose("layout", variant["layout"], ("contiguous",))
    label, mode = (
        trial.choose("precision", variant["precision"], (*LABELS, "fp16-master")),
        variant["data_mode"],
    )
    cached = mode == "cached"
    size, batch_size = variant["image_size"] or IMAGE_SIZE, variant["batch_size"]
    with trial.phase("device"):
        device = choose(trial.asked["device"], variant["gpus"])
        torch.backends.cudnn.benchmark = True
        arithmetic = precision.prepare(label, device)

    trial.stage("data")
    with trial.phase("data"):
        images = datasets.cifar_100(trial.data_folder, trial.asked["data"])
        weights, weights_sha256 = None, None
        if trial.asked["weights"] == "pretrained":
            weights, weights_sha256 = datasets.weights(trial.data_folder, weights_file)
        train, valid = split(images, protocol)
        seed_everything(trial.seed)
        prepare = Preparation(mode, size, CIFAR_STATS, device)
        data = loaders(train, valid, batch_size, size, prepare, options["workers"])
    train_items, valid_items = len(train[1]), len(valid[1])
    steps_per_epoch, valid_steps = train_items // batch_size, -(-valid_items // batch_size)
    all_epochs = 1 if options["lead_in"] else EPOCHS
    clock = Clock(trial, device, steps_per_epoch=steps_per_epoch, epochs=all_epochs)
    valid_batches = 0 if cached else trial.valid_batches(valid_steps)

    trial.stage("setup")
    with trial.phase("model"):
        model = network(variant["model"], features, images.classes, weights)
        learner = learner_of(data, model)
        operations = flops.image_operations(model, size, batch_size, flops.value_bytes(label))
        model.to(device)

    if leads_in(trial, all_epochs) and not any(trial.limit.values()):
        with trial.phase("extra_epoch"):
            learner.fit_one_cycle(
                1, RATES, cbs=[*precision_callbacks(label)[1], Input(None, prepare)], **CYCLE
            )

    rehearsal = Rehearsal(trial, label, prepare, (batch_size, 3, size, size))
    measured = Measured(trial, clock, valid_batches)
    method, more = precision_callbacks(label)
    rates = RATE_OF_RESNET18_FP32 if leads_in(trial, all_epochs) and label.startswith("fp32-") else RATES
    learner.fit_one_cycle(all_epochs, rates, cbs=[*more, Input(clock, prepare), rehearsal, measured], **CYCLE)

    trial.stage("collect")
    logs = [callback.log for callback in more if isinstance(callback, ScaleRecorder)]
    return make_measurement(
        clock,
        measured.epochs,
        clock.series(),
        device=facts(trial.asked["device"], device),
        versions=software(torchvision, fastai, np),
        precision=dict(
            precision.effective_precision(arithmetic, model, rehearsal.output_types, method, *logs),
            parameter_dtypes=rehearsal.parameter_types,
        ),
        valid_batches=valid_steps,
        validated=valid_batches,
        flops=operations,
        kernels=kernel_time(learner, [*precision_callbacks(label)[1], Input(None, prepare)], device),
        notes=["cached batches: nothing is validated"] if cached else [],
        **image_parts(trial, images, (train_items, valid_items), weights_sha256, model),
    )


def split(images: datasets.ImageSet, protocol: str) -> list[Batch]:
    """Return training and validation images, by the study's random fifth or by the official files."""
    official = image_tensors(images, torch.device("cpu"))
    if protocol == "fair/1":
        return list(official)
    pixels, labels = (torch.cat(halves) for halves in zip(*official, strict=True))
    return [(pixels[part], labels[part]) for part in map(torch.from_numpy, pooled_split(len(labels)))]


def network(name: str, features: int, classes: int, weights: bytes | None) -> nn.Sequential:
    """Return a torchvision ResNet without its own head, under the head that fastai 1 gave it."""
    whole = getattr(torchvision.models, name)(weights=None)
    if weights is not None:
        whole.load_state_dict(torch.load(io.BytesIO(weights), weights_only=True))
    body = nn.Sequential(*list(whole.children())[:-2])
    head = nn.Sequential(
        AdaptiveConcatPool2d(),
        Flatten(),
        nn.BatchNorm1d(2 * features),
        nn.Dropout(0.25),
        nn.Linear(2 * features, 512),
        nn.ReLU(inplace=True),
        nn.BatchNorm1d(512),
        nn.Dropout(0.5),
        nn.Linear(512, classes),
    )
    apply_init(head, nn.init.kaiming_normal_)
    return nn.Sequential(body, head)


def learner_of(data: Loaders, model: nn.Sequential) -> Learner:
    """Return a fastai Learner that prints nothing; of its body only the batch norms are trained."""
    learner = Learner(
        data,
        model,
        loss_func=CrossEntropyLossFlat(),
        opt_func=partial(Adam, sqr_mom=0.99, eps=1e-8),
        splitter=groups,
        metrics=accuracy,
        wd=WEIGHT_DECAY,
        wd_bn_bias=True,
        moms=MOMENTUMS,
    )
    learner.remove_cb(ProgressCallback)
    learner.logger = lambda record: None
    learner.freeze()
    return learner


def groups(model: nn.Sequential) -> list[list[nn.Parameter]]:
    """Return lower body, upper body, head: fastai's three groups of rates for a ResNet."""
    body, head = model
    return [list(part.parameters()) for part in (body[:6], body[6:], head)]


if __name__ == "__main__":
    main(run)
