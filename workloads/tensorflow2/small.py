"""What Karmanov 2018's small networks share in TensorFlow 2 and in Keras 3: trial and trainers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from parts.small import training
from parts.small.terms import Terms, Work, terms
from parts.trial import Trial
from tensorflow2 import device

ONE_DEVICE = 1
NETWORK_ITSELF = "TensorFlow's own operations on variables, without Keras"


class Trainer(training.Trainer):
    """What a measurement asks of either."""

    output_types: Mapping[str, int]
    layout: str | None = None
    """Of images."""

    def facts(self) -> dict[str, Any]:
        """The framework, as a measurement tells it."""
        raise NotImplementedError


class LowLevel(Trainer):
    """A network of TensorFlow's operations on variables by their neutral names, in one graph a step.

    Its initial weights are those of the rule of `fair/1`, drawn from the trial's seed.
    """

    def __init__(self, asked: Terms, differs: tuple[str, ...]) -> None:
        self.asked, self.differs = asked, differs
        drawn = asked.work.drawn(asked.seed)
        self.variables = {name: tf.Variable(self.own(array)) for name, array in drawn.items()}
        self.output_types: dict[str, int] = {}
        self._step = tf.function(self._stepped)
        self._scores = tf.function(lambda inputs: self.network(inputs, training=False))

    def own(self, array: np.ndarray) -> np.ndarray:
        """A neutral array as the network takes it."""
        return array

    def network(self, inputs: tf.Tensor, *, training: bool) -> tf.Tensor:
        """The scores of each class."""
        raise NotImplementedError

    def update(self, gradients: Mapping[str, tf.Tensor]) -> None:
        """One step of the optimiser."""
        raise NotImplementedError

    def begin_anew(self) -> None:
        """Sets back the optimiser."""
        raise NotImplementedError

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        for name, array in arrays.items():
            self.variables[name].assign(self.own(array))
        self.begin_anew()

    def step(self, inputs: np.ndarray, targets: np.ndarray) -> tf.Tensor:
        return self._step(tf.constant(inputs), tf.constant(targets))

    def scores(self, inputs: np.ndarray) -> np.ndarray:
        return self._scores(tf.constant(inputs)).numpy()

    def parameters(self) -> int:
        return sum(int(np.prod(variable.shape)) for variable in self.variables.values())

    def facts(self) -> dict[str, Any]:
        return {
            "name": "TensorFlow",
            "version": tf.__version__,
            "compiled": "tf.function",
            "differs": [NETWORK_ITSELF, *self.differs],
        }

    def counted(self, output: tf.Tensor) -> tf.Tensor:
        """Counts the type that a layer puts out, as a graph is made of it."""
        name = output.dtype.name
        self.output_types[name] = self.output_types.get(name, 0) + 1
        return output

    def _stepped(self, inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        self.output_types.clear()
        with tf.GradientTape() as tape:
            scores = self.network(inputs, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, scores)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, self.variables)
        self.update({name: tf.convert_to_tensor(gradient) for name, gradient in gradients.items()})
        return loss


class KerasTrainer(Trainer):
    """A compiled Keras model that ends with the scores, stepped by `train_on_batch`."""

    DIFFERS = ("Keras' own network, optimiser and step; the study called Model.fit",)

    def __init__(
        self,
        asked: Terms,
        layers: list[Any],
        optimiser: Callable[[], keras.optimizers.Optimizer],
        differs: tuple[str, ...],
    ) -> None:
        self.asked, self.optimiser, self.differs = asked, optimiser, differs
        self.model = keras.Sequential(layers)
        self._compiled()
        self.output_types = {"float32": 0}
        for layer in self.model.layers:
            if layer.weights:
                self.output_types[layer.compute_dtype] += 1

    def _compiled(self) -> None:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.model.compile(self.optimiser(), loss)

    def own(self, arrays: Mapping[str, np.ndarray], layer: str) -> list[np.ndarray]:
        """The weights of a layer by its name."""
        raise NotImplementedError

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        for layer in self.model.layers:
            if layer.weights:
                layer.set_weights(self.own(arrays, layer.name))
        self._compiled()

    def step(self, inputs: np.ndarray, targets: np.ndarray) -> Any:
        # Keras' loss is a mean since its metrics were reset, and is to be of this batch alone.
        self.model.reset_metrics()
        return self.model.train_on_batch(inputs, targets)

    def scores(self, inputs: np.ndarray) -> np.ndarray:
        return self.model.predict_on_batch(inputs)

    def parameters(self) -> int:
        return sum(int(np.prod(variable.shape)) for variable in self.model.trainable_variables)

    def facts(self) -> dict[str, Any]:
        compiled = "XLA" if self.model.jit_compile else "tf.function"
        differs = [*self.DIFFERS, *self.differs]
        return {"name": "Keras", "version": keras.__version__, "compiled": compiled, "differs": differs}


def run(trial: Trial, work: Work, trainers: Mapping[str, Callable[[Terms], Trainer]]) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go; `trainers` by the names of frameworks."""
    asked = terms(trial, work, tuple(trainers))
    trial.choose("precision", trial.variant["precision"], device.PRECISIONS)
    kind = trial.asked["device"]
    with trial.phase("device"):
        devices = device.choose(kind, trial.variant["gpus"])
        arithmetic = device.prepare(trial.variant["precision"], kind, devices)
        keras.utils.set_random_seed(trial.seed % 2**32)
    trial.stage("data")
    with trial.phase("data"):
        data = work.read(trial)
    trial.stage("setup")
    with trial.phase("model"):
        trainer = trainers[asked.framework](asked)
        training.begin(trainer, asked)
        data = training.arranged(trainer, data)
    steps = asked.steps(len(data.train.targets))
    clock = device.Clock(trial, devices, steps_per_epoch=steps, epochs=work.epochs)
    epochs = training.train(trial, clock, asked, data, trainer)
    trial.stage("collect")
    found = {
        "device": device.facts(kind, ONE_DEVICE),
        "versions": device.software(),
        "precision": dict(
            arithmetic,
            output_dtypes=dict(trainer.output_types),
            parameter_dtypes={"float32": work.parameters},
        ),
        "framework": dict(trainer.facts(), layout=trainer.layout, loader="none: NumPy arrays in host memory"),
    }
    return training.measurement(trial, asked, clock, epochs, data, found)
