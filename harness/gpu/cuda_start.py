"""Whether NVIDIA's driver starts CUDA, which NVML does not say: on this host, or in a container."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

START_SECONDS = 10

START = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
code, said = driver.cuInit(0), ctypes.c_char_p()
driver.cuGetErrorString(code, ctypes.byref(said))
print(code, (said.value or b"").decode(errors="replace"))
"""
"""A program for a Python of its own: what cuInit gives, as a code and in words."""
_REMEDIES = {
    3: "end what else uses the driver; then restart the machine",
    802: "start what joins its cards: sudo systemctl restart nvidia-fabricmanager",
    803: "update the driver, or remove what brings an older libcuda.so.1 before it",
    999: "load the driver's module again, as after a suspend: sudo modprobe -r nvidia_uvm, and without -r",
}
"""What to do about a start that fails outside and inside of a container, by cuInit's code."""


@dataclass(frozen=True, slots=True)
class CudaStart:
    """How a start of CUDA ended: null without words where it could not be tried."""

    starts: bool | None = None
    said: str = ""
    """The driver's own words where it did not start."""
    remedy: str = ""
    """Empty where a container may start it all the same."""


NOT_TRIED = CudaStart()


def start_cuda(seconds: float = START_SECONDS) -> CudaStart:
    """Start CUDA in a process of its own, which `seconds` end."""
    try:
        done = subprocess.run(
            (sys.executable, "-c", START), capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return silent_start(seconds)
    except OSError:
        return NOT_TRIED
    if done.returncode < 0:
        return CudaStart(False, f"cuInit ended by signal {-done.returncode}")
    return NOT_TRIED if done.returncode else read_start(done.stdout)


def silent_start(seconds: float) -> CudaStart:
    """Return what it means that cuInit did not end in time."""
    return CudaStart(False, f"cuInit gives no answer in {seconds:g} s", _REMEDIES[3])


def read_start(printed: str) -> CudaStart:
    """Return what START printed: not tried where that is no code."""
    code, _, said = printed.strip().partition(" ")
    if not code.isdecimal():
        return NOT_TRIED
    if code == "0":
        return CudaStart(True)
    return CudaStart(False, f"cuInit: {said} ({code})", _REMEDIES.get(int(code), ""))
