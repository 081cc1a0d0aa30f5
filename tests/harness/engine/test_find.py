"""Which engine answers where, told apart by what it says of itself, and what is asked of it."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.engine import choose, docker
from harness.engine.api_errors import engine_errors
from harness.engine.container import UNPRIVILEGED, DeviceRequest, User
from harness.engine.docker import DockerEngine
from harness.engine.interface import GONE, Handle
from harness.errors import MachineError, NoDevice, NoEngine, NoSpace
from harness.image.spec import BuildSettings
from tests.helpers import ROOT
from tests.helpers.engine_bench import CPU, closed, laid_out, run_spec
from tests.helpers.fake_engine import DOCKER, PODMAN, answering, silent
from tests.helpers.images import IMAGES

NAMED = {"DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=GPU-1"}]}
PODMAN_OF_TODAY = {
    "version": {**PODMAN["version"], "Version": "5.4.0"},
    "info": {**PODMAN["info"], **NAMED},
}
HANDLE = Handle(engine="docker", container="0" * 64)
BUILD = BuildSettings(ROOT)
STARTS = {"containers/json": [], "create": {"Id": "f" * 64}, "start": {}}
CUDA = DeviceRequest("cuda", ids=("GPU-1",))


@pytest.fixture(autouse=True)
def _sockets_are_closed():
    yield
    closed()


def engine_at(path: Path, choice: choose.EngineChoice = "auto"):
    return choose.find_engine(choice, BUILD, {"DOCKER_HOST": f"unix://{path.resolve()}", "PATH": ""})


def asked_of(
    folder: Path, answers: dict[str, Any], device: DeviceRequest
) -> tuple[DockerEngine, dict[str, Any]]:
    """An engine that started a trial on this device, and the HostConfig that it was sent."""
    with answering(folder / "s", {**answers, **STARTS}) as asked:
        engine = engine_at(folder / "s")
        engine.start(laid_out(run_spec(folder / "work", device, user=engine.user())))
    return engine, next(body for _, path, body in asked if "/containers/create" in path)["HostConfig"]


@pytest.mark.parametrize(("answers", "kind"), [(DOCKER, "docker"), (PODMAN, "podman")])
def test_an_engine_is_known_by_its_components_and_not_by_its_version_number(tmp_path, answers, kind):
    with answering(tmp_path / "s", answers):
        found = engine_at(tmp_path / "s")
    assert (found.name, found.connection.version) == (kind, answers["version"]["Version"])


def test_the_engine_asked_for_by_name_is_taken_even_where_the_other_answers_first(tmp_path, monkeypatch):
    monkeypatch.setattr(
        choose, "engine_places", lambda environ: (f"unix://{tmp_path}/d", f"unix://{tmp_path}/p")
    )
    with answering(tmp_path / "d", DOCKER), answering(tmp_path / "p", PODMAN):
        names = [choose.find_engine(asked, BUILD, {}).name for asked in ("auto", "docker", "podman")]
    assert names == ["docker", "docker", "podman"]


def test_without_an_engine_it_is_said_that_none_answers_and_a_name_is_refused_with_what_to_do(tmp_path):
    environ = {"DOCKER_HOST": f"unix://{tmp_path}/nothing"}
    with pytest.raises(NoEngine, match="no container engine answers"):
        choose.find_engine("auto", BUILD, environ)
    with pytest.raises(
        NoEngine, match="Podman is asked for and does not answer; correct or unset DOCKER_HOST"
    ):
        choose.find_engine("podman", BUILD, environ)


def test_an_engine_of_the_other_kind_is_named_in_the_refusal(tmp_path):
    with answering(tmp_path / "s", DOCKER), pytest.raises(NoEngine, match="Docker Engine answers instead"):
        engine_at(tmp_path / "s", "podman")


def test_an_engine_on_another_machine_is_refused_because_it_sees_other_folders():
    environ = {"DOCKER_HOST": "tcp://build.example:2376"}
    with pytest.raises(NoEngine, match=r"build\.example:2376 is another machine"):
        choose.find_engine("docker", BUILD, environ)


@pytest.mark.parametrize("chosen", [False, True])
def test_places_are_tried_in_order_and_a_variable_that_names_one_ends_the_search(
    tmp_path, monkeypatch, chosen
):
    monkeypatch.setattr("docker.context.context.get_meta_file", lambda name: tmp_path / f"{name}.json")
    monkeypatch.setattr("docker.context.context.get_meta_dir", lambda name: tmp_path)
    endpoints = {"docker": {"Host": "unix:///desktop.sock", "SkipTLSVerify": False}}
    meta = {"Name": "desktop", "Metadata": {}, "Endpoints": endpoints}
    (tmp_path / "desktop.json").write_text(json.dumps(meta))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"currentContext": "desktop"} if chosen else {}))
    assert choose.engine_places({"XDG_RUNTIME_DIR": "/run/user/7"}) == (
        *(["unix:///desktop.sock"] if chosen else []),
        "unix:///var/run/docker.sock",
        "unix:///run/user/7/docker.sock",
        "unix:///run/user/7/podman/podman.sock",
        "unix:///run/podman/podman.sock",
    )
    assert choose.engine_places({"DOCKER_HOST": "unix:///a", "CONTAINER_HOST": "unix:///b"}) == ("unix:///a",)


def test_a_service_that_takes_the_call_and_stays_silent_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(choose, "PROBE_SECONDS", 0.2)
    monkeypatch.setattr(docker, "ANSWER_SECONDS", 0.2)
    with answering(tmp_path / "s", DOCKER):
        engine = engine_at(tmp_path / "s")
    (tmp_path / "s").unlink()
    began = time.monotonic()
    with silent(tmp_path / "s"):
        with pytest.raises(NoEngine, match="nothing answers at unix"):
            engine_at(tmp_path / "s")
        with pytest.raises(NoEngine, match="Docker Engine did not answer"):
            engine.poll(HANDLE, tmp_path)
    assert time.monotonic() - began < 30


def test_an_engine_that_goes_away_is_no_engine_for_every_call(tmp_path):
    with answering(tmp_path / "s", DOCKER):
        engine = engine_at(tmp_path / "s")
        assert engine.facts.runtimes == ("nvidia", "runc")
    for call in (engine.poll, engine.stop, engine.forget):
        with pytest.raises(NoEngine, match="did not answer"):
            call(HANDLE, tmp_path)
    with pytest.raises(NoEngine):
        engine.leftovers("20261120-0a1b2c")


def test_an_answer_that_is_nested_too_deep_is_no_engine_s():
    with (
        pytest.raises(NoEngine, match="gave an answer that cannot be read"),
        engine_errors("It", "say a word"),
    ):
        json.loads("[" * 100_000)


def test_a_container_that_the_engine_does_not_know_is_missing_with_the_log_that_was_kept(tmp_path):
    (tmp_path / "log.txt").write_text("its last word\n")
    with answering(tmp_path / "s", DOCKER):
        ended = engine_at(tmp_path / "s").poll(HANDLE, tmp_path)
    assert ended == replace(GONE, log="its last word\n")


def test_a_gpu_is_never_asked_of_a_podman_that_would_silently_give_none(tmp_path):
    with answering(tmp_path / "s", PODMAN) as asked:
        engine = engine_at(tmp_path / "s")
        with pytest.raises(NoDevice, match=r"Podman 4\.9\.3 accepts a request for a GPU on this socket"):
            engine.start(laid_out(run_spec(tmp_path / "work", CUDA)))
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
def test_a_cuda_device_is_asked_for_in_the_way_that_the_engine_honours(tmp_path, answers, driver):
    _, host = asked_of(tmp_path, answers, CUDA)
    assert host["DeviceRequests"][0]["Driver"] == driver


def test_podman_opens_the_root_that_cdi_s_hooks_write_into_and_the_record_says_so(tmp_path):
    with answering(tmp_path / "s", {**PODMAN_OF_TODAY, **STARTS}) as asked:
        engine = engine_at(tmp_path / "s")
        engine.start(laid_out(run_spec(tmp_path / "work", CUDA)))
        recorded = [
            engine.expected_environment(IMAGES.image(kind)).environment.writable_root
            for kind in ("cuda", "cpu")
        ]
    host = next(body for _, path, body in asked if "/containers/create" in path)["HostConfig"]
    assert (host["ReadonlyRootfs"], recorded) == (False, [True, False])


def test_where_docker_remaps_users_a_trial_keeps_the_host_s_so_that_its_folders_are_its_own(tmp_path):
    remapping = {**DOCKER, "info": {**DOCKER["info"], "SecurityOptions": ["name=userns"]}}
    _, host = asked_of(tmp_path, remapping, CPU)
    assert host["UsernsMode"] == "host"


@pytest.mark.parametrize(
    ("said", "error", "clause"),
    [
        ("could not select device driver with capabilities: [[gpu]]", NoDevice, "cannot give a container"),
        ("write /var/lib/docker/x: no space left on device", NoSpace, "the disk is full"),
        ("OCI runtime create failed: something", MachineError, "would not start a container: OCI runtime"),
    ],
)
def test_what_an_engine_refuses_is_said_as_what_is_missing(tmp_path, said, error, clause):
    answers = {**DOCKER, **STARTS, "start": (500, {"message": said})}
    with answering(tmp_path / "s", answers) as asked, pytest.raises(error, match=clause) as caught:
        engine_at(tmp_path / "s").start(laid_out(run_spec(tmp_path / "work", CUDA)))
    assert type(caught.value) is error
    assert [path for method, path, _ in asked if method == "DELETE"], (
        "the container that cannot start is removed"
    )


def test_a_rootless_podman_may_take_long_to_create_its_first_container(tmp_path, monkeypatch):
    """It copies the whole image for the caller's own id."""
    monkeypatch.setattr(docker, "ANSWER_SECONDS", 1)
    spec = laid_out(run_spec(tmp_path / "work", user=User(1000, 1000, keep_id=True)))
    slow = {"create": lambda: time.sleep(1.5) or STARTS["create"]}
    with answering(tmp_path / "s", {**PODMAN, **STARTS, **slow}):
        assert engine_at(tmp_path / "s").start(spec).container == "f" * 64


def test_a_container_that_is_just_ending_is_removed_a_moment_later(tmp_path, monkeypatch):
    monkeypatch.setattr(docker, "REMOVAL_PAUSES", (0.01, 0.01))
    refusals = [(500, {"message": "it could not be stopped"}), (409, {"message": "removal is in progress"})]
    answers = {**DOCKER, HANDLE.container: lambda: refusals.pop() if refusals else {}}
    with answering(tmp_path / "s", answers) as asked:
        engine_at(tmp_path / "s").forget(HANDLE, tmp_path)
    assert [method for method, _, _ in asked].count("DELETE") == 3
    always = {**DOCKER, HANDLE.container: (500, {"message": "it could not be stopped"})}
    with answering(tmp_path / "t", always), pytest.raises(MachineError, match="would not remove a container"):
        engine_at(tmp_path / "t").forget(HANDLE, tmp_path)


def test_trials_run_as_the_caller_and_never_as_root_where_the_caller_is_root(tmp_path, monkeypatch):
    rootless = {**DOCKER, "info": {"SecurityOptions": ["name=rootless"]}}
    users = {}
    for name, answers in (("docker", DOCKER), ("rootless", rootless), ("podman", PODMAN)):
        with answering(tmp_path / name, answers):
            engine = engine_at(tmp_path / name)
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


OWN = {"security": {"rootless": True, "selinuxEnabled": True}}


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        (PODMAN, (True, False)),
        ({**PODMAN, "info": {"SecurityOptions": ["name=seccomp,profile=default"]}}, (False, False)),
        ({**PODMAN, "info": {"Rootless": True}}, (True, False)),
        ({"libpod/info": {"host": OWN}, **PODMAN, "info": {}}, (True, True)),
        ({"libpod/info": (500, {"message": "no"}), **PODMAN, "info": {}}, (False, False)),
        ({**DOCKER, "info": {"SecurityOptions": ["name=selinux", "name=rootless"]}}, (True, True)),
        ({"libpod/info": {"host": OWN}, **DOCKER, "info": {}}, (False, False)),
    ],
)
def test_rootless_and_selinux_are_read_where_each_engine_tells_them(tmp_path, monkeypatch, answers, told):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    engine, host = asked_of(tmp_path, answers, CPU)
    assert (engine.facts.rootless, engine.facts.selinux) == told
    assert ("label=disable" in host["SecurityOpt"]) == told[1]
    assert (host.get("UsernsMode") == "keep-id") == (told[0] and answers["version"] == PODMAN["version"])
