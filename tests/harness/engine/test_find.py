"""Which engine answers where, told apart by what it says of itself."""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import json
import os
import re
import time
import warnings
from pathlib import Path

import pytest

from harness.engine import docker, find
from harness.engine.base import Exit, Handle
from harness.engine.container import UNPRIVILEGED, DeviceRequest
from harness.engine.docker import User, append_new
from harness.errors import MachineError, NoDevice, NoEngine, NoSpace
from harness.image.spec import BuildSettings, BuildSpec
from harness.record import DeviceKind
from tests.harness.engine.test_container import asked_for
from tests.helpers.fake_engine import DOCKER, PODMAN, answering, silent

# The SDK leaves the socket of a connection that was refused to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

NAMED = {"DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=GPU-1"}]}
PODMAN_OF_TODAY = {
    "version": {**PODMAN["version"], "Version": "5.4.0"},
    "info": {**PODMAN["info"], **NAMED},
}
HANDLE = Handle(engine="docker", container="0" * 64)


@pytest.fixture(autouse=True)
def _engines_are_closed(monkeypatch):
    made = []

    class Closed(docker.DockerEngine):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(docker, "DockerEngine", Closed)
    yield
    for engine in made:
        engine._api.close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def settings(tmp_path):
    return BuildSettings(root=tmp_path)


def engine_at(path: Path, settings: BuildSettings, choice: find.EngineChoice = "auto"):
    engine = find.find(choice, settings, environ={"DOCKER_HOST": f"unix://{path.resolve()}", "PATH": ""})
    assert engine is not None
    return engine


def spec_in(tmp_path, device):
    """The example trial with folders that are there."""
    spec = asked_for(device)
    names = ("input", "output", "cache", "workloads")
    folders = {name: tmp_path / "work" / name for name in names}
    for path in folders.values():
        path.mkdir(parents=True)
    return dataclasses.replace(spec, folders=dataclasses.replace(spec.folders, data=(), **folders))


def environment_of(kind: DeviceKind) -> BuildSpec:
    """An image to build, as far as its environment's record needs it."""
    names = {field.name: None for field in dataclasses.fields(BuildSpec)}
    filled = {"image": kind, "device": kind, "base": "debian:bookworm-slim", "build_arguments": {}}
    return BuildSpec(**{**names, "base_substituted": False, "base_digest_verified": False, **filled})


@pytest.mark.parametrize(("answers", "kind"), [(DOCKER, "docker"), (PODMAN, "podman")])
def test_an_engine_is_known_by_its_components_and_not_by_its_version_number(
    tmp_path, settings, answers, kind
):
    with answering(tmp_path / "s", answers):
        found = engine_at(tmp_path / "s", settings)
    assert (found.name, found.connection.version) == (kind, answers["version"]["Version"])


def test_the_engine_asked_for_by_name_is_taken_even_where_the_other_answers_first(
    tmp_path, settings, monkeypatch
):
    monkeypatch.setattr(find, "places", lambda environ: (f"unix://{tmp_path}/d", f"unix://{tmp_path}/p"))
    with answering(tmp_path / "d", DOCKER), answering(tmp_path / "p", PODMAN):
        names = [find.find(asked, settings, environ={}).name for asked in ("auto", "docker", "podman")]
    assert names == ["docker", "docker", "podman"]


def test_without_an_engine_it_is_said_that_none_answers_and_a_name_is_refused_with_what_to_do(
    tmp_path, settings
):
    environ = {"DOCKER_HOST": f"unix://{tmp_path}/nothing"}
    with pytest.raises(NoEngine, match="no container engine answers"):
        find.find("auto", settings, environ=environ)
    with pytest.raises(
        NoEngine, match="Podman is asked for and does not answer; correct or unset DOCKER_HOST"
    ):
        find.find("podman", settings, environ=environ)


def test_an_engine_of_the_other_kind_is_named_in_the_refusal(tmp_path, settings):
    with answering(tmp_path / "s", DOCKER), pytest.raises(NoEngine, match="Docker Engine answers instead"):
        engine_at(tmp_path / "s", settings, "podman")


def test_an_engine_on_another_machine_is_refused_because_it_sees_other_folders(settings):
    environ = {"DOCKER_HOST": "tcp://build.example:2376"}
    with pytest.raises(NoEngine, match=r"build\.example:2376 is another machine"):
        find.find("docker", settings, environ=environ)


def test_places_are_tried_in_order_and_a_variable_that_names_one_ends_the_search(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"currentContext": "mine"}))
    meta = tmp_path / "contexts" / "meta" / hashlib.sha256(b"mine").hexdigest()
    meta.mkdir(parents=True)
    host = {"Host": "unix:///somewhere/docker.sock", "SkipTLSVerify": False}
    (meta / "meta.json").write_text(
        json.dumps({"Name": "mine", "Metadata": {}, "Endpoints": {"docker": host}})
    )
    assert find.places({"XDG_RUNTIME_DIR": "/run/user/7"}) == (
        "unix:///somewhere/docker.sock",
        "unix:///var/run/docker.sock",
        "unix:///run/user/7/docker.sock",
        "unix:///run/user/7/podman/podman.sock",
        "unix:///run/podman/podman.sock",
    )
    assert find.places({"DOCKER_HOST": "unix:///a", "CONTAINER_HOST": "unix:///b"}) == ("unix:///a",)


def test_a_service_that_takes_the_call_and_stays_silent_is_given_up(tmp_path, settings, monkeypatch):
    monkeypatch.setattr(find, "PROBE_SECONDS", 0.2)
    monkeypatch.setattr(docker, "ANSWER_SECONDS", 0.2)
    with answering(tmp_path / "s", DOCKER):
        engine = engine_at(tmp_path / "s", settings)
    (tmp_path / "s").unlink()
    began = time.monotonic()
    with silent(tmp_path / "s"):
        assert find.search({"DOCKER_HOST": f"unix://{tmp_path}/s"}).connections == ()
        with pytest.raises(NoEngine, match="Docker Engine did not answer"):
            engine.poll(HANDLE, tmp_path)
    assert time.monotonic() - began < 30


def test_an_engine_that_goes_away_is_no_engine_for_every_call(tmp_path, settings):
    with answering(tmp_path / "s", DOCKER):
        engine = engine_at(tmp_path / "s", settings)
        assert engine.facts.runtimes == ("nvidia", "runc")
    for call in (engine.poll, engine.stop, engine.forget):
        with pytest.raises(NoEngine, match="did not answer"):
            call(HANDLE, tmp_path)
    with pytest.raises(NoEngine):
        engine.leftovers("20261120-0a1b2c")


def test_a_container_that_the_engine_does_not_know_is_missing_with_the_log_that_was_kept(tmp_path, settings):
    (tmp_path / "log.txt").write_text("its last word\n")
    with answering(tmp_path / "s", DOCKER):
        ended = engine_at(tmp_path / "s", settings).poll(HANDLE, tmp_path)
    assert ended == Exit(code=None, log="its last word\n", missing=True)


def test_a_gpu_is_never_asked_of_a_podman_that_would_silently_give_none(tmp_path, settings):
    spec = spec_in(tmp_path, DeviceRequest("cuda", ids=("GPU-1",)))
    with answering(tmp_path / "s", PODMAN) as asked:
        engine = engine_at(tmp_path / "s", settings)
        with pytest.raises(
            NoDevice, match=re.escape("Podman 4.9.3 accepts a request for a GPU on this socket")
        ):
            engine.start(spec)
    assert not [path for method, path, _ in asked if method == "POST"]


@pytest.mark.parametrize(
    ("answers", "driver"),
    [
        (DOCKER, ""),
        ({**DOCKER, "info": {"Runtimes": {"runc": {}}, "CDISpecDirs": ["/etc/cdi"], **NAMED}}, "cdi"),
        (PODMAN_OF_TODAY, "cdi"),
    ],
    ids=["docker with NVIDIA's runtime", "docker with CDI alone", "podman 5.4.0"],
)  # fmt: skip
def test_a_cuda_device_is_asked_for_in_the_way_that_the_engine_honours(tmp_path, settings, answers, driver):
    spec = spec_in(tmp_path, DeviceRequest("cuda", ids=("GPU-1",)))
    created = {**answers, "containers/json": [], "create": {"Id": "f" * 64}, "start": {}}
    with answering(tmp_path / "s", created) as asked:
        engine_at(tmp_path / "s", settings).start(spec)
    body = next(body for _, path, body in asked if "/containers/create" in path)
    assert body["HostConfig"]["DeviceRequests"][0]["Driver"] == driver


def test_podman_opens_the_root_that_cdi_s_hooks_write_into_and_the_record_says_so(tmp_path, settings):
    spec = spec_in(tmp_path, DeviceRequest("cuda", ids=("GPU-1",)))
    created = {**PODMAN_OF_TODAY, "containers/json": [], "create": {"Id": "f" * 64}, "start": {}}
    with answering(tmp_path / "s", created) as asked:
        engine = engine_at(tmp_path / "s", settings)
        engine.start(spec)
        recorded = [engine._environment(environment_of(kind), "id").writable_root for kind in ("cuda", "cpu")]
    host = next(body for _, path, body in asked if "/containers/create" in path)["HostConfig"]
    assert (host["ReadonlyRootfs"], recorded) == (False, [True, False])


def test_where_docker_remaps_users_a_trial_keeps_the_host_s_so_that_its_folders_are_its_own(
    tmp_path, settings
):
    remapping = {**DOCKER, "info": {**DOCKER["info"], "SecurityOptions": ["name=userns"]}}
    created = {**remapping, "containers/json": [], "create": {"Id": "f" * 64}, "start": {}}
    with answering(tmp_path / "s", created) as asked:
        engine_at(tmp_path / "s", settings).start(spec_in(tmp_path, DeviceRequest("cpu")))
    body = next(body for _, path, body in asked if "/containers/create" in path)
    assert body["HostConfig"]["UsernsMode"] == "host"


@pytest.mark.parametrize(
    ("said", "error", "clause"),
    [
        ("could not select device driver with capabilities: [[gpu]]", NoDevice, "cannot give a container"),
        ("write /var/lib/docker/x: no space left on device", NoSpace, "the disk is full"),
        ("OCI runtime create failed: something", MachineError, "would not start a container: OCI runtime"),
    ],
)
def test_what_an_engine_refuses_is_said_as_what_is_missing(tmp_path, settings, said, error, clause):
    spec = spec_in(tmp_path, DeviceRequest("cuda", ids=("GPU-1",)))
    answers = {**DOCKER, "containers/json": [], "create": {"Id": "f" * 64}, "start": (500, {"message": said})}
    with answering(tmp_path / "s", answers) as asked, pytest.raises(error, match=clause) as caught:
        engine_at(tmp_path / "s", settings).start(spec)
    assert type(caught.value) is error
    assert [path for method, path, _ in asked if method == "DELETE"], (
        "the container that cannot start is removed"
    )


def test_a_rootless_podman_may_take_long_to_create_its_first_container(tmp_path, settings, monkeypatch):
    """It copies the whole image for the caller's own id."""
    monkeypatch.setattr(docker, "ANSWER_SECONDS", 1)
    spec = dataclasses.replace(spec_in(tmp_path, DeviceRequest("cpu")), user=User(1000, 1000, keep_id=True))
    slow = {"create": lambda: time.sleep(1.5) or {"Id": "f" * 64}, "containers/json": [], "start": {}}
    with answering(tmp_path / "s", {**PODMAN, **slow}):
        assert engine_at(tmp_path / "s", settings).start(spec).container == "f" * 64


def test_a_container_that_is_just_ending_is_removed_a_moment_later(tmp_path, settings, monkeypatch):
    monkeypatch.setattr(docker, "REMOVAL_PAUSES", (0.01, 0.01))
    refusals = [(500, {"message": "it could not be stopped"}), (409, {"message": "removal is in progress"})]
    answers = {**DOCKER, HANDLE.container: lambda: refusals.pop() if refusals else {}}
    with answering(tmp_path / "s", answers) as asked:
        engine_at(tmp_path / "s", settings).forget(HANDLE, tmp_path)
    assert [method for method, _, _ in asked].count("DELETE") == 3
    always = {**DOCKER, HANDLE.container: (500, {"message": "it could not be stopped"})}
    with answering(tmp_path / "t", always), pytest.raises(MachineError, match="would not remove a container"):
        engine_at(tmp_path / "t", settings).forget(HANDLE, tmp_path)


def test_trials_run_as_the_caller_and_never_as_root_where_the_caller_is_root(tmp_path, settings, monkeypatch):
    rootless = {**DOCKER, "info": {"SecurityOptions": ["name=rootless"]}}
    users = {}
    for name, answers in (("docker", DOCKER), ("rootless", rootless), ("podman", PODMAN)):
        with answering(tmp_path / name, answers):
            engine = engine_at(tmp_path / name, settings)
            for uid in (0, 1000):
                monkeypatch.setattr(os, "getuid", lambda uid=uid: uid)
                monkeypatch.setattr(os, "getgid", lambda uid=uid: uid)
                users[name, uid] = engine.user()
    assert {name for name in users if users[name] == User(UNPRIVILEGED, UNPRIVILEGED, False)} == {
        (name, 0) for name in ("docker", "rootless", "podman")
    }
    assert users["docker", 1000] == User(1000, 1000, False)
    assert users["rootless", 1000] == User(0, 0, False)
    assert users["podman", 1000] == User(1000, 1000, True)


def test_output_is_appended_from_where_the_log_ends_whoever_wrote_it(tmp_path):
    log = tmp_path / "log.txt"
    append_new(b"one\n", log)
    append_new(b"one\ntwo\nthr", log)
    append_new(b"one\ntwo\nthree\n", log)
    append_new(b"one\n", log)
    assert log.read_bytes() == b"one\ntwo\nthree\n"
