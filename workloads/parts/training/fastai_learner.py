"""What a fastai Learner needs to be measured: the clock, the limits and every precision, as callbacks.

fastai's own mixed precision is silently off on a CPU, and its master weights refuse one; here both run on the
device that the trial has. fastai reads the loss on the host at every step, in every precision and data mode,
as it did when the study ran.
"""

import time
import traceback
from types import SimpleNamespace
from typing import Any

import torch
from fastai.callback.core import Callback, CancelFitException, CancelTrainException, CancelValidException
from fastai.callback.fp16 import MixedPrecision, ModelToHalf, NonNativeMixedPrecision
from fastai.learner import Learner
from fastcore.foundation import L

from parts.numerics import precision
from parts.numerics.precision import ScaleLog
from parts.timing.clock import Clock
from parts.timing.kernels import KernelWatch
from parts.training.cifar_protocol import STATIC_LOSS_SCALE
from parts.training.images import Preparation
from parts.trial import TrialProcess

BEFORE, LAST = -90, 100
"""Places among fastai's callbacks, whose own lie between -50 and 50."""


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
        self.trial.event("epoch", **self.epochs[-1])
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
        self.scaler, self.kind, self.steps = scaler, kind, 0

    def before_train(self) -> None:
        if not self.steps:
            self.log = ScaleLog(self.kind, float(self.scaler.scale_now))

    def after_batch(self) -> None:
        if self.training:
            self.steps += 1
            scale = float(self.scaler.scale_now)
            self.log.note(self.steps, scale, skipped=scale < self.log.scale)


class Kernels(Callback):
    """Watches the kernels of a few steps after the first one, then ends the fit."""

    order = LAST + 1

    def __init__(self, device: torch.device) -> None:
        self.watch = KernelWatch(device)
        self.time: dict[str, Any] | None = None

    def after_batch(self) -> None:
        if not self.training:
            return
        if not self.iter:
            self.watch.start()
        elif self.watch.enough(self.iter):
            self.time = self.watch.stop(self.iter)
            raise CancelFitException


def kernel_time(learner: Learner, callbacks: list[Callback], device: torch.device) -> dict[str, Any] | None:
    """Return the kernels' time in a few more steps under these callbacks; None where it cannot be had."""
    if device.type != "cuda":
        return None
    watching = Kernels(device)
    try:
        learner.fit(1, cbs=[*callbacks, watching])
    except Exception:
        # As in `kernels.kernel_time`: the trial is measured by now.
        traceback.print_exc()
    return watching.time


def total_norm(gradients: list[torch.Tensor]) -> torch.Tensor:
    """Return the Euclidean norm of all gradients as one vector, in fp32."""
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
