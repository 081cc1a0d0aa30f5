"""Which cards an engine's containers get to, and by which names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.engine.api_errors import refusal_error
from harness.engine.cdi import CDI_FOLDERS, CDI_REMEDY, cdi_devices, cdi_names
from harness.engine.container import DeviceRequest
from harness.engine.facts import device_refusal
from harness.files import Files
from tests.helpers.fake_engine import FACTS

UUIDS = ("GPU-11111111-2222-3333-4444-555555555555", "GPU-66666666-7777-8888-9999-000000000000")
CARDS = DeviceRequest("cuda", ids=UUIDS, indices=(0, 1))
DOCKER = replace(FACTS, runtimes=("runc",))
PODMAN = replace(DOCKER, name="podman", version="5.4.0", rootless=True)

YAML = """---
cdiVersion: 0.5.0
containerEdits:
  deviceNodes:
  - path: /dev/nvidiactl
  hooks:
  - args: [nvidia-cdi-hook, update-ldcache]
    hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
  name: "0"
- name: GPU-11111111-2222-3333-4444-555555555555
- name: all
kind: nvidia.com/gpu
"""


def files(tmp_path, **texts: str) -> Files:
    for name, text in texts.items():
        path = tmp_path / name.replace("__", "/").replace("_YAML", ".yaml").replace("_JSON", ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Files(tmp_path)


def test_the_devices_of_a_specification_are_read_in_yaml_and_in_json(tmp_path):
    amd = '{"cdiVersion": "0.6.0", "kind": "amd.com/gpu", "devices": [{"name": "0"}]}'
    read = files(
        tmp_path,
        etc__cdi__nvidia_YAML=YAML,
        run__cdi__amd_JSON=amd,
        run__cdi__no_JSON="[]",
        run__cdi__torn_YAML="kind: [",
    )
    assert cdi_devices(read, CDI_FOLDERS) == (
        "amd.com/gpu=0",
        "nvidia.com/gpu=0",
        f"nvidia.com/gpu={UUIDS[0]}",
        "nvidia.com/gpu=all",
    )
    assert cdi_devices(read, ("/elsewhere",)) == ()


@pytest.mark.parametrize(
    ("named", "asked"),
    [
        (("0", "1", *UUIDS), UUIDS),
        (("0", "1"), ("0", "1")),
        ((UUIDS[0], "1"), (UUIDS[0], "1")),
        (("0",), ()),
        (("all",), ()),
    ],
)
def test_cards_are_asked_for_by_the_names_that_a_specification_has(named, asked):
    names = [f"nvidia.com/gpu={name}" for name in named]
    assert cdi_names(CARDS, names) == tuple(f"nvidia.com/gpu={name}" for name in asked)


def test_where_wsl2_names_all_cards_together_they_are_taken_where_all_are_meant():
    facts = replace(PODMAN, cdi_devices=("nvidia.com/gpu=all",))
    every = replace(CARDS, every=True)
    assert cdi_names(every, facts.cdi_devices) == facts.cdi_devices
    assert device_refusal(facts, every, Files()) is None
    for some in (CARDS, every.part(1)):
        assert "by 'nvidia.com/gpu=all' alone, and these are some" in (
            device_refusal(facts, some, Files()) or ""
        )
    assert cdi_names(every.part(2), ("nvidia.com/gpu=0", "nvidia.com/gpu=1", "nvidia.com/gpu=all")) == (
        "nvidia.com/gpu=0",
        "nvidia.com/gpu=1",
    )


@pytest.mark.parametrize(
    ("facts", "clause"),
    [
        (replace(DOCKER, runtimes=("nvidia", "runc")), None),
        (replace(DOCKER, cdi_devices=("nvidia.com/gpu=0", "nvidia.com/gpu=1")), None),
        (DOCKER, "no CDI specification that Docker Engine reads names the NVIDIA card 0, 1"),
        (replace(DOCKER, cdi=False), "Docker Engine has neither NVIDIA's runtime nor CDI"),
        (PODMAN, "no CDI specification that Podman reads names the NVIDIA card 0, 1"),
        (replace(PODMAN, cdi=False, version="4.9.3"), "silently gives none; 5.4 and newer give it"),
    ],
)
def test_an_engine_that_honours_cdi_without_a_specification_gives_no_cuda_card(tmp_path, facts, clause):
    reason = device_refusal(facts, CARDS, Files(tmp_path))
    assert reason is None if clause is None else clause in reason


@pytest.mark.parametrize(
    ("facts", "mode", "clause"),
    [
        (DOCKER, 0o660, None),
        (replace(DOCKER, rootless=True), 0o660, "rootless Docker leaves outside the group"),
        (replace(DOCKER, rootless=True), 0o666, None),
        (PODMAN, 0o660, None),
        (replace(PODMAN, cdi=False, version="4.9.3"), 0o666, "5.4 and newer give it"),
        (DOCKER, None, "/dev/kfd is not there"),
    ],
)
def test_a_rootless_engine_reaches_amd_s_cards_only_where_their_group_comes_in(tmp_path, facts, mode, clause):
    if mode is not None:
        files(tmp_path, dev__kfd="")
        (tmp_path / "dev/kfd").chmod(mode)
    reason = device_refusal(facts, DeviceRequest("rocm", indices=(0,)), Files(tmp_path))
    assert reason is None if clause is None else clause in reason


@pytest.mark.parametrize(
    "said",
    [
        "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=0",
        'OCI runtime create failed: error mounting "/usr/lib/libcuda.so.550.54": no such file or directory',
        'failed to stat CDI host device "/dev/nvidia-uvm": no such file or directory',
    ],
)
def test_what_an_engine_says_of_a_stale_specification_leads_to_its_remedy(said):
    assert refusal_error("Podman", "start a trial", said).remedy == CDI_REMEDY


def test_a_rootless_podman_keeps_no_group_that_its_user_is_not_in(tmp_path, monkeypatch):
    files(tmp_path, dev__kfd="")
    (tmp_path / "dev/kfd").chmod(0o660)
    monkeypatch.setattr(Files, "may_open", lambda self, path: False)
    reason = device_refusal(PODMAN, DeviceRequest("rocm", indices=(0,)), Files(tmp_path))
    assert "this user is outside the group that may open /dev/kfd" in (reason or "")
