"""What all trials of a stack share, here or on a cluster's nodes, and what starts one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.engine.base import Built
from harness.engine.container import DeviceRequest, RunSpec, TrialFolders, User
from harness.image.catalog import Image
from harness.plan.estimate import WARM_UP_STEPS
from harness.record import Harness, Limit, TrialSpec
from harness.record.trial import StackKey
from harness.settings import Settings

WARM_UP_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Setting:
    """All that stays the same over the trials that one line of `run` or `submit` has of one stack."""

    root: Path
    settings: Settings
    image: Image
    built: Built
    harness: Harness
    data: Callable[[TrialSpec], tuple[tuple[str, Path], ...]]
    """The data folders that a trial sees, by their names under /data."""
    passed: Mapping[str, str] = field(default_factory=dict)
    user: User = field(default_factory=User)
    variables: Mapping[str, str] = field(default_factory=dict)
    """Those that tell this stack from the image's own."""
    against: Setting | None = None
    """The same in the second stack, where the line has one."""

    def of(self, trial: TrialSpec) -> Setting:
        """Return the setting of the trial's own stack."""
        other = self.against
        return other if other is not None and other.stack == trial.asked.stack else self

    @property
    def stack(self) -> StackKey:
        """Return what its trials are told by."""
        environment = self.built.environment
        return environment.image, environment.lock_sha256, tuple(sorted(self.variables.items()))

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
        """What an engine needs to start an attempt whose work folder is `work`."""
        folders = TrialFolders(work / "in", work / "out", self.data(trial), cache, workloads)
        return RunSpec(
            trial=trial,
            session=session,
            attempt=attempt,
            folders=folders,
            device=device,
            own_workloads=self.image.workloads,
            program=self.image.program,
            image_id=self.built.environment.image_id,
            interpreter=self.built.interpreter,
            sif=self.built.sif,
            user=self.user,
            memory_bytes=self.settings.memory_bytes,
            passed={**self.passed, **self.variables},
        )


def warm_up(trial: TrialSpec) -> TrialSpec:
    """The short trial that fills the compilers' caches before the first one of a variant.

    Otherwise each fresh process would tune again, and the first repeat would differ from the rest.
    """
    limit = Limit(steps=WARM_UP_STEPS, valid_batches=1)
    variant = trial.asked.variant.model_copy(update={"limit": limit})
    request = trial.asked.model_copy(update={"variant": variant})
    seconds = min(trial.timeout_seconds, WARM_UP_SECONDS)
    return TrialSpec.of(request, trial.repeat, seed=trial.seed, timeout_seconds=seconds)
