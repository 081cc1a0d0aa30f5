"""What drivers would answer of constructed cards, before, during and after a trial."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.files import Files
from harness.record import DeviceKind
from tests.helpers.fake_nvml import CARD, FakeNvml
from tests.helpers.machines import tree

MIB = 2**20
TOGGLE_SECONDS = 4
"""How long a boost clock stays, before it goes to its other level."""

POWER_CAPPED = 0.6
"""Of its working time, how long a card is held at its power limit: the normal state in training."""


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
    """One card of a machine. `answers` are what else its driver tells, by the names of the stand-ins."""

    bus: str
    uuid: str | None
    memory_bytes: int
    idle_watts: float
    watts: float
    """At work."""
    mhz: tuple[int, int]
    """Between these the clock toggles at work."""
    answers: Mapping[str, Any] = field(default_factory=dict)

    def drawn(self, works: Sequence[Work], second: int) -> float:
        """Watts in one second."""
        return self.watts if at_work(works, second) else self.idle_watts

    def joules(self, works: Sequence[Work], second: int) -> float:
        """Drawn since the first second."""
        worked = seconds_worked(works, second)
        return self.watts * worked + self.idle_watts * (second - worked)

    def clock(self, works: Sequence[Work], second: int) -> int:
        """MHz in one second."""
        return self.mhz[second // TOGGLE_SECONDS % 2] if at_work(works, second) else 210


def at_work(works: Sequence[Work], second: int) -> list[Work]:
    """Those that hold the card in that second."""
    return [work for work in works if work.since <= second < work.until]


def seconds_worked(works: Sequence[Work], second: int) -> int:
    """How many seconds somebody held the card before that one."""
    return len(set().union(*(range(work.since, min(work.until, second)) for work in works)))


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
    reach: float
    """Of the FP32 peak on paper, what plain matrix products reach: more where the clock goes higher."""
    driver: str = ""

    def strangers(self, given: Sequence[int]) -> Scene:
        """Another process fills the machine's last card, unless the trial has that one itself."""
        last = len(self.chips) - 1
        return {} if last in given else {last: (stranger(self.chips[last].memory_bytes // 2),)}

    def nvml(self, scene: Scene, seconds: int = 1) -> FakeNvml | None:
        """What NVML would tell over so many seconds; none on a machine without NVIDIA's driver."""
        if self.kind != "cuda":
            return None
        cards = [_nvidia(chip) for chip in self.chips]
        ticks = [
            [_nvidia_at(chip, scene.get(at, ()), second) for at, chip in enumerate(self.chips)]
            for second in range(seconds)
        ]
        told = FakeNvml(cards, ticks)
        vars(told).update(
            at=0,
            nvmlSystemGetDriverVersion=lambda: self.driver,
            nvmlSystemGetCudaDriverVersion_v2=lambda: 13000,
        )
        return told

    def files(self, root: Path) -> Files:
        """The machine's own files, written below `root`."""
        told = dict(_HOST)
        if self.kind == "rocm":
            told |= {"/dev/kfd": ""}
            for at, chip in enumerate(self.chips):
                told |= _amdgpu(at, chip)
        found = tree(root, told)
        if self.kind == "rocm":
            (root / "dev/kfd").chmod(0o660)
        return found

    def tick(self, files: Files, scene: Scene, second: int, before: dict[str, str]) -> dict[str, str]:
        """Writes what amdgpu's files say in one second where it is not as before; returns all of it."""
        if self.kind != "rocm":
            return {}
        told: dict[str, str] = {}
        for at, chip in enumerate(self.chips):
            told |= _amdgpu_at(at, chip, scene.get(at, ()), second)
        if not before or before.keys() - told.keys():
            before = {}
            shutil.rmtree(files.root / "sys/class/kfd/kfd/proc", ignore_errors=True)
            (files.root / "sys/class/kfd/kfd/proc").mkdir()
        tree(files.root, dict(told.items() - before.items()))
        return told


STRANGER = 777
OWN = range(4242, 4250)
"""The trial's first process, and one rank for each card."""


def stranger(memory_bytes: int) -> Work:
    """A process of someone else."""
    return Work(STRANGER, memory_bytes)


_PROCESSOR = (
    "processor : {n}\nmodel name : Constructed CPU\nphysical id : 0\ncore id : {n}\nflags : fpu avx2\n"
)
_HOST = {
    "/proc/cpuinfo": "\n".join(_PROCESSOR.format(n=n) for n in range(16)),
    "/proc/meminfo": "MemTotal: 268435456 kB\nMemAvailable: 260000000 kB\n",
    "/etc/os-release": "PRETTY_NAME=Constructed Linux\n",
}


def _nvidia(chip: Chip) -> dict[str, Any]:
    told = {
        **CARD,
        "nvmlDeviceGetUUID": chip.uuid,
        "bus": f"0000{chip.bus}",
        "max_sm_mhz": chip.mhz[1],
        **chip.answers,
    }
    return {name: value for name, value in told.items() if value is not None}


def _nvidia_at(chip: Chip, works: Sequence[Work], second: int) -> dict[str, Any]:
    busy = at_work(works, second)
    told: dict[str, Any] = {
        "sm_mhz": chip.clock(works, second),
        "nvmlDeviceGetPowerUsage": round(1000 * chip.drawn(works, second)),
        "nvmlDeviceGetPerformanceState": 2 if busy else 8,
        "nvmlDeviceGetCurrentClocksEventReasons": 0x4 if busy else 0x1,
        "utilization": {"gpu": 98, "memory": 45} if busy else {"gpu": 0, "memory": 0},
        "temperature": 64 if busy else 38,
        "memory": {
            "total": chip.memory_bytes,
            "used": 600 * MIB + sum(work.memory_bytes for work in busy),
        },
        "nvmlDeviceGetComputeRunningProcesses": [
            {"pid": work.pid, "usedGpuMemory": work.memory_bytes} for work in busy
        ],
        "process_sm_percent": {str(work.pid): 98 // len(busy) for work in busy},
    }
    if chip.answers.get("nvmlDeviceGetTotalEnergyConsumption", 0) is not None:
        told["nvmlDeviceGetTotalEnergyConsumption"] = round(1000 * chip.joules(works, second))
    if "violation_ns" in chip.answers:
        capped = round(1e9 * POWER_CAPPED * seconds_worked(works, second))
        told["violation_ns"] = {**chip.answers["violation_ns"], "power": capped}
    return told


def _amdgpu(at: int, chip: Chip) -> dict[str, str]:
    """The files of amdgpu and of the compute driver about one card."""
    device, node = f"/sys/class/drm/card{at}/device", f"/sys/class/kfd/kfd/topology/nodes/{at + 1}"
    answers, cap = chip.answers, round(1e6 * chip.answers["cap_watts"])
    bus_number = int(chip.bus[5:7], 16) << 8
    told = {
        f"{device}/vendor": "0x1002",
        f"{device}/uevent": f"DRIVER=amdgpu\nPCI_SLOT_NAME={chip.bus}",
        f"{device}/device": answers["pci_id"][0],
        f"{device}/revision": answers["pci_id"][1],
        f"{device}/mem_info_vram_total": str(chip.memory_bytes),
        f"{device}/current_link_speed": "16.0 GT/s PCIe",
        f"{device}/max_link_speed": "16.0 GT/s PCIe",
        f"{device}/current_link_width": "16",
        f"{device}/max_link_width": "16",
        f"{device}/pp_dpm_sclk": f"0: 132Mhz *\n1: {chip.mhz[1]}Mhz",
        f"{device}/hwmon/hwmon{at}/power1_cap": str(cap),
        f"{device}/hwmon/hwmon{at}/power1_cap_default": str(cap),
        f"{node}/gpu_id": str(1000 + at),
        f"{node}/properties": f"gfx_target_version {answers['gfx_version']}\nlocation_id {bus_number}\n"
        f"domain 0\nsimd_count {2 * answers['num_compute_units']}\nsimd_per_cu 2",
        "/sys/module/amdgpu/version": "6.12.12",
    }
    return told | ({f"{device}/unique_id": chip.uuid} if chip.uuid else {})


def _amdgpu_at(at: int, chip: Chip, works: Sequence[Work], second: int) -> dict[str, str]:
    """What the files about one card say in one second."""
    device, busy = f"/sys/class/drm/card{at}/device", at_work(works, second)
    return {
        f"{device}/hwmon/hwmon{at}/power1_average": str(round(1e6 * chip.drawn(works, second))),
        f"{device}/hwmon/hwmon{at}/freq1_input": str(10**6 * chip.clock(works, second)),
        f"{device}/gpu_busy_percent": "98" if busy else "0",
        f"{device}/mem_info_vram_used": str(300 * MIB + sum(work.memory_bytes for work in busy)),
        **{f"/sys/class/kfd/kfd/proc/{work.pid}/vram_{1000 + at}": str(work.memory_bytes) for work in busy},
    }
