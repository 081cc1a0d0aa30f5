"""What an engine's refusal or silence means, as an error of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import docker.errors
import requests
import urllib3.exceptions

from harness.engine.cdi import CDI_REMEDY
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


_CDI_SIGN = re.compile(r"\bcdi\b|(?:libcuda|libnvidia|/dev/nvidia).*no such file")
"""A specification that is stale, or that names no such card."""


@contextmanager
def engine_errors(engine: str, doing: str) -> Iterator[None]:
    """Raise NoEngine where the service does not answer, and what its refusal means where it says no."""
    try:
        yield
    except docker.errors.APIError as refusal:
        raise refusal_error(engine, doing, refusal.explanation or str(refusal)) from None
    except _SILENCE as silence:
        raise NoEngine(
            f"{engine} did not answer when asked to {doing} ({type(silence).__name__})",
            remedy="start it again, or use --engine venv",
        ) from None
    except (TypeError, KeyError, IndexError, ValueError, AttributeError, RecursionError) as strange:
        raise NoEngine(
            f"{engine} gave an answer that cannot be read when asked to {doing} ({type(strange).__name__})",
            remedy="update it or start it again, then give the same line again",
        ) from None


def refusal_error(engine: str, doing: str, explanation: str) -> MachineError:
    """Return the error for an engine's explanation of why it would not do a thing."""
    clause = " ".join(str(explanation).split())
    lower = clause.lower()
    if "no space left" in lower:
        return NoSpace(
            f"the disk is full: {engine} could not {doing}", remedy="remove images that nobody needs any more"
        )
    if any(sign in lower for sign in _DEVICE_SIGNS) or _CDI_SIGN.search(lower):
        return NoDevice(
            f"{engine} cannot give a container the device: {clause}",
            remedy=CDI_REMEDY if _CDI_SIGN.search(lower) else "see `invoke doctor` for what is missing",
        )
    return MachineError(f"{engine} would not {doing}: {clause}", remedy="use --engine venv, or correct that")
