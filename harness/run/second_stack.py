"""A second software stack beside the image's own: another lock, another image, or variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from harness.engine.base import Built
from harness.engine.container import OWN_VARIABLES
from harness.errors import PlanError, UserError
from harness.image.catalog import Image
from harness.machine import VISIBILITY, local_names
from harness.record import Against
from harness.redact import WITHHELD, kept

ENV = "env:"


@dataclass(frozen=True, slots=True)
class SecondStack:
    """What the second stack's trials start in; `image` is the first's own where variables alone differ."""

    asked: tuple[str, ...]
    image: Image
    variables: Mapping[str, str] = field(default_factory=dict)

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


def second_stack(asked: Sequence[str], image: Image) -> SecondStack:
    """What `--against` asks for beside an image; raises UserError for a word that it does not know."""
    variables = dict(_variable(word) for word in asked if word.startswith(ENV))
    others = [word for word in asked if not word.startswith(ENV)]
    if others:
        raise UserError(f"--against '{others[0]}' is no second stack", remedy="write it as env:NAME=VALUE")
    second = SecondStack(tuple(asked), image, variables)
    try:
        second.record(None)
    except ValidationError:
        raise PlanError(
            f"--against '{second.named[:80]}' names no variable, or its value is too long",
            remedy="write env:NAME=VALUE with 200 letters at most",
        ) from None
    return second


def _variable(word: str) -> tuple[str, str]:
    """A variable's name and value; raises PlanError for one that cannot be set or shown."""
    name, equals, value = word.removeprefix(ENV).partition("=")
    if not equals:
        raise PlanError(f"--against '{word}' gives no value", remedy=f"write {ENV}{name}=VALUE")
    if name in OWN_VARIABLES or name in VISIBILITY or re.match("GPUDYNO_", name):
        raise PlanError(f"gpudyno itself sets {name} in each trial", remedy="take another variable")
    if kept(value, local_names()) == WITHHELD:
        raise PlanError(
            f"the value of {name} names a folder, a host or a person, and each record would show it",
            remedy="take a value that names none",
        )
    return name, value
