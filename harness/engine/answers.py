"""What a container engine's silence and its refusals mean, as this project's errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import docker.errors
import requests
import urllib3.exceptions

from harness.errors import MachineError, NoDevice, NoEngine, NoSpace

_SILENCE = (
    docker.errors.DockerException,
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    OSError,
)

_DEVICE_SIGNS = (
    "could not select device driver",
    "nvidia-container",
    "cdi device",
    "gathering device information",
    "unknown or invalid runtime",
    "stat /dev/kfd",
)


@contextmanager
def answered(engine: str, doing: str) -> Iterator[None]:
    """Raises NoEngine where the service does not answer, and what its refusal means where it says no."""
    try:
        yield
    except docker.errors.APIError as refusal:
        raise refused(engine, doing, refusal.explanation or str(refusal)) from None
    except _SILENCE as silence:
        raise NoEngine(
            f"{engine} did not answer when asked to {doing} ({type(silence).__name__})",
            remedy="start it, then give the same line again",
        ) from None


def refused(engine: str, doing: str, said: str) -> MachineError:
    """The error for what an engine said when it would not do a thing."""
    clause = " ".join(str(said).split())
    lower = clause.lower()
    if "no space left" in lower:
        return NoSpace(
            f"the disk is full: {engine} could not {doing}", remedy="free space with `invoke clean`"
        )
    if any(sign in lower for sign in _DEVICE_SIGNS):
        return NoDevice(
            f"{engine} cannot give a container the device: {clause}",
            remedy="see `invoke doctor` for what is missing",
        )
    return MachineError(f"{engine} would not {doing}: {clause}", remedy="see `invoke doctor`")
