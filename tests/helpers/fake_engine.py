"""An engine's API on a socket, as far as finding and asking it needs: canned answers, or silence."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from harness.engine.facts import EngineFacts

DOCKER: dict[str, Any] = {
    "version": {
        "Version": "28.3.0",
        "ApiVersion": "1.41",
        "MinAPIVersion": "1.24",
        "Components": [{"Name": "Engine", "Version": "28.3.0"}, {"Name": "containerd", "Version": "1.7"}],
    },
    "info": {"Runtimes": {"runc": {}, "nvidia": {}}, "SecurityOptions": ["name=seccomp,profile=builtin"]},
}

PODMAN: dict[str, Any] = {
    "version": {
        "Version": "4.9.3",
        "ApiVersion": "1.41",
        "MinAPIVersion": "1.24",
        "Components": [{"Name": "Podman Engine", "Version": "4.9.3"}, {"Name": "Conmon", "Version": "2"}],
    },
    "info": {"Runtimes": {"crun": {}}, "SecurityOptions": ["name=seccomp", "name=rootless"]},
}


FACTS = EngineFacts(
    name="docker", version="28.3.0", runtimes=("nvidia",), cdi=True, cdi_devices=(),
    rootless=False, userns_remap=False, selinux=False, data_root_free_bytes=None,
)  # fmt: skip
"""What a Docker Engine with NVIDIA's runtime tells of itself."""


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    answers: dict[str, Any]
    asked: list[tuple[str, str, Any]]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def address_string(self) -> str:
        return "socket"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0].rstrip("/")
        self.server.asked.append((self.command, self.path, json.loads(body) if body else None))
        name = next((name for name in self.server.answers if path.endswith(f"/{name}")), None)
        code, answer = 404, {"message": "no such thing"}
        if name is not None:
            found = self.server.answers[name]
            found = found() if callable(found) else found
            code, answer = found if isinstance(found, tuple) else (200, found)
        raw = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815


@contextmanager
def answering(path: Path, answers: dict[str, Any]) -> Iterator[list[tuple[str, str, Any]]]:
    """An engine at a socket; yields what it is asked: method, path, body. An answer may be a function's."""
    with _Server(str(path), _Handler) as server:
        server.answers, server.asked = answers, []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.asked
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def silent(path: Path) -> Iterator[None]:
    """A socket that takes every connection and never says a word."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(16)
        yield
