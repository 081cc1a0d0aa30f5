"""What an engine tells of itself, and where: Docker and Podman have different places for it."""

from __future__ import annotations

import dataclasses
import os

import pytest

from harness.engine.container import DeviceRequest
from tests.harness.engine.test_find import engine_at, settings, spec_in
from tests.helpers.fake_engine import DOCKER, PODMAN, answering

__all__ = ["settings"]

# The SDK leaves the socket of a connection that was refused to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

OWN = {"security": {"rootless": True, "selinuxEnabled": True}, "ociRuntime": {"name": "crun"}}


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        (PODMAN, (True, False, None)),
        ({**PODMAN, "info": {"SecurityOptions": ["name=seccomp,profile=default"]}}, (False, False, None)),
        ({**PODMAN, "info": {"Rootless": True, "DefaultRuntime": "/usr/bin/runc"}}, (True, False, "runc")),
        ({"libpod/info": {"host": OWN}, **PODMAN, "info": {}}, (True, True, "crun")),
        ({"libpod/info": (500, {"message": "no"}), **PODMAN, "info": {}}, (False, False, None)),
        ({**DOCKER, "info": {"SecurityOptions": ["name=selinux", "name=rootless"]}}, (True, True, None)),
        (
            {"libpod/info": {"host": OWN}, **DOCKER, "info": {"DefaultRuntime": "runc"}},
            (False, False, "runc"),
        ),
    ],
)
def test_rootless_selinux_and_runtime_are_read_where_each_engine_tells_them(
    tmp_path, settings, monkeypatch, answers, told
):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    spec = spec_in(tmp_path, DeviceRequest("cpu"))
    created = {**answers, "containers/json": [], "create": {"Id": "f" * 64}, "start": {}}
    with answering(tmp_path / "s", created) as asked:
        engine = engine_at(tmp_path / "s", settings)
        facts = engine.facts
        engine.start(dataclasses.replace(spec, user=engine.user()))
    host = next(body for _, path, body in asked if "/containers/create" in path)["HostConfig"]
    assert (facts.rootless, facts.selinux, facts.runtime) == told
    assert ("label=disable" in host["SecurityOpt"]) == told[1]
    assert (host.get("UsernsMode") == "keep-id") == (told[0] and answers["version"] == PODMAN["version"])
