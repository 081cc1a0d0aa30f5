"""Trials in a real Docker Engine and a real Podman: what holds inside, and what is left after every end."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from harness.engine.container import SHARED_MEMORY_BYTES, container_config
from harness.engine.interface import GONE
from harness.errors import NotBuilt
from tests.helpers.engine_bench import MIB, SESSION, STUBBORN, WAIT

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


def test_inside_there_is_no_network_no_privilege_and_nothing_to_write_but_its_own_folders(bench):
    bench.engine.start(bench.spec(LOOK))
    (handle,) = bench.engine.leftovers(SESSION)
    ended = bench.ended(handle)
    assert (ended.code, ended.cause) == (0, None), ended.log
    assert sorted(ended.log.splitlines()) == ["and complained", "looked around"]
    found = json.loads((bench.folder / "out" / "found.json").read_text())
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
    assert found["shared_memory"] == SHARED_MEMORY_BYTES
    assert (found["data"], found["home"]) == ("a sample", "/tmp")


def test_a_trial_past_its_memory_is_told_as_out_of_memory(bench):
    ended = bench.ended(bench.engine.start(bench.spec(EAT, memory_bytes=96 * MIB)))
    assert ended.code == 137
    # On cgroup v1 Podman's monitor may not notice, and says that something killed it.
    blind = bench.engine.name == "podman" and bench.api.info().get("CgroupVersion") == "1"
    assert ended.cause == "out-of-memory" or blind


def test_a_killed_container_has_ended_with_its_signal_and_is_not_out_of_memory(bench):
    handle = bench.engine.start(bench.spec(WAIT))
    bench.said(handle, "waiting")
    assert bench.engine.poll(handle, bench.folder) is None
    bench.api.kill(handle.container, "SIGKILL")
    ended = bench.ended(handle)
    assert (ended.code, ended.cause) == (137, None)
    assert ended.log == "waiting\n"


def test_a_container_that_was_removed_behind_our_back_is_missing(bench):
    handle = bench.engine.start(bench.spec(WAIT))
    bench.api.remove_container(handle.container, force=True)
    assert bench.ended(handle).cause == "engine-gone"


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
        "from harness.engine.interface import Handle\n"
        "from harness.image.spec import BuildSettings\n"
        "from harness.engine.choose import find_engine\n"
        "host, text, name, session, work = sys.argv[1:]\n"
        "settings = BuildSettings(root=Path(work))\n"
        "engine = find_engine('auto', settings, {'DOCKER_HOST': host})\n"
        "handle = Handle.parse(text, 'handle')\n"
        "ended = engine.poll(handle, Path(work))\n"
        "named, of_session = engine.find(name, Path(work)), engine.leftovers(session)\n"
        "print(json.dumps([ended, named == handle, of_session == (handle,)]))\n"
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
    assert done.stdout == "[null, true, true]\n", done.stderr


def test_a_container_that_was_created_and_never_started_is_no_trial(bench):

    spec = bench.spec(WAIT)
    bench.api.create_container_from_config(container_config(spec), name=spec.name)
    assert bench.engine.find(spec.name, bench.folder) is None
    assert bench.engine.leftovers(SESSION) == ()


def test_starting_removes_what_an_earlier_process_left_of_the_session(bench):
    first = bench.engine.start(bench.spec(WAIT))
    second = bench.engine.start(bench.spec(WAIT))
    assert bench.engine.leftovers(SESSION) == (second,)
    assert bench.engine.poll(first, bench.folder) == replace(GONE, log="")


def test_a_trial_of_an_image_that_is_gone_is_not_built(bench):
    spec = dataclasses.replace(bench.spec(WAIT), image_id="sha256:" + "0" * 64)
    with pytest.raises(NotBuilt, match="invoke build"):
        bench.engine.start(spec)
