"""Puts two fake cards behind NVML in every Python that has this folder, and the tests', in its PYTHONPATH."""

import sys

from tests.helpers.fake_nvml import CARD, FakeNvml

HOPPER = {"nvmlDeviceGetCudaComputeCapability": [9, 0], "memory": {"total": 80 * 2**30, "used": 2**30}}
OWN = [
    {"nvmlDeviceGetUUID": f"GPU-{at:08d}-1111-2222-3333-444444444444", "bus": f"00000000:0{at + 1}:00.0"}
    for at in range(2)
]

# What answers is no module, and need not be one.
sys.modules["pynvml"] = FakeNvml(
    [CARD | HOPPER | {"nvmlDeviceGetName": "NVIDIA Fake Card"} | one for one in OWN]
)
