"""Mirrors that stall, lie or send one elsewhere: each costs a bounded time and ends in one sentence."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.data.datasets import Download
from harness.data.fetch import Deadline, download_file
from harness.errors import DataError, NoNetwork

HASH = "0" * 64


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server on the loopback that answers every connection alike, and its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    try:
                        connection.recv(65536)
                        answer(connection)
                    except OSError:
                        continue

        threading.Thread(target=serve, daemon=True).start()
        yield address
        server.shutdown(socket.SHUT_RDWR)


def head(*lines: str) -> bytes:
    return "\r\n".join((*lines, "", "")).encode()


def drops(connection: socket.socket) -> None:
    """A byte now and then, of a megabyte that was promised."""
    connection.sendall(head("HTTP/1.1 200 OK", "Content-Length: 1000000"))
    for _ in range(200):
        connection.sendall(b"x")
        time.sleep(0.05)


def fetch(url: str, folder: Path, *, size: int | None = 1_000_000, seconds: float | None = 5.0) -> float:
    """Seconds until the download was given up."""
    item = Download("x.bin", "file", size, HASH, (url,), {})
    begun = time.monotonic()
    with pytest.raises((NoNetwork, DataError)) as caught:
        download_file(item, folder, deadline=Deadline(seconds))
    assert "x.bin" in str(caught.value) or "127.0.0.1" in str(caught.value)
    return time.monotonic() - begun


def test_a_mirror_that_sends_drop_by_drop_is_left_at_the_deadline(tmp_path):
    with answering(drops) as url:
        assert fetch(url, tmp_path, seconds=1.0) < 3


def test_redirects_that_are_slow_or_never_end_are_left(tmp_path):
    def leads_on(connection: socket.socket) -> None:
        time.sleep(pause)
        connection.sendall(
            head("HTTP/1.1 302 Found", "Location: /next", "Content-Length: 0", "Connection: close")
        )

    with answering(leads_on) as url:
        pause = 0.4
        assert fetch(url, tmp_path, seconds=1.0) < 3
        pause = 0.01
        assert fetch(url, tmp_path, seconds=30.0) < 6


@pytest.mark.parametrize(
    "lines",
    [
        ("HTTP/1.1 302 Found", "Location: http://[::bad/", "Content-Length: 0"),
        ("HTTP/1.1 302 Found", "Location: file:///etc/passwd", "Content-Length: 0"),
        ("HTTP/1.1 200 OK", "Content-Length: abc"),
        ("HTTP/1.1 200 OK", "Content-Length: -5"),
        ("HTTP/1.1 200 OK", "Content-Length: 5, 6"),
        ("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "", "zz"),
        ("HTTP/1.1 999 " + "x" * 70_000,),
        ("no HTTP at all",),
        ("HTTP/1.1 200 OK", "Content-Encoding: gzip", "Content-Length: 3", "", "abc"),
        ("HTTP/1.1 206 Partial Content", "Content-Range: bytes 9-3/1", "Content-Length: 0"),
        (),
    ],
    ids=lambda lines: (lines or ("nothing",))[-1][:30],
)
@pytest.mark.parametrize("size", [1_000_000, 0, None])
def test_an_answer_that_is_none_is_a_sentence(tmp_path, lines, size):
    with answering(lambda connection: connection.sendall(head(*lines) if lines else b"")) as url:
        assert fetch(url, tmp_path, size=size) < 10
