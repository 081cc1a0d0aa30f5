"""A run whose environments are built: what starts each of its trials, here or on a cluster's nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.data.fetch import Resolved
from harness.engine.container import DeviceRequest, RunSpec, TrialFolders
from harness.engine.interface import Built
from harness.engine.venv import VenvEngine
from harness.errors import NoEngine
from harness.image.images import Image
from harness.plan import own_file
from harness.plan.estimate import WARM_UP_STEPS
from harness.record import Harness, Limit, TrialSpec
from harness.record.store import clone_state_folder
from harness.record.trial_spec import StackKey
from harness.run.assemble import this_harness
from harness.run.own_program import OwnRun
from harness.run.setup import RunSetup

WARM_UP_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class BuiltStack:
    """One software stack of a run as it is built."""

    image: Image
    built: Built
    variables: Mapping[str, str] = field(default_factory=dict)
    """The environment variables in which it differs from the image."""

    @property
    def key(self) -> StackKey:
        """Return the environment, lock and variables that identify its trials."""
        environment = self.built.environment
        return environment.image, environment.lock_sha256, tuple(sorted(self.variables.items()))


@dataclass(frozen=True, slots=True)
class ReadyRun:
    """A run with all that its trials start in: its stacks, the first before the second, and its data."""

    setup: RunSetup
    stacks: tuple[BuiltStack, ...]
    resolved: Mapping[str, Resolved]
    harness: Harness
    own: OwnRun | None = None
    """The user's own program, whose folder was copied; null where the trials are of a plan's file."""

    @property
    def root(self) -> Path:
        """Return the clone that it is run from."""
        return self.setup.root

    def stack(self, trial: TrialSpec) -> BuiltStack:
        """Return the trial's own stack."""
        own = (stack for stack in self.stacks if stack.key == trial.asked.stack)
        return next(own, self.stacks[0])

    def data(self, trial: TrialSpec) -> tuple[tuple[str, Path], ...]:
        """Return the folders under /data that a trial sees: its data, weights or program."""
        request, run_plan = trial.asked, self.setup.plan
        if self.own is not None:
            return self.own.shown(copies_folder(self.root) / self.own.folder.name)
        file = request.file.name if request.file else None
        asked = (request.workload, request.protocol, file)
        names = [
            measure.data
            for measure in run_plan.measure
            if measure.data and (measure.workload, measure.protocol, measure.file) == asked
        ]
        if request.weights == "pretrained":
            names.append(f"weights-{request.variant.model}")
        if file and (program := run_plan.programs.get(file)):
            names.append(program.folder)
        found = (self.resolved[name].folder for name in names if name in self.resolved)
        return tuple(sorted({folder.name: folder for folder in found if folder is not None}.items()))

    def beside(self, trial: TrialSpec) -> str:
        """Return the text that goes beside a trial: the user's own file or program; empty for none."""
        if trial.asked.file is not None:
            return own_file.own_file_text(self.root, trial.asked.file)
        return self.own.content(trial.asked.own) if trial.asked.own and self.own else ""

    def spec(
        self,
        trial: TrialSpec,
        session: str,
        attempt: int,
        device: DeviceRequest,
        *,
        work: Path,
        cache: Path,
        workloads: Path,
    ) -> RunSpec:
        """Return what an engine needs to start an attempt whose work folder is `work`."""
        stack = self.stack(trial)
        return RunSpec(
            trial=trial,
            session=session,
            attempt=attempt,
            folders=TrialFolders(work / "in", work / "out", self.data(trial), cache, workloads),
            device=device,
            own_workloads=stack.image.workloads,
            program=stack.image.program,
            image_id=stack.built.environment.image_id,
            interpreter=stack.built.interpreter,
            user=self.setup.engine.user(),
            memory_bytes=self.setup.settings.memory_bytes,
            passed={**self.setup.passed, **stack.variables},
        )


def copies_folder(root: Path) -> Path:
    """Return where copies of users' programs are."""
    return clone_state_folder(root) / "own"


def ready_run(
    setup: RunSetup, built: Sequence[Built], resolved: Mapping[str, Resolved], own: OwnRun | None = None
) -> ReadyRun:
    """Return the run with its environments, the first stack's first, and its data or the user's program.

    Raises NoEngine where the second stack is an interpreter of the user's and trials are no processes.
    """
    stacks = [BuiltStack(setup.image, built[0])]
    if setup.against is not None:
        second = built[-1]
        if setup.against.python is not None:
            if not isinstance(setup.engine, VenvEngine):
                raise NoEngine(
                    "--against python:PATH needs trials that are processes", remedy="add --engine venv"
                )
            second = replace(setup.engine, python=setup.against.python).built_environment(setup.image)
        environment = setup.against.environment(second)
        stacks.append(BuiltStack(setup.against.image, environment, setup.against.variables))
    return ReadyRun(setup, tuple(stacks), resolved, this_harness(setup.root), own)


def warm_up_trial(trial: TrialSpec) -> TrialSpec:
    """Return the short trial that fills the compilers' caches before the first one of a variant.

    Otherwise each fresh process would tune again, and the first repeat would differ from the rest.
    """
    limit = Limit(steps=WARM_UP_STEPS, valid_batches=1)
    variant = trial.asked.variant.model_copy(update={"limit": limit})
    request = trial.asked.model_copy(update={"variant": variant})
    seconds = min(trial.timeout_seconds, WARM_UP_SECONDS)
    return TrialSpec.from_request(request, trial.repeat, seed=trial.seed, timeout_seconds=seconds)
