"""UniLu 2019's ResNet-44 on CIFAR-10 in TensorFlow's Keras with Horovod, one process a device.

Protocol and network are those of `frameworks/tensorflow/resnet44.py`. What is validated has rank 0's
statistics, and the ranks share the test images. The reported loss is cross-entropy, without the L2.
"""

from __future__ import annotations

from parts.trial import Failed, TrialProcess, main  # isort: skip  (its clock starts with this line)

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from collections.abc import Callable
from typing import Any

import horovod
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from frameworks.horovod import horovod_ranks as ranks
from frameworks.tensorflow import resnet44
from frameworks.tensorflow.resnet44 import Images
from parts import launcher
from parts.timing.step_clock import StepClock

NAME = "tensorflow-horovod"
WAYS = {"ddp": "Horovod over gloo, a process each"}
OPTIONS: dict[str, Any] = {"framework": NAME, "parallel": "ddp", "train_images": 50_000}


class Training(resnet44.Training):
    """The network with its Adam, and one step of this rank."""

    def __init__(self, devices: list[str], mean: np.ndarray) -> None:
        super().__init__(mean, hvd.size())
        hvd.broadcast_variables(self.model.variables, root_rank=0)

    def end_test(self, clock: StepClock) -> Callable[[], object]:
        """Return what rank 0 says."""
        return ranks.End(clock).limit_reached if hvd.size() > 1 else clock.limit_reached

    def sums(self, valid: Images, batches: range) -> np.ndarray:
        """Return the sums over all ranks, each of its part of the batches under rank 0's statistics."""
        hvd.broadcast_variables(self.model.non_trainable_variables, root_rank=0)
        sums = super().sums(valid, batches[hvd.rank() :: hvd.size()])
        return hvd.allreduce(tf.constant(sums), op=hvd.Sum, name="validation").numpy()

    def _step(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss, whole = self.losses(images, labels)
        variables = self.model.trainable_variables
        gradients = hvd.DistributedGradientTape(tape).gradient(whole, variables)
        self.adam.apply_gradients(zip(gradients, variables, strict=True))
        return loss


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, by itself or as the ranks that it is made of."""
    trial.choose("data mode", trial.variant["data_mode"], ("device", "host"))
    options = resnet44.read_options(trial, OPTIONS, (NAME,), WAYS)
    if trial.asked["device"] != "cpu":
        raise Failed("no-device", f"Horovod runs on a CPU here, and a '{trial.asked['device']}' is asked")
    place, count = launcher.own_place(), trial.variant["gpus"]
    if count > 1 and place is None:
        return ranks.launch_ranks(trial, options["parallel"], count)
    framework = {"name": "Horovod on TensorFlow", "version": horovod.__version__, "ways": WAYS}
    with ranks.horovod_ring():
        found = resnet44.measure_training(trial, options, Training, framework, place or launcher.ALONE)
    found["versions"]["horovod"] = horovod.__version__
    return found


if __name__ == "__main__":
    launcher.settle()
    main(run)
