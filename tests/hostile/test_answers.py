"""What a cluster's commands and an engine's daemon answer: each may lie, or die."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engine.docker import DockerEngine
from harness.engine.facts import Connection
from harness.engine.interface import Handle
from harness.engine.slurm.scheduler import Slurm
from harness.image.spec import BuildSettings
from tests.helpers.fake_engine import DOCKER
from tests.hostile.judging import LONG, attacked, drawn
from tests.hostile.strategies import damaged, json_files, texts

pytestmark = LONG

ANSWERS = {
    "squeue": b"".join(
        word.ljust(width)
        for word, width in (
            *((b"12", 16), (b"3", 16), (b"RUNNING", 20), (b"1", 12), (b"gpudyno-20261122-0a1b2c-1", 65)),
            *((b"n[1-2]", 40), (b"None", 5)),
        )
    ),
    "sbatch": b"12;cluster\n",
    "scancel": b"",
}
ENDS = ("exit 0", "exit 0", "exit 0", "exit 1", "kill -KILL $$", "kill -SEGV $$")
STDERR = ("", "error: invalid partition", "slurm_load_jobs error: Unable to contact slurm controller")


@drawn(300)
@given(st.data())
def test_a_scheduler_that_answers_anything_or_dies_is_said_in_one_sentence(data):
    with attacked() as root:
        for name, answer in ANSWERS.items():
            anything = st.one_of(damaged(answer), texts.map(str.encode))
            (root / f"{name}.txt").write_bytes(data.draw(anything))
            said, end = data.draw(st.sampled_from(STDERR)), data.draw(st.sampled_from(ENDS))
            (root / name).write_text(f"#!/bin/sh\ncat '{root}/{name}.txt'\necho '{said}' >&2\n{end}\n")
            (root / name).chmod(0o755)
        slurm = Slurm({"PATH": f"{root}:/bin:/usr/bin"})
        asked: tuple[Callable[[], object], ...] = (
            slurm.states,
            lambda: slurm.send(root / "squeue.txt"),
            lambda: slurm.cancel((12,)),
            lambda: slurm.reported_exit((root / "squeue.txt").read_text(errors="replace")),
        )
        data.draw(st.sampled_from(asked))()


@contextmanager
def served(listening: socket.socket, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, suppress(OSError):
                    connection.settimeout(2)
                    connection.recv(65536)
                    answer(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(3)


SAYS = json.dumps(
    {
        **DOCKER["info"],
        "Id": "a" * 64,
        "State": {"Status": "running", "Running": True, "ExitCode": 0, "OOMKilled": False, "Pid": 12},
        "DockerRootDir": "/var/lib/docker",
        "CDISpecDirs": ["/etc/cdi"],
        "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=all"}],
    }
).encode()
REFUSALS = texts.map(lambda text: json.dumps({"message": text}).encode())


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    status = draw(st.sampled_from(("200 OK", "200 OK", "404 Not Found", "409 Conflict", "500 No")))
    body = draw(st.one_of(json_files(SAYS), damaged(SAYS)) if status == "200 OK" else REFUSALS)
    head = f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@drawn(60)
@given(answers=st.lists(responses(), min_size=1, max_size=8), lives=st.integers(0, 4), data=st.data())
def test_a_daemon_that_answers_anything_or_dies_is_said_in_one_sentence(answers, lives, data):
    left = iter(answers)

    def answer(connection: socket.socket) -> None:
        nonlocal lives
        content = next(left, answers[0])
        connection.sendall(content if lives > 0 else content[: len(content) // 2])
        lives -= 1
        if lives < 0:
            listening.close()

    with attacked() as root:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(root / "e.sock"))
        listening.listen(8)
        connection = Connection("docker", f"unix://{root / 'e.sock'}", "28.3.0", "1.41")
        engine, handle = (
            DockerEngine(connection, BuildSettings(root=root)),
            Handle(engine="docker", container="a" * 64),
        )
        asked: tuple[Callable[[], object], ...] = (
            lambda: engine.facts,
            lambda: engine.poll(handle, root),
            lambda: engine.pid(handle),
            lambda: engine.find("gpudyno-x", root),
            lambda: engine.leftovers("20261122-0a1b2c"),
            lambda: engine.stop(handle, root),
            lambda: engine.forget(handle, root),
        )
        with served(listening, answer):
            for ask in data.draw(st.lists(st.sampled_from(asked), min_size=1, max_size=3)):
                ask()
