"""What a Learner of fastai 1 needs to be measured: the clock and the limits, as callbacks."""

from __future__ import annotations

import time
from typing import Any

import torch
from fastai.basic_train import Learner
from fastai.callback import Callback

from parts.timing.clock import Clock
from parts.trial import TrialProcess

FIRST, LAST = -100, 100
"""Places among fastai's callbacks: its half precision scales the loss and takes the scale off in between."""


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
        self.trial.event("epoch", **self.epochs[-1])
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
