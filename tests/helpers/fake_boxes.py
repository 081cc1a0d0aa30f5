"""Machines with four kinds of card, constructed from datasheets and from what the makers' libraries document.

No device made any of it.
"""

from __future__ import annotations

from tests.helpers.fake_drivers import MIB, Box, Chip
from tests.helpers.fake_nvml import POLICIES


def _uuid(n: int) -> str:
    return f"GPU-{n}f2a1b2c-1111-2222-3333-123456789abc"


def _h100(n: int) -> Chip:
    answers = {
        "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3",
        "nvmlDeviceGetCudaComputeCapability": [9, 0],
        "nvmlDeviceGetEnforcedPowerLimit": 700_000,
        "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
        "nvmlDeviceGetMaxPcieLinkGeneration": 5,
        "nvmlDeviceGetCurrPcieLinkGeneration": 5,
        "nvmlDeviceGetEccMode": [1, 1],
        "nvmlDeviceGetMigMode": [0, 0],
        "nvmlDeviceGetRemappedRows": [0, 0, 0, 0],
        "ecc_uncorrected": 0,
        "ecc_corrected": 0,
        "xids": [],
        "violation_ns": dict.fromkeys(POLICIES.values(), 0),
        "fields": {"82": 70},
        "mem_mhz": 2619,
        "max_mem_mhz": 2619,
    }
    memory, bus = 81_559 * MIB, f"0000:{0x1B + n:02x}:00.0"
    return Chip(bus, _uuid(n), memory, idle_watts=70, watts=640, mhz=(1755, 1980), answers=answers)


def _geforce(
    n: int, name: str, memory_mib: int, watts: float, limit_watts: int, mhz: tuple[int, int]
) -> Chip:
    """Before Volta: no energy counter, no time limited, no ECC, no MIG."""
    answers = {
        "nvmlDeviceGetName": name,
        "nvmlDeviceGetCudaComputeCapability": [6, 1],
        "nvmlDeviceGetEnforcedPowerLimit": 1000 * limit_watts,
        "nvmlDeviceGetPowerManagementDefaultLimit": 1000 * limit_watts,
        "nvmlDeviceGetMaxPcieLinkGeneration": 3,
        "nvmlDeviceGetCurrPcieLinkGeneration": 3,
        "nvmlDeviceGetTotalEnergyConsumption": None,
        "mem_mhz": 5005,
        "max_mem_mhz": 5505,
    }
    memory = memory_mib * MIB
    return Chip(
        f"0000:{n + 1:02x}:00.0", _uuid(n), memory, idle_watts=9, watts=watts, mhz=mhz, answers=answers
    )


H100S = Box(
    "eight H100",
    image="cuda",
    kind="cuda",
    chips=tuple(_h100(n) for n in range(8)),
    framework_name="NVIDIA H100 80GB HBM3",
    capability="9.0",
    precisions=frozenset({"fp32-ieee", "fp32-tf32", "amp-fp16", "amp-bf16"}),
    reach=0.88,
    driver="580.95.05",
)
GTX_1080_TI = Box(
    "one GTX 1080 Ti",
    image="cuda126",
    kind="cuda",
    chips=(
        _geforce(0, "NVIDIA GeForce GTX 1080 Ti", 11_264, 240, 250, (1848, 1911)),
        # For its screen, as many such machines have.
        _geforce(1, "NVIDIA GeForce GT 1030", 2_048, 25, 30, (1468, 1506)),
    ),
    framework_name="NVIDIA GeForce GTX 1080 Ti",
    capability="6.1",
    precisions=frozenset({"fp32-ieee", "amp-fp16"}),
    # At 1,911 MHz, where the peak on paper is at 1,582.
    reach=1.09,
    driver="580.95.05",
)
MI300X = Box(
    "one MI300X",
    image="rocm",
    kind="rocm",
    chips=(
        Chip(
            "0000:c3:00.0", "7d3b1c0a9f8e2d11", 196_592 * MIB, idle_watts=140, watts=690, mhz=(1950, 2100),
            answers={
                "gfx_version": 90402,
                "num_compute_units": 304,
                "pci_id": ("0x74a1", "0x00"),
                "cap_watts": 750,
            },
        ),
    ),
    framework_name="AMD Instinct MI300X",
    capability="gfx942:sramecc+:xnack-",
    precisions=frozenset({"fp32-ieee", "amp-fp16", "amp-bf16"}),
    reach=0.55,
)  # fmt: skip
RX_7900_XTX = Box(
    "one RX 7900 XTX",
    image="rocm",
    kind="rocm",
    chips=(
        Chip(
            "0000:03:00.0", "5e1f2a3b4c5d6e7f", 24_560 * MIB, idle_watts=20, watts=320, mhz=(2650, 2965),
            answers={
                "gfx_version": 110000,
                "num_compute_units": 96,
                "pci_id": ("0x744c", "0xc8"),
                "cap_watts": 327,
            },
        ),
        # Inside the processor, and the screen hangs on it.
        Chip(
            "0000:13:00.0", None, 512 * MIB, idle_watts=5, watts=30, mhz=(2000, 2200),
            answers={
                "gfx_version": 100306,
                "num_compute_units": 2,
                "pci_id": ("0x164e", "0xc1"),
                "cap_watts": 30,
            },
        ),
    ),
    framework_name="Radeon RX 7900 XTX",
    capability="gfx1100",
    precisions=MI300X.precisions,
    # At 2,965 MHz, where the peak on paper is at 2,500.
    reach=1.04,
)  # fmt: skip

BOXES = (H100S, GTX_1080_TI, MI300X, RX_7900_XTX)
