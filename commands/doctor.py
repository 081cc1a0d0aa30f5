"""Reads all that `invoke doctor` judges; what cannot be settled goes in as its reason."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from harness.data.datasets import CHEST_XRAY, DATASETS, find_presence
from harness.doctor.diagnosis import diagnosis_lines, examine_surroundings
from harness.doctor.surroundings import (
    DataNeed,
    Diagnosis,
    Surroundings,
)
from harness.errors import GpudynoError, MachineError, NoDevice, NotBuilt
from harness.machine.fingerprint import read_load
from harness.run import setup as run_setup
from harness.run.choice import Chosen, choose_trials
from harness.run.obstacles import look_around, written_disks
from harness.run.setup import RunSetup, data_folders
from harness.settings import Settings


@dataclass(frozen=True, slots=True)
class LineDiagnosis:
    """What a line meets here, and its trials; where these cannot be chosen, why."""

    diagnoses: tuple[Diagnosis, ...] = ()
    chosen: Chosen | None = None
    refusal: GpudynoError | None = None

    @property
    def problems(self) -> tuple[Diagnosis, ...]:
        """Return what prevents a run."""
        return tuple(each for each in self.diagnoses if each.level == "problem")

    def refuse(self) -> None:
        """Raise MachineError where a problem prevents a run, else what `run` would raise of the plan."""
        if self.problems:
            raise MachineError("this machine is not ready", remedy="correct what is marked PROBLEM above")
        if self.refusal is not None:
            raise self.refusal


def diagnose(root: Path, settings: Settings) -> LineDiagnosis:
    """Look at everything and change nothing. Raises NoDevice for a device that is not there."""
    machine, selection = seen = run_setup.look_at_devices(settings)
    try:
        setup = run_setup.prepare_run(root, settings, seen=seen)
    except NoDevice as error:
        disks = written_disks(root)
        around = Surroundings(machine, selection, read_load(), None, in_the_way=(error,), disks=disks)
        return LineDiagnosis(examine_surroundings(around))
    return diagnose_line(setup)


def diagnose_line(setup: RunSetup) -> LineDiagnosis:
    """Look at everything that a line needs here, and choose its trials."""
    chosen, refusal = None, None
    try:
        chosen = choose_trials(setup)
    except GpudynoError as error:
        refusal = error
    around = replace(look_around(setup), load=read_load(), data=data_needs(setup), plan=setup.plan.name)
    return LineDiagnosis(examine_surroundings(around), chosen, refusal)


def data_needs(setup: RunSetup) -> tuple[DataNeed, ...]:
    """Return each data set and weight file of a plan, and whether it is at hand."""
    kind = setup.selection.kind
    folders = data_folders(setup.settings, setup.root)
    needs = []
    for name in chain.from_iterable(run_setup.data_names(setup.plan, kind)):
        copies = [
            find_presence(name, folder) for folder in (folders.own, folders.cache) if folder is not None
        ]
        corrupt = next((copy for copy in copies if copy.state == "corrupt"), None)
        needs.append(
            DataNeed(
                name=name,
                at_hand=any(copy.state == "complete" for copy in copies),
                download_bytes=0 if name == CHEST_XRAY else DATASETS[name].download_bytes,
                problem=f"data: '{corrupt.file}' is not what its hash says: {corrupt.why}" if corrupt else "",
            )
        )
    return tuple(needs)


def is_built(setup: RunSetup) -> bool:
    """Return whether the environment is made already."""
    try:
        setup.engine.built_environment(setup.image)
    except NotBuilt:
        return False
    return True


def doctor(root: Path, settings: Settings) -> None:
    """Print what this machine can do; raises what `run` would refuse its line for."""
    found = diagnose(root, settings)
    print("\n".join(diagnosis_lines(found.diagnoses)))
    found.refuse()
