"""The ResNets of Bhutani 2019 on stacks of its year, fastai 1.0.41 and 1.0.57: `published/1`.

The protocol is at the head of `workloads/cifar_fastai.py`. Here fastai 1 itself does all of it, by the
calls of the study's notebooks: its transforms, head, schedule and to_fp16. The images come from memory, where
it opened a PNG file for each. The training loss of an epoch is given as the study printed it, too: fastai's
moving average over the steps. The option `lead_in` asks for ResNet-18's epoch before the 30 alone. Operations
and kernel times are unknown: this torch can count neither.
"""

from __future__ import annotations

from parts.trial import Failed, TrialProcess, main  # isort: skip  (its clock starts with this line)

from frameworks.era2019.torch_of_2019 import fastai  # isort: skip  (before the shared parts and its own)

import io
import tempfile
import time
from inspect import signature
from typing import Any

import fastai.train
import numpy as np
import torch
import torchvision
from fastai.basic_data import DataBunch
from fastai.basic_train import Learner
from fastai.callback import Callback
from fastai.layers import CrossEntropyFlat
from fastai.metrics import accuracy
from fastai.vision.data import cifar_stats, normalize_funcs
from fastai.vision.image import Image
from fastai.vision.learner import create_cnn
from fastai.vision.transform import get_transforms
from torch import nn
from torch.utils.data import Dataset

from parts.device import choose, facts, seed_everything, software
from parts.inputs import datasets
from parts.numerics import precision
from parts.numerics.precision import ScaleLog
from parts.timing.clock import Clock
from parts.timing.measurement import make_measurement
from parts.training.fastai_protocol import (
    BODIES,
    EPOCHS,
    OPTIONS,
    RATE_OF_RESNET18_FP32,
    RATES,
    STATIC_LOSS_SCALE,
    image_parts,
    leads_in,
    pooled_split,
)

IMAGE_SIZE = 224
LABELS = ("fp32-ieee", "fp16-master")
"""The two precisions of the study: torch 1.0 has no autocast and no bf16, and no card of then TF32."""
FIRST, LAST = -100, 100
"""Places among fastai's callbacks: its half precision scales the loss and takes the scale off in between."""


class Pictures(Dataset):
    """Images in memory, each by itself a fastai Image under its transforms."""

    def __init__(self, images: datasets.ImageSet, items: Any, transforms: list[Any], size: int) -> None:
        self.parts, self.items, self.c = (images.train, images.test), items, images.classes
        self.shape, self.transforms, self.size = images.shape, transforms, size

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, item: int) -> tuple[Image, int]:
        number, length = int(self.items[item]), int(np.prod(self.shape))
        first = len(self.parts[0].labels)
        part, at = (self.parts[0], number) if number < first else (self.parts[1], number - first)
        pixels = np.frombuffer(part.pixels, np.uint8, length, at * length).astype(np.float32)
        image = Image(torch.from_numpy(pixels).view(*self.shape).div_(255))
        return image.apply_tfms(self.transforms, size=self.size), part.labels[at]


class Measured(Callback):
    """The clock around the training part of each epoch, its validation, and the trial's limits."""

    _order = FIRST

    def __init__(self, trial: TrialProcess, clock: Clock, valid_batches: int) -> None:
        self.trial, self.clock, self.valid_batches = trial, clock, valid_batches
        self.epochs: list[dict[str, Any]] = []

    def on_epoch_begin(self, **state: Any) -> None:
        """Start the clock: the training part begins."""
        self.trial.stage("train")
        self.validated = self.trained = 0
        self.clock.start()

    def on_batch_begin(self, last_input: torch.Tensor, train: bool, **state: Any) -> None:
        """Note that the step's input has come."""
        if train:
            self.samples = len(last_input)
            self.clock.ready(last_input)

    def on_backward_begin(self, last_loss: torch.Tensor, **state: Any) -> None:
        """Keep the loss as it is before half precision scales it."""
        self.loss = last_loss.detach()

    def on_batch_end(self, train: bool, smooth_loss: torch.Tensor, **state: Any) -> dict[str, bool]:
        """Return whether the part that runs is over: a validation at its cap, the training at its end or
        limit."""
        if not train:
            self.validated += 1
            return _if(self.validated == self.clock.valid_batches(self.valid_batches), "stop_epoch")
        self.trained += 1
        self.clock.step(self.loss, self.samples)
        over = self.trained == self.clock.steps_per_epoch or self.clock.limit_reached() is not None
        if over:
            self.epochs.append(dict(self.clock.stop(), smoothed_train_loss=float(smooth_loss)))
            self.trial.stage("valid")
            self.began = time.perf_counter()
        return _if(over, "stop_epoch")

    def on_epoch_end(self, last_metrics: Any, **state: Any) -> dict[str, bool]:
        """Note the epoch; whether the trial is over."""
        if self.valid_batches:
            valid_loss, accuracy = last_metrics
            # fastai has read the loss of every batch on the host by now, so the device is done.
            self.epochs[-1].update(
                valid_seconds=time.perf_counter() - self.began,
                valid_batches=self.validated,
                valid_loss=float(valid_loss),
                quality=float(accuracy),
            )
        # The schedule is the whole protocol's, wherever a limit ends it.
        over = len(self.epochs) == self.clock.epochs or self.clock.limit_reached() is not None
        return _if(over, "stop_training")


def _if(over: bool, key: str) -> dict[str, bool]:
    """Return what ends a part: fastai 1.0.57 reads the key, and 1.0.41 whether there is one."""
    return {key: True} if over else {}


class GradientRecorder(Callback):
    """The norm of all gradients of the first steps, as the optimiser is about to see them."""

    _order = LAST

    def __init__(self, clock: Clock, learner: Learner) -> None:
        self.clock, self.learner = clock, learner

    def on_backward_end(self, **state: Any) -> None:
        """Keep the norm: the gradients are there, without the loss scale."""
        if self.clock.wants_norm:
            groups = self.learner.opt.opt.param_groups
            gradients = [weight.grad for group in groups for weight in group["params"]]
            norms = [gradient.float().norm() for gradient in gradients if gradient is not None]
            self.clock.norm(torch.stack(norms).norm())


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, as far as its limit lets it go."""
    variant, options = trial.variant, chosen_options(trial)
    label, name, batch_size = variant["precision"], variant["model"], variant["batch_size"]
    size = variant["image_size"] or IMAGE_SIZE
    with trial.phase("device"):
        device = choose(trial.asked["device"], variant["gpus"])
        torch.backends.cudnn.benchmark = True
        arithmetic = prepare(label, device)

    trial.stage("data")
    with trial.phase("data"):
        images = datasets.cifar_100(trial.data_folder, trial.asked["data"])
        weights, weights_sha256 = None, None
        if trial.asked["weights"] == "pretrained":
            weights, weights_sha256 = datasets.weights(trial.data_folder, BODIES[name][1])
        seed_everything(trial.seed)
        data = bunch(images, size, batch_size, options["workers"], device)
    train_items, valid_items = len(data.train_ds), len(data.valid_ds)
    steps_per_epoch, valid_steps = train_items // batch_size, -(-valid_items // batch_size)
    all_epochs = 1 if options["lead_in"] else EPOCHS
    clock = Clock(trial, device, steps_per_epoch=steps_per_epoch, epochs=all_epochs)
    valid_batches = trial.valid_batches(valid_steps)

    trial.stage("setup")
    with trial.phase("model"):
        learner = learner_of(data, name, weights)
        if label == "fp16-master":
            # Later versions have a dynamic scale, unless they are told.
            given = signature(learner.to_fp16).parameters
            static = {"dynamic": False} if "dynamic" in given else {}
            learner.to_fp16(loss_scale=STATIC_LOSS_SCALE, **static)
        if not valid_batches:
            data.valid_dl = None
    with trial.phase("first_step"), precision.rehearsal(learner.model.train(), device) as output_types:
        batch = torch.randn(batch_size, 3, size, size, device=device, dtype=precision.weight_type(label))
        learner.model(batch).float().sum().backward()

    if leads_in(trial, all_epochs) and not any(trial.limit.values()):
        with trial.phase("extra_epoch"):
            learner.fit_one_cycle(1, RATES)
    rates = RATE_OF_RESNET18_FP32 if leads_in(trial, all_epochs) and label == "fp32-ieee" else RATES
    measured = Measured(trial, clock, valid_batches)
    learner.fit_one_cycle(all_epochs, rates, callbacks=[measured, GradientRecorder(clock, learner)])

    trial.stage("collect")
    scaled = label == "fp16-master"
    logs = [ScaleLog("static", STATIC_LOSS_SCALE)] if scaled else []
    method = "fastai MixedPrecision" if scaled else "none"
    return make_measurement(
        clock,
        measured.epochs,
        clock.series(),
        device=facts(trial.asked["device"], device),
        versions=software(torchvision, fastai, np),
        precision=precision.effective_precision(arithmetic, learner.model, output_types, method, *logs),
        valid_batches=valid_steps,
        validated=valid_batches,
        **image_parts(trial, images, (train_items, valid_items), weights_sha256, learner.model),
    )


def prepare(label: str, device: torch.device) -> dict[str, Any]:
    """Return label, flags and probes of a measurement; refuses what this torch cannot do on the device."""
    if label not in LABELS:
        raise Failed(
            "unsupported", f"'{label}' is asked; torch {torch.__version__} has {' and '.join(LABELS)}"
        )
    if label == "fp16-master" and device.type == "cpu":
        raise Failed("unsupported", f"'{label}' is asked; torch {torch.__version__} has no fp16 on a CPU")
    flags = {"cudnn.benchmark": torch.backends.cudnn.benchmark}
    return {"label": label, "flags": flags, "probes": precision.probes(label, device)}


def chosen_options(trial: TrialProcess) -> dict[str, Any]:
    """Return the variant's options over the study's; refuses what the study or this fastai does not have."""
    trial.choose("protocol", trial.asked["protocol"], ("published/1",))
    trial.choose("model", trial.variant["model"], BODIES)
    trial.choose("data_mode", trial.variant["data_mode"], ("host",))
    trial.choose("profile", trial.variant["profile"], ("default",))
    trial.choose("layout", trial.variant["layout"], ("contiguous",))
    return trial.options(OPTIONS)


def bunch(
    images: datasets.ImageSet, size: int, batch_size: int, workers: int, device: torch.device
) -> DataBunch:
    """Return all images pooled, a random fifth of them for validation, as fastai's own loaders give them."""
    train_items, valid_items = pooled_split(len(images.train.labels) + len(images.test.labels))
    train, valid = get_transforms()
    return DataBunch.create(
        Pictures(images, train_items, train, size),
        Pictures(images, valid_items, valid, size),
        path=tempfile.gettempdir(),
        bs=batch_size,
        num_workers=workers,
        device=device,
        dl_tfms=[normalize_funcs(*cifar_stats)[0]],
    )


def learner_of(data: DataBunch, name: str, weights: bytes | None) -> Learner:
    """Return the study's create_cnn, but that its weights are the ones at hand, or random."""

    def body(pretrained: bool) -> nn.Module:
        whole = getattr(torchvision.models, name)(pretrained=False)
        if weights is not None:
            whole.load_state_dict(torch.load(io.BytesIO(weights)))
        return whole

    return create_cnn(
        data,
        body,
        cut=-2,
        split_on=lambda model: (model[0][6], model[1]),
        loss_func=CrossEntropyFlat(),
        metrics=accuracy,
    )


if __name__ == "__main__":
    main(run)
