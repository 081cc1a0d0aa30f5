"""Images are built by a command-line client with BuildKit, which no library can do."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from harness.engine.facts import Client, Connection
from harness.engine.interface import Say
from harness.errors import MachineError, NoEngine, NoSpace
from harness.files import command_output, run_streamed
from harness.image.spec import BuildSettings, BuildSpec, docker_build_argv
from harness.network import PROXY_VARIABLES, KnownCause, authority_file, failure_cause
from harness.settings import Settings

_FIRST_WITHOUT_BUILDKIT_INSIDE = 23
"""From this version on Docker's client builds with BuildKit only through the plugin buildx."""


def build_settings(settings: Settings, *, root: Path, environ: Mapping[str, str]) -> BuildSettings:
    """Return the user's settings of a build; authority and proxy come from `environ`, as in downloads."""
    files = {
        "pipconf": settings.pip_config or environ.get("PIP_CONFIG_FILE"),
        "aptconf": settings.apt_config,
        "ca": authority_file(environ),
    }
    return BuildSettings(
        root=root,
        base=settings.base,
        apex=settings.apex,
        secrets={name: Path(path) for name, path in files.items() if path and path != os.devnull},
        proxy={name: environ[name] for name in PROXY_VARIABLES if environ.get(name)},
        network=None if settings.build_network == "default" else settings.build_network,
    )


def find_client(connection: Connection) -> Client:
    """Return the client on PATH that can build for an engine; raises NoEngine with what to install.

    A Docker client needs buildx, or must be old enough to have BuildKit inside. Podman builds with its own.
    """
    path = shutil.which(connection.kind)
    if connection.kind == "podman":
        if path is None:
            problem = "Podman answers, but its command 'podman' is not on PATH"
            raise NoEngine(problem, remedy="install podman itself")
        return Client(path, False, {"CONTAINER_HOST": connection.host})
    environment = {"DOCKER_HOST": connection.host, "DOCKER_BUILDKIT": "1"}
    if path and command_output(path, "buildx", "version") is not None:
        builder = os.environ.get("BUILDX_BUILDER", "default")
        return Client(path, True, {**environment, "BUILDX_BUILDER": builder})
    major = re.search(r"version (\d+)\.", (path and command_output(path, "--version")) or "")
    if path and major and int(major[1]) < _FIRST_WITHOUT_BUILDKIT_INSIDE:
        return Client(path, False, environment)
    raise NoEngine(
        "no 'docker' command on PATH can build with BuildKit",
        remedy="install the plugin docker-buildx (package docker-buildx-plugin)",
    )


def build_image(build_spec: BuildSpec, client: Client, proxy: Mapping[str, str], log: Path, say: Say) -> None:
    """Build an image, its plain progress through `say` and into `log`.

    Raises NoSpace, NoNetwork or MachineError with the cause and where the whole log lies.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gpudyno-build-") as scratch:
        if proxy:
            # A secret, which lives as long as the build.
            path = Path(scratch) / "proxy"
            path.touch(mode=0o600)
            lines = (f"{name}={value}\n" for name, value in proxy.items())
            path.write_text("".join(lines), encoding="utf-8")
            build_spec = replace(build_spec, secrets={**build_spec.secrets, "proxy": path})
        argv = docker_build_argv(build_spec, client=client.path, buildx=client.buildx)
        with log.open("w", encoding="utf-8") as log_file:
            code = run_streamed(argv, log_file, {**os.environ, **client.environment}, say)
    if code != 0:
        raise _build_error(build_spec, log)


def _build_error(build_spec: BuildSpec, log: Path) -> MachineError:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    why = failure_cause(lines[-200:], telling_line(lines), "the registry")
    in_step = any(_COMMAND_FAILED.search(line) for line in lines[-3:])
    where = "a step of it failed, " if in_step else ""
    # What the engine itself fetches, the base, goes by its own settings.
    remedy = why.remedy if in_step or isinstance(why, KnownCause) else "name a base that is here with --base"
    if isinstance(why, NoSpace):
        remedy = "remove images that nobody needs any more"
    return type(why)(
        f"image '{build_spec.image}' cannot be built: {where}{why.problem}",
        remedy=f"{', or '.join(filter(None, (remedy, 'use --engine venv')))}; the whole log is {log}",
    )


_STEP_OUTPUT = re.compile(r"^#\d+ \d+\.\d+ (?P<text>.*\S)")
_COMMAND_FAILED = re.compile(
    r"did not complete successfully|executor failed running|while running runtime|exit status"
)


def telling_line(output_lines: Iterable[str]) -> str:
    """Return why a build failed: the last line of its failing step, else of the builder."""
    lines = [line.strip() for line in output_lines if line.strip(" -\t")]
    if not lines:
        return "it printed nothing"
    steps = [match["text"] for line in lines if (match := _STEP_OUTPUT.match(line))]
    if steps and _COMMAND_FAILED.search(lines[-1]):
        return steps[-1]
    if len(lines) > 1 and _COMMAND_FAILED.search(lines[-1]):
        return lines[-2]
    return lines[-1]
