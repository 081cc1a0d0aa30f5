"""A trial's whole container, compared as it is sent."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
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
    shared_memory_bytes,
)
from harness.engine.docker import DockerEngine
from harness.gpu.cuda_start import NOT_TRIED, CudaStart
from harness.plan import plan_file
from harness.record import DataMode, DeviceKind, TrialSpec
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


def trial(
    device: DeviceKind, *, batch: int = 64, size: int = 224, mode: DataMode = "device", **options: int
) -> TrialSpec:
    asked = {"workload": "cifar_fastai", "protocol": "fair/1", "data": "real", "environment": device}
    variant = {"model": "resnet50", "batch_size": batch, "data_mode": mode, "image_size": size}
    return engine_bench.trial({**variant, "options": options}, device=device, **asked)


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


def test_shared_memory_is_what_the_loader_needs_and_never_below_one_gib():
    assert shared_memory_bytes(trial("cpu", batch=8, size=64, mode="host")) == GIB
    assert shared_memory_bytes(trial("cuda", batch=2048, mode="device")) == GIB
    batch_bytes = 512 * 3 * 224 * 224 * 4
    assert shared_memory_bytes(trial("cuda", batch=512, mode="host")) == 12 * batch_bytes
    assert shared_memory_bytes(trial("cuda", batch=512, mode="host", workers=16)) == 48 * batch_bytes


WORKLOADS = Path(__file__).parents[3] / "workloads"
OWN_WORKERS = {
    "chexnet": "parts/chexnet/protocol.py",
    "cifar_fastai": "parts/training/cifar_protocol.py",
    "mnist_cnn": "mnist_cnn.py",
}
"""Where each workload that loads in processes of its own says in how many."""
PIXELS = {"chexnet": 224, "cifar_fastai": 224, "mnist_cnn": 28}


@cache
def own_workers(workload: str) -> int:
    """The number as the workload's source has it, which imports a framework."""
    found = re.search(
        r'(?:^WORKERS = |"workers": )(\d+)', (WORKLOADS / OWN_WORKERS[workload]).read_text(), re.M
    )
    assert found, OWN_WORKERS[workload]
    return int(found[1])


def loading_trials() -> list[TrialSpec]:
    """Every planned trial that loads from the host, for each kind of device and each image of a plan."""
    found = {}
    for name in plan_file.plan_files(WORKLOADS.parent):
        loaded = plan_file.load_plan(WORKLOADS.parent, name)
        sources = {m.data: "real" for m in loaded.measure if m.data}
        places = {
            (kind, image) for m in loaded.measure for kind in m.devices for image in m.images or (kind,)
        }
        for kind, image in places:
            context = plan_file.PlanContext(kind, image, None, sources, {})
            for item in plan_file.plan_trials(loaded, context, seed=1):
                if item.trial.asked.variant.data_mode == "host":
                    found[item.trial.id] = item.trial
    return list(found.values())


def test_each_planned_trial_that_loads_from_the_host_has_room_for_the_batches_of_all_its_workers():
    trials = loading_trials()
    assert {one.asked.workload for one in trials} >= {"chexnet", "cifar_fastai", "mnist_cnn"}
    for one in trials:
        asked = one.asked
        if asked.workload not in OWN_WORKERS:
            # Text and TensorFlow without worker processes, and a published program's own loader.
            assert asked.workload in ("cifar_resnet44", "program", "tensorcore_mlp", "word_lm")
            continue
        workers = asked.variant.options.get("workers") or own_workers(asked.workload)
        side = asked.variant.image_size or PIXELS[asked.workload]
        held = 2 * workers * asked.variant.gpus * asked.variant.batch_size * 3 * side**2 * 4
        assert shared_memory_bytes(one) >= 1.5 * held, one.id


def test_shared_memory_counts_a_workload_s_own_workers_and_every_device():
    published = {"model": "densenet121", "batch_size": 64, "data_mode": "host"}
    asked = {"workload": "chexnet", "protocol": "published/1", "environment": "cuda"}
    batch_bytes = 64 * 3 * 224 * 224 * 4

    def of(**changes) -> int:
        return shared_memory_bytes(engine_bench.trial({**published, **changes}, device="cuda", **asked))

    assert of(options={"workers": 24}) == 72 * batch_bytes
    assert of(gpus=4) == 72 * batch_bytes
    assert of(batch_size=128) == of(batch_size=128, options={"workers": 0}) == 36 * batch_bytes


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
