"""Inside one of our images already, as on a rented card: trials are fresh processes and count as pinned."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import container
from harness.container import RunSpec
from harness.engine.base import Built, EngineName, Say, Step
from harness.engine.process import Processes
from harness.errors import NoEngine
from harness.image import Image
from harness.locked import lock_sha256
from harness.record import Environment

IDENTITY = Path("/etc/gpudyno/environment.json")
"""The file in each of our images that names its lock and base."""


def identity(path: Path = IDENTITY) -> dict[str, Any] | None:
    """What the image around us says of itself; null outside of one."""
    if not path.is_file():
        return None
    found = json.loads(path.read_text())
    return found if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True)
class HereEngine(Processes):
    """Runs trials with the interpreter of the image that the harness itself was started in."""

    root: Path
    path: Path = IDENTITY
    passed: Mapping[str, str] = field(default_factory=dict)
    name: EngineName = "here"

    def version(self) -> str | None:
        """It has none of its own."""
        return None

    def _identity(self) -> dict[str, Any]:
        found = identity(self.path)
        if found is None:
            raise NoEngine(
                "engine 'here' works inside one of gpudyno's own images, and this is none",
                remedy="leave --engine out",
            )
        return found

    def steps(self, image: Image) -> tuple[Step, ...]:
        """Nothing is built: the image is around us."""
        return (Step("the image around us", str(self.path)),)

    def build(self, image: Image, say: Say) -> Built:
        """The image around us."""
        return self.built(image)

    def expected(self, image: Image) -> Built:
        """The image around us."""
        return self.built(image)

    def built(self, image: Image) -> Built:
        """The image around us, if it is the one that was asked for; raises NoEngine."""
        found = self._identity()
        if found.get("image") != image.name:
            raise NoEngine(
                f"image '{image.name}' is needed, and this is inside '{found.get('image')}'",
                remedy=f"start the image '{image.name}', or choose --device to fit this one",
            )
        lock = lock_sha256(self.root, image.lock)
        reasons = []
        if found.get("lock_sha256") != lock:
            reasons.append("the image was built from another lock than this clone's")
        if found.get("base_substituted"):
            reasons.append(f"the base was substituted by {found.get('base')}")
        python = shutil.which("python")
        if python is None:
            raise NoEngine("no 'python' is on PATH in this image", remedy="start it with its own environment")
        environment = Environment(
            image=image.name,
            device=image.device,
            engine=self.name,
            pinned=not reasons,
            unpinned_because=tuple(reasons),
            tag=found.get("tag"),
            base=found.get("base"),
            base_digest=found.get("base_digest"),
            base_digest_verified=bool(found.get("base_digest_verified")),
            base_substituted=bool(found.get("base_substituted")),
            lock_sha256=found.get("lock_sha256"),
            build_arguments=found.get("build_arguments") or {},
            passed_variables=dict(self.passed),
        )
        return Built(environment, Path(python))

    def command(self, spec: RunSpec) -> str:
        """The trial as a person would type it."""
        argv, _ = container.process(spec)
        return shlex.join(argv)
