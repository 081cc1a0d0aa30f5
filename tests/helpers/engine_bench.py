"""A real engine with the smallest image in it, and trials that wait in it."""

from __future__ import annotations

import dataclasses
import gc
import os
import time
import warnings
from pathlib import Path

import docker
import pytest

from harness.engine.base import Exit, Handle
from harness.engine.container import DeviceRequest, RunSpec, TrialFolders
from harness.engine.docker import DockerEngine
from harness.engine.find import search
from harness.record import TrialRequest, TrialSpec, Variant
from tests.helpers.checks import require

SESSION = "20261120-0a1b2c"
MIB = 1024**2
ENGINES = [pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("docker", "podman")]

SLEEP = "import time\nprint('waiting', flush=True)\ntime.sleep(120)\n"
WAIT = f"import signal, sys\nsignal.signal(signal.SIGTERM, lambda *ignored: sys.exit(143))\n{SLEEP}"
STUBBORN = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\n{SLEEP}"


def trial() -> TrialSpec:
    """One that any engine may be given."""
    asked = TrialRequest(
        workload="word_lm",
        protocol="published/1",
        variant=Variant(model="lstm", precision="fp32-ieee", batch_size=1, data_mode="cached"),
        data="generated",
        device="cpu",
        environment="cpu",
    )
    return TrialSpec.of(asked, 1, seed=1, timeout_seconds=60)


@dataclasses.dataclass(frozen=True)
class Bench:
    """One engine with the test image in it, and a folder to work in."""

    engine: DockerEngine
    api: docker.APIClient
    base: str
    folder: Path

    def spec(self, script: str, **changes) -> RunSpec:
        folders = {name: self.folder / name for name in ("input", "output", "set", "cache", "workloads")}
        for path in folders.values():
            path.mkdir(exist_ok=True)
        (folders["set"] / "a.txt").write_text("a sample")
        (folders["workloads"] / "word_lm.py").write_text(script)
        return RunSpec(
            trial=trial(),
            session=SESSION,
            attempt=1,
            folders=TrialFolders(
                folders["input"],
                folders["output"],
                (("set", folders["set"]),),
                folders["cache"],
                folders["workloads"],
            ),
            device=DeviceRequest("cpu"),
            image_id=self.api.inspect_image(self.base)["Id"],
            user=self.engine.user(),
            **changes,
        )

    def ended(self, handle: Handle, engine: DockerEngine | None = None, seconds: float = 30) -> Exit:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            state = (engine or self.engine).poll(handle, self.folder)
            if isinstance(state, Exit):
                return state
            time.sleep(0.05)
        raise AssertionError(f"the trial still runs after {seconds} s")

    def said(self, handle: Handle, word: str) -> None:
        """Waits until the trial has printed a word."""
        for _ in range(200):
            if word.encode() in self.api.logs(handle.container):
                return
            time.sleep(0.05)
        raise AssertionError(f"the trial never said '{word}'")


def connection(kind: str):
    host = os.environ.get(f"GPUDYNO_TEST_{kind.upper()}") or (
        kind == "docker" and os.environ.get("DOCKER_HOST")
    )
    found = search({"DOCKER_HOST": host}).connections if host else search({}).connections
    matching = [one for one in found if one.kind == kind]
    require(kind, bool(matching), f"no {kind} answers (GPUDYNO_TEST_{kind.upper()} names its socket)")
    return matching[0]


def closed(*clients) -> None:
    """Lets go of the connections of engines and of docker's own clients."""
    for client in clients:
        getattr(client, "_api", client).close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
