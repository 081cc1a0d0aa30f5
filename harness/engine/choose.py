"""Which engine a line's trials run in: the one asked for, else the first that serves image and cards."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, cast
from urllib.parse import urlsplit

import docker
from docker.constants import DEFAULT_DOCKER_API_VERSION
from docker.context.config import get_current_context_name
from docker.context.context import Context

from harness.engine.api_errors import engine_errors
from harness.engine.container import DeviceRequest
from harness.engine.docker import DockerEngine
from harness.engine.facts import Connection
from harness.engine.image_build import build_settings
from harness.engine.interface import Engine
from harness.engine.local import HereEngine, image_identity
from harness.engine.venv import VenvEngine
from harness.engines import ENGINES, ContainerEngine
from harness.errors import MachineError, NoEngine, PlanError
from harness.image.images import Image
from harness.image.spec import BuildSettings, venv_refusal
from harness.settings import Settings

WHEELHOUSE = "wheelhouse"
EngineChoice = ContainerEngine | Literal["auto"]

PROBE_SECONDS = 5
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def choose_engine(
    root: Path,
    settings: Settings,
    image: Image,
    environ: Mapping[str, str],
    *,
    device: DeviceRequest | None = None,
    architecture: str | None = None,
) -> tuple[Engine, tuple[str, ...]]:
    """Return the engine, and what a person should hear where it is another than was hoped for.

    `device` and `architecture` are this machine's, which a container has to serve; without them it is not
    asked whether it does. Raises NoEngine for an engine asked for that does not answer.
    """
    choice = settings.engine
    if choice == "here" or (choice == "auto" and image_identity()):
        return HereEngine(root), ()
    if settings.python is not None and choice not in ("auto", "venv"):
        raise PlanError(
            f"--python names an interpreter, and the engine '{choice}' has its own", remedy="leave one out"
        )
    if choice == "venv" or settings.python is not None:
        return venv_engine(root, settings), (_no_container_note("it was asked for"),)
    building = build_settings(settings, root=root, environ=environ)
    alone = venv_refusal(image) and (architecture is None or image.platform_on(architecture))
    engine: DockerEngine | None = None
    reason: str | None = None
    try:
        engine = find_engine(cast(EngineChoice, choice), building, environ)
        reason = _image_refusal(engine, choice, image, device, architecture)
        if choice == "auto" and not alone:
            engine.check(image)
    except MachineError as error:
        if choice != "auto":
            raise
        reason = error.problem
    if engine is not None and (reason is None or choice != "auto" or alone):
        _require_wheels_in_clone(root, settings)
        return engine, ()
    return venv_engine(root, settings), (_no_container_note(str(reason)),)


def _image_refusal(
    engine: DockerEngine, choice: str, image: Image, device: DeviceRequest | None, architecture: str | None
) -> str | None:
    """Return why trials cannot run in this engine's containers, in one clause; null where they can.

    An engine asked for by name may emulate another processor.
    """
    if device is None or architecture is None:
        return None
    if choice == "auto" and not image.platform_on(architecture):
        return f"image '{image.name}' is for {image.platform}, and this machine is {architecture}"
    return engine.refusal(device)


def _require_wheels_in_clone(root: Path, settings: Settings) -> None:
    """Refuse wheels from elsewhere than the clone, which an image's build does not see."""
    if settings.wheelhouse and Path(settings.wheelhouse).resolve() != (root / WHEELHOUSE).resolve():
        raise PlanError(
            f"an image takes wheels from the clone's folder '{WHEELHOUSE}', not from '{settings.wheelhouse}'",
            remedy=f"copy them into '{WHEELHOUSE}', or use --engine venv",
        )


def venv_engine(root: Path, settings: Settings) -> VenvEngine:
    """Return the virtual environment's engine, with the wheels that are named or in the clone."""
    return VenvEngine(root, settings.python, wheel_folder(root, settings))


def wheel_folder(root: Path, settings: Settings) -> Path | None:
    """Return the folder of wheels that is named or in the clone; null where there is none."""
    folder = Path(settings.wheelhouse).absolute() if settings.wheelhouse else root / WHEELHOUSE
    return folder if folder.is_dir() else None


def _no_container_note(lost: str) -> str:
    return f"engine: a virtual environment, since {lost}; the system's libraries are not pinned"


def fall_back_to_venv(
    root: Path, settings: Settings, image: Image, engine: Engine, error: MachineError
) -> tuple[VenvEngine, str]:
    """Return the virtual environment in place of an engine that cannot build, and what a person should hear.

    Raises the error itself where the engine was asked for by name, or no virtual environment is possible.
    """
    if settings.engine != "auto" or not isinstance(engine, DockerEngine) or venv_refusal(image):
        raise error
    return venv_engine(root, settings), _no_container_note(error.problem)


def engine_places(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return where an engine may listen, as DOCKER_HOST names it; only there where a variable names one."""
    for name in ("DOCKER_HOST", "CONTAINER_HOST"):
        if environ.get(name):
            return (environ[name],)
    chosen: tuple[str, ...] = ()
    with suppress(Exception):
        # Docker Desktop, Colima and others listen where Docker's client has its context.
        context = Context.load_context(environ.get("DOCKER_CONTEXT") or get_current_context_name())
        chosen = (context.Host,) if context and context.Host else ()
    runtime = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    usual = (
        "/var/run/docker.sock",
        f"{runtime}/docker.sock",
        f"{runtime}/podman/podman.sock",
        "/run/podman/podman.sock",
    )
    return tuple(dict.fromkeys((*chosen, *(f"unix://{path}" for path in usual))))


def _ask_place(host: str) -> Connection | str | None:
    """Return the engine at a place, or one clause that says why there is none; null where nothing is."""
    problem = _place_problem(host)
    if problem is not None:
        return problem or None
    client = docker.APIClient(base_url=host, timeout=PROBE_SECONDS, version=DEFAULT_DOCKER_API_VERSION)
    try:
        with client, engine_errors(f"the engine at {host}", "tell its version"):
            version = client.version(api_version=False)
    except MachineError:
        return f"nothing answers at {host}"
    api_version = str(version.get("ApiVersion") or DEFAULT_DOCKER_API_VERSION)
    parts = version.get("Components") or ()
    podman = any("podman" in str(part.get("Name", "")).lower() for part in parts)
    own_version = str(version.get("Version") or "") or None
    return Connection("podman" if podman else "docker", host, own_version, api_version)


def _place_problem(host: str) -> str | None:
    """Return why a place is not worth asking: empty where there simply is none, null where it is."""
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


def find_engine(choice: EngineChoice, build: BuildSettings, environ: Mapping[str, str]) -> DockerEngine:
    """Return the first engine that answers, asked at every place in turn.

    Raises NoEngine where none answers: with what to do, where it was asked for by name.
    """
    refused = []
    for answer in map(_ask_place, engine_places(environ)):
        if isinstance(answer, Connection):
            if choice in ("auto", answer.kind):
                return DockerEngine(answer, build)
            refused.append(f"{ENGINES[answer.kind].title} answers instead")
        elif answer is not None:
            refused.append(answer)
    why = "; ".join(refused)
    if choice == "auto":
        raise NoEngine(why or "no container engine answers")
    remedy = (
        "correct or unset DOCKER_HOST" if environ.get("DOCKER_HOST") else "start it, or use --engine venv"
    )
    problem = f"{ENGINES[choice].title} is asked for and does not answer"
    raise NoEngine(f"{problem} ({why})" if why else problem, remedy=remedy)
