"""TensorFlow's devices: how they are chosen, waited for and described, and get batches and weights."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from parts.chexnet.synthetic import ArrayBatch
from parts.numerics import arithmetic
from parts.timing import step_clock
from parts.timing.step_clock import StepClock
from parts.trial import Failed, processor_name, versions

WAYS = {"dp": "MirroredStrategy"}


def choose(kind: str, count: int) -> list[str]:
    """Return the names of the first devices of a kind; several of a CPU are logical ones. Call before
    anything runs.

    Raises Failed where there are too few.
    """
    if kind == "cpu":
        tf.config.set_visible_devices([], "GPU")
        (processor,) = tf.config.list_physical_devices("CPU")
        parts = [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
        tf.config.set_logical_device_configuration(processor, parts)
        return [f"/CPU:{number}" for number in range(count)]
    build = tf.sysconfig.get_build_info()
    built_for = "cuda" if build["is_cuda_build"] else "rocm" if build["is_rocm_build"] else "cpu"
    there = tf.config.list_physical_devices("GPU")
    if built_for != kind or len(there) < count:
        sees = f"TensorFlow {tf.__version__} (built for {built_for}) sees {len(there)} GPUs"
        raise Failed("no-device", f"{count} '{kind}' devices are asked; {sees}")
    tf.config.set_visible_devices(there[:count], "GPU")
    return [f"/GPU:{number}" for number in range(count)]


def strategy(devices: list[str]) -> tf.distribute.Strategy:
    """Return one device, or a copy of the network on each of several with their gradients summed."""
    if len(devices) == 1:
        return tf.distribute.OneDeviceStrategy(devices[0])
    return tf.distribute.MirroredStrategy(devices)


def share_batch(strategy: tf.distribute.Strategy, batch: np.ndarray) -> Any:
    """Return a batch of all devices, an equal part on each."""
    size = len(batch) // strategy.num_replicas_in_sync

    def of(context: Any) -> tf.Tensor:
        first = context.replica_id_in_sync_group * size
        return tf.constant(batch[first : first + size])

    return strategy.experimental_distribute_values_from_function(of)


def prepare(label: str, devices: list[str]) -> dict[str, Any]:
    """Switch TF32 off for label fp32-ieee; gives label, flags and probes as a measurement has them."""
    tf.config.experimental.enable_tensor_float_32_execution(False)
    flags = {"tensor_float_32_execution": tf.config.experimental.tensor_float_32_execution_enabled()}
    with tf.device(devices[0]):
        found = arithmetic.probes({"matmul": _matmul, "convolution": _convolution})
    return {"label": label, "flags": flags, "probes": found, "method": "none"}


def facts(kind: str, count: int) -> dict[str, Any]:
    """Return the device as TensorFlow sees it from inside this process."""
    threads = tf.config.threading.get_intra_op_parallelism_threads() or len(os.sched_getaffinity(0))
    if kind == "cpu":
        return {"kind": kind, "name": processor_name(), "count": count, "threads": threads}
    details = tf.config.experimental.get_device_details(tf.config.get_visible_devices("GPU")[0])
    capability = ".".join(map(str, details.get("compute_capability", ()))) or None
    name = details.get("device_name", "GPU")
    return {"kind": kind, "name": name, "count": count, "capability": capability, "threads": threads}


def software() -> dict[str, str | None]:
    """Return the versions of what the trial computes with; CUDA and cuDNN are those of TensorFlow's build."""
    build = tf.sysconfig.get_build_info()
    return dict(
        versions(),
        tensorflow=tf.__version__,
        keras=tf.keras.__version__,
        numpy=np.__version__,
        cuda=build.get("cuda_version"),
        cudnn=build.get("cudnn_version"),
    )


def clock_on(devices: list[str]) -> Callable[..., StepClock]:
    """Return what makes the clock of these devices: it marks steps as the host issues them.

    TensorFlow has no events of a device.
    """
    return partial(
        StepClock,
        synchronise=tf.test.experimental.sync_devices,
        reads_freely=devices[0].startswith("/CPU"),
        peak_memory=lambda: memory(devices),
    )


def memory(devices: list[str]) -> dict[str, int | None]:
    """Return peak bytes: the highest of the devices, by TensorFlow's allocator, and the process's."""
    if devices[0].startswith("/CPU"):
        return step_clock.memory()
    peaks = [tf.config.experimental.get_memory_info(device[1:])["peak"] for device in devices]
    return step_clock.memory(allocated=max(peaks))


def _matmul(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return tf.matmul(left, right).numpy()


def _convolution(images: np.ndarray, weights: np.ndarray) -> np.ndarray:
    pixels_first = tf.constant(images.transpose(0, 2, 3, 1))
    kernels = tf.constant(weights.transpose(2, 3, 1, 0))
    return tf.nn.conv2d(pixels_first, kernels, 1, "VALID").numpy().transpose(0, 3, 1, 2)


def channels_last(batch: ArrayBatch) -> ArrayBatch:
    """Return images as (items, height, width, 3), and their labels."""
    images, labels = batch
    return np.ascontiguousarray(images.transpose(0, 2, 3, 1)), labels


def arranged_weight(array: np.ndarray) -> np.ndarray:
    """Return a neutral array as TensorFlow has it: (height, width, inputs, outputs), or (inputs, outputs)."""
    return array.transpose({4: (2, 3, 1, 0), 2: (1, 0), 1: (0,)}[array.ndim])
