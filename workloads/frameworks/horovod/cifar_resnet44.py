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

from frameworks.horovod import ranks
from frameworks.tensorflow import resnet44
from frameworks.tensorflow.resnet44 import Images
from parts import launcher
from parts.launcher import Place
from parts.timing.step_clock import StepClock

NAME = "tensorflow-horovod"
LAST_RELEASE = "2023-06-12"
"""The date in its own changelog. Its repository had a commit in June 2026, and no release since."""
WAYS = {"ddp": "Horovod over gloo, a process each"}
OPTIONS: dict[str, Any] = {"framework": NAME, "parallel": "ddp", "train_images": 50_000}


class Training(resnet44.Training):
    """The network with its Adam, and one step of this rank."""

    def __init__(self, devices: list[str], mean: np.ndarray) -> None:
        super().__init__(mean, hvd.size())
        hvd.broadcast_variables(self.model.variables, root_rank=0)

    def over(self, clock: StepClock) -> Callable[[], object]:
        """What rank 0 says."""
        return ranks.End(clock).over if hvd.size() > 1 else clock.over

    def sums(self, valid: Images, batches: int) -> np.ndarray:
        """Each rank has its part of the batches, and all of them rank 0's statistics."""
        hvd.broadcast_variables(self.model.non_trainable_variables, root_rank=0)
        sums = self.summed(valid, range(hvd.rank(), batches, hvd.size()))
        return hvd.allreduce(tf.constant(sums), op=hvd.Sum, name="validation").numpy()

    def _step(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss, whole = self.losses(images, labels)
        variables = self.model.trainable_variables
        gradients = hvd.DistributedGradientTape(tape).gradient(whole, variables)
        self.adam.apply_gradients(zip(gradients, variables, strict=True))
        return loss


def run(trial: TrialProcess) -> dict[str, Any]:
    """One trial of the protocol, by itself or as the ranks that it is made of."""
    trial.choose("data mode", trial.variant["data_mode"], ("device", "host"))
    options = resnet44.asked(trial, OPTIONS, (NAME,), WAYS)
    if trial.asked["device"] != "cpu":
        raise Failed("no-device", f"Horovod runs on a CPU here, and a '{trial.asked['device']}' is asked")
    place, count = launcher.here(), trial.variant["gpus"]
    if count > 1 and place is None:
        return ranks.launched(trial, options["parallel"], count)
    own = {"version": horovod.__version__, "dormant_since": LAST_RELEASE, "ways": WAYS}
    with ranks.together():
        framework = {"name": "Horovod on TensorFlow", **own}
        found = resnet44.measured(trial, options, Training, framework, place or Place())
    found["versions"]["horovod"] = horovod.__version__
    return found


if __name__ == "__main__":
    launcher.settle()
    main(run)
