"""What a fastai Learner needs to be measured: batches in each data mode, and as callbacks the clock, the
limits and every precision.

In data mode `host` images are augmented one by one on the processor, in worker processes, as the published
loader does it (it also opened a PNG file for each image, which is a hundredth of an image's time; here they
are in memory). In `device` raw images are on the device and each batch is augmented there. In `cached` a few
fixed batches, ready for the model, come round and round. In the first two the device normalises a batch after
it has come.

fastai's own mixed precision is silently off on a CPU, and its master weights refuse one; here both run on the
device that the trial has. fastai reads the loss on the host at every step, in every precision and data mode,
as it did when the study ran.
"""

import time
import traceback
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from fastai.callback.core import Callback, CancelFitException, CancelTrainException, CancelValidException
from fastai.callback.fp16 import MixedPrecision, ModelToHalf, NonNativeMixedPrecision
from fastai.data.transforms import IntToFloatTensor
from fastai.learner import Learner
from fastai.vision.augment import aug_transforms
from fastai.vision.core import TensorImage
from fastcore.foundation import L
from fasttransform import Pipeline
from torch.utils.data import DataLoader, Dataset

from parts.numerics import precision
from parts.numerics.precision import ScaleLog
from parts.timing import profiler
from parts.timing.clock import Clock
from parts.training.batches import Batch, InOrder, Rotated, Shuffled
from parts.training.fastai_protocol import STATIC_LOSS_SCALE
from parts.trial import TrialProcess

BEFORE, LAST = -90, 100
"""Places among fastai's callbacks, whose own lie between -50 and 50."""

FIXED_BATCHES = 4


@dataclass(frozen=True)
class Loaders:
    """What fastai's Learner asks of its data."""

    train: Any
    valid: Any
    device: torch.device
    n_inp: int = 1
    path: str = "."

    def __getitem__(self, number: int) -> Any:
        return (self.train, self.valid)[number]


class Preparation:
    """What makes the model's input of a batch as it comes, on the device; `stats` are mean and deviation."""

    def __init__(self, mode: str, size: int, stats: Any, device: torch.device) -> None:
        self.mode = mode
        self.augment = {training: Augmentation(size, training=training) for training in (True, False)}
        self.mean, self.deviation = (torch.tensor(part, device=device).view(1, 3, 1, 1) for part in stats)

    def __call__(self, images: torch.Tensor, *, training: bool) -> torch.Tensor:
        """Return fp32 images of the asked size, normalised; cached ones are so already."""
        if self.mode == "cached":
            return images
        if self.mode == "device":
            images = self.augment[training](images)
        return self.normalise(images)

    def normalise(self, images: torch.Tensor) -> torch.Tensor:
        """Return the images less their mean, over their deviation."""
        return ((images - self.mean) / self.deviation).contiguous()


class Augmentation:
    """fastai's standard augmentations and the resizing in one interpolation; validation is resized alone."""

    def __init__(self, size: int, *, training: bool) -> None:
        transforms = [IntToFloatTensor(), *aug_transforms(size=size)]
        self.pipeline = Pipeline(transforms, split_idx=0 if training else 1)

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        return self.pipeline(TensorImage(images)).as_subclass(torch.Tensor)


class OneByOne(Dataset[Batch]):
    """Images augmented when they are asked for, each by itself."""

    def __init__(self, images: Batch, size: int, *, training: bool) -> None:
        self.pixels, self.labels = images
        self.augment = Augmentation(size, training=training)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, item: int) -> Batch:
        return self.augment(self.pixels[item][None])[0], self.labels[item]


def loaders(
    train: Batch, valid: Batch, batch_size: int, size: int, prepare: Preparation, workers: int
) -> Loaders:
    """Return batches in the preparation's data mode; cached ones validate nothing, host ones have workers."""
    device = prepare.mean.device
    if prepare.mode == "cached":
        fixed = fixed_batches(train, batch_size, size, prepare)
        return Loaders(Rotated(fixed, len(train[1]) // batch_size), Rotated((), 0), device)
    if prepare.mode == "device":
        drawn, in_order = ([half.to(device) for half in split] for split in (train, valid))
        return Loaders(Shuffled(*drawn, batch_size, seed=None), InOrder(*in_order, batch_size), device)
    training, validation = (OneByOne(each, size, training=each is train) for each in (train, valid))
    return Loaders(
        DataLoader(training, batch_size, shuffle=True, drop_last=True, num_workers=workers),
        DataLoader(validation, batch_size, num_workers=workers),
        device,
    )


def fixed_batches(train: Batch, batch_size: int, size: int, prepare: Preparation) -> list[Batch]:
    """Return the first training images, resized and normalised, on the device."""
    resized, first = Augmentation(size, training=False), slice(FIXED_BATCHES * batch_size)

    def prepared(pixels: torch.Tensor) -> torch.Tensor:
        return prepare.normalise(resized(pixels))

    pixels, labels = (half[first].to(prepare.mean.device) for half in train)
    return list(InOrder(pixels, labels, batch_size, prepared))


class Input(Callback):
    """Stops the wait for input, then makes the model's input of what came."""

    order = BEFORE

    def __init__(self, clock: Clock | None, prepare: Preparation) -> None:
        self.clock, self.prepare = clock, prepare

    def before_batch(self) -> None:
        if self.training and self.clock:
            self.clock.ready(self.xb[0])
        self.learn.xb = (self.prepare(self.xb[0], training=self.training),)


class Rehearsal(Callback):
    """One pass before the clock starts, on random images, with the model as the training will have it."""

    order = LAST

    def __init__(self, trial: TrialProcess, label: str, prepare: Preparation, shape: tuple[int, ...]) -> None:
        self.trial, self.label, self.prepare, self.shape = trial, label, prepare, shape

    def before_fit(self) -> None:
        model = self.learn.model.train()
        self.parameter_types = precision.parameter_types(model)
        device = self.dls.device
        with self.trial.phase("first_step"), precision.rehearsal(model, device) as self.output_types:
            images = torch.randn(self.shape, device=device)
            labels = torch.zeros(len(images), dtype=torch.int64, device=device)
            with precision.autocast(self.label, device):
                output = model(images.to(precision.weight_type(self.label)))
            self.learn.loss_func(output.float(), labels).backward()


class Measured(Callback):
    """The clock around the training part of each epoch, its validation, and the trial's limits.

    A validation is left out where the limit leaves no batch of it. Of the first steps the norm of all
    gradients is kept, as the optimiser is about to see them; nothing waits. A dropped step has none.
    """

    order = LAST

    def __init__(self, trial: TrialProcess, clock: Clock, valid_batches: int) -> None:
        self.trial, self.clock, self.valid_batches = trial, clock, valid_batches
        self.epochs: list[dict[str, Any]] = []

    def before_train(self) -> None:
        self.trial.stage("train")
        self.clock.start()

    def before_step(self) -> None:
        if self.clock.wants_norm:
            gradients = [parameter.grad for parameter, *_ in self.opt.all_params(with_grad=True)]
            self.clock.norm(total_norm(gradients))

    def after_batch(self) -> None:
        if self.training:
            self.clock.step(self.learn.loss, len(self.yb[0]))
            if self.clock.limit_reached():
                raise CancelTrainException
        elif self.iter + 1 == self.clock.valid_batches(self.valid_batches) < len(self.dl):
            raise CancelValidException

    def after_train(self) -> None:
        self.epochs.append(self.clock.stop())
        self.epochs[-1].update(smoothed_train_loss=float(self.recorder.smooth_loss.value))

    def before_validate(self) -> None:
        self.trial.stage("valid")
        self.clock.synchronise()
        self.began = time.perf_counter()
        if not self.valid_batches:
            raise CancelValidException

    def after_validate(self) -> None:
        if self.valid_batches:
            self.clock.synchronise()
            self.epochs[-1].update(
                valid_seconds=time.perf_counter() - self.began,
                valid_batches=self.clock.valid_batches(self.valid_batches),
                valid_loss=float(self.recorder.loss.value),
                quality=float(self.learn.metrics[0].value),
            )

    def after_epoch(self) -> None:
        # The schedule is the whole protocol's, wherever a limit ends it.
        if len(self.epochs) == self.clock.epochs or self.clock.limit_reached():
            raise CancelFitException


class Amp(MixedPrecision):
    """fastai's mixed precision on the device that the trial has."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def before_fit(self) -> None:
        kind = self.dls.device.type
        self.autocast = torch.autocast(kind, dtype=self.dtype)
        self.learn.scaler = torch.amp.GradScaler(kind, enabled=self.dtype is torch.float16)
        self.scales = L()

    @property
    def scale_now(self) -> float:
        """The loss scale in force."""
        return self.learn.scaler.get_scale()


class MasterWeightsCallback(NonNativeMixedPrecision):
    """fastai's half model with fp32 master weights, batch norms in fp32, on the device that the trial has."""

    # The original asks here, and nowhere else, whether its data lies on a GPU.
    dls = SimpleNamespace(device=torch.device("cuda"))

    @property
    def scale_now(self) -> float:
        """The loss scale in force."""
        return self.loss_scale


class ScaleRecorder(Callback):
    """Notes the loss scale after each step; where it fell, the step was dropped."""

    order = LAST - 1

    def __init__(self, scaler: Any, kind: str) -> None:
        self.scaler, self.kind = scaler, kind

    def before_fit(self) -> None:
        self.log = ScaleLog(self.kind, float(self.scaler.scale_now))

    def after_batch(self) -> None:
        if self.training:
            scale = float(self.scaler.scale_now)
            self.log.note(scale, skipped=scale < self.log.scale)


class Kernels(Callback):
    """Takes one step and times the kernels of a few more on its batch, in place of a fit."""

    order = LAST + 1
    time: dict[str, Any] | None = None

    def before_train(self) -> None:
        step = partial(self.learn.one_batch, 0, next(iter(self.dl)))
        step()
        self.time = profiler.kernel_time(step, self.dls.device)
        raise CancelFitException


def kernel_time(learner: Learner, callbacks: list[Callback], device: torch.device) -> dict[str, Any] | None:
    """Return the kernels' time in a few more steps under these callbacks; None where it cannot be had."""
    if device.type != "cuda":
        return None
    kernels = Kernels()
    try:
        learner.fit(1, cbs=[*callbacks, kernels])
    except Exception:
        # As in `profiler.kernel_time`: the trial is measured by now.
        traceback.print_exc()
    return kernels.time


def total_norm(gradients: list[torch.Tensor]) -> torch.Tensor:
    """Return the Euclidean norm of all gradients as one vector, in fp32: fp16 does not hold every sum."""
    return torch.linalg.vector_norm(torch.stack([norm.float() for norm in torch._foreach_norm(gradients)]))


def precision_callbacks(label: str) -> tuple[str, list[Callback]]:
    """Return how a label is done, in words, and its callbacks, a ScaleRecorder among them if it scales."""
    numerics = precision.PRECISIONS[label]
    if numerics.outputs is torch.float32:
        return "none", []
    if not numerics.autocast:
        weights = MasterWeightsCallback(loss_scale=STATIC_LOSS_SCALE, dynamic=False)
        return "fastai NonNativeMixedPrecision", [ModelToHalf(), weights, ScaleRecorder(weights, "static")]
    scaler = Amp(numerics.outputs)
    if not numerics.scaled:
        return "fastai MixedPrecision, torch.autocast", [scaler]
    method = "fastai MixedPrecision, torch.autocast, torch.amp.GradScaler"
    return method, [scaler, ScaleRecorder(scaler, "dynamic")]
