"""A second software stack beside the image's own: another lock, another image, or variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.engine.choose import wheel_folder
from harness.engine.container import OWN_VARIABLES
from harness.engine.interface import Built
from harness.errors import PlanError
from harness.files import command_output
from harness.image.images import Image
from harness.image.lock import lock_packages, lock_sha256, version_changes
from harness.image.second_lock import given_image, moved_image
from harness.machine.devices import VISIBILITY
from harness.machine.fingerprint import local_names
from harness.redact import WITHHELD, redact_value
from harness.settings import Settings, expand_path

ENV, IMAGE, PYTHON, MOST_LETTERS = "env:", "image:", "python:", 200
INTERPRETER = "PYTHON"
"""The variable by which records tell a second interpreter from the first."""


@dataclass(frozen=True, slots=True)
class SecondStack:
    """What the second stack's trials start in; `image` is the first's own where variables alone differ."""

    asked: tuple[str, ...]
    image: Image
    variables: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None
    """The user's own interpreter that it is, with the first stack's image."""
    moved: tuple[str, ...] = ()
    """What its lock has otherwise than the first's, a clause for each package."""

    @property
    def named(self) -> str:
        """Return it as it was asked for."""
        return ", ".join(self.asked)

    def environment(self, built: Built) -> Built:
        """Return its environment as records name it, variables included."""
        passed = {**built.environment.passed_variables, **self.variables}
        return replace(built, environment=built.environment.model_copy(update={"passed_variables": passed}))


def second_stack(
    root: Path, settings: Settings, image: Image, serving: Callable[[str], Image]
) -> SecondStack | None:
    """Return what `--against` asks for beside an image; `serving` gives another by its name.

    Raises PlanError beside --python and for a word that it does not know, and what moved_image raises.
    """
    asked = settings.against
    if settings.python is not None and not all(word.startswith((ENV, PYTHON)) for word in asked):
        raise PlanError(
            "--python takes an interpreter as it is, and --against makes an environment beside a locked one",
            remedy="leave one out, or write --against python:PATH or env:NAME=VALUE",
        )
    if not asked:
        return None
    variables = dict(_parse_variable(word) for word in asked if word.startswith(ENV))
    pins = [word for word in asked if re.fullmatch(r"[A-Za-z0-9][\w.-]*==[\w.+!-]+", word)]
    names = [word.removeprefix(IMAGE) for word in asked if word.startswith(IMAGE)]
    pythons = [word.removeprefix(PYTHON) for word in asked if word.startswith(PYTHON)]
    others = (word for word in asked if not word.startswith((ENV, IMAGE, PYTHON)))
    files = [expand_path(word) for word in others if word not in pins]
    if unknown := next((path for path in files if not path.is_file()), None):
        raise PlanError(
            f"--against '{unknown}' is no second stack, and no lock of that name is here",
            remedy="write PACKAGE==VERSION, image:NAME, env:NAME=VALUE, python:PATH, or a lock's path",
        )
    if len(names) + len(files) + len(pythons) > 1:
        raise PlanError("--against names two stacks at once", remedy="name one image or one lock")
    own_image, image = image, serving(names[0]) if names else image
    image = given_image(image, root, files[0]) if files else image
    image = moved_image(image, root, pins, wheelhouse=wheel_folder(root, settings)) if pins else image
    if pythons:
        variables[INTERPRETER] = _version_of(pythons[0])
    # A lock is shown by its name alone, and an interpreter by its version: a folder may name a person.
    shown = tuple(
        f"{PYTHON}{variables[INTERPRETER]}"
        if word.startswith(PYTHON)
        else Path(word).name
        if expand_path(word) in files
        else word
        for word in asked
    )
    packages = (lock_packages(root / "docker" / each.lock) | each.from_base for each in (own_image, image))
    second = SecondStack(shown, image, variables, next(iter(pythons), None), version_changes(*packages))
    locks = {lock_sha256(root, each.lock) for each in (own_image, image)}
    if not variables and own_image.name == image.name and len(locks) == 1:
        raise PlanError(
            f"'{second.named}' is what image '{own_image.name}' has", remedy="name another version"
        )
    return second


VERSIONS = """
import sys
from importlib.metadata import PackageNotFoundError, version
try:
    torch = ", torch " + version("torch")
except PackageNotFoundError:
    torch = ""
print("%d.%d.%d" % sys.version_info[:3] + torch)
"""


def _version_of(python: str) -> str:
    """Return the version of an interpreter and of its torch; raises PlanError where none starts."""
    said = command_output(str(expand_path(python)), "-c", VERSIONS)
    if not said:
        raise PlanError(f"'{python}' is no interpreter that starts", remedy="write --against python:PATH")
    return said.strip()[:MOST_LETTERS]


def _parse_variable(word: str) -> tuple[str, str]:
    """Return a variable's name and value; raises PlanError for one that cannot be set or shown."""
    name, equals, value = word.removeprefix(ENV).partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_]\w{0,63}", name) or len(value) > MOST_LETTERS:
        raise PlanError(
            f"--against '{word[:80]}' names no variable with its value",
            remedy=f"write {ENV}NAME=VALUE, of {MOST_LETTERS} letters at most",
        )
    if name in OWN_VARIABLES or name in VISIBILITY or re.match("GPUDYNO_", name):
        raise PlanError(f"gpudyno itself sets {name} in each trial", remedy="take another variable")
    if redact_value(value, local_names()) == WITHHELD:
        raise PlanError(
            f"the value of {name} names a folder, a host or a person, and each record would show it",
            remedy="take a value that names none",
        )
    return name, value
