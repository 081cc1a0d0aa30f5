"""What builds an image: the client that can, the line of a log that says why not, and what stays secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.engine.facts import Connection
from harness.engine.image_build import build_settings, find_client, telling_line
from harness.errors import NoEngine
from harness.settings import Settings


def client_at(folder: Path, *, buildx: bool, version: str) -> str:
    folder.mkdir()
    path = folder / "docker"
    answer = "exit 0" if buildx else "exit 1"
    path.write_text(f'#!/bin/sh\n[ "$1" = buildx ] && {answer}\necho "Docker version {version}, build 1"\n')
    path.chmod(0o755)
    return str(path)


def test_a_client_builds_by_buildx_or_by_what_an_old_one_has_inside(tmp_path, monkeypatch):
    connection = Connection("docker", "unix:///s", "20.10.24", "1.41")
    new = client_at(tmp_path / "new", buildx=False, version="28.2.2")
    old = client_at(tmp_path / "old", buildx=False, version="20.10.24+dfsg1")
    able = client_at(tmp_path / "able", buildx=True, version="28.2.2")

    def chosen(path: str):
        monkeypatch.setenv("PATH", str(Path(path).parent))
        return find_client(connection)

    for path in (new, str(tmp_path / "nothing")):
        with pytest.raises(NoEngine, match="no 'docker' command on PATH can build with BuildKit"):
            chosen(path)
    assert (chosen(able).path, chosen(able).buildx) == (able, True)
    assert (chosen(old).path, chosen(old).buildx) == (old, False)
    assert chosen(old).environment == {"DOCKER_HOST": "unix:///s", "DOCKER_BUILDKIT": "1"}


BUILDKIT_STEP = """\
#7 [stage-0 2/3] RUN pip install torch
#7 0.312 Looking in links: /wheels
#7 1.900 ERROR: No matching distribution found for torch==2.13.0
#7 ERROR: process "/bin/sh -c pip install torch" did not complete successfully: exit code: 1
------
 > [stage-0 2/3] RUN pip install torch:
#7 1.900 ERROR: No matching distribution found for torch==2.13.0
------
ERROR: failed to solve: process "/bin/sh -c pip install torch" did not complete successfully: exit code: 1
"""
PODMAN_STEP = """\
STEP 2/3: RUN pip install torch
ERROR: No matching distribution found for torch==2.13.0
Error: building at STEP "RUN pip install torch": while running runtime: exit status 1
"""
NO_BASE = """\
#2 [internal] load metadata for docker.io/library/debian:bookworm-slim
#2 ERROR: failed to do request: dial tcp: lookup registry: no such host
------
ERROR: failed to solve: debian:bookworm-slim: lookup registry: no such host
"""


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (BUILDKIT_STEP, "ERROR: No matching distribution found for torch==2.13.0"),
        (PODMAN_STEP, "ERROR: No matching distribution found for torch==2.13.0"),
        (NO_BASE, "ERROR: failed to solve: debian:bookworm-slim: lookup registry: no such host"),
        ("", "it printed nothing"),
    ],
    ids=["buildkit", "podman", "no base", "nothing"],
)
def test_a_failed_build_is_told_by_the_line_that_says_why(log, line):
    assert telling_line(log.splitlines()) == line


def test_a_builds_secrets_come_from_the_settings_and_then_from_the_users_own_variables(tmp_path):
    environ = {
        "PIP_CONFIG_FILE": "/etc/pip.conf",
        "SSL_CERT_FILE": "/etc/ca.pem",
        "HTTPS_PROXY": "http://p:1",
    }
    asked = Settings(pip_config="/home/me/pip.conf", build_network="host")
    made = build_settings(asked, root=tmp_path, environ=environ)
    assert made.secrets == {"pipconf": Path("/home/me/pip.conf"), "ca": Path("/etc/ca.pem")}
    assert (made.proxy, made.network) == ({"HTTPS_PROXY": "http://p:1"}, "host")
