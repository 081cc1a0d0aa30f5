"""One batch of jobs as a script that a person can read: pure, except that it reads its template."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template

from harness.engine import container
from harness.engine.container import RunSpec
from harness.engine.slurm.scheduler import ClusterJob
from harness.engine.slurm.site import Site, require_one_line
from harness.errors import UserError
from harness.units import parse_seconds

TEMPLATE = Path(__file__).with_name("job.sh")

WORK, MEET, CACHE, ROOT = "@work@", "@meet@", "@cache@", "@root@"
"""In a RunSpec's folders and variables: what is a variable of the script. Only a job knows the first two."""
_TOKENS = (WORK, MEET, CACHE, ROOT)

START_SECONDS = 600.0
"""What a job has beside its trial's own limit, where the site sets none."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs that differ in their trial alone. `spec` is the first one's, with WORK as its folders' parent."""

    job: ClusterJob
    title: str
    root: Path
    jobs: Path
    """The submission's folder."""
    cache: Path
    python: str
    """The interpreter with gpudyno, where the site has no other."""
    spec: RunSpec
    warm: bool = False
    dependency: str | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """A trial's devices over nodes, on each of which srun starts one task."""

    nodes: int
    on_each: int


def spread_devices(gpus: int, site: Site) -> Spread | None:
    """Return the fewest nodes that have as many devices; null where no even spread fits the site."""
    if site.gpus_per_node is None:
        on_each = gpus if site.device == "cpu" else 1
    else:
        on_each = min(gpus, site.gpus_per_node)
    nodes = math.ceil(gpus / on_each)
    return Spread(nodes, on_each) if nodes * on_each == gpus and nodes <= site.nodes else None


def batch_script(batch: Batch, site: Site) -> str:
    """Return the batch script; raises UserError where a path or name holds what a job's line cannot."""
    spec, variant = batch.spec, batch.spec.trial.asked.variant
    placed = spread_devices(variant.gpus, site)
    assert placed is not None, "a trial that the site has no room for"
    for text in (
        str(batch.root),
        str(batch.jobs),
        batch.title,
        batch.python,
        *(str(path) for _, path in spec.folders.data),
    ):
        _require_one_line(text)
    words, variables = _trial_command(spec, placed)
    return _template().render(
        batch=batch,
        site=site,
        placed=placed,
        options=_options(batch, site, placed),
        variables=variables,
        srun=_srun(site, placed),
        command=words,
    )


@cache
def _template() -> Template:
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    environment.filters["quoted"] = lambda value: _quote_word(str(value))
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8"))


def _require_one_line(text: str) -> None:
    try:
        require_one_line(text)
    except ValueError as error:
        raise UserError(str(error), remedy="move the folder to a path without it") from None


def _options(batch: Batch, site: Site, placed: Spread) -> list[str]:
    """Return the lines after #SBATCH."""
    devices = placed.on_each
    many = len(batch.job.trials) > 1
    most = 1 if site.one_by_one else site.array_at_once
    at_once = f"%{most}" if most else ""
    kind = f"{site.gpu_type}:" if site.gpu_type else ""
    given = {
        "job-name": batch.job.name,
        "output": str(batch.jobs / ("log-%A_%a.txt" if many else "log-%j_0.txt")),
        "array": f"0-{len(batch.job.trials) - 1}{at_once}" if many else None,
        "partition": site.partition,
        "account": site.account,
        "qos": site.qos,
        "nodes": placed.nodes,
        "ntasks-per-node": 1,
        "cpus-per-task": site.cpus_per_gpu and site.cpus_per_gpu * devices,
        "mem": site.memory_per_node,
        "gres": f"gpu:{kind}{devices}" if site.device != "cpu" else None,
        "time": _minutes(batch, site),
        "dependency": batch.dependency,
    }
    options = [
        f"--{name}={_quote_for_sbatch(str(value))}" for name, value in given.items() if value is not None
    ]
    options += ["--exclusive"] if site.exclusive else []
    options += ["--kill-on-invalid-dep=yes"] if batch.dependency else []
    return [*options, "--open-mode=append", "--requeue", *site.lines]


def _minutes(batch: Batch, site: Site) -> int:
    one = batch.spec.trial.timeout_seconds * (2 if batch.warm else 1)
    seconds = parse_seconds(site.time_limit) if site.time_limit else one + START_SECONDS
    return max(1, math.ceil(seconds / 60))


def _quote_for_sbatch(value: str) -> str:
    """Return a value as sbatch takes it: with spaces between quotes, its own quotes after a backslash."""
    if not any(char in value for char in " \t'\"\\#"):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _srun(site: Site, placed: Spread) -> list[str]:
    words = ["srun", f"--nodes={placed.nodes}", f"--ntasks={placed.nodes}", "--ntasks-per-node=1"]
    words += ["--kill-on-bad-exit=1", "--export=ALL"]
    words += ['${SLURM_CPUS_PER_TASK:+--cpus-per-task="$SLURM_CPUS_PER_TASK"}'] if site.cpus_per_gpu else []
    return words


def _trial_command(spec: RunSpec, placed: Spread) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the trial's words after srun's, and the variables that it is given."""
    words, variables = container.process_command(spec)
    # A job's own folder of the node: the path of a loader's socket has 107 letters at most.
    del variables["TMPDIR"]
    variables["GPUDYNO_PIDS"] = f"{variables['GPUDYNO_OUT']}/pids"
    if placed.nodes > 1:
        # Several nodes meet over their network, not over a node's own loop.
        del variables["GLOO_SOCKET_IFNAME"]
        variables |= {"GPUDYNO_NODES": str(placed.nodes), "GPUDYNO_MEET": MEET}
    return words, variables


def _quote_word(text: str) -> str:
    """Return a shell word, in which WORK and MEET are the job's own variables."""
    parts = re.split(f"({'|'.join(_TOKENS)})", text)
    shown = [f'"${part.strip("@")}"' if part in _TOKENS else shlex.quote(part) for part in parts if part]
    return "".join(shown) or "''"
