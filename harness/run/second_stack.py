"""A second software stack beside the image's own: another lock, another image, or variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.engine.choose import wheels
from harness.engine.container import OWN_VARIABLES
from harness.engine.interface import Built
from harness.errors import PlanError
from harness.image.images import Image
from harness.image.lock import lock_packages, lock_sha256, moved
from harness.image.second_lock import given_image, moved_image
from harness.machine import VISIBILITY, local_names
from harness.record import Against
from harness.redact import WITHHELD, kept
from harness.settings import Settings, own_path

ENV, IMAGE, MOST_LETTERS = "env:", "image:", 200


@dataclass(frozen=True, slots=True)
class SecondStack:
    """What the second stack's trials start in; `image` is the first's own where variables alone differ."""

    asked: tuple[str, ...]
    image: Image
    variables: Mapping[str, str] = field(default_factory=dict)
    moved: tuple[str, ...] = ()
    """What its lock has otherwise than the first's, a clause for each package."""

    @property
    def named(self) -> str:
        """Return it as it was asked for."""
        return ", ".join(self.asked)

    def record(self, lock_sha256: str | None) -> Against:
        """Return it as a session holds it."""
        return Against(
            asked=self.asked,
            environment=self.image.name,
            lock_sha256=lock_sha256,
            variables=dict(self.variables),
        )

    def environment(self, built: Built) -> Built:
        """Return its environment as records name it, variables included."""
        passed = {**built.environment.passed_variables, **self.variables}
        return replace(built, environment=built.environment.model_copy(update={"passed_variables": passed}))


def second_stack(
    root: Path, settings: Settings, image: Image, serving: Callable[[str], Image]
) -> SecondStack | None:
    """What `--against` asks for beside an image; `serving` gives another for the same devices, by its name.

    Raises PlanError beside --python and for a word that it does not know, and what moved_image raises.
    """
    asked = settings.against
    if asked and settings.python is not None:
        raise PlanError(
            "--python takes an interpreter as it is, and --against makes an environment beside a locked one",
            remedy="leave one out",
        )
    if not asked:
        return None
    variables = dict(_variable(word) for word in asked if word.startswith(ENV))
    pins = [word for word in asked if re.fullmatch(r"[A-Za-z0-9][\w.-]*==[\w.+!-]+", word)]
    names = [word.removeprefix(IMAGE) for word in asked if word.startswith(IMAGE)]
    files = [own_path(word) for word in asked if not word.startswith((ENV, IMAGE)) and word not in pins]
    if unknown := next((path for path in files if not path.is_file()), None):
        raise PlanError(
            f"--against '{unknown}' is no second stack, and no lock of that name is here",
            remedy="write PACKAGE==VERSION, image:NAME, env:NAME=VALUE, or a lock's path",
        )
    if len(names) + len(files) > 1:
        raise PlanError("--against names two stacks at once", remedy="name one image or one lock")
    own, image = image, serving(names[0]) if names else image
    image = given_image(image, root, files[0]) if files else image
    image = moved_image(image, root, pins, wheelhouse=wheels(root, settings)) if pins else image
    # A lock is shown by its name alone: its folder may name a person.
    shown = tuple(Path(word).name if own_path(word) in files else word for word in asked)
    packages = (lock_packages(root / "docker" / each.lock) | each.from_base for each in (own, image))
    second = SecondStack(shown, image, variables, moved(*packages))
    locks = {lock_sha256(root, each.lock) for each in (own, image)}
    if not variables and own.name == image.name and len(locks) == 1:
        raise PlanError(f"'{second.named}' is what image '{own.name}' has", remedy="name another version")
    return second


def _variable(word: str) -> tuple[str, str]:
    """A variable's name and value; raises PlanError for one that cannot be set or shown."""
    name, equals, value = word.removeprefix(ENV).partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_]\w{0,63}", name) or len(value) > MOST_LETTERS:
        raise PlanError(
            f"--against '{word[:80]}' names no variable with its value",
            remedy=f"write {ENV}NAME=VALUE, of {MOST_LETTERS} letters at most",
        )
    if name in OWN_VARIABLES or name in VISIBILITY or re.match("GPUDYNO_", name):
        raise PlanError(f"gpudyno itself sets {name} in each trial", remedy="take another variable")
    if kept(value, local_names()) == WITHHELD:
        raise PlanError(
            f"the value of {name} names a folder, a host or a person, and each record would show it",
            remedy="take a value that names none",
        )
    return name, value
