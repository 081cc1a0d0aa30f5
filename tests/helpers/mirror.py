"""A mirror on the loopback that can be told to misbehave, and a toy data set that lies on it."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from harness.data.datasets import Dataset, Download, Member


@dataclass
class Mirror:
    """A file server whose paths can be told to misbehave; it counts what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)
    cut_at: dict[str, list[int]] = field(default_factory=dict)
    """Bytes after which each next answer is cut off."""
    bytes_per_second: float | None = None
    asked: list[str] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    mirror: Mirror
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        mirror, path = self.mirror, self.path.split("?")[0]
        mirror.asked.append(path)
        mirror.agents.add(self.headers.get("User-Agent", ""))
        if path not in mirror.files or path in mirror.status:
            self.send_error(mirror.status.get(path, 404))
            return
        body = mirror.files[path]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        cuts = mirror.cut_at.get(path, [])
        self._send(body[: cuts.pop(0)] if cuts else body)
        self.close_connection = True

    def _send(self, body):
        step = 16 * 1024
        for at in range(0, len(body), step):
            try:
                self.wfile.write(body[at : at + step])
            except OSError:
                return
            if self.mirror.bytes_per_second:
                time.sleep(step / self.mirror.bytes_per_second)

    def log_message(self, *_):
        pass


def sha256(content):
    return hashlib.sha256(content).hexdigest()


CONTENT = {"toy/train": os.urandom(300_000), "toy/test": b"test" * 1000}
MEMBERS = tuple(Member(path, len(content), sha256(content)) for path, content in CONTENT.items())


def tarball(content=CONTENT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as box:
        for path, held in {**content, "toy/readme.html": b"not wanted"}.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(held)
            box.addfile(entry, io.BytesIO(held))
    return out.getvalue()


TARBALL = tarball()


def toy(*urls, body=TARBALL, members=MEMBERS):
    item = Download("toy.tar.gz", "tar", len(body), sha256(body), urls, {path: path for path in CONTENT})
    return Dataset("toy", members, (item,))


def files_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {".lock"}


def put(folder, content=CONTENT):
    for path, held in content.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(held)
