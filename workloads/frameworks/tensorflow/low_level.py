"""DenseNet-121 in TensorFlow itself: its operations on variables, in one compiled graph a step, without
Keras.

Channels come last, as everywhere in TensorFlow. Adam is TensorFlow's fused operation, whose epsilon is added
to the root of the uncorrected second moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from frameworks.tensorflow.tensorflow_device import arranged_weight, channels_last, share_batch
from parts.chexnet import network
from parts.chexnet.protocol import BETAS, Terms
from parts.chexnet.training import Trainer

KEPT = ("mean", "variance")


class LowLevel(Trainer):
    """Variables by their neutral names."""

    arrange = staticmethod(channels_last)

    def __init__(self, terms: Terms, strategy: tf.distribute.Strategy) -> None:
        self.terms, self.strategy = terms, strategy
        self.output_types: Counter[str] = Counter()
        """What convolutions and the head put out, as a graph was made of them."""
        self.layers = {layer.name: layer for layer in network.layers()}
        with strategy.scope():
            self.variables = {name: _variable(name, shape) for name, shape in _shapes()}
            self.trained = {name: v for name, v in self.variables.items() if v.trainable}
            self.moments = {
                name: [tf.Variable(tf.zeros_like(v), trainable=False) for _ in range(2)]
                for name, v in self.trained.items()
            }
            self.powers = [tf.Variable(beta, trainable=False, dtype=tf.float32) for beta in BETAS]
        # Nothing here is for autograph to turn into operations.
        self._step = tf.function(self._all_devices, autograph=False)
        self._outputs = tf.function(lambda images: self.logits(images, training=False), autograph=False)

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over weights, and set Adam's state to its beginning."""
        for name, array in arrays.items():
            self.variables[name].assign(arranged_weight(array))
        for variables in self.moments.values():
            for variable in variables:
                variable.assign(tf.zeros_like(variable))
        for power, beta in zip(self.powers, BETAS, strict=True):
            power.assign(beta)

    def outputs(self, images: np.ndarray) -> np.ndarray:
        """Return the 14 outputs before the sigmoid, by the running means."""
        return self._outputs(tf.constant(images.transpose(0, 2, 3, 1))).numpy()

    def step(self, images: np.ndarray, labels: np.ndarray) -> Any:
        """Take one training step of all devices; the loss is the mean over them."""
        return self._step(share_batch(self.strategy, images), share_batch(self.strategy, labels))

    def facts(self) -> dict[str, Any]:
        """Return a measurement's part about the framework."""
        return {"name": "TensorFlow", "version": tf.__version__}

    def logits(self, images: tf.Tensor, *, training: bool) -> tf.Tensor:
        """Return the network on images with their channels last."""
        x = self._norm("stem/norm", self._convolution("stem/conv", images), training)
        x = tf.nn.max_pool2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), 3, 2, "VALID")
        for block, depth in enumerate(network.BLOCKS, 1):
            for layer in range(1, depth + 1):
                place = f"block{block}/layer{layer}"
                y = self._convolution(f"{place}/conv1", self._norm(f"{place}/norm1", x, training))
                y = self._convolution(f"{place}/conv2", self._norm(f"{place}/norm2", y, training))
                x = tf.concat([x, y], axis=3)
            if block < len(network.BLOCKS):
                place = f"transition{block}"
                x = self._convolution(f"{place}/conv", self._norm(f"{place}/norm", x, training))
                x = tf.nn.avg_pool2d(x, 2, 2, "VALID")
        x = tf.reduce_mean(self._norm("final/norm", x, training), axis=(1, 2))
        return self._counted(tf.matmul(x, self.variables["head/weight"]) + self.variables["head/bias"])

    def _convolution(self, name: str, x: tf.Tensor) -> tf.Tensor:
        layer = self.layers[name]
        edge = [layer.kernel // 2] * 2
        padding = [[0, 0], edge, edge, [0, 0]]
        return self._counted(tf.nn.conv2d(x, self.variables[f"{name}/weight"], layer.stride, padding))

    def _norm(self, name: str, x: tf.Tensor, training: bool) -> tf.Tensor:
        """Return batch norm and ReLU."""
        scale, shift, *kept = (self.variables[f"{name}/{part}"] for part in ("scale", "shift", *KEPT))
        y, *seen = tf.compat.v1.nn.fused_batch_norm(
            x,
            scale,
            shift,
            *((None, None) if training else kept),
            epsilon=network.NORM_EPSILON,
            is_training=training,
        )
        for variable, value in zip(kept, seen if training else (), strict=False):
            variable.assign(variable * network.NORM_KEPT + value * (1 - network.NORM_KEPT))
        return tf.nn.relu(y)

    def _counted(self, output: tf.Tensor) -> tf.Tensor:
        self.output_types[output.dtype.name] += 1
        return output

    def _all_devices(self, images: Any, labels: Any) -> tf.Tensor:
        self.output_types.clear()
        losses = self.strategy.run(self._one_device, (images, labels))
        for power, beta in zip(self.powers, BETAS, strict=True):
            power.assign(power * beta)
        return self.strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)

    def _one_device(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits = self.logits(images, training=True)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits))
        gradients = tape.gradient(loss, list(self.trained.values()))
        tf.distribute.get_replica_context().merge_call(self._update, (gradients,))
        return loss

    def _update(self, strategy: tf.distribute.Strategy, gradients: Sequence[Any]) -> None:
        pairs = list(zip(gradients, self.trained.values(), strict=True))
        means = strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.MEAN, pairs)
        for (name, variable), gradient in zip(self.trained.items(), means, strict=True):
            strategy.extended.update(variable, self._adam, (gradient, *self.moments[name]))

    def _adam(self, variable: Any, gradient: tf.Tensor, first: Any, second: Any) -> None:
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=first.handle,
            v=second.handle,
            beta1_power=self.powers[0],
            beta2_power=self.powers[1],
            lr=self.terms.learning_rate,
            beta1=BETAS[0],
            beta2=BETAS[1],
            epsilon=self.terms.variant.adam_epsilon,
            grad=gradient,
        )


def _shapes() -> list[tuple[str, tuple[int, ...]]]:
    shapes: list[tuple[str, tuple[int, ...]]] = []
    for layer in network.layers():
        if isinstance(layer, network.Norm):
            parts = ("scale", "shift", *KEPT)
            shapes += [(f"{layer.name}/{part}", (layer.channels,)) for part in parts]
        elif isinstance(layer, network.Convolution):
            shape = (layer.kernel, layer.kernel, layer.inputs, layer.outputs)
            shapes.append((f"{layer.name}/weight", shape))
        else:
            shapes.append((f"{layer.name}/weight", (layer.inputs, layer.outputs)))
            shapes.append((f"{layer.name}/bias", (layer.outputs,)))
    return shapes


def _variable(name: str, shape: tuple[int, ...]) -> tf.Variable:
    """Return a variable; a running mean or variance is each device's own, and read as their mean."""
    if not name.endswith(KEPT):
        return tf.Variable(tf.zeros(shape))
    return tf.Variable(
        tf.zeros(shape),
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.MEAN,
    )
