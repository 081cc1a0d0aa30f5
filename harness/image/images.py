"""docker/images.toml: every pin of every image, and which image serves a card."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from packaging.version import Version
from pydantic import Field, model_validator

from harness.errors import NoDevice, PlanError, UserError
from harness.record import DeviceKind, Model

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
PythonVersion = Annotated[str, Field(pattern=r"^3\.[0-9]+$")]
InDocker = Annotated[str, Field(pattern=r"^[a-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")]
"""A path below docker/."""
VariableName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
VariableValue = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]


MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""A platform's word for what a machine calls itself."""


class ChannelPackage(Model):
    """One package of a framework vendor's own wheel channel, with every SHA-256 known for that version."""

    name: str
    version: str
    sha256: Annotated[tuple[Sha256, ...], Field(min_length=1)]


class Channel(Model):
    """A framework vendor's own wheel channel: the only registry address that this project names."""

    address: Annotated[str, Field(pattern=r"^https://[a-z0-9.-]+/[A-Za-z0-9./_-]+$")]
    lock: InDocker
    """The channel's packages as a requirement file, a part of the lock."""
    packages: Annotated[tuple[ChannelPackage, ...], Field(min_length=1)]


class Sources(Model):
    """Packages that the index has as sources alone, and the tools that build them, with the lock's hashes."""

    packages: Annotated[tuple[str, ...], Field(min_length=1)]
    tools: tuple[str, ...] = ()
    """Tools in the lock's versions, installed before the rest; where none is named, all other packages."""
    variables: dict[VariableName, VariableValue] = {}
    """The environment variables of their build, so that it is the same everywhere."""
    lock: InDocker
    """The tools as a requirement file, a part of the lock."""

    def builds_with(self, package: str) -> bool:
        """Return whether a package of the lock is one of the tools."""
        return package in self.tools if self.tools else package not in self.packages

    def settings(self) -> tuple[str, ...]:
        """Return the variables as NAME=value."""
        return tuple(f"{name}={value}" for name, value in self.variables.items())


class Apex(Model):
    """Apex by commit; its Python part alone is taken."""

    repository: Annotated[str, Field(pattern=r"^https://github\.com/[A-Za-z0-9-]+/apex$")]
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class Image(Model):
    """One software stack: base, lock, and the cards that it serves."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
    device: DeviceKind
    also_on: tuple[DeviceKind, ...] = ()
    """Other kinds of device that the same packages run on."""
    by_name_alone: bool = False
    """Taken only where it is named: the stack of a study's own time, and not one to measure cards by."""
    workloads: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(/[a-z][a-z0-9_]*)*$")] | None = None
    """The folder in workloads/ with versions for this stack; null where it runs those of all others."""
    program: Annotated[str, Field(pattern=r"^[A-Za-z0-9_/][A-Za-z0-9_./+-]{0,200}$")] = "python"
    """What starts a trial inside, given the path of its workload; an image may have its own."""
    dockerfile: InDocker
    base: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9./_-]*:[A-Za-z0-9._-]+$")]
    base_digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    base_digest_verified: bool
    platform: str
    also_platforms: tuple[str, ...] = ()
    """Others for which the lock has every wheel."""
    pythons: Annotated[tuple[PythonVersion, ...], Field(min_length=1)]
    """The Pythons that the lock is resolved for, the first before the others; an image runs one of them."""
    requirements: InDocker
    lock: InDocker
    left_out: tuple[str, ...] = ()
    """Packages kept out of the resolution."""
    from_base: dict[str, str] = {}
    """Packages that the base brings, with their versions: kept out of the lock, and asserted by the build."""
    channel: Channel | None = None
    sources: Sources | None = None
    apex: Apex | None = None
    driver_minimum: str | None = None
    architectures: tuple[str, ...] = ()
    """What the framework's build holds code for: sm_75, gfx942. Empty means any."""
    not_on: dict[str, str] = {}
    """Cards that its code would run on and its libraries do not serve, each with why and what does."""
    build_bytes: int = 0
    """About how much disk it takes to make; 0 where nobody measured it."""

    def platform_on(self, architecture: str) -> str | None:
        """Return its platform on a machine of that name by `uname -m`; null where it has none."""
        word = MACHINES.get(architecture.lower(), architecture)
        return next(
            (one for one in (self.platform, *self.also_platforms) if one.rpartition("/")[2] == word), None
        )

    @property
    def devices(self) -> tuple[DeviceKind, ...]:
        """Return every kind of device that it runs on, its own first."""
        return (self.device, *self.also_on)

    @property
    def python(self) -> str:
        """Return the Python that the lock is resolved for first."""
        return self.pythons[0]


class ImageFile(Model):
    """docker/images.toml"""

    images: dict[str, Image]

    @model_validator(mode="after")
    def _each_image_has_a_lock_of_its_own(self) -> ImageFile:
        names: dict[str, str] = {}
        for image in self.images.values():
            for lock in (image.lock, *(part.lock for part in (image.channel, image.sources) if part)):
                if lock in names:
                    raise ValueError(f"images '{names[lock]}' and '{image.name}' both name the lock {lock}")
                names[lock] = image.name
        return self

    @model_validator(mode="before")
    @classmethod
    def _each_image_knows_its_name(cls, data: Any) -> Any:
        images = data.get("images") if isinstance(data, dict) else None
        if not isinstance(images, dict):
            return data
        named = {name: {**v, "name": name} if isinstance(v, dict) else v for name, v in images.items()}
        return {**data, "images": named}

    def image(self, name: str) -> Image:
        """Return the image of that name; raises UserError, which lists the known ones."""
        if name not in self.images:
            raise UserError(
                f"image '{name}' is not in docker/images.toml", remedy=f"take one of {', '.join(self.images)}"
            )
        return self.images[name]


def load_images(root: Path) -> ImageFile:
    """Read docker/images.toml; raises PlanError with the file, the key and the reason."""
    path = root / "docker" / "images.toml"
    if not path.is_file():
        raise PlanError("docker/images.toml is not there", remedy="run gpudyno from its clone")
    return ImageFile.parse_toml(path.read_bytes(), "docker/images.toml", "correct it")


def choose_image(
    images: ImageFile,
    device: DeviceKind,
    *,
    capability: str | tuple[str, ...] | None = None,
    driver: str | None = None,
    name: str | None = None,
) -> Image:
    """Return the first image that serves a card, or each of several, by the ranges that images state.

    Images that are taken by name alone are passed over. What is given back is for the device that is asked.
    `capability` is "6.1" or "sm_61" of NVIDIA's cards, "gfx906" of AMD's; what is unknown refuses nothing.
    With `name` that image alone is judged.
    Raises NoDevice, before anything is built, with what the card lacks, and UserError for an unknown name.
    """
    capabilities = (capability,) if isinstance(capability, str) else capability or ()
    refusals, updates = [], []
    unasked = [image for image in images.images.values() if not image.by_name_alone]
    for image in unasked if name is None else (images.image(name),):
        refusal, least = _refusal(image, device, capabilities), image.driver_minimum
        if refusal is None and driver and least and leading_release(driver) < Version(least):
            updates.append(f"update the driver to {least}")
            refusal = f"image '{image.name}' needs driver {least} or newer, and this machine has {driver}"
        if refusal is None:
            return image.model_copy(update={"device": device, "also_on": ()})
        if name is not None or image.device == device:
            refusals.append(refusal)
    other = "leave --image out" if name else f"{ANOTHER_FRAMEWORK}, or take --device cpu"
    raise NoDevice(
        "; ".join(refusals) or f"no image is made for '{device}' devices",
        remedy=", or ".join((*updates[:1], other)),
    )


ANOTHER_FRAMEWORK = "name an interpreter whose framework serves this card by --python"


def _refusal(image: Image, device: DeviceKind, capabilities: tuple[str, ...]) -> str | None:
    """Return why an image does not serve these cards, in one clause; null where it does."""
    if device not in image.devices:
        kinds = " and ".join(f"'{kind}'" for kind in image.devices)
        return f"image '{image.name}' is for {kinds} devices, and this line runs on '{device}'"
    for card in map(_architecture, capabilities) if image.architectures else ():
        if card in image.not_on:
            return f"image '{image.name}' does not serve {card}: {image.not_on[card]}"
        if not any(_serves(architecture, card) for architecture in image.architectures):
            return f"image '{image.name}' serves {', '.join(image.architectures)}, and this card is {card}"
    return None


def _architecture(capability: str) -> str:
    """Return '8.6' → 'sm_86', 'gfx90a:sramecc+:xnack-' → 'gfx90a'."""
    if re.fullmatch(r"[0-9]+\.[0-9]+", capability):
        return "sm_" + capability.replace(".", "")
    return capability.split(":")[0]


def _serves(built: str, card: str) -> bool:
    """Return whether code serves a card: NVIDIA's its major version from its minor on, AMD's its target."""
    built_sm, card_sm = (re.fullmatch(r"sm_([0-9]+)([0-9])", name) for name in (built, card))
    if built_sm is None or card_sm is None:
        return built == card
    return built_sm[1] == card_sm[1] and int(built_sm[2]) <= int(card_sm[2])


def leading_release(version: str | None) -> Version:
    """Return the release that a driver's or an engine's version begins with: 5.4 of '5.4-rhel', else 0."""
    match = re.match(r"\d+(\.\d+)*", version or "")
    return Version(match[0] if match else "0")
