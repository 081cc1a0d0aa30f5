"""From an image's pins to the commands that make it: pure apart from reading docker/."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from harness.errors import NoEngine, UserError
from harness.image.images import Image
from harness.image.lock import lock_sha256
from harness.record import DeviceKind, canonical_json, short_hash

STEPS = "steps.sh"
"""The shell steps that all Dockerfiles share, below docker/."""

ApexPart = Literal["none", "python"]
"""How much of Apex a GPU image gets: nothing, or its Python part."""

ENGINE_NEEDED = "install Docker or Podman, or name an interpreter with --python"

CHANNEL_PATIENCE = ("--retries", "1", "--timeout", "10")
"""A channel that does not answer is given up quickly: the next source is as good."""


@dataclass(frozen=True, slots=True)
class BuildSpec:
    """One image to build. Paths are absolute; `tag` is a hash of all that decides what is built."""

    image: str
    device: DeviceKind
    tag: str
    dockerfile: Path
    context: Path
    platform: str
    base: str
    """The base image as the Dockerfile gets it: with the digest unless it is substituted."""
    base_digest: str | None
    base_digest_verified: bool
    base_substituted: bool
    lock_sha256: str
    addresses: dict[str, str]
    """Addresses of indexes and archives: they are build arguments too, and no part of a record."""
    build_arguments: dict[str, str]
    """What was chosen; a record keeps these."""
    secrets: dict[str, Path] = field(default_factory=dict)
    network: str | None = None

    def identity(self) -> dict[str, Any]:
        """Return /etc/gpudyno/environment.json: what the image knows of itself, as records name it."""
        names = ("image", "device", "tag", "base_digest", "base_digest_verified", "base_substituted")
        own = {name: getattr(self, name) for name in (*names, "lock_sha256", "build_arguments")}
        return {**own, "base": self.base.partition("@")[0]}


@dataclass(frozen=True, slots=True)
class VenvStep:
    """One step on the way to a virtual environment: the first alternative that succeeds is enough."""

    label: str
    alternatives: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How images are built in the clone at `root`; `proxy` are variables."""

    root: Path
    base: str | None = None
    """The base image to use in place of the pinned one."""
    apex: ApexPart = "python"
    secrets: Mapping[str, Path] = field(default_factory=dict)
    """Files that a build reads by these names, without leaving a trace in any layer."""
    proxy: Mapping[str, str] = field(default_factory=dict)
    network: str | None = None

    def spec(self, image: Image) -> BuildSpec:
        """Return what to build of an image.

        Wheels are taken from <root>/wheelhouse where that folder is there. Raises UserError for a secret,
        PlanError for a file of the image that is missing.
        """
        for name, path in self.secrets.items():
            if not path.is_file():
                raise UserError(f"build secret '{name}': '{path}' is not a file", remedy="name the right one")
        root, base = self.root.resolve(), self.base
        on = image.platform_on(platform.machine()) or image.platform
        digest = None if base else image.base_digest
        reference = base or f"{image.base}@{image.base_digest}"
        lock = lock_sha256(root, image.lock)
        addresses = _addresses(image)
        arguments = _arguments(image, self.apex)
        decides = {
            "dockerfile": lock_sha256(root, image.dockerfile),
            "steps": lock_sha256(root, STEPS),
            "lock": lock,
            "base": reference,
            "addresses": addresses,
            "arguments": arguments,
            "architectures": image.architectures,
            "platform": on,
        }
        return BuildSpec(
            image=image.name,
            device=image.device,
            tag=f"gpudyno-{image.name}:{short_hash(decides)}",
            dockerfile=root / "docker" / image.dockerfile,
            context=root,
            platform=on,
            base=reference,
            base_digest=digest,
            base_digest_verified=digest is not None and image.base_digest_verified,
            base_substituted=base is not None,
            lock_sha256=lock,
            addresses=addresses,
            build_arguments=arguments,
            secrets={name: path.resolve() for name, path in sorted(self.secrets.items())},
            network=self.network,
        )


def docker_build_argv(spec: BuildSpec, *, client: str = "docker", buildx: bool) -> tuple[str, ...]:
    """Return the command that builds an image.

    Without buildx a Docker client needs DOCKER_BUILDKIT=1 in its environment. Podman takes the same options.
    """
    podman = Path(client).name.startswith("podman")
    command = [client, "buildx", "build", "--load", "--provenance=false"] if buildx else [client, "build"]
    command += ["--format", "docker"] if podman else ["--progress", "plain"]
    command += ["--platform", spec.platform, "--file", str(spec.dockerfile), "--tag", spec.tag]
    command += ["--label", f"dev.gpudyno.image={spec.image}"]
    command += ["--network", spec.network] if spec.network else []
    arguments = {
        "BASE": spec.base,
        "ENVIRONMENT": canonical_json(spec.identity()),
        **spec.addresses,
        **spec.build_arguments,
    }
    for name, value in arguments.items():
        command += ["--build-arg", f"{name}={value}"]
    for name, path in spec.secrets.items():
        command += ["--secret", f"id={name},src={path}"]
    return (*command, str(spec.context))


def venv_name(image: Image, *, root: Path) -> str:
    """Return a folder name that changes with the lock."""
    return f"{image.name}-{lock_sha256(root, image.lock)[:12]}"


def venv_refusal(image: Image) -> str:
    """Return why no virtual environment can replace an image, in one clause; empty where one can."""
    if image.from_base:
        return f"image '{image.name}' takes {' and '.join(image.from_base)} from its base, which no venv has"
    if image.program != "python":
        return f"image '{image.name}' starts trials by '{image.program}', which no virtual environment has"
    return ""


def venv_steps(
    image: Image, *, root: Path, venv: Path, interpreter: str, wheelhouse: Path | None = None
) -> tuple[VenvStep, ...]:
    """Return the commands that make a virtual environment of an image's lock with `interpreter`.

    Sources in their order: the wheelhouse if it has everything, the channel, then the index that pip is
    configured for. Raises NoEngine for an image whose base brings packages of its own.
    """
    if problem := venv_refusal(image):
        raise NoEngine(problem, remedy=ENGINE_NEEDED)
    python = str(venv / "bin" / "python")
    options = ("--no-deps", "--require-hashes", "--no-build-isolation", "--no-input")
    made: list[tuple[str, ...]] = [(interpreter, "-m", "venv", "--clear", str(venv))]
    if uv := shutil.which("uv"):
        # Where a distribution keeps ensurepip apart from its Python.
        made.append((uv, "venv", "--seed", "--allow-existing", "--python", interpreter, str(venv)))
    steps = [VenvStep("virtual environment", tuple(made))]
    command: tuple[str, ...] = (python, "-m", "pip", "install", *options)
    docker = root / "docker"
    if image.channel:
        channel = ("--index-url", image.channel.address, *CHANNEL_PATIENCE)
        names = " and ".join(package.name for package in image.channel.packages)
        steps.append(
            VenvStep(names, _install_commands(command, docker / image.channel.lock, wheelhouse, channel))
        )
    if image.sources:
        names = " and ".join(
            image.sources.tools or (f"what builds {name}" for name in image.sources.packages)
        )
        steps.append(VenvStep(names, _install_commands(command, docker / image.sources.lock, wheelhouse)))
        if image.sources.variables:
            command = ("env", *image.sources.settings(), *command)
    steps.append(VenvStep("packages", _install_commands(command, docker / image.lock, wheelhouse)))
    if image.channel and image.device == "cpu":
        steps.append(VenvStep("torchvision", (("sh", str(docker / STEPS), "torchvision", python),)))
    return tuple(steps)


def _install_commands(
    command: tuple[str, ...], requirements: Path, wheelhouse: Path | None, channel: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], ...]:
    wheels = ("--find-links", str(wheelhouse)) if wheelhouse else ()
    ways: list[tuple[str, ...]] = [("--no-index", *wheels)] if wheels else []
    ways += [(*channel, *wheels)] if channel else []
    ways += [wheels]
    return tuple((*command, *way, "--requirement", str(requirements)) for way in ways)


def _addresses(image: Image) -> dict[str, str]:
    channel = {"CHANNEL": image.channel.address} if image.channel else {}
    # A Dockerfile outside its image's folder is shared, and gets the lock as an argument.
    shared = Path(image.dockerfile).parent != Path(image.lock).parent
    lock = {"LOCK": image.lock} if shared else {}
    over_base = {"DEVICE": str(image.device)} if image.from_base else {}
    return channel | lock | over_base | ({"APEX_REPOSITORY": image.apex.repository} if image.apex else {})


def _arguments(image: Image, part: ApexPart) -> dict[str, str]:
    brought = " ".join(f"{name}=={version}" for name, version in image.from_base.items())
    variables = " ".join(image.sources.settings()) if image.sources else ""
    given = {"FROM_BASE": brought, "SOURCE_VARIABLES": variables}
    if image.apex is not None:
        given |= {"APEX": part, "APEX_COMMIT": "" if part == "none" else image.apex.commit}
    return {name: value for name, value in given.items() if value}
