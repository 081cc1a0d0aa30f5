"""A trial's whole container, compared as it is sent, and as a person would type it."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from harness.engine.container import (
    LOADERS,
    DeviceRequest,
    RunSpec,
    TrialFolders,
    User,
    config,
    process,
    run_line,
    shared_memory,
)
from tests.helpers import ROOT, engine_bench
from tests.helpers.checks import golden, golden_difference

FOLDERS = TrialFolders(
    input=Path("/clone/results/.state/work/t/in"),
    output=Path("/clone/results/.state/work/t/out"),
    data=(("cifar100", Path("/home/user/sets/cifar-100")), ("weights", Path("/home/user/weights"))),
    cache=Path("/clone/results/.state/cache/20261120-0a1b2c/cuda"),
    workloads=Path("/clone/workloads"),
)
SLICE = "MIG-0a1b2c3d-1111-2222-3333-444444444444"
UNITS = ("GPU-11111111-2222-3333-4444-555555555555", "GPU-66666666-7777-8888-9999-000000000000")
GROUPS = (44, 993)
GIB = 1024**3
ASKED = {"workload": "cifar_fastai", "protocol": "fair/1", "data": "real"}
VARIANT = {"model": "resnet50", "batch_size": 64, "data_mode": "device", "image_size": 224, "options": {}}


def asked_for(device: DeviceRequest, **changes) -> RunSpec:
    settings = {"user": User(1000, 1000), **changes}
    return RunSpec(
        trial=engine_bench.trial(VARIANT, device=device.kind, environment=device.kind, **ASKED),
        session="20261120-0a1b2c",
        attempt=1,
        folders=FOLDERS,
        device=device,
        image_id="sha256:" + "ab" * 32,
        **settings,
    )


CUDA = DeviceRequest("cuda", ids=UNITS)
CDI = replace(CUDA, cdi=tuple(f"nvidia.com/gpu={unit}" for unit in UNITS))
ROCM = DeviceRequest("rocm", ids=("0d1e2f3a4b5c6d7e",), groups=GROUPS)
OVERRIDE = {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}
KEPT = User(1000, 1000, keep_id=True)
SPECS = {
    "cpu": asked_for(DeviceRequest("cpu")),
    "cuda": asked_for(CUDA, passed={"CUDA_VISIBLE_DEVICES": "0,1"}),
    "cuda_by_index": asked_for(DeviceRequest("cuda", indices=(2, 3))),
    "cuda_mig": asked_for(DeviceRequest("cuda", ids=(SLICE,), indices=(2,))),
    "cuda_cdi": asked_for(CDI),
    "cuda_podman": asked_for(CDI, user=KEPT, writable_root=True),
    "userns_remap": asked_for(CUDA, userns_host=True),
    "rocm": asked_for(ROCM, passed=OVERRIDE),
    "rocm_by_index": asked_for(DeviceRequest("rocm", indices=(1,), groups=GROUPS), passed=OVERRIDE),
    "rocm_unconfined": asked_for(replace(ROCM, rocm_unconfined=True), passed=OVERRIDE),
    "rocm_keep_id": asked_for(DeviceRequest("rocm", groups=GROUPS), user=KEPT, passed=OVERRIDE),
    "keep_id": asked_for(DeviceRequest("cpu"), user=KEPT),
    "own_workloads": asked_for(DeviceRequest("cpu"), own_workloads="frameworks/era2019"),
    "selinux": asked_for(DeviceRequest("cpu"), selinux=True),
    "root": asked_for(DeviceRequest("cpu"), user=User(), memory_bytes=8 * GIB),
}


def container(name: str) -> str:
    """What is sent, and the line that is shown, whose variables are those that are sent."""
    body = config(SPECS[name])
    words = run_line("docker", SPECS[name].name, body).split(" --")
    variables = [word for word in words if word.startswith("env ")]
    assert [shlex.split(word)[1] for word in variables] == body["Env"]
    both = {"body": body, "command": [word for word in words if word not in variables]}
    return json.dumps(both, indent=1) + "\n"


def test_a_trials_container_is_asked_for_exactly_as_written_down():
    golden("container_cpu.json", container("cpu"))


LIKE = {
    **dict.fromkeys(("cuda_by_index", "cuda_mig", "cuda_cdi", "userns_remap"), "cuda"),
    "cuda_podman": "cuda_cdi",
    **dict.fromkeys(("rocm_by_index", "rocm_unconfined", "rocm_keep_id"), "rocm"),
}
"""The container that one is written down as differing from; the CPU's where none is named."""


@pytest.mark.parametrize("name", [name for name in SPECS if name != "cpu"])
def test_a_container_differs_from_another_exactly_as_written_down(name):
    golden_difference(f"container_{name}", container(name), container(LIKE.get(name, "cpu")))


@pytest.mark.parametrize("name", SPECS)
def test_no_container_has_a_network_or_a_privilege_beyond_its_device(name):
    host = config(SPECS[name])["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is (name != "cuda_podman")
    assert host["CapDrop"] == ["ALL"]
    assert "Privileged" not in host
    assert host.get("CapAdd", []) == (["SYS_PTRACE"] if name == "rocm_unconfined" else [])
    writable = {mount["Target"] for mount in host["Mounts"] if not mount["ReadOnly"]}
    assert writable == {"/out", "/cache"}


def test_a_card_is_given_by_its_index_as_the_driver_counts_where_it_has_no_uuid():
    spec = replace(asked_for(DeviceRequest("cuda", indices=(1,))), interpreter=Path("python"))
    _, inside = process(spec)
    assert (inside["CUDA_VISIBLE_DEVICES"], inside["CUDA_DEVICE_ORDER"]) == ("1", "PCI_BUS_ID")


@pytest.mark.parametrize(
    ("workload", "path", "says"),
    [
        ("chexnet", "parts/chexnet/protocol.py", "\nWORKERS = {}\n"),
        ("cifar_fastai", "cifar_fastai.py", '\nOPTIONS: dict[str, Any] = {{"workers": {}, '),
        ("mnist_cnn", "mnist_cnn.py", "\nWORKERS = {}\n"),
    ],
)
def test_room_is_made_for_as_many_workers_as_a_workload_starts(workload, path, says):
    assert says.format(LOADERS[workload][0]) in (ROOT / "workloads" / path).read_text()


def test_shared_memory_counts_the_workers_and_every_device_and_is_never_below_one_gib():
    asked = {"workload": "chexnet", "protocol": "published/1", "environment": "cuda"}
    batch_bytes = 64 * 3 * 224 * 224 * 4

    def of(**changes) -> int:
        variant = {"model": "densenet121", "batch_size": 64, "data_mode": "host", **changes}
        return shared_memory(engine_bench.trial(variant, device="cuda", **asked))

    assert of(batch_size=8, image_size=64) == of(batch_size=2048, data_mode="device") == GIB
    assert of(options={"workers": 24}) == of(gpus=4) == 72 * batch_bytes
    assert of(batch_size=128) == of(batch_size=128, options={"workers": 0}) == 36 * batch_bytes
