"""A real engine that is killed while a trial runs in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import docker
import pytest

from harness.engine.choose import find_engine
from harness.errors import NoEngine
from harness.image.spec import BuildSettings
from tests.helpers.checks import require
from tests.helpers.engine_bench import ENGINES, SESSION, WAIT, Bench, answering_engine, closed
from tests.helpers.fake_image import imported


class Daemon:
    """An engine of the test's own, to be killed."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.socket = folder / "s"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        (self.folder / "pid").unlink(missing_ok=True)
        # A killed dockerd takes its containerd along, which stays a zombie where no init reaps it.
        (self.folder / "exec" / "containerd" / "containerd.pid").unlink(missing_ok=True)
        host = f"unix://{self.socket}"
        folders = f"--data-root {self.folder}/data --exec-root {self.folder}/exec --pidfile {self.folder}/pid"
        commands = {
            "docker": ["dockerd", *folders.split(), "--iptables=false", "-H", host],
            "podman": [*self.podman(), "system", "service", "--time", "0", host],
        }
        with (self.folder / "daemon.log").open("ab") as log:
            self.process = subprocess.Popen(
                commands[self.kind], cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )
        for _ in range(200):
            if answering_engine({"DOCKER_HOST": host}):
                return
            time.sleep(0.1)
        raise AssertionError((self.folder / "daemon.log").read_text()[-2000:])

    def podman(self) -> list[str]:
        return ["podman", "--root", str(self.folder / "data"), "--runroot", str(self.folder / "run")]

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        assert self.process is not None
        if self.kind == "podman":
            subprocess.run([*self.podman(), "rm", "--all", "--force"], capture_output=True, check=False)
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=30)
        mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for path in reversed(mounted):
            if path.startswith(f"{self.folder}/"):
                subprocess.run(["umount", "--lazy", path], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def daemon(request, monkeypatch):
    kind = request.param
    monkeypatch.setenv("PATH", os.environ["PATH"] + ":/usr/sbin:/sbin")
    if os.geteuid() != 0 or not os.environ.get(f"GPUDYNO_TEST_{kind.upper()}"):
        pytest.skip(f"only root starts an engine of the test's own, where GPUDYNO_TEST_{kind.upper()} is set")
    program = "dockerd" if kind == "docker" else "podman"
    require(kind, shutil.which(program) is not None, f"{program} is not on PATH")
    # Podman takes no folder for what runs whose path has more than 50 letters.
    own = Daemon(kind, Path(tempfile.mkdtemp(prefix="e-")))
    try:
        own.start()
        yield own
    finally:
        own.end()


@pytest.mark.parametrize("daemon", ENGINES, indirect=True)
def test_an_engine_killed_in_mid_trial_is_no_engine_at_once_and_its_trial_is_found_when_it_is_back(
    daemon, rootfs, tmp_path
):
    tmp_path.chmod(0o755)
    engine = find_engine("auto", BuildSettings(root=tmp_path), {"DOCKER_HOST": f"unix://{daemon.socket}"})
    found = engine.connection
    api = docker.APIClient(base_url=found.host, timeout=60, version=found.api_version)
    base = imported(api, rootfs, podman=daemon.kind == "podman")
    bench = Bench(engine, api, base, tmp_path)
    handle = engine.start(bench.spec(WAIT))
    bench.said(handle, "waiting")
    daemon.kill()
    began = time.monotonic()
    with pytest.raises(NoEngine, match="did not answer"):
        engine.poll(handle, tmp_path)
    assert time.monotonic() - began < 30
    daemon.start()
    assert (engine.poll(handle, tmp_path) is None) == (daemon.kind == "podman")
    assert engine.leftovers(SESSION) == (handle,)
    engine.stop(handle, tmp_path)
    engine.forget(handle, tmp_path)
    assert engine.leftovers(SESSION) == ()
    closed(api, engine)
