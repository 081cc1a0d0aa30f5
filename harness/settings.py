"""Where a setting comes from: the option, then GPUDYNO_*, then gpudyno.toml, then the default."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from harness.engines import CHOICES
from harness.errors import PlanError
from harness.record import Model, Precision, Role
from harness.record.machine import Declared
from harness.record.result import Question, question_words
from harness.units import parse_seconds

FILE = "gpudyno.toml"
PREFIX = "GPUDYNO_"
REMEDY = "see `invoke --help run`"

NOT_SETTINGS = frozenset(
    f"{PREFIX}{name}" for name in ("IN", "OUT", "CACHE", "STATE", "REQUIRE", "ACCEPT", "NOW", "WORKLOADS")
)
"""Variables of the same prefix that belong to the containers and the tests."""


def _split_list(value: Any) -> Any:
    """Read an environment variable: it holds a list with commas between its words."""
    return [word.strip() for word in value.split(",") if word.strip()] if isinstance(value, str) else value


def _stack_words(value: Any) -> Any:
    """Read `torch==2.12.1,env:NAME=A,B`: a comma divides words only where another begins."""
    if not isinstance(value, str):
        return value
    words = re.split(r",\s*(?=env:|image:|[A-Za-z0-9][\w.-]*==)", value)
    return tuple(word.strip() for word in words if word.strip())


class Settings(Model):
    """What a user may set for every command. Paths are folders or files of theirs; sizes are bytes."""

    plan: str = "quick"
    device: str | None = None
    image: str | None = None
    engine: Annotated[str, Field(pattern=f"^(auto|{'|'.join(CHOICES)})$")] = "auto"
    python: str | None = None
    data: str | None = None
    budget: str | None = None
    role: Role | None = None
    precision: Annotated[tuple[Precision, ...], BeforeValidator(_split_list)] = ()
    blocks: Annotated[int, Field(ge=1, le=10)] | None = None
    label: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,39}$")] | None = None
    base: str | None = None
    wheelhouse: str | None = None
    memory_bytes: Annotated[int, Field(gt=0)] | None = None
    data_seconds: Annotated[float, Field(ge=0)] = 90.0
    question: Annotated[Question | None, BeforeValidator(question_words)] = None
    against: Annotated[tuple[str, ...], BeforeValidator(_stack_words)] = ()
    apex: Literal["none", "python"] = "python"
    build_network: Annotated[str, Field(pattern="^(default|host|none)$")] = "default"
    pip_config: str | None = None
    ca: str | None = None
    apt_config: str | None = None
    declared: Annotated[tuple[Declared, ...], BeforeValidator(_split_list)] = ()


def load_settings(root: Path, environ: Mapping[str, str], options: Mapping[str, Any]) -> Settings:
    """Return the settings of one command; raises PlanError naming the wrong file or variable."""
    values = _from_file(root / FILE)
    values |= _from_environment(environ)
    values |= {key: value for key, value in options.items() if value not in (None, "", False)}
    settings = Settings.parse(values, "the settings", REMEDY, PlanError)
    if settings.budget is not None:
        parse_seconds(settings.budget)
    return settings


def setting_words(settings: Settings) -> tuple[str, ...]:
    """Return the given options that a command needs to ask for the same work."""
    fields = ("plan", "image", "device", "engine", "python", "base", "wheelhouse", "role", "precision")
    given = {name: getattr(settings, name) for name in (*fields, "against", "blocks", "label")}
    return tuple(
        word
        for name, value in given.items()
        if value not in (None, "auto", ())
        for word in (f"--{name}", ",".join(value) if isinstance(value, tuple) else str(value))
    )


def expand_path(given: str) -> Path:
    """Return a path as a user writes it; raises PlanError where its `~name` is nobody's."""
    try:
        return Path(given).expanduser()
    except RuntimeError:
        raise PlanError(
            f"'{given[:80]}' names no user of this machine", remedy="write the path out"
        ) from None


def _from_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    return Settings.parse_toml(path.read_bytes(), path.name, REMEDY).model_dump(exclude_unset=True)


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in environ.items():
        if not name.startswith(PREFIX) or name in NOT_SETTINGS or name.startswith(f"{PREFIX}TEST_"):
            continue
        key = name.removeprefix(PREFIX).lower()
        if key not in Settings.model_fields:
            listed = ", ".join(f"{PREFIX}{field.upper()}" for field in Settings.model_fields)
            raise PlanError(f"the variable {name} is no setting", remedy=f"unset it, or use one of {listed}")
        if value:
            values[key] = value
    return values
