"""What Horovod's workloads have alike: its name, what is told of it, and the devices that it has here."""

from __future__ import annotations

from typing import Any

import horovod

from frameworks.tensorflow import device
from parts.launcher import Place
from parts.timing.step_clock import StepClock
from parts.trial import Failed, TrialProcess

NAME = "tensorflow-horovod"
LAST_RELEASE = "2023-06-12"
"""By its own changelog. Its repository had a commit in June 2026, and no release since."""
WAYS = {"ddp": "Horovod over gloo, a process each"}


def refuse_others(trial: TrialProcess) -> None:
    """Raises Failed where a trial asks for another device than a CPU."""
    if trial.asked["device"] != "cpu":
        raise Failed("no-device", f"Horovod runs on a CPU here, and a '{trial.asked['device']}' is asked")


def facts(**own: Any) -> dict[str, Any]:
    """The framework, as a measurement tells it."""
    about = {"name": "Horovod on TensorFlow", "version": horovod.__version__, "dormant_since": LAST_RELEASE}
    return {**about, "ways": WAYS, "layout": "channels last", "compiled": "tf.function", **own}


def software() -> dict[str, str | None]:
    """Versions of what the trial computes with."""
    return dict(device.software(), horovod=horovod.__version__)


def entries(clock: StepClock, place: Place, devices: list[str]) -> list[dict[str, Any]]:
    """What is known of this rank, where there are several."""
    if place.count == 1:
        return []
    own = {"rank": place.rank, "samples": clock.samples, "seconds": clock.seconds}
    return [{**own, "memory": device.memory(devices)}]
