"""The fingerprint: this machine as it is, and machines that are made up."""

from __future__ import annotations

import inspect
import json
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import psutil
import pynvml
import pytest

from harness.errors import MachineError
from harness.machine import (
    default_label,
    fingerprint,
    load,
    local_names,
    machine_from,
    machine_id,
    own_folder,
)
from harness.machine.load import load_from
from harness.probe import amd, cpu, nvidia, system
from harness.probe.files import Files, unit_of
from harness.record import differences
from harness.record.cards import load_cards
from harness.redact import Names, leaks
from tests.helpers import ROOT
from tests.helpers.fake_amdsmi import FakeAmdsmi
from tests.helpers.fake_nvml import CARD, SLICES, FakeNvml


def tree(root: Path, files: dict[str, str]) -> Files:
    for path, text in files.items():
        (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (root / path.lstrip("/")).write_text(text)
    return Files(root)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    return fingerprint()


def test_this_machine_is_told_as_psutil_tells_it(here):
    assert here.cpu.threads == psutil.cpu_count()
    assert here.memory_bytes == psutil.virtual_memory().total
    assert 0 < here.cpu.usable <= len(os.sched_getaffinity(0))
    assert here.kernel == os.uname().release
    assert load().memory_available_bytes <= here.memory_bytes


def test_this_machine_gives_nothing_away(here):
    assert leaks(here.canonical(), local_names(ROOT)) == ()


def test_the_probe_runs_without_any_package_and_says_the_same(here):
    code = "import sys; sys.modules['pynvml'] = sys.modules['amdsmi'] = sys.modules['pydantic'] = None\n"
    code += "import runpy; runpy.run_module('harness.probe', run_name='__main__')"
    text = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = [{str(ROOT)!r}]\n{code}"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    told = json.loads(text)
    assert told["cpu"]["model"] == here.cpu.model
    assert told["memory_bytes"] == here.memory_bytes


def test_a_machine_id_is_made_once_also_by_many_at_once(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: machine_id(tmp_path / "state"), range(32)))
    assert len(found) == 1
    assert found != {machine_id(tmp_path / "other")}
    assert [path.name for path in own_folder(tmp_path / "state").iterdir()] == ["id"]


def test_nodes_that_share_a_home_are_different_machines(tmp_path, monkeypatch):
    found = set()
    for node in ("node-1", "node-2", "node-1"):
        monkeypatch.setattr(platform, "node", lambda name=node: name)
        found.add(machine_id(tmp_path))
    assert len(found) == 2
    assert not any("node" in path.name for path in (tmp_path / "machines").iterdir())


def test_a_spoiled_machine_id_is_refused_by_name(tmp_path):
    own_folder(tmp_path).mkdir(parents=True)
    (own_folder(tmp_path) / "id").write_text("not one")
    with pytest.raises(MachineError, match="/id' holds no machine id; remove it"):
        machine_id(tmp_path)


CPUINFO = """processor : {n}
model name : Xeon(R)   Gold 6248
physical id : {socket}
core id : {core}
flags : fpu avx2 avx512f amx_bf16 hypervisor
"""


def test_sockets_cores_threads_and_settings_are_read_from_the_system(tmp_path):
    blocks = [CPUINFO.format(n=n, socket=n // 4, core=n % 2) for n in range(8)]
    files = tree(tmp_path, {
        "/proc/cpuinfo": "\n".join(blocks),
        "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave\n",
        "/sys/devices/system/cpu/cpufreq/policy1/scaling_governor": "performance\n",
        "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3900000\n",
        "/sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
        "/sys/devices/system/cpu/smt/active": "1\n",
    })  # fmt: skip
    assert cpu.cpu(files, affinity=6) == {
        "model": "Xeon(R) Gold 6248",
        "sockets": 2,
        "cores": 4,
        "threads": 8,
        "usable": 6.0,
        "mhz_max": 3900.0,
        "governor": "performance,powersave",
        "turbo": False,
        "smt": True,
        "features": ["avx2", "avx512f", "amx_bf16"],
    }


@pytest.mark.parametrize(
    ("files", "quota", "limit"),
    [
        ({"/proc/self/cgroup": "0::/", "/sys/fs/cgroup/cpu.max": "150000 100000"}, 1.5, None),
        (
            {
                "/proc/self/cgroup": "0::/user/job",
                "/sys/fs/cgroup/user/job/cpu.max": "max 100000",
                "/sys/fs/cgroup/user/cpu.max": "300000 100000",
                "/sys/fs/cgroup/user/job/memory.max": "max",
                "/sys/fs/cgroup/user/memory.max": str(2**33),
            },
            3.0,
            2**33,
        ),
        (
            {
                "/proc/self/cgroup": "4:cpu,cpuacct:/docker/ab\n9:memory:/docker/ab\n0::/",
                "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000",
                "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
                "/sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes": str(2**62),
            },
            0.5,
            None,
        ),
        ({"/proc/self/cgroup": "0::/", "/sys/fs/cgroup/cpu.cfs_quota_us": "-1"}, None, None),
        ({}, None, None),
    ],
)
def test_the_tightest_control_group_limits_of_either_version_hold(tmp_path, files, quota, limit):
    found = tree(tmp_path, files)
    assert system.cpu_quota(found) == quota
    assert system.memory_limit(found, 2**36) == limit


@pytest.mark.parametrize(
    ("files", "kernel", "kind"),
    [
        ({"/sys/class/dmi/id/sys_vendor": "QEMU"}, "6.1.0", "kvm"),
        ({"/proc/cpuinfo": "flags : fpu hypervisor"}, "6.1.0", "unknown hypervisor"),
        ({"/proc/cpuinfo": "flags : fpu"}, "6.1.0", "none"),
        ({}, "6.6.87.2-microsoft-standard-WSL2", "wsl"),
        ({}, "6.1.0", None),
    ],
)
def test_a_virtual_machine_is_told_from_bare_metal_and_from_not_knowing(tmp_path, files, kernel, kind):
    assert system.virtual(tree(tmp_path, files), kernel) == kind


def test_a_nvidia_card_is_described_and_its_uuid_only_hashed():
    cards = nvidia.cards(FakeNvml(), Files(Path("/nowhere")))
    machine = machine_from(bare(cards), "0123456789ab", None, Names())
    (card,) = machine.gpus
    assert (card.name, card.memory_bytes, card.driver_cuda) == (CARD["nvmlDeviceGetName"], 24 * 2**30, "12.8")
    assert (card.architecture, card.power_limit_watts, card.ecc, card.mig) == ("sm_89", 450.0, None, None)
    assert card.unit == unit_of(CARD["nvmlDeviceGetUUID"]) == "739d08b7ff52fe19"
    assert CARD["nvmlDeviceGetUUID"][4:] not in machine.canonical()
    assert machine.label == "1x-rtx-4090"


@pytest.mark.parametrize(
    ("told", "rows"),
    [
        ({"nvmlDeviceGetRemappedRows": (1, 2, False, False)}, 3),
        ({"nvmlDeviceGetRetiredPages": [0x1000]}, 2),
        ({}, None),
    ],
)
def test_a_card_s_replaced_memory_its_highest_limit_and_its_mode_are_told(told, rows):
    card = CARD | {
        "nvmlDeviceGetPowerManagementLimitConstraints": [100_000, 600_000],
        "nvmlDeviceGetComputeMode": pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
        "nvmlDeviceGetBAR1MemoryInfo": SimpleNamespace(bar1Total=2**28),
    }
    (found,) = nvidia.cards(FakeNvml([card | told]), Files())
    assert (found["power_limit_max_watts"], found["compute_mode"]) == (600.0, "exclusive")
    assert (found["bar1_bytes"], found["remapped_rows"]) == (2**28, rows)


def test_a_driver_that_is_not_there_gives_no_cards():
    assert nvidia.cards(FakeNvml(driver=False), Files()) == []
    assert nvidia.cards(None, Files()) == []


def test_the_slices_of_a_card_stand_in_its_place_as_cards_of_their_own():
    machine = machine_from(bare(nvidia.cards(FakeNvml(SLICES), Files())), "0123456789ab", None, Names())
    whole, first, second = machine.gpus
    assert [gpu.index for gpu in machine.gpus] == [1, 2, 3]
    assert (whole.name, whole.mig) == (CARD["nvmlDeviceGetName"], "off")
    assert (first.name, first.mig) == ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "3g.20gb of card 0")
    assert (first.memory_bytes, first.driver, first.architecture) == (20 * 2**30, whole.driver, "sm_89")
    assert first.unit == unit_of(SLICES[2]["nvmlDeviceGetUUID"]) != second.unit


def test_a_card_in_mig_mode_without_a_slice_is_listed_and_says_so():
    card = CARD | {"nvmlDeviceGetMigMode": [1, 1], "nvmlDeviceGetMaxMigDeviceCount": 7}
    assert [found["mig"] for found in nvidia.cards(FakeNvml([card]), Files())] == ["on"]


def test_before_a_trial_processes_are_counted_over_slices_and_cards_alike(tmp_path):
    found = load_from(tree(tmp_path, {}), FakeNvml(SLICES), pid=100)
    assert (found.other_gpu_processes, found.other_gpu_memory_bytes) == (1, 2**30)


def test_the_stand_in_for_nvml_has_the_names_and_parameters_of_the_real_library():
    own = [name for name in vars(FakeNvml) if name.startswith("nvml")]
    answers = [name for name in CARD if name.startswith("nvml")]
    assert own
    for name in own + answers:
        assert hasattr(pynvml, name), name
    for name in own:
        real = list(inspect.signature(getattr(pynvml, name)).parameters)
        stand_in = list(inspect.signature(getattr(FakeNvml, name)).parameters)[1:]
        if real != ["args", "kwargs"] and real:
            assert stand_in == real, name


AMD = {
    "/sys/class/drm/card1/device/vendor": "0x1002",
    "/sys/class/drm/card1/device/uevent": "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:c3:00.0",
    "/sys/class/drm/card1/device/product_name": "AMD Instinct MI300X",
    "/sys/class/drm/card1/device/unique_id": "7d3b1c0a9f8e2d11",
    "/sys/class/drm/card1/device/mem_info_vram_total": str(192 * 2**30),
    "/sys/class/drm/card1/device/current_link_speed": "32.0 GT/s PCIe",
    "/sys/class/drm/card1/device/max_link_speed": "32.0 GT/s PCIe",
    "/sys/class/drm/card1/device/current_link_width": "16",
    "/sys/class/drm/card1/device/pp_dpm_sclk": "0: 132Mhz *\n1: 2100Mhz",
    "/sys/class/drm/card1/device/hwmon/hwmon3/power1_cap": "750000000",
    "/sys/class/drm/card1/device/numa_node": "-1",
    "/sys/class/kfd/kfd/topology/nodes/1/properties": "gfx_target_version 90402\nlocation_id 49920\ndomain 0",
    "/sys/class/drm/card0/device/vendor": "0x1a03",
}


def test_an_amd_card_is_described_by_the_kernel_alone(tmp_path):
    (card,) = amd.cards(None, tree(tmp_path, AMD))
    machine = machine_from(bare([card]), "0123456789ab", None, Names())
    (found,) = machine.gpus
    assert (found.name, found.architecture, found.memory_bytes) == (
        "AMD Instinct MI300X",
        "gfx942",
        192 * 2**30,
    )
    assert (found.pcie_generation, found.pcie_width, found.numa_node) == (5, 16, None)
    assert (found.power_limit_watts, found.clock_max_mhz) == (750.0, 2100)
    assert "7d3b1c0a9f8e2d11" not in machine.canonical()
    assert machine.label == "1x-instinct-mi300x"


def test_amdsmi_tells_more_of_a_card_than_the_kernel_and_is_matched_by_bus_number(tmp_path):
    (card,) = amd.cards(FakeAmdsmi(), tree(tmp_path, AMD | {"/sys/module/amdgpu/version": "6.0"}))
    assert (card["driver"], card["vbios"]) == ("6.12.12", "022.040.003.042.000001")
    assert (card["memory_bytes"], card["power_limit_default_watts"]) == (196_592 * 2**20, 750.0)
    assert card["pcie_width"] == 16
    assert amd.cards(FakeAmdsmi(absent=("amdsmi_init",)), tree(tmp_path, {}))[0]["driver"] == "6.0"
    assert amd.cards(FakeAmdsmi(), Files(tmp_path / "nothing"))[0]["index"] == 0


def test_amd_s_cards_are_counted_by_bus_number_where_the_library_alone_knows_them(tmp_path):
    smi = FakeAmdsmi(("0000:C3:00.0", "0000:03:00.0"))
    smi.amdsmi_get_gpu_asic_info = lambda handle: {"market_name": handle}
    assert [card["name"] for card in amd.cards(smi, Files(tmp_path))] == ["0000:03:00.0", "0000:C3:00.0"]


def test_amdsmi_is_found_in_rocm_s_own_folder_and_a_broken_one_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "amdsmi", raising=False)
    package = tmp_path / "share/amd_smi/amdsmi"
    package.mkdir(parents=True)
    before = list(sys.path)
    (package / "__init__.py").write_text("raise KeyError('libamd_smi.so')")
    assert amd.library(str(tmp_path)) is None
    assert "amdsmi" not in sys.modules
    (package / "__init__.py").write_text("AMDSMI = 'ROCm has it'  # of another length")
    found = amd.library(str(tmp_path))
    del sys.modules["amdsmi"]
    assert (found.AMDSMI, sys.path) == ("ROCm has it", before)


def test_a_card_that_its_driver_calls_by_a_shared_name_is_named_by_its_chip(tmp_path):
    node = AMD["/sys/class/kfd/kfd/topology/nodes/1/properties"] + "\nsimd_count 1216\nsimd_per_cu 4"
    told = AMD | {
        "/sys/class/drm/card1/device/product_name": "AMD Radeon Graphics",
        "/sys/class/drm/card1/device/device": "0x74a1",
        "/sys/class/drm/card1/device/revision": "0x00",
        "/sys/class/kfd/kfd/topology/nodes/1/properties": node,
    }
    cards = amd.cards(None, tree(tmp_path, told))
    named = [
        machine_from(bare(cards), "0123456789ab", None, Names(), known) for known in ((), load_cards(ROOT))
    ]
    assert [(one.gpus[0].name, one.label) for one in named] == [
        ("AMD Radeon Graphics", "1x-unknown-card"),
        ("AMD MI300X", "1x-mi300x"),
    ]
    assert (named[1].gpus[0].pci_id, named[1].gpus[0].compute_units) == ("74a1:00", 304)


@pytest.mark.parametrize(
    ("version", "name"), [(90402, "gfx942"), (90010, "gfx90a"), (110000, "gfx1100"), (100302, "gfx1032")]
)
def test_the_compute_driver_s_version_number_becomes_the_name_that_images_use(version, name):
    assert amd.gfx_name(version) == name


def bare(cards):
    return {"system": "Linux", "architecture": "x86_64", "cpu": {"usable": 4.0, "cores": 2}, "gpus": cards}


@pytest.mark.parametrize(
    ("names", "label"),
    [
        (["NVIDIA GeForce RTX 4090"] * 2, "2x-rtx-4090"),
        (["NVIDIA H200"], "1x-h200"),
        (["Tesla V100-SXM2-16GB", "AMD Radeon RX 7900 XTX"], "1x-tesla-v100-sxm2-16gb-1x-rx-7900-xtx"),
        ([], "cpu-2-cores"),
    ],
)
def test_a_machine_is_labelled_by_its_devices(names, label):
    assert default_label(bare([{"name": name} for name in names])) == label


def test_differences_name_the_fields_and_both_values(here):
    cores = here.cpu.model_copy(update={"governor": "powersave", "turbo": True})
    other = here.model_copy(update={"cpu": cores, "kernel": "6.9.1", "label": "another", "id": "f" * 12})
    assert differences(here, here.model_copy(update={"label": "x"})) == ()
    assert set(differences(here, other)) == {
        f"kernel: {here.kernel} → 6.9.1",
        f"cpu.governor: {here.cpu.governor or 'unknown'} → powersave",
        f"cpu.turbo: {'unknown' if here.cpu.turbo is None else str(here.cpu.turbo).lower()} → true",
    }


def test_processes_of_others_on_a_card_are_counted_and_our_own_are_not(tmp_path):
    running = [
        {"pid": 7, "usedGpuMemory": 2**20},
        {"pid": 8, "usedGpuMemory": None},
        {"pid": 9, "usedGpuMemory": 5},
    ]
    nvml = FakeNvml([CARD | {"nvmlDeviceGetComputeRunningProcesses": running}])
    found = load_from(tree(tmp_path, {}), nvml, pid=9)
    assert (found.other_gpu_processes, found.other_gpu_memory_bytes, found.unknown_because) == (
        2,
        2**20,
        None,
    )


def test_inside_a_container_other_processes_are_unknown_with_the_reason(tmp_path):
    found = load_from(tree(tmp_path, {"/.dockerenv": ""}), FakeNvml(), pid=1)
    assert found.other_gpu_processes is None
    assert found.unknown_because == "other processes cannot be seen from inside a container"


@pytest.mark.parametrize(
    ("cpus", "nodes"),
    [({0, 1}, [0]), ({2}, [0]), ({4, 5}, [1]), ({3, 4}, [0, 1]), ({9}, None), (None, None)],
)
def test_the_nodes_that_a_process_may_use_are_those_of_its_processors(cpus, nodes, tmp_path):
    files = tree(
        tmp_path,
        {
            "/sys/devices/system/node/node0/cpulist": "0-3\n",
            "/sys/devices/system/node/node1/cpulist": "4,5-7\n",
        },
    )
    assert cpu.numa_affinity(files, None if cpus is None else frozenset(cpus)) == nodes


def test_the_load_tells_how_many_processors_work_at_this_moment():
    found = load()
    assert found.busy_cpus is not None
    assert 0 <= found.busy_cpus <= (psutil.cpu_count() or 1)
