"""What a cluster's commands and an engine's daemon answer: each may lie, or die."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from harness.engine.base import Handle
from harness.engine.connection import Connection
from harness.engine.docker import DockerEngine
from harness.engine.slurm.scheduler import Slurm
from harness.image.spec import BuildSettings
from tests.campaign.attack import Attack
from tests.campaign.mutation import STRINGS, any_text, changed_bytes, changed_json
from tests.helpers.fake_engine import DOCKER

ANSWERS: Mapping[str, bytes] = {
    "squeue": (
        b"12              3               RUNNING             1           gpudyno-20261122-0a1b2c-1        "
        b"                               n[1-2]                                  None\n"
    ),
    "sbatch": b"12;cluster\n",
    "sacct": b"12_3|CANCELLED by 1000\n13|COMPLETED\n",
    "scancel": b"",
}


def _scheduler(rng: Random, root: Path) -> None:
    """Programs in place of SLURM's, whose answers are changed or those of nothing that is known."""
    for name, answer in ANSWERS.items():
        text = changed_bytes(answer, rng) if rng.random() < 0.7 else any_text(rng).encode()
        (root / f"{name}.txt").write_bytes(text)
        error = rng.choice(STDERR)
        (root / name).write_text(
            f"#!/bin/sh\ncat '{root}/{name}.txt'\necho '{error}' >&2\n{rng.choice(ENDS)}\n"
        )
        (root / name).chmod(0o755)
    slurm = Slurm({"PATH": f"{root}:/bin:/usr/bin"})
    asked: tuple[Callable[[], object], ...] = (
        slurm.states,
        lambda: slurm.send(root / "squeue.txt"),
        lambda: slurm.accounted((12, 13)),
        lambda: slurm.cancel((12,)),
        lambda: slurm.told((root / "squeue.txt").read_text(errors="replace")),
    )
    rng.choice(asked)()


ENDS = (*("exit 0",) * 3, "exit 1", "kill -KILL $$", "kill -TERM $$", "kill -SEGV $$")
"""The programs may be killed in the middle of an answer, too."""
STDERR = ("", "error: invalid partition", "slurm_load_jobs error: Unable to contact slurm controller")


@contextmanager
def _server(listening: socket.socket, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
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


def _engine_answer(rng: Random) -> bytes:
    told: dict[str, object] = {
        **DOCKER["info"],
        "Id": "a" * 64,
        "State": {"Status": "running", "Running": True, "ExitCode": 0, "OOMKilled": False, "Pid": 12},
        "DockerRootDir": "/var/lib/docker",
        "CDISpecDirs": ["/etc/cdi"],
        "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=all"}],
    }
    body = json.dumps(told).encode()
    if rng.random() < 0.7:
        body = changed_json(body, rng) if rng.random() < 0.6 else changed_bytes(body, rng)
    status = rng.choice(("200 OK", "200 OK", "200 OK", "404 Not Found", "409 Conflict", "500 No"))
    if not status.startswith("200"):
        body = json.dumps({"message": rng.choice((*STRINGS, "no space left on device"))}).encode()
    lines = (f"HTTP/1.1 {status}", "Connection: close", "Content-Type: application/json")
    return "\r\n".join((*lines, f"Content-Length: {len(body)}", "", "")).encode() + body


def _daemon(rng: Random, root: Path) -> None:
    """An engine's daemon dies at its first or a later answer, or answers what no engine does."""
    place = root / "e.sock"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(place))
    listening.listen(8)
    lives = rng.randrange(4)

    def answer(connection: socket.socket) -> None:
        nonlocal lives
        content = _engine_answer(rng)
        connection.sendall(content if lives > 0 else content[: rng.randrange(len(content))])
        lives -= 1
        if lives < 0:
            listening.close()

    engine = DockerEngine(Connection("docker", f"unix://{place}", "28.3.0", "1.41"), BuildSettings(root=root))
    handle = Handle(engine="docker", container="a" * 64, log="log.txt")
    asked: tuple[Callable[[], object], ...] = (
        lambda: engine.facts,
        lambda: engine.poll(handle, root),
        lambda: engine.pid(handle),
        lambda: engine.find("gpudyno-x", root),
        lambda: engine.leftovers("20261122-0a1b2c"),
        lambda: engine.stop(handle, root),
        lambda: engine.forget(handle, root),
    )
    with _server(listening, answer):
        for ask in rng.sample(asked, 3):
            ask()


ATTACKS: Mapping[str, Attack] = {"scheduler": _scheduler, "daemon": _daemon}
