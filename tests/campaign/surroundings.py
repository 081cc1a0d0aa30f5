"""What others do when asked: mirrors, an engine's daemon: each may stall, lie or die."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from harness.data.catalog import Download
from harness.data.download import Deadline, download
from harness.engine.base import Handle
from harness.engine.connection import Connection
from harness.engine.docker import DockerEngine
from harness.image.spec import BuildSettings
from tests.campaign.attack import Attack, Broken
from tests.campaign.mutation import STRINGS, changed_bytes, changed_json
from tests.helpers.fake_engine import DOCKER

CONTENT = bytes(range(256)) * 64
DEADLINE_SECONDS = 0.6


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


def _head(status: str, *lines: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", "Connection: close", *lines, "", "")).encode()


def _mirror(rng: Random, address: str) -> Callable[[socket.socket], None]:
    """Stalls, serves half, serves something else, redirects, or promises what it has not."""
    whole = _head("200 OK", f"Content-Length: {len(CONTENT)}") + CONTENT
    cut = rng.randrange(len(whole))
    lies = (
        whole,
        whole[:cut],
        changed_bytes(whole, rng),
        _head("200 OK", f"Content-Length: {rng.choice(('abc', '-1', '9' * 30, '0'))}") + CONTENT,
        _head("200 OK", "Content-Type: text/html") + b"<html>please log in</html>",
        _head("302 Found", f"Location: {rng.choice((address, 'http://[::bad/', '', 'ftp://x/y', '//'))}"),
        _head(f"{rng.choice((204, 206, 403, 404, 416, 429, 500, 503))} No", "Content-Length: 0"),
        _head("206 Partial Content", "Content-Range: bytes 5-9/3", "Content-Length: 4") + b"half",
        _head("200 OK", "Transfer-Encoding: chunked") + rng.choice((b"zz\r\n", b"5\r\nab", b"ffffffff\r\nx")),
    )
    order = [rng.choice(lies) for _ in range(4)]
    stalls = rng.random() < 0.3

    def answer(connection: socket.socket) -> None:
        content = order.pop() if order else b""
        if stalls:
            connection.sendall(content[: len(content) // 2])
            time.sleep(DEADLINE_SECONDS * 1.5)
        else:
            connection.sendall(content)

    return answer


def _network(rng: Random, root: Path) -> None:
    """A download ends in time, and what it keeps under a file's name is that file."""
    listening = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/a.bin"
    os.environ["no_proxy"] = "127.0.0.1"
    size = rng.choice((None, len(CONTENT), len(CONTENT), 0))
    sha256 = hashlib.sha256(CONTENT if size != 0 else b"").hexdigest()
    item = Download("a.bin", "plain", size, sha256, (address,) * rng.choice((1, 2)), {})
    if rng.random() < 0.3:
        (root / "a.bin.part").write_bytes(changed_bytes(CONTENT, rng)[: rng.randrange(len(CONTENT))])
    with _server(listening, _mirror(rng, address)):
        try:
            download(item, root, deadline=Deadline(DEADLINE_SECONDS))
        finally:
            final = root / "a.bin"
            if final.exists() and hashlib.sha256(final.read_bytes()).hexdigest() != sha256:
                raise Broken("silent wrong figures", "a download keeps what is not the file")


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
    return _head(status, "Content-Type: application/json", f"Content-Length: {len(body)}") + body


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
        engine.facts,
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


FAULTS: Mapping[str, Attack] = {"network": _network, "killed-daemon": _daemon}
