"""The fingerprint: this machine as it is, and machines that are made up."""

from __future__ import annotations

import os
import platform
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from harness.errors import MachineError
from harness.machine.fingerprint import (
    default_label,
    look_at_machine,
    machine_folder,
    machine_id,
    read_load,
    read_load_from,
)
from harness.probe import cpu, system
from harness.record import Cpu, machine_differences
from harness.redact import find_leaks
from tests.helpers import TESTS
from tests.helpers.fake_nvml import CARD, FakeNvml
from tests.helpers.machines import bare, tree


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    return look_at_machine()[0]


def test_this_machine_is_told_as_psutil_tells_it(here):
    assert here.cpu.threads == psutil.cpu_count()
    assert here.memory_bytes == psutil.virtual_memory().total
    assert 0 < here.cpu.usable <= len(os.sched_getaffinity(0))
    assert here.kernel == os.uname().release
    assert read_load().memory_available_bytes <= here.memory_bytes


def test_this_machine_gives_nothing_away(here):
    assert find_leaks(here.canonical()) == ()


def test_a_machine_id_is_made_once_also_by_many_at_once(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: machine_id(tmp_path / "state"), range(32)))
    assert len(found) == 1
    assert found != {machine_id(tmp_path / "other")}
    assert [path.name for path in machine_folder(tmp_path / "state").iterdir()] == ["id"]


def test_nodes_that_share_a_home_are_different_machines(tmp_path, monkeypatch):
    found = set()
    for node in ("node-1", "node-2", "node-1"):
        monkeypatch.setattr(platform, "node", lambda name=node: name)
        found.add(machine_id(tmp_path))
    assert len(found) == 2
    assert not any("node" in path.name for path in (tmp_path / "machines").iterdir())


def test_a_spoiled_machine_id_is_refused_by_name(tmp_path):
    machine_folder(tmp_path).mkdir(parents=True)
    (machine_folder(tmp_path) / "id").write_text("not one")
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
        "/sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
        "/sys/devices/system/cpu/smt/active": "1\n",
    })  # fmt: skip
    assert cpu.describe_cpu(files, cpus=set(range(6))) == {
        "model": "Xeon(R) Gold 6248",
        "sockets": 2,
        "cores": 4,
        "threads": 8,
        "usable": 6.0,
        "governor": "performance,powersave",
        "turbo": False,
        "smt": True,
        "features": ["avx2", "avx512f", "amx_bf16"],
        "native_16_bit": ["bf16"],
        "numa_affinity": None,
        "usable_kinds": {},
    }


@pytest.mark.parametrize(
    ("name", "native"),
    [
        ("epyc-7003", []),
        ("ryzen-7950x", ["bf16"]),
        ("xeon-8480", ["bf16", "fp16"]),
        ("neoverse-n1", ["fp16"]),
        ("neoverse-v1", ["bf16", "fp16"]),
    ],
)
def test_a_processor_s_own_16_bit_types_are_read_from_its_flags(tmp_path, name, native):
    listed = (TESTS / "traces" / "cpuinfo" / f"{name}.txt").read_text(encoding="ascii")
    assert cpu.describe_cpu(tree(tmp_path, {"/proc/cpuinfo": listed}), cpus=set())["native_16_bit"] == native


def test_a_processor_of_arm_is_named_by_its_board_and_its_kinds_of_cores(tmp_path):
    parts = ["0xd85"] * 2 + ["0xd87"]
    blocks = [
        f"processor : {at}\nCPU implementer : 0x41\nCPU part : {part}\n" for at, part in enumerate(parts)
    ]
    files = {"/proc/cpuinfo": "\n".join(blocks), "/proc/device-tree/model": "A board\0"}
    named = cpu.describe_cpu(tree(tmp_path, files), cpus=set())["model"]
    assert named == "A board, 2 x Cortex-X925, 1 x Cortex-A725"


@pytest.mark.parametrize("listed", ["", "processor : 0\ncpu : POWER9, altivec supported\n"])
def test_where_the_kernel_lists_no_known_flags_a_processor_s_16_bit_types_are_unknown(tmp_path, listed):
    assert cpu.describe_cpu(tree(tmp_path, {"/proc/cpuinfo": listed}), cpus=set())["native_16_bit"] is None


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
        ({"/proc/cpuinfo": "flags : fpu hypervisor"}, "6.1.0", "unknown hypervisor"),
        ({"/proc/cpuinfo": "flags : fpu"}, "6.1.0", "none"),
        ({}, "6.6.87.2-microsoft-standard-WSL2", "wsl"),
        ({}, "6.1.0", None),
    ],
)
def test_a_virtual_machine_is_told_from_bare_metal_and_from_not_knowing(tmp_path, files, kernel, kind):
    assert system.hypervisor(tree(tmp_path, files), kernel) == kind


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
    assert machine_differences(here, here.model_copy(update={"label": "x"})) == ()
    assert set(machine_differences(here, other)) == {
        f"kernel: {here.kernel} → 6.9.1",
        f"cpu.governor: {here.cpu.governor or 'unknown'} → powersave",
        f"cpu.turbo: {'unknown' if here.cpu.turbo is None else str(here.cpu.turbo).lower()} → true",
    }


def test_processes_of_others_on_a_card_are_counted_and_our_own_are_not(tmp_path):
    running = [
        {"pid": 7, "usedGpuMemory": 2**20},
        {"pid": 9, "usedGpuMemory": 5},
    ]
    for more, held, why in (
        ([{"pid": 8, "usedGpuMemory": 2**21}], 3 * 2**20, None),
        (
            [{"pid": 8, "usedGpuMemory": None}],
            None,
            "the driver does not say what other processes hold",
        ),
    ):
        nvml = FakeNvml([CARD | {"nvmlDeviceGetComputeRunningProcesses": running + more}])
        found = read_load_from(tree(tmp_path, {}), nvml, pid=9)
        told = (found.other_gpu_processes, found.other_gpu_memory_bytes, found.unknown_because)
        assert told == (2, held, why)


def test_inside_a_container_other_processes_are_unknown_with_the_reason(tmp_path):
    found = read_load_from(tree(tmp_path, {"/.dockerenv": ""}), FakeNvml(), pid=1)
    assert found.other_gpu_processes is None
    assert found.unknown_because == "other processes cannot be seen from inside a container"


def test_in_the_kernel_s_first_namespace_other_processes_are_known_though_a_container_left_its_mark(tmp_path):
    files = tree(tmp_path, {"/.dockerenv": "", "/proc/version": "Linux version 6.18"})
    link = tmp_path / "proc/self/ns/pid"
    link.parent.mkdir(parents=True)
    link.symlink_to("pid:[4026531836]")
    assert read_load_from(files, FakeNvml(), pid=1).unknown_because is None
    (tmp_path / "proc/version").write_text("Linux version 4.4.0 (gVisor)")
    assert read_load_from(files, FakeNvml(), pid=1).other_gpu_processes is None


@pytest.mark.parametrize(
    ("cpus", "nodes"),
    [({0, 1}, [0]), ({2}, [0]), ({4, 5}, [1]), ({3, 4}, [0, 1]), ({9}, None)],
)
def test_the_nodes_that_a_process_may_use_are_those_of_its_processors(cpus, nodes, tmp_path):
    files = tree(
        tmp_path,
        {
            "/sys/devices/system/node/node0/cpulist": "0-3\n",
            "/sys/devices/system/node/node1/cpulist": "4,5-7\n",
        },
    )
    assert cpu.numa_affinity(files, cpus) == nodes


def test_the_load_tells_how_many_processors_work_at_this_moment():
    found = read_load()
    assert found.busy_cpus is not None
    assert 0 <= found.busy_cpus <= (psutil.cpu_count() or 1)


@pytest.mark.parametrize(
    ("listed", "cpus", "kinds", "label"),
    [
        ({"cpu_core": "0-15", "cpu_atom": "16-31"}, set(range(32)), {"performance": 16, "efficiency": 16},
         "cpu-16-performance-16-efficiency"),
        ({"cpu_core": "0-3", "cpu_atom": "4-7"}, {2, 3, 4}, {"performance": 2, "efficiency": 1},
         "cpu-2-performance-1-efficiency"),
        ({"cpu_core": "0-3", "cpu_atom": "4-7"}, {0}, {"performance": 1}, "cpu-1-performance"),
        ({"cpu_core": "0-3"}, {0, 1}, {}, "cpu-2-cores"),
        ({}, {0, 1}, {}, "cpu-2-cores"),
    ],
)  # fmt: skip
def test_cores_of_two_kinds_are_told_apart_and_counted_where_this_process_may_run(
    tmp_path, listed, cpus, kinds, label
):
    files = tree(tmp_path, {f"/sys/devices/{name}/cpus": f"{text}\n" for name, text in listed.items()})
    usable = cpu.usable_kinds(files, cpus)
    assert usable == kinds
    assert default_label({"gpus": [], "cpu": {"usable": 2, "cores": 2, "usable_kinds": usable}}) == label


def test_arm_s_cores_of_two_kinds_are_told_apart_by_their_parts(tmp_path):
    blocks = [f"processor : {at}\nCPU part : {part}\n" for at, part in enumerate(["0xd85"] * 2 + ["0xd87"])]
    files = tree(tmp_path, {"/proc/cpuinfo": "\n".join(blocks)})
    assert cpu.usable_kinds(files, {1, 2}) == {"Cortex-X925": 1, "Cortex-A725": 1}
    assert "usable_kinds" not in Cpu().model_dump()
