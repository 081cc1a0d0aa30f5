"""Which container engines answer on this machine, and how to reach them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import docker
from docker.constants import DEFAULT_DOCKER_API_VERSION

from harness.engine.connection import Connection, answered
from harness.engine.docker import DockerEngine
from harness.engines import ENGINES, ContainerEngine
from harness.errors import MachineError, NoEngine
from harness.image.spec import BuildSettings

EngineChoice = ContainerEngine | Literal["auto"]

PROBE_SECONDS = 5
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Search:
    """The engines that answer, best first, and why each other place was passed over."""

    connections: tuple[Connection, ...]
    refused: tuple[str, ...]


def places(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Where an engine may listen, as DOCKER_HOST would name it. Where a variable names one, only there."""
    for name in ("DOCKER_HOST", "CONTAINER_HOST"):
        if environ.get(name):
            return (environ[name],)
    runtime = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    usual = (
        "/var/run/docker.sock",
        f"{runtime}/docker.sock",
        f"{runtime}/podman/podman.sock",
        "/run/podman/podman.sock",
    )
    return tuple(dict.fromkeys(f"unix://{path}" for path in usual))


def search(environ: Mapping[str, str]) -> Search:
    """Asks at every place in turn."""
    answers = [_ask_at(host) for host in places(environ)]
    connections = tuple(answer for answer in answers if isinstance(answer, Connection))
    return Search(connections, tuple(answer for answer in answers if isinstance(answer, str)))


def _ask_at(host: str) -> Connection | str | None:
    """The engine at a place, or one clause that says why there is none; null where nothing is."""
    problem = _unusable(host)
    if problem is not None:
        return problem or None
    client = docker.APIClient(base_url=host, timeout=PROBE_SECONDS, version=DEFAULT_DOCKER_API_VERSION)
    try:
        with client, answered(f"the engine at {host}", "tell its version"):
            version = client.version(api_version=False)
    except MachineError:
        return f"nothing answers at {host}"
    api_version = str(version.get("ApiVersion") or DEFAULT_DOCKER_API_VERSION)
    parts = version.get("Components") or ()
    podman = any("podman" in str(part.get("Name", "")).lower() for part in parts)
    own_version = str(version.get("Version") or "") or None
    return Connection("podman" if podman else "docker", host, own_version, api_version)


def _unusable(host: str) -> str | None:
    """Why a place is not worth asking: empty where there simply is none, null where it is."""
    scheme, _, rest = host.partition("://")
    if scheme in ("tcp", "http", "https") and urlsplit(host).hostname in _LOOPBACK:
        return None
    if scheme != "unix":
        return f"{host} is another machine, and containers there do not see the folders of this one"
    path = Path("/" + rest.lstrip("/"))
    closed = f"{path} is not open to this user"
    try:
        if not stat.S_ISSOCK(path.stat().st_mode):
            return f"{path} is not a socket"
    except OSError as error:
        return closed if isinstance(error, PermissionError) else ""
    return None if os.access(path, os.R_OK | os.W_OK) else closed


def find(
    choice: EngineChoice,
    build: BuildSettings,
    *,
    passed: Mapping[str, str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> DockerEngine:
    """The first engine that answers.

    `passed` are the user's variables that trials see; their environment's record names them.
    Raises NoEngine where none answers: with what to do, where it was asked for by name.
    """
    answers = search(environ)
    for connection in answers.connections:
        if choice in ("auto", connection.kind):
            return DockerEngine(connection, build, passed)
    if choice == "auto":
        raise NoEngine("; ".join(answers.refused) or "no container engine answers")
    raise _absent(choice, answers, environ)


def _absent(kind: ContainerEngine, answers: Search, environ: Mapping[str, str]) -> NoEngine:
    title = ENGINES[kind].title
    others = [ENGINES[connection.kind].title for connection in answers.connections]
    why = "; ".join([*answers.refused, *(f"{name} answers instead" for name in others)])
    remedy = (
        "correct or unset DOCKER_HOST" if environ.get("DOCKER_HOST") else "start it, or use --engine venv"
    )
    return NoEngine(f"{title} is asked for and does not answer" + (f" ({why})" if why else ""), remedy=remedy)
