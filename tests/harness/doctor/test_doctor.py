"""What the doctor says, over surroundings that are made up, and over this machine's own."""

from __future__ import annotations

import errno
import shutil
import tempfile
from dataclasses import replace
from unittest.mock import Mock

import pytest

from commands import doctor, run
from commands.plan import show_plan
from harness.doctor.diagnosis import diagnosis_lines, examine_surroundings
from harness.doctor.surroundings import (
    DataNeed,
    Disk,
    Node,
    Surroundings,
    device_files,
    older_rocm_warning,
)
from harness.engine.cdi import ALL_CARDS
from harness.engine.facts import EngineFacts
from harness.errors import MachineError, NoDevice
from harness.files import Files, free_bytes
from harness.gpu import nvidia
from harness.gpu.cuda_start import CudaStart
from harness.image.images import load_images
from harness.machine.devices import select_devices
from harness.record import Cpu, Gpu, Load
from harness.settings import Settings
from tests.helpers import ROOT
from tests.helpers.fake_engine import FACTS
from tests.helpers.machines import box

GIB = 2**30
CPU = Cpu(model="Xeon Gold 6248", cores=20, threads=40, usable=40.0, governor="performance")
CARD = Gpu(
    index=0, vendor="NVIDIA", name="RTX 4090", memory_bytes=24 * GIB, driver="570.86", driver_cuda="12.8",
    power_limit_watts=450, power_limit_default_watts=450, pcie_width=16, pcie_width_max=16, persistence=True,
)  # fmt: skip
DOCKER = replace(FACTS, version="27.1.1", data_root_free_bytes=200 * GIB)


def around(*cards: Gpu, engine: EngineFacts | None = DOCKER, **more) -> Surroundings:
    machine = box(*cards, virtual="none", cpu=CPU, memory_bytes=64 * GIB)
    return Surroundings(machine, select_devices(machine, None), Load(load_average_1min=0.3), engine, **more)


def levels(findings) -> dict[str, str]:
    return {finding.what: finding.level for finding in findings}


def found(findings, words: str):
    matching = [finding for finding in findings if words in finding.what]
    assert len(matching) == 1, [finding.what for finding in findings]
    return matching[0]


def test_a_machine_that_has_everything_is_ready_and_told_in_full():
    said = examine_surroundings(
        around(
            CARD,
            disks=(Disk("results", ROOT, 50 * GIB),),
            data=(DataNeed("cifar-100", True), DataNeed("wikitext-2", False, 4 * 2**20)),
            plan="quick",
        )
    )
    assert "problem" not in levels(said).values()
    assert diagnosis_lines(said) == [
        "ok      Docker Engine 27.1.1 answers",
        "ok      device 0: RTX 4090, 24.0 GiB, driver 570.86 (CUDA 12.8)",
        "ok      a start of CUDA on this host: not tried; in a container: not tried",
        "ok      containers reach NVIDIA's cards through the NVIDIA runtime",
        "ok      memory: 64.0 GiB",
        "ok      disk for results: 50.0 GiB free",
        "ok      disk for Docker Engine's storage: 200.0 GiB free",
        "ok      data: cifar-100 is at hand",
        "warning data: wikitext-2 (4 MiB) is not at hand",
        "        → `invoke build --plan quick` fetches it",
    ]


def test_without_an_engine_it_says_what_is_lost_and_goes_on():
    said = examine_surroundings(around(engine=None, lost=("engine: no socket at /var/run/docker.sock",)))
    assert "problem" not in levels(said).values()
    assert "system's libraries" in found(said, "no socket at").remedy


@pytest.mark.parametrize(
    ("engine", "refusal", "level", "words"),
    [
        (replace(DOCKER, runtimes=("runc",)), None, "ok", "through CDI"),
        (
            replace(DOCKER, runtimes=("runc",)),
            "no CDI specification names it",
            "problem",
            "no container of Docker Engine gets to NVIDIA's cards: no CDI specification names it",
        ),
        (replace(DOCKER, name="podman"), None, "ok", "through CDI"),
        (
            replace(DOCKER, name="podman", cdi_devices=(ALL_CARDS,)),
            "its specification names cards by 'nvidia.com/gpu=all' alone",
            "problem",
            "'nvidia.com/gpu=all' alone",
        ),
    ],
)
def test_the_way_of_a_container_to_nvidia_s_cards_is_found_or_missed(engine, refusal, level, words):
    assert found(examine_surroundings(around(CARD, engine=engine, refusal=refusal)), words).level == level


@pytest.mark.parametrize(
    ("name", "virtual", "steps"),
    [
        ("docker", "none", {"nvidia-ctk runtime", "restart docker"}),
        ("docker", "wsl", {"nvidia-ctk runtime", "restart docker", "Docker Desktop"}),
        ("podman", "wsl", {"nvidia-ctk cdi"}),
    ],
)
def test_the_doctor_names_each_command_that_gives_containers_the_card(name, virtual, steps):
    given = around(CARD, engine=replace(DOCKER, name=name, runtimes=("runc",)), refusal="refused")
    given = replace(given, machine=given.machine.model_copy(update={"virtual": virtual}))
    remedy = found(examine_surroundings(given), "gets to NVIDIA's cards: refused").remedy
    every = ("nvidia-ctk cdi", "nvidia-ctk runtime", "restart docker", "Docker Desktop")
    assert {step for step in every if step in remedy} == steps


def test_the_podman_that_the_doctor_asks_for_is_the_one_that_gives_cards():
    old = replace(DOCKER, name="podman", cdi=False, version="4.9.3")
    said = examine_surroundings(around(CARD, engine=old, refusal="Podman 4.9.3 silently gives none"))
    finding = found(said, "silently gives none")
    assert (finding.level, finding.remedy[:23]) == ("problem", "use Podman 5.4 or newer")


def test_an_amd_card_needs_its_device_files_and_their_group():
    amd = Gpu(index=0, vendor="AMD", name="MI300X", memory_bytes=192 * GIB)
    assert "problem" in levels(examine_surroundings(around(amd))).values()
    nodes = (Node("/dev/kfd", 109, False), Node("/dev/dri/renderD128", 109, False))
    said = examine_surroundings(around(amd, nodes=nodes))
    assert "/dev/kfd of group 109" in found(said, "containers reach AMD").what
    assert "problem" not in levels(said).values()
    alone = examine_surroundings(around(amd, engine=None, nodes=nodes))
    assert "usermod -aG 109 $USER" in found(alone, "this user may not open").remedy


@pytest.mark.parametrize(
    ("may_open", "engine", "ways"),
    [
        (False, "podman", ("usermod -aG 109 $USER", "udev rule")),
        (True, "podman", ("take Podman 5.4 or newer", "--python", "udev rule")),
        (True, "docker", ("take Podman, or an engine that runs as root", "--python", "udev rule")),
    ],
)
def test_a_container_that_gets_no_amd_card_is_told_the_ways_that_lead_there(may_open, engine, ways):
    amd = Gpu(index=0, vendor="AMD", name="MI300X", memory_bytes=192 * GIB)
    shut = {"refusal": "refused", "nodes": (Node("/dev/kfd", 109, may_open),)}
    remedy = found(
        examine_surroundings(around(amd, engine=replace(DOCKER, name=engine), **shut)), "refused"
    ).remedy
    places = [remedy.index(way) for way in ways]
    assert places == sorted(places) and ("--python" in remedy) == may_open


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"power_limit_watts": 300.0}, "card 0 is set to 300 W where its default is 450 W"),
        ({"clocks_locked": True}, "a setting holds those of card 0"),
        ({"mig": "3g.20gb of card 0"}, "card 0 is the slice 3g.20gb"),
        ({"pcie_width": 4}, "4 of 16 PCI Express lanes"),
        ({"persistence": False}, "persistence mode off"),
    ],
)
def test_a_card_s_state_that_spoils_figures_is_warned_of(change, words):
    assert found(examine_surroundings(around(CARD.model_copy(update=change))), words).level == "warn"


def test_a_card_in_mig_mode_without_a_slice_stands_in_the_way():
    divided = CARD.model_copy(update={"mig": "on"})
    given = around(divided)
    given = replace(given, selection=select_devices(given.machine, "0"))
    assert found(examine_surroundings(given), "has no slice").level == "problem"


@pytest.mark.parametrize(
    ("machine", "load_now", "words"),
    [
        ({"virtual": "kvm"}, {}, "it is a guest (kvm)"),
        ({"virtual": "wsl"}, {}, "this is WSL2: the driver is that of Windows"),
        ({"cpu": CPU.model_copy(update={"governor": "powersave"})}, {}, "clocks follow 'powersave'"),
        ({}, {"busy_cpus": 30.0}, "30.0 of 20 cores worked before"),
        (
            {},
            {"other_gpu_processes": 2, "other_gpu_memory_bytes": GIB},
            "another process held 1024 MiB of a card",
        ),
        ({"memory_limit_bytes": 2 * GIB}, {}, "memory: 2.0 GiB"),
    ],
)
def test_a_machine_s_state_that_spoils_figures_is_warned_of(machine, load_now, words):
    given = around(CARD)
    given = replace(given, machine=given.machine.model_copy(update=machine), load=Load(**load_now))
    assert found(examine_surroundings(given), words).level == "warn"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"in_the_way": (NoDevice("this card is sm_61", remedy="update the driver"),)}, "this card is sm_61"),
        ({"disks": (Disk("state", ROOT, 0),)}, "disk for state: 0 KiB free, and a session needs 64 MiB"),
        (
            {"cuda_inside": CudaStart(False, "cuInit: no device (100)")},
            "not start in a container: cuInit: no",
        ),
        ({"data": (DataNeed("cifar-100", False, problem="'train' is corrupt"),)}, "'train' is corrupt"),
    ],
)
def test_what_stands_in_the_way_makes_the_machine_not_ready(more, words):
    said = examine_surroundings(around(CARD, **more))
    assert found(said, words).level == "problem"
    assert found(said, words).remedy
    assert "problem" in levels(said).values()


def test_little_shared_memory_matters_only_without_a_container():
    small = around(CARD, engine=None)
    small = replace(small, machine=small.machine.model_copy(update={"shared_memory_bytes": 2**26}))
    assert "remount,size=50%" in found(examine_surroundings(small), "/dev/shm holds 64 MiB").remedy
    assert not any("/dev/shm" in what for what in levels(examine_surroundings(replace(small, engine=DOCKER))))


@pytest.mark.parametrize(
    ("host", "warned"), [("6.2.4-66", True), ("7.2.4", True), ("10.0.0", False), (None, False)]
)
def test_a_host_with_an_older_rocm_than_the_image_is_told_what_serves_it(tmp_path, host, warned):
    if host:
        (tmp_path / "opt/rocm/.info").mkdir(parents=True)
        (tmp_path / "opt/rocm/.info/version").write_text(f"{host}\n")
    said = older_rocm_warning(Files(tmp_path), load_images(ROOT).image("rocm").base)
    assert said == (
        f"this host has ROCm {host}, and its driver may be too old for the image's ROCm 10" if warned else ""
    )
    if warned:
        amd = Gpu(index=0, vendor="AMD", name="MI300X", memory_bytes=192 * GIB)
        nodes = (Node("/dev/kfd", 109, True),)
        assert (
            "--python" in found(examine_surroundings(around(amd, nodes=nodes, older_rocm=said)), host).remedy
        )


def test_device_files_are_read_from_the_system(tmp_path):
    (tmp_path / "dev/dri").mkdir(parents=True)
    for name in ("dev/kfd", "dev/dri/renderD128", "dev/dri/card0"):
        (tmp_path / name).touch()
    assert [node.path for node in device_files(Files(tmp_path))] == ["/dev/kfd", "/dev/dri/renderD128"]


def test_a_disk_is_measured_where_the_folder_will_lie(tmp_path):
    free = free_bytes(tmp_path / "not" / "yet")
    assert free == pytest.approx(shutil.disk_usage(tmp_path).free, abs=GIB)


def test_a_plan_that_has_nothing_for_this_device_stands_in_the_way_as_it_does_of_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path))
    refusal = doctor.diagnose(ROOT, Settings(plan="mission", engine="venv", device="cpu")).refusal
    assert "plan 'mission' has nothing for the device kind 'cpu'" in refusal.problem
    assert '`invoke plan --plan mission --card "RTX 4090"`' in refusal.remedy


def test_doctor_and_plan_speak_with_a_full_disk_and_name_its_folder(tmp_path, monkeypatch, capsys):
    state, full = tmp_path / "state", OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setenv("GPUDYNO_STATE", str(state))
    monkeypatch.setattr(tempfile, "mkstemp", Mock(side_effect=full))
    asked = Settings(plan="card", engine="venv", device="cpu")
    finding = found(doctor.diagnose(ROOT, asked).problems, f"the disk is full: '{state}")
    assert (finding.level, finding.remedy[:15]) == ("problem", "free some space")
    with pytest.raises(MachineError, match="not ready"):
        show_plan(ROOT, asked)
    assert f"the disk is full: '{state}" in capsys.readouterr().out
    with pytest.raises(MachineError, match=f"the disk is full: '{state}"):
        run.run_plan(ROOT, asked, run.RunOptions())


def test_the_doctor_reads_the_machine_s_cards_once(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path))
    readings: list[Files] = []
    monkeypatch.setattr(nvidia, "describe", lambda library, files: readings.append(files) or [])
    doctor.diagnose(ROOT, Settings(plan="card", engine="venv"))
    assert len(readings) == 1


def test_a_clone_that_cannot_be_written_to_is_a_problem_and_two_kinds_of_cores_are_told(tmp_path):
    shut = (Disk("this clone", ROOT, 50 * GIB, read_only=True),)
    assert found(examine_surroundings(around(disks=shut)), "cannot be written to").level == "problem"
    given = around()
    cores = CPU.model_copy(update={"usable_kinds": {"performance": 16, "efficiency": 8}})
    given = replace(given, machine=given.machine.model_copy(update={"cpu": cores}))
    assert (
        "40 CPUs (16 performance, 8 efficiency)" in found(examine_surroundings(given), "the processor").what
    )
