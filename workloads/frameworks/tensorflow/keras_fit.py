"""DenseNet-121 of Keras' own applications, trained by Model.fit: a callback is the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from frameworks.tensorflow.tensorflow_device import arranged_weight, channels_last
from parts.chexnet import network
from parts.chexnet.feed import ThreadLoader
from parts.chexnet.protocol import BETAS, CLASSES, Terms
from parts.chexnet.synthetic import ArrayBatch
from parts.chexnet.training import Evaluation, Trainer, validate
from parts.timing.step_clock import StepClock
from parts.trial import TrialProcess

BATCH_NORM = ("scale", "shift", "mean", "variance")


class KerasFit(Trainer):
    """A compiled Keras model."""

    arrange = staticmethod(channels_last)

    def __init__(self, terms: Terms, strategy: tf.distribute.Strategy) -> None:
        self.terms, self.strategy = terms, strategy
        with strategy.scope():
            shape = (terms.image_size, terms.image_size, 3)
            body = keras.applications.DenseNet121(
                include_top=False, weights=None, input_shape=shape, pooling="avg"
            )
            for layer in body.layers:
                # Its norms' own epsilon is 1.001e-5.
                if isinstance(layer, keras.layers.BatchNormalization):
                    layer.epsilon, layer.momentum = network.NORM_EPSILON, network.NORM_KEPT
            outputs = keras.layers.Dense(CLASSES, name="head")(body.output)
            self.network = keras.Model(body.input, outputs)
            of_logits = terms.variant.loss_of_logits
            self.model = self.network
            if not of_logits:
                self.model = keras.Model(body.input, keras.layers.Activation("sigmoid")(outputs))
            self.optimiser = keras.optimizers.Adam(
                terms.learning_rate, *BETAS, epsilon=terms.variant.adam_epsilon
            )
            self.model.compile(self.optimiser, keras.losses.BinaryCrossentropy(from_logits=of_logits))
            self.optimiser.build(self.model.trainable_variables)
        self.output_types = {"float32": 0}
        for layer in self.network.layers:
            if isinstance(layer, keras.layers.Conv2D | keras.layers.Dense):
                self.output_types[layer.output.dtype] += 1

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over weights, and set Adam's state to zero."""
        # Keras' own layers are in the order in which an image passes, too.
        owners = (layer for layer in self.network.layers if layer.weights)
        for own, layer in zip(owners, network.layers(), strict=True):
            parts = BATCH_NORM if isinstance(layer, network.Norm) else ("weight", "bias")
            names = [f"{layer.name}/{part}" for part in parts]
            own.set_weights([arranged_weight(arrays[name]) for name in names if name in arrays])
        for variable in self.optimiser.variables:
            if variable is not self.optimiser.learning_rate:
                variable.assign(np.zeros(variable.shape, variable.dtype))

    def outputs(self, images: np.ndarray) -> np.ndarray:
        """Return the 14 outputs before the sigmoid, by the running means."""
        return self.network(images.transpose(0, 2, 3, 1), training=False).numpy()

    def step(self, images: np.ndarray, labels: np.ndarray) -> float:
        """Take one training step, as Model.fit takes it."""
        return take_step(self.model, images, labels).history["loss"][0]

    def facts(self) -> dict[str, Any]:
        """Return a measurement's part about the framework."""
        threads = f", threads: {self.terms.workers}"
        arrays = self.terms.data == "synthetic"
        return {
            "name": "Keras",
            "version": keras.__version__,
            "loader": "keras.utils.PyDataset" + (" over batches in host memory" if arrays else threads),
        }

    def train(
        self, trial: TrialProcess, clock: StepClock, terms: Terms, batches: Any, valid: Evaluation | None
    ) -> list[dict[str, Any]]:
        """Train by Model.fit until the protocol or the trial's limit ends; one record each."""
        if isinstance(batches, ThreadLoader):
            sampler, made = batches.sampler, batches.made
            steps = Steps(len(sampler), lambda epoch, step: made(sampler.at(epoch, step)), terms.workers)
        else:
            steps = Steps(clock.steps_per_epoch, lambda epoch, step: batches[step % len(batches)])

        def after(epoch: dict[str, Any]) -> None:
            if valid:
                validate(trial, valid, epoch)

        marks = Marks(clock, terms.global_batch_size, after, steps, terms.reads_loss_every)
        return fit_epochs(self.model, marks)


class Steps(keras.utils.PyDataset):
    """An epoch's batches by their epoch and step, made by Keras' threads where there are workers."""

    def __init__(self, steps: int, at: Callable[[int, int], ArrayBatch], workers: int = 1) -> None:
        super().__init__(workers=workers, use_multiprocessing=False)
        self.steps, self.at, self.epoch = steps, at, 0

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, step: int) -> ArrayBatch:
        return self.at(self.epoch, step)


class Marks(keras.callbacks.Callback):
    """Keras' callbacks as the clock's marks; what comes `after` an epoch may add to its record."""

    def __init__(
        self,
        clock: StepClock,
        samples: int,
        after: Callable[[dict[str, Any]], None],
        given: Steps,
        reads_loss_every: int = 0,
    ) -> None:
        super().__init__()
        self.clock, self.samples, self.after = clock, samples, after
        self.given, self.reads_loss_every = given, reads_loss_every
        self.epochs: list[dict[str, Any]] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Open a segment."""
        self.given.epoch = epoch
        self.clock.start()

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Note that the step's input is about to be asked for; the loss is to be of this batch alone."""
        self.model.reset_metrics()
        self.clock.ready()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Mark the step: its work is issued."""
        loss, every = logs["loss"], self.reads_loss_every
        if every and (batch + 1) % every == 0:
            self.clock.values([loss])
        self.clock.step(loss, self.samples)
        self.model.stop_training = bool(self.clock.limit_reached())

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Close the segment, and validates."""
        self.epochs.append(self.clock.stop())
        self.after(self.epochs[-1])


def fit_epochs(model: keras.Model, marks: Marks) -> list[dict[str, Any]]:
    """Run epochs of Model.fit until the protocol or the trial's limit ends; one record each."""
    marks.clock.trial.stage("train")
    model.fit(marks.given, epochs=marks.clock.epochs, callbacks=[marks], shuffle=False, verbose=0)
    return marks.epochs


def take_step(model: keras.Model, images: np.ndarray, labels: np.ndarray) -> keras.callbacks.History:
    """Take one step, as Model.fit takes it."""
    return model.fit(Steps(1, lambda epoch, step: (images, labels)), shuffle=False, verbose=0)
