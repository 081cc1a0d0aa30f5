"""A mirror that answers, and a cache of the test's own."""

from __future__ import annotations

import threading
from http.server import ThreadingHTTPServer

import pytest

from tests.helpers.mirror import Handler, Mirror


@pytest.fixture
def mirror():
    behaviour = Mirror()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"mirror": behaviour}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    behaviour.url = f"http://127.0.0.1:{server.server_port}"
    yield behaviour
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUDYNO_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
