"""Trials in a real Docker Engine and a real Podman: what holds inside, and what is left after every end.

GPUDYNO_TEST_DOCKER and GPUDYNO_TEST_PODMAN name the sockets as DOCKER_HOST would.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import docker
import pytest

from harness.engine.base import Exit, Handle, Running
from harness.engine.build import BuildSettings
from harness.engine.container import DeviceRequest, RunSpec, TrialFolders, config
from harness.engine.docker import DockerEngine
from harness.engine.find import search
from harness.errors import MachineError, NoEngine, NotBuilt
from harness.image.catalog import Image
from harness.record import Asked, Trial, Variant
from tests.helpers import ROOT
from tests.helpers.checks import require
from tests.helpers.minimal_image import NAME, contents, imported, make

# The SDK leaves the socket of a connection that was refused to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

SESSION = "20261120-0a1b2c"
MIB = 1024**2
ENGINES = [pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("docker", "podman")]

LOOK = """
import json, os, socket, sys
from pathlib import Path

def attempt(path):
    try:
        with open(path, "w") as file:
            file.write("x")
        return "writable"
    except OSError as error:
        return error.strerror

PLACES = ("", "/in", "/out", "/data/set", "/cache", "/workloads", "/tmp")

def reach(address):
    try:
        socket.create_connection((address, 53), 1).close()
        return "reached"
    except OSError as error:
        return error.strerror or str(error)

script = Path("/tmp/run.sh")
script.write_text("#!/usr/bin/python\\nraise SystemExit(7)\\n")
script.chmod(0o755)
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
found = {
    "uid": os.getuid(),
    "interfaces": sorted(os.listdir("/sys/class/net")),
    "network": reach("192.0.2.1"),
    "writes": {path: attempt(path + "/x") for path in PLACES},
    "executed": os.spawnv(os.P_WAIT, str(script), [str(script)]),
    "capabilities": status["CapBnd"].strip() + status["CapEff"].strip(),
    "no_new_privileges": status["NoNewPrivs"].strip(),
    "shared_memory": os.statvfs("/dev/shm").f_frsize * os.statvfs("/dev/shm").f_blocks,
    "data": Path("/data/set/a.txt").read_text(),
    "home": os.environ["HOME"],
}
Path("/out/found.json").write_text(json.dumps(found))
print("looked around")
print("and complained", file=sys.stderr)
"""

EAT = "held = [bytearray(b'x' * (1 << 20)) for _ in range(1024)]\n"
SLEEP = "import time\nprint('waiting', flush=True)\ntime.sleep(120)\n"
WAIT = f"import signal, sys\nsignal.signal(signal.SIGTERM, lambda *ignored: sys.exit(143))\n{SLEEP}"
STUBBORN = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\n{SLEEP}"


@dataclasses.dataclass(frozen=True)
class Bench:
    """One engine with the test image in it, and a folder to work in."""

    engine: DockerEngine
    api: docker.APIClient
    base: str
    folder: Path

    def spec(self, script: str, *, attempt: int = 1, **changes) -> RunSpec:
        trial = Trial.of(
            Asked(
                workload="word_lm",
                protocol="published/1",
                variant=Variant(model="lstm", precision="fp32-ieee", batch_size=1, data_mode="cached"),
                data="generated",
                device="cpu",
                environment="cpu",
            ),
            1,
            seed=1,
            timeout_seconds=60,
        )
        folders = {name: self.folder / name for name in ("input", "output", "set", "cache", "workloads")}
        for path in folders.values():
            path.mkdir(exist_ok=True)
        (folders["set"] / "a.txt").write_text("a sample")
        (folders["workloads"] / "word_lm.py").write_text(script)
        who = self.engine.user()
        return RunSpec(
            trial=trial,
            session=SESSION,
            attempt=attempt,
            folders=TrialFolders(
                folders["input"],
                folders["output"],
                (("set", folders["set"]),),
                folders["cache"],
                folders["workloads"],
            ),
            device=DeviceRequest("cpu"),
            image_id=self.api.inspect_image(self.base)["Id"],
            uid=who.uid,
            gid=who.gid,
            keep_id=who.keep_id,
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


@pytest.fixture(scope="session")
def rootfs(tmp_path_factory):
    return make(tmp_path_factory.mktemp("rootfs") / "rootfs.tar")


def connection(kind: str):
    host = os.environ.get(f"GPUDYNO_TEST_{kind.upper()}") or (
        kind == "docker" and os.environ.get("DOCKER_HOST")
    )
    found = search({"DOCKER_HOST": host}).connections if host else search({}).connections
    matching = [one for one in found if one.kind == kind]
    require(kind, bool(matching), f"no {kind} answers (GPUDYNO_TEST_{kind.upper()} names its socket)")
    return matching[0]


def closed(*clients) -> None:
    for client in clients:
        client.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module", params=ENGINES)
def imported_base(request, rootfs):
    found = connection(request.param)
    api = docker.APIClient(base_url=found.host, timeout=60, version=found.api_version)
    yield found, api, imported(api, rootfs, podman=request.param == "podman")
    for image in api.images():
        if any(NAME in tag or "gpudyno-tiny" in tag for tag in image.get("RepoTags") or ()):
            api.remove_image(image["Id"], force=True)
    closed(api)


@pytest.fixture
def bench(imported_base, tmp_path):
    found, api, base = imported_base
    tmp_path.chmod(0o755)
    engine = DockerEngine(found, BuildSettings(root=tmp_path / "clone", logs=tmp_path / "logs", base=base))
    yield Bench(engine, api, base, tmp_path)
    for handle in engine.leftovers(SESSION):
        engine.forget(handle, tmp_path)
    closed(engine)


def test_inside_there_is_no_network_no_privilege_and_nothing_to_write_but_its_own_folders(bench):
    bench.engine.start(bench.spec(LOOK))
    (handle,) = bench.engine.leftovers(SESSION)
    ended = bench.ended(handle)
    assert (ended.code, ended.out_of_memory, ended.missing) == (0, False, False), ended.log
    assert sorted(ended.log.splitlines()) == ["and complained", "looked around"]
    found = json.loads((bench.folder / "output" / "found.json").read_text())
    refused = "Read-only file system"
    assert found["writes"] == {
        "": refused,
        "/in": refused,
        "/data/set": refused,
        "/workloads": refused,
        "/out": "writable",
        "/cache": "writable",
        "/tmp": "writable",
    }
    assert found["uid"] == bench.engine.user().uid != 0
    assert found["interfaces"] == ["lo"]
    assert found["network"] == "Network is unreachable"
    assert found["executed"] == 7, "/tmp runs programs"
    assert set(found["capabilities"]) == {"0"}
    assert found["no_new_privileges"] == "1"
    assert found["shared_memory"] == 1024 * MIB
    assert (found["data"], found["home"]) == ("a sample", "/tmp")


def test_a_trial_past_its_memory_is_told_as_out_of_memory(bench):
    ended = bench.ended(bench.engine.start(bench.spec(EAT, memory_bytes=96 * MIB)))
    assert ended.code == 137
    # On cgroup v1 Podman's monitor may not notice, and says that something killed it.
    blind = bench.engine.name == "podman" and bench.api.info().get("CgroupVersion") == "1"
    assert ended.out_of_memory or blind


def test_a_killed_container_has_ended_with_its_signal_and_is_not_out_of_memory(bench):
    handle = bench.engine.start(bench.spec(WAIT))
    bench.said(handle, "waiting")
    assert isinstance(bench.engine.poll(handle, bench.folder), Running)
    bench.api.kill(handle.container, "SIGKILL")
    ended = bench.ended(handle)
    assert (ended.code, ended.out_of_memory, ended.missing) == (137, False, False)
    assert ended.log == "waiting\n"


def test_a_container_that_was_removed_behind_our_back_is_missing(bench):
    handle = bench.engine.start(bench.spec(WAIT))
    bench.api.remove_container(handle.container, force=True)
    assert bench.ended(handle).missing


def test_a_stopped_trial_leaves_its_end_to_be_collected_and_a_forgotten_one_leaves_nothing(bench):
    handle = bench.engine.start(bench.spec(WAIT))
    bench.said(handle, "waiting")
    bench.engine.stop(handle, bench.folder)
    assert bench.ended(handle).code == 143
    bench.engine.forget(handle, bench.folder)
    bench.engine.forget(handle, bench.folder)
    assert bench.engine.leftovers(SESSION) == ()


def test_a_trial_that_ignores_the_polite_signal_is_stopped_all_the_same(bench, monkeypatch):
    monkeypatch.setattr("harness.engine.docker.STOP_SECONDS", 1)
    handle = bench.engine.start(bench.spec(STUBBORN))
    bench.said(handle, "deaf")
    bench.engine.stop(handle, bench.folder)
    assert bench.ended(handle).code == 137


def test_a_new_process_finds_a_running_trial_by_its_handle_its_name_and_its_session(bench):
    spec = bench.spec(WAIT)
    handle = bench.engine.start(spec)
    bench.said(handle, "waiting")
    script = (
        "import sys, json\n"
        "from pathlib import Path\n"
        "from harness.engine.base import Handle\n"
        "from harness.engine.build import BuildSettings\n"
        "from harness.engine.docker import DockerEngine\n"
        "from harness.engine.find import search\n"
        "host, text, name, session, work = sys.argv[1:]\n"
        "settings = BuildSettings(root=Path(work), logs=Path(work))\n"
        "engine = DockerEngine(search({'DOCKER_HOST': host}).connections[0], settings)\n"
        "handle = Handle.parse(text, 'handle')\n"
        "state = type(engine.poll(handle, Path(work))).__name__\n"
        "named, of_session = engine.find(name, Path(work)), engine.leftovers(session)\n"
        "print(json.dumps([state, named == handle, of_session == (handle,)]))\n"
    )
    arguments = (
        bench.engine.connection.host,
        handle.model_dump_json(),
        spec.name,
        SESSION,
        str(bench.folder),
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == '["Running", true, true]\n', done.stderr
    assert (bench.folder / "log.txt").read_text() == "waiting\n", "the new process has fetched the log so far"


def test_a_container_that_was_created_and_never_started_is_no_trial(bench):

    spec = bench.spec(WAIT)
    bench.api.create_container_from_config(config(spec), name=spec.name)
    assert bench.engine.find(spec.name, bench.folder) is None
    assert bench.engine.leftovers(SESSION) == ()


def test_starting_removes_what_an_earlier_process_left_of_the_session(bench):
    first = bench.engine.start(bench.spec(WAIT))
    second = bench.engine.start(bench.spec(WAIT))
    assert bench.engine.leftovers(SESSION) == (second,)
    assert bench.engine.poll(first, bench.folder) == Exit(code=None, log="", missing=True)


def test_a_trial_of_an_image_that_is_gone_is_not_built(bench):
    spec = dataclasses.replace(bench.spec(WAIT), image_id="sha256:" + "0" * 64)
    with pytest.raises(NotBuilt, match="invoke build"):
        bench.engine.start(spec)


def test_the_line_shown_to_a_person_starts_the_same_trial(bench):
    client = shutil.which("podman" if bench.engine.name == "podman" else "docker")
    require(bench.engine.name, client is not None, "its command is not on PATH")
    spec = bench.spec("print('by hand')\n")
    bench.engine.start(spec)  # hands the folders over
    bench.engine.forget(*bench.engine.leftovers(SESSION), bench.folder)
    variables = {"DOCKER_HOST": bench.engine.connection.host, "CONTAINER_HOST": bench.engine.connection.host}
    subprocess.run(
        bench.engine.command(spec),
        shell=True,
        check=True,
        env={**os.environ, **variables},
        capture_output=True,
    )
    handle = bench.engine.find(spec.name, bench.folder)
    assert bench.ended(handle) == Exit(code=0, log="by hand\n")


SECRET = "https://user:3f9d1c77-not-in-any-layer@index.example/simple"

DOCKERFILE = """\
ARG BASE
FROM ${BASE}
COPY docker/steps.sh /step.py
RUN --mount=type=secret,id=pipconf --mount=type=secret,id=proxy ["python", "/step.py"]
"""

STEP = """\
import hashlib, sys
from pathlib import Path
seen = "".join(Path("/run/secrets", name).read_text() for name in ("pipconf", "proxy"))
Path("/seen.txt").write_text(hashlib.sha256(seen.encode()).hexdigest())
print("the step ran")
"""


def clone(bench: Bench, step: str) -> tuple[Image, DockerEngine]:
    """A clone with one tiny image, and the engine set up to build it with secrets."""
    root = bench.folder / "clone"
    folder = root / "docker" / "tiny"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text(DOCKERFILE)
    (folder / "lock.txt").write_text("# nothing\n")
    (root / "docker" / "steps.sh").write_text(step)
    shutil.copy(ROOT / ".dockerignore", root)
    (bench.folder / "pip.conf").write_text(f"[global]\nindex-url = {SECRET}\n")
    image = Image(
        name="tiny",
        device="cpu",
        dockerfile="tiny/Dockerfile",
        base="debian:bookworm-slim",
        base_digest="sha256:" + "0" * 64,
        base_digest_verified=False,
        platform="linux/amd64",
        pythons=("3.11",),
        requirements="tiny/lock.txt",
        lock="tiny/lock.txt",
    )
    settings = BuildSettings(
        root=root,
        logs=bench.folder / "logs",
        revision="0123abc",
        base=bench.base,
        secrets={"pipconf": bench.folder / "pip.conf"},
        proxy={"HTTPS_PROXY": SECRET},
        network="host",
    )
    return image, DockerEngine(bench.engine.connection, settings)


def test_an_image_is_built_once_and_its_secrets_stand_in_no_layer(bench):
    image, engine = clone(bench, STEP + f"print({time.time_ns()})\n")
    require(engine.name, engine.facts().buildkit, "no command-line client here builds with BuildKit")
    with pytest.raises(NotBuilt, match="image 'tiny'"):
        engine.built(image)
    (step,) = engine.steps(image)
    assert "tiny/Dockerfile" in step.command and SECRET not in step.command
    lines: list[str] = []
    environment = engine.build(image, lines.append).environment
    assert any("the step ran" in line for line in lines)
    assert (environment.engine, environment.base_substituted, environment.pinned) == (
        engine.name,
        True,
        False,
    )
    assert environment.unpinned_because == (
        f"its base is {bench.base.rpartition('/')[2]}, not the pinned one",
    )
    again: list[str] = []
    assert engine.build(image, again.append).environment == environment
    assert (again, engine.steps(image)) == ([], ())
    labels = bench.api.inspect_image(environment.image_id)["Config"]["Labels"]
    assert labels["org.opencontainers.image.revision"] == "0123abc"
    parts = list(contents(bench.api, environment.image_id))
    assert any(b"seen.txt" in part for part in parts), "the layer with what the step wrote was looked through"
    assert not any(b"not-in-any-layer" in part for part in parts)
    assert "not-in-any-layer" not in json.dumps(bench.api.history(environment.image_id))
    closed(engine)


def test_a_build_that_fails_says_why_and_where_its_log_lies(bench):
    image, engine = clone(bench, "print('no wheel fits')\nraise SystemExit(3)\n")
    require(engine.name, engine.facts().buildkit, "no command-line client here builds with BuildKit")
    with pytest.raises(MachineError, match="the build of image 'tiny' failed: no wheel fits; ") as caught:
        engine.build(image, lambda line: None)
    log = Path(str(caught.value).rpartition(" ")[2])
    assert "no wheel fits" in log.read_text()
    closed(engine)


OWN_DOCKERFILE = """
ARG BASE
FROM ${BASE}
COPY docker/tiny/start /opt/mine/start
ARG ENVIRONMENT
"""
OWN_PROGRAM = """#!/usr/bin/python
import json, os, sys
asked = json.load(open(os.environ["GPUDYNO_IN"] + "/trial.json"))["asked"]
json.dump([sys.argv, asked["workload"]], open(os.environ["GPUDYNO_OUT"] + "/measurement.json", "w"))
"""


def test_an_image_of_one_s_own_starts_trials_by_its_own_program_and_needs_no_workload_of_ours(bench):
    image, engine = clone(bench, "")
    require(engine.name, engine.facts().buildkit, "no command-line client here builds with BuildKit")
    folder = bench.folder / "clone" / "docker" / "tiny"
    (folder / "Dockerfile").write_text(OWN_DOCKERFILE)
    (folder / "start").write_text(OWN_PROGRAM)
    (folder / "start").chmod(0o755)
    built = engine.build(image, lambda line, *rest: None).environment
    spec = dataclasses.replace(
        bench.spec("", program="/opt/mine/start", own_workloads="mine"), image_id=built.image_id
    )
    (bench.folder / "input" / "trial.json").write_text(spec.trial.model_dump_json())
    ended = bench.ended(engine.start(spec))
    assert ended.code == 0, ended.log
    found = json.loads((bench.folder / "output" / "measurement.json").read_text())
    assert found == [["/opt/mine/start", "/workloads/mine/word_lm.py"], "word_lm"]
    closed(engine)


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
            if search({"DOCKER_HOST": host}).connections:
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
    own = Daemon(kind, Path(tempfile.mkdtemp(prefix="gpudyno-engine-")))
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
    (found,) = search({"DOCKER_HOST": f"unix://{daemon.socket}"}).connections
    api = docker.APIClient(base_url=found.host, timeout=60, version=found.api_version)
    base = imported(api, rootfs, podman=daemon.kind == "podman")
    engine = DockerEngine(found, BuildSettings(root=tmp_path, logs=tmp_path))
    bench = Bench(engine, api, base, tmp_path)
    handle = engine.start(bench.spec(WAIT))
    bench.said(handle, "waiting")
    daemon.kill()
    began = time.monotonic()
    with pytest.raises(NoEngine, match="did not answer"):
        engine.poll(handle, tmp_path)
    assert time.monotonic() - began < 5
    daemon.start()
    state = engine.poll(handle, tmp_path)
    assert isinstance(state, Exit if daemon.kind == "docker" else Running)
    assert engine.leftovers(SESSION) == (handle,)
    engine.stop(handle, tmp_path)
    engine.forget(handle, tmp_path)
    assert engine.leftovers(SESSION) == ()
    closed(api, engine)
