"""Two machines with cards, constructed from datasheets and makers' documents: no device made any of it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.files import Files
from harness.record import DeviceKind
from tests.helpers.fake_nvml import CARD, POLICIES, FakeNvml
from tests.helpers.machines import tree

MIB = 2**20
IDLE_WATTS = 20
STRANGER = 777


@dataclass(frozen=True, slots=True)
class Work:
    """What a process does on a card, from one second of the telemetry to another."""

    pid: int
    memory_bytes: int
    since: int = 0
    until: int = 100_000


Scene = Mapping[int, Sequence[Work]]
"""Who works on which card, by the card's place on the machine."""


@dataclass(frozen=True, slots=True)
class Chip:
    """One card of a machine. `told` is what its driver always says: by NVML's names, or in amdgpu's files."""

    memory_bytes: int
    watts: float
    """At work."""
    mhz: int
    told: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Box:
    """A machine, and how a workload would find its cards."""

    name: str
    image: str
    kind: DeviceKind
    chips: tuple[Chip, ...]
    framework_name: str
    capability: str
    precisions: frozenset[str]

    def strangers(self, given: Sequence[int]) -> Scene:
        """Another process fills half of the machine's last card, unless the trial has that one itself."""
        last = len(self.chips) - 1
        return {} if last in given else {last: (Work(STRANGER, self.chips[last].memory_bytes // 2),)}

    def nvml(self, scene: Scene, seconds: int = 1) -> FakeNvml | None:
        """What NVML would tell over so many seconds; none on a machine without NVIDIA's driver."""
        if self.kind != "cuda":
            return None
        ticks, joules = [], [0.0] * len(self.chips)
        for second in range(seconds):
            works = [_at_work(scene.get(at, ()), second) for at in range(len(self.chips))]
            ticks.append([_nvidia(*one) for one in zip(self.chips, works, joules, strict=True)])
            joules = [sum(one) for one in zip(joules, map(_watts, self.chips, works), strict=True)]
        told = FakeNvml([dict(chip.told) for chip in self.chips], ticks)
        told.at = 0
        vars(told)["nvmlSystemGetDriverVersion"] = lambda: "580.95.05"
        return told

    def files(self, root: Path) -> Files:
        """The machine's own files, written below `root`."""
        processor = "processor : {n}\nmodel name : Constructed CPU\nphysical id : 0\ncore id : {n}\n"
        told = {
            "/proc/cpuinfo": "\n".join(processor.format(n=n) for n in range(16)),
            "/proc/meminfo": "MemTotal: 268435456 kB\nMemAvailable: 260000000 kB\n",
            "/etc/os-release": "PRETTY_NAME=Constructed Linux\n",
        }
        if self.kind == "rocm":
            told |= {"/dev/kfd": "", "/sys/module/amdgpu/version": "6.12.12"}
            for chip in self.chips:
                told |= chip.told
        found = tree(root, told)
        if self.kind == "rocm":
            (root / "dev/kfd").chmod(0o660)
        return found

    def tick(self, files: Files, scene: Scene, second: int) -> None:
        """Writes what amdgpu's files say in one second."""
        if self.kind == "rocm":
            shutil.rmtree(files.root / "sys/class/kfd/kfd/proc", ignore_errors=True)
            (files.root / "sys/class/kfd/kfd/proc").mkdir()
            for at, chip in enumerate(self.chips):
                tree(files.root, _amdgpu(at, chip, _at_work(scene.get(at, ()), second)))


def _at_work(works: Sequence[Work], second: int) -> list[Work]:
    return [work for work in works if work.since <= second < work.until]


def _watts(chip: Chip, works: Sequence[Work]) -> float:
    return chip.watts if works else IDLE_WATTS


def _nvidia(chip: Chip, works: Sequence[Work], joules: float) -> dict[str, Any]:
    used = 600 * MIB + sum(work.memory_bytes for work in works)
    return {
        "sm_mhz": chip.mhz if works else 210,
        "nvmlDeviceGetPowerUsage": round(1000 * _watts(chip, works)),
        "nvmlDeviceGetTotalEnergyConsumption": round(1000 * joules),
        "nvmlDeviceGetPerformanceState": 2 if works else 8,
        "utilization": {"gpu": 98, "memory": 45} if works else {"gpu": 0, "memory": 0},
        "memory": {"total": chip.memory_bytes, "used": used},
        "nvmlDeviceGetComputeRunningProcesses": [
            {"pid": work.pid, "usedGpuMemory": work.memory_bytes} for work in works
        ],
        "process_sm_percent": {str(work.pid): 98 // len(works) for work in works},
    }


def _amdgpu(at: int, chip: Chip, works: Sequence[Work]) -> dict[str, str]:
    device = f"/sys/class/drm/card{at}/device"
    return {
        f"{device}/hwmon/hwmon{at}/power1_average": str(round(1e6 * _watts(chip, works))),
        f"{device}/hwmon/hwmon{at}/freq1_input": str(10**6 * (chip.mhz if works else 210)),
        f"{device}/gpu_busy_percent": "98" if works else "0",
        f"{device}/mem_info_vram_used": str(300 * MIB + sum(work.memory_bytes for work in works)),
        **{f"/sys/class/kfd/kfd/proc/{work.pid}/vram_{1000 + at}": str(work.memory_bytes) for work in works},
    }


def _h100(n: int) -> Chip:
    told = {
        "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3",
        "nvmlDeviceGetUUID": f"GPU-{n}f2a1b2c-1111-2222-3333-123456789abc",
        "bus": f"00000000:{0x1B + n:02x}:00.0",
        "nvmlDeviceGetCudaComputeCapability": [9, 0],
        "nvmlDeviceGetEnforcedPowerLimit": 700_000,
        "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
        "nvmlDeviceGetEccMode": [1, 1],
        "nvmlDeviceGetMigMode": [0, 0],
        "ecc_uncorrected": 0,
        "ecc_corrected": 0,
        "xids": [],
        "violation_ns": dict.fromkeys(POLICIES.values(), 0),
        "max_sm_mhz": 1980,
    }
    return Chip(81_559 * MIB, watts=640, mhz=1755, told=CARD | told)


def _radeon(at: int, chip: str, gfx_version: int, memory_mib: int, watts: int, mhz: int, uuid: str) -> Chip:
    device, node = f"/sys/class/drm/card{at}/device", f"/sys/class/kfd/kfd/topology/nodes/{at + 1}"
    told = {
        "vendor": "0x1002",
        "uevent": f"DRIVER=amdgpu\nPCI_SLOT_NAME=0000:{at + 3:02x}:00.0",
        "device": chip[:6],
        "revision": chip[7:],
        "unique_id": uuid,
        "mem_info_vram_total": str(memory_mib * MIB),
        "pp_dpm_sclk": f"0: 132Mhz *\n1: {mhz}Mhz",
        f"hwmon/hwmon{at}/power1_cap": str(10**6 * watts),
        f"hwmon/hwmon{at}/power1_cap_default": str(10**6 * watts),
    }
    properties = f"gfx_target_version {gfx_version}\nlocation_id {at + 3 << 8}\ndomain 0"
    files = {f"{device}/{name}": text for name, text in told.items()}
    files |= {f"{node}/gpu_id": str(1000 + at), f"{node}/properties": properties}
    return Chip(memory_mib * MIB, watts, mhz, files)


H100S = Box(
    "eight H100",
    image="cuda",
    kind="cuda",
    chips=tuple(_h100(n) for n in range(8)),
    framework_name="NVIDIA H100 80GB HBM3",
    capability="9.0",
    precisions=frozenset({"fp32-ieee", "fp32-tf32", "amp-fp16", "amp-bf16"}),
)
RX_7900_XTX = Box(
    "one RX 7900 XTX",
    image="rocm",
    kind="rocm",
    chips=(
        _radeon(0, "0x744c 0xc8", 110000, 24_560, watts=320, mhz=2965, uuid="5e1f2a3b4c5d6e7f"),
        # Inside the processor, and the screen hangs on it.
        _radeon(1, "0x164e 0xc1", 100306, 512, watts=30, mhz=2200, uuid=""),
    ),
    framework_name="Radeon RX 7900 XTX",
    capability="gfx1100",
    precisions=frozenset({"fp32-ieee", "amp-fp16", "amp-bf16"}),
)
BOXES = (H100S, RX_7900_XTX)
