"""A site profile: what a cluster asks of every job."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field

from harness.errors import PlanError
from harness.record import DeviceKind, Model
from harness.settings import expand_path
from harness.units import parse_seconds

FILE = "site.toml"
"""In the clone, git-ignored: the profile that is taken where none is named."""

_CLUSTERS = re.compile(r"--clusters?\b|-M")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def require_one_line(value: str) -> str:
    """Return the same text; raises ValueError for one that a line of a batch script cannot hold."""
    if _CONTROL.search(value):
        raise ValueError(
            f"{value!r} holds a line break or another control character, and a job's line cannot"
        )
    return value


def _check_option(value: str) -> str:
    if not value.startswith("-"):
        raise ValueError(f"{value!r} is no option of sbatch: it begins with '--'")
    if _CLUSTERS.match(value):
        raise ValueError(f"{value!r} names a cluster, and jobs are sent to this machine's own alone")
    return value


def _check_length(value: str) -> str:
    try:
        parse_seconds(value)
    except PlanError:
        raise ValueError(f"{value!r} is no length of time: write it as 30m, 8h or 1h30m") from None
    return value


def _check_absolute(value: str) -> str:
    if not PurePosixPath(value).is_absolute():
        raise ValueError(f"{value!r} is no whole path: it begins with '/'")
    return value


ScriptLine = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(require_one_line)]
SharedPath = Annotated[ScriptLine, AfterValidator(_check_absolute)]
"""A path that is the same on every node."""


class Site(Model):
    """site.toml: one cluster as its users write jobs for it. What is left out is the site's own default."""

    partition: ScriptLine | None = None
    account: ScriptLine | None = None
    qos: ScriptLine | None = None
    time_limit: Annotated[ScriptLine, AfterValidator(_check_length)] | None = None
    """How long a job may take, as 30m or 8h; else its trial's own limit and ten minutes to start."""
    device: DeviceKind = "cpu"
    """What the nodes compute on. The machine that submits may have none of it."""
    capability: ScriptLine | None = None
    """What the nodes' cards have, as 8.0 or gfx942, which decides their image and precisions."""
    nodes: Annotated[int, Field(ge=1, le=1024)] = 1
    """How many a trial may take at most."""
    gpus_per_node: Annotated[int, Field(ge=1, le=64)] | None = None
    """Null: one; of a trial on processors alone, as many processes on a node as it asks for."""
    gpu_type: ScriptLine | None = None
    """As the site's jobs name it, such as a100."""
    cpus_per_gpu: Annotated[int, Field(ge=1)] | None = None
    """How many processors each process of a trial without cards has."""
    memory_per_node: Annotated[ScriptLine, Field(pattern=r"^[0-9]+[KMGT]?$")] | None = None
    exclusive: bool = False
    """Each job has its nodes alone: no other job disturbs what it measures. Else jobs go one by one."""
    array_at_once: Annotated[int, Field(ge=1)] | None = None
    """How many repeats of a variant may run at the same time, and other variants' beside them."""
    lines: tuple[Annotated[ScriptLine, AfterValidator(_check_option)], ...] = ()
    """Further options of sbatch, such as --constraint=a100."""
    modules: tuple[ScriptLine, ...] = ()
    """Loaded in this order."""
    commands: tuple[ScriptLine, ...] = ()
    """Lines of shell that run before the trial, after the modules."""
    scratch: SharedPath = "/tmp"
    """A folder of each node's own disk, in which a trial has its temporary files."""
    python: SharedPath | None = None
    """The interpreter with gpudyno on the nodes; null: the one that submits."""

    @property
    def one_by_one(self) -> bool:
        """Return whether a job waits for the one before it, with which it might share a node."""
        return not self.exclusive and self.array_at_once is None


def load_site(root: Path, named: str | None) -> Site:
    """Return the profile that is named, else the clone's own, else one that asks for nothing.

    Raises PlanError with the file, the field and the reason.
    """
    path = expand_path(named) if named else root / FILE
    if not path.is_file():
        if named:
            raise PlanError(f"there is no site profile '{named}'", remedy="see docs/running.md for one")
        return Site()
    return Site.parse_toml(path.read_bytes(), path.name, "see docs/running.md")
