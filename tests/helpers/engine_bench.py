"""A real engine with the smallest image in it, and trials that wait in it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import docker
import pytest

from harness.engine.choose import EngineChoice, find_engine
from harness.engine.container import DeviceRequest, RunSpec, TrialFolders
from harness.engine.docker import DockerEngine
from harness.engine.interface import Engine, Exit, Handle
from harness.errors import NoEngine
from harness.image.spec import BuildSettings
from harness.record import TrialRequest, TrialSpec, Variant
from tests.helpers import ROOT, wait_for
from tests.helpers.checks import require

SESSION = "20261120-0a1b2c"
MIB = 1024**2
ENGINES = [pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("docker", "podman")]

SLEEP = "import time\nprint('waiting', flush=True)\ntime.sleep(120)\n"
WAIT = f"import signal, sys\nsignal.signal(signal.SIGTERM, lambda *ignored: sys.exit(143))\n{SLEEP}"
STUBBORN = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\n{SLEEP}"


def trial(variant: Mapping[str, Any] = {}, *, timeout_seconds: float = 60, **asked: Any) -> TrialSpec:
    """One that any engine may be given."""
    model = {"model": "lstm", "precision": "fp32-ieee", "batch_size": 1, "data_mode": "cached"}
    request = {"workload": "word_lm", "protocol": "published/1", "data": "generated", "device": "cpu"}
    request |= {"environment": "cpu", **asked, "variant": Variant(**{**model, **variant})}
    return TrialSpec.from_request(TrialRequest(**request), 1, seed=1, timeout_seconds=timeout_seconds)


CPU = DeviceRequest("cpu")


def run_spec(folder: Path, device: DeviceRequest = CPU, *, data: str = "set", **changes: Any) -> RunSpec:
    """One trial to be started, whose folders and data set lie below this folder."""
    folders = TrialFolders(
        folder / "in", folder / "out", (("set", folder / data),), folder / "cache", folder / "workloads"
    )
    return RunSpec(trial=trial(), session=SESSION, attempt=1, folders=folders, device=device, **changes)


def laid_out(spec: RunSpec, script: str = "") -> RunSpec:
    """The same with its folders, a sample in its data set, and this script for a workload."""
    ((_, data),), folders = spec.folders.data, spec.folders
    for path in (folders.input, folders.output, data, folders.cache, folders.workloads):
        path.mkdir(parents=True, exist_ok=True)
    (data / "a.txt").write_text("a sample")
    (folders.workloads / "word_lm.py").write_text(script)
    return spec


def exit_of(engine: Engine, handle: Handle, work: Path, seconds: float = 30) -> Exit:
    """How a trial ends, once it has."""
    found = wait_for(lambda: engine.poll(handle, work), seconds)
    assert found is not None
    return found


@dataclasses.dataclass(frozen=True)
class Bench:
    """One engine with the test image in it, and a folder to work in."""

    engine: DockerEngine
    api: docker.APIClient
    base: str
    folder: Path

    def spec(self, script: str, **changes) -> RunSpec:
        image_id, user = self.api.inspect_image(self.base)["Id"], self.engine.user()
        return laid_out(run_spec(self.folder, image_id=image_id, user=user, **changes), script)

    def ended(self, handle: Handle, engine: DockerEngine | None = None, seconds: float = 30) -> Exit:
        return exit_of(engine or self.engine, handle, self.folder, seconds)

    def said(self, handle: Handle, word: str) -> None:
        """Waits until the trial has printed a word."""
        wait_for(lambda: word.encode() in self.api.logs(handle.container), 10)


def answering_engine(environ: Mapping[str, str], kind: EngineChoice = "auto") -> DockerEngine | None:
    """The engine that answers where these variables say, if one does."""
    try:
        return find_engine(kind, BuildSettings(ROOT), environ)
    except NoEngine:
        return None


def connection(kind: str):
    host = os.environ.get(f"GPUDYNO_TEST_{kind.upper()}") or (
        kind == "docker" and os.environ.get("DOCKER_HOST")
    )
    found = answering_engine({"DOCKER_HOST": host} if host else {}, kind)
    require(kind, found is not None, f"no {kind} answers (GPUDYNO_TEST_{kind.upper()} names its socket)")
    return found.connection


def closed(*clients) -> None:
    """Lets go of the connections of engines and of docker's own clients."""
    for client in clients:
        getattr(client, "_api", client).close()
