"""An office's proxy on the loopback: it opens every TLS connection and signs it anew with its own authority.

`python -m tests.helpers.office_proxy FOLDER HOST…` serves until it is ended: FOLDER gets `ca.pem` and `url`.

No host is behind it: what it gives lies in `files`, by host and path, and repositories in `folder`.
"""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import requests

HOSTS = ("mirror.example", "index.example", "forge.example")


@dataclass
class Office:
    """What the proxy gives, how it answers, and what it was asked."""

    folder: Path
    files: dict[str, bytes] = field(default_factory=dict)
    refuses: int | None = None
    """The status of its answer to every request for a connection."""
    relays: bool = False
    """It asks the hosts themselves for what it has not."""
    page: bool = False
    """It answers with a page of its own."""
    asked: list[str] = field(default_factory=list)
    url: str = ""

    @property
    def authority(self) -> Path:
        """The file that its users are given."""
        return self.folder / "ca.pem"


def _openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def _signed(folder: Path, hosts: Sequence[str]) -> ssl.SSLContext:
    """Return what a server of these hosts shows, signed by a new authority in `ca.pem`."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    _openssl(folder, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=office")
    _openssl(folder, "req", *key, "-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=hosts")
    (folder / "names").write_text(f"subjectAltName={','.join(f'DNS:{host}' for host in hosts)}")
    words = ("x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-extfile", "names")
    _openssl(folder, *words, "-out", "own.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "own.pem", folder / "own.key")
    return context


class _Handler(BaseHTTPRequestHandler):
    office: Office
    context: ssl.SSLContext
    host = ""

    def do_CONNECT(self) -> None:
        self.office.asked.append(self.path)
        if self.office.refuses is not None:
            self.send_error(self.office.refuses)
            return
        self.send_response(200)
        self.end_headers()
        self.host = self.path.partition(":")[0]
        with self.context.wrap_socket(self.connection, server_side=True) as inside, suppress(OSError):
            self.connection = inside
            self.rfile, self.wfile = inside.makefile("rb"), inside.makefile("wb", 0)  # type: ignore[assignment]
            self.handle_one_request()
            inside.unwrap()

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if ".git/" in path:
            self._git(path, query)
            return
        body = b"<html>blocked</html>" if self.office.page else self.office.files.get(self.host + path)
        if body is None and self.office.relays:
            self._relay()
            return
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        if self.office.page or path.endswith("/"):
            self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_HEAD = do_GET  # noqa: N815

    def _relay(self) -> None:
        told = {
            name: self.headers[name] for name in ("Accept", "User-Agent", "Range") if name in self.headers
        }
        with requests.request(
            self.command, f"https://{self.host}{self.path}", headers=told, stream=True, timeout=60
        ) as answer:
            self.send_response(answer.status_code)
            for name in ("Content-Type", "Content-Encoding", "Content-Length", "Location", "Content-Range"):
                if name in answer.headers:
                    self.send_header(name, answer.headers[name])
            self.send_header("Connection", "close")
            self.end_headers()
            for piece in answer.raw.stream(1 << 18, decode_content=False):
                self.wfile.write(piece)

    def _git(self, path: str, query: str) -> None:
        told = {
            "GIT_PROJECT_ROOT": str(self.office.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        done = subprocess.run(
            ["git", "http-backend"], env={**os.environ, **told}, input=sent, capture_output=True, check=True
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        self.wfile.write(b"HTTP/1.0 200 OK\r\n" + head + b"\r\n\r\n" + body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def office(folder: Path, *hosts: str, relays: bool = False) -> Iterator[Office]:
    """The proxy, as long as it is needed."""
    folder.mkdir()
    made = Office(folder, relays=relays)
    context = _signed(folder, hosts or HOSTS)
    handler = type("Handler", (_Handler,), {"office": made, "context": context})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    with office(Path(sys.argv[1]), *sys.argv[2:], relays=True) as serving:
        (serving.folder / "url").write_text(serving.url)
        signal.pause()
