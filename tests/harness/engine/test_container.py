"""A trial's whole container, compared as it is sent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.engine.container import (
    DeviceRequest,
    RunSpec,
    TrialFolders,
    User,
    container_config,
    process_command,
)
from harness.engine.docker import DockerEngine
from harness.gpu.cuda_start import NOT_TRIED, CudaStart
from harness.record import DeviceKind, TrialSpec
from tests.helpers import engine_bench
from tests.helpers.checks import golden, golden_difference
from tests.helpers.fake_engine import FACTS

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


def trial(device: DeviceKind) -> TrialSpec:
    asked = {"workload": "cifar_fastai", "protocol": "fair/1", "data": "real", "environment": device}
    variant = {"model": "resnet50", "batch_size": 64, "data_mode": "device", "image_size": 224}
    return engine_bench.trial(variant, device=device, **asked)


def asked_for(device: DeviceRequest, **changes) -> RunSpec:
    settings = {"user": User(1000, 1000), **changes}
    return RunSpec(
        trial=trial(device.kind),
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
    "rocm_keep_id": asked_for(DeviceRequest("rocm", groups=GROUPS), user=KEPT, passed=OVERRIDE),
    "keep_id": asked_for(DeviceRequest("cpu"), user=KEPT),
    "own_workloads": asked_for(DeviceRequest("cpu"), own_workloads="frameworks/era2019"),
    "selinux": asked_for(DeviceRequest("cpu"), selinux=True),
    "root": asked_for(DeviceRequest("cpu"), user=User(), memory_bytes=8 * GIB),
}


def container(name: str) -> str:
    """What is sent."""
    return json.dumps(container_config(SPECS[name]), indent=1) + "\n"


def test_a_trials_container_is_asked_for_exactly_as_written_down():
    golden("container_cpu.json", container("cpu"))


LIKE = {
    **dict.fromkeys(("cuda_by_index", "cuda_mig", "cuda_cdi", "userns_remap"), "cuda"),
    "cuda_podman": "cuda_cdi",
    **dict.fromkeys(("rocm_by_index", "rocm_keep_id"), "rocm"),
}
"""The container that one is written down as differing from; the CPU's where none is named."""


@pytest.mark.parametrize("name", [name for name in SPECS if name != "cpu"])
def test_a_container_differs_from_another_exactly_as_written_down(name):
    golden_difference(f"container_{name}", container(name), container(LIKE.get(name, "cpu")))


@pytest.mark.parametrize("name", SPECS)
def test_no_container_has_a_network_or_a_privilege_beyond_its_device(name):
    host = container_config(SPECS[name])["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is (name != "cuda_podman")
    assert host["CapDrop"] == ["ALL"]
    assert "Privileged" not in host
    assert "CapAdd" not in host
    writable = {mount["Target"] for mount in host["Mounts"] if not mount["ReadOnly"]}
    assert writable == {"/out", "/cache"}


def test_a_card_is_given_by_its_index_as_the_driver_counts_where_it_has_no_uuid():
    spec = replace(asked_for(DeviceRequest("cuda", indices=(1,))), interpreter=Path("python"))
    _, inside = process_command(spec)
    assert (inside["CUDA_VISIBLE_DEVICES"], inside["CUDA_DEVICE_ORDER"]) == ("1", "PCI_BUS_ID")


@pytest.mark.parametrize(
    ("image_id", "states", "printed", "found"),
    [
        (None, [], b"", NOT_TRIED),
        ("sha256:a", ["running", "exited"], b"0 no error\n", CudaStart(True)),
        ("sha256:a", ["exited"], b"100 no device\n", CudaStart(False, "cuInit: no device (100)")),
        ("sha256:a", ["exited"], b"", NOT_TRIED),
    ],
)
def test_cuda_is_started_in_a_container_of_a_built_image_alone(monkeypatch, image_id, states, printed, found):
    made, left = [], [{"State": {"Status": status}} for status in states]
    api = SimpleNamespace(
        create_container_from_config=lambda body: made.append(body) or {"Id": "c"},
        start=lambda container: None,
        inspect_container=lambda container: left.pop(0),
        logs=lambda container, **how: printed,
        remove_container=lambda container, **how: made.append(container),
    )
    monkeypatch.setattr(DockerEngine, "_api", api)
    monkeypatch.setattr(DockerEngine, "facts", FACTS)
    monkeypatch.setattr(DockerEngine, "_image_id", lambda engine, spec: image_id)
    engine = DockerEngine(SimpleNamespace(kind="docker"), SimpleNamespace(spec=lambda image: None))
    request = DeviceRequest("cuda", ids=("GPU-1",))
    assert engine.start_cuda(SimpleNamespace(program="python"), request) == found
    assert [each if isinstance(each, str) else each["Cmd"][0] for each in made] == (
        ["python", "c"] if image_id else []
    )
