"""Reads all that `invoke doctor` judges; what cannot be settled goes in as its reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

from harness.data import chest_xray
from harness.data.datasets import DATASETS, check_dataset
from harness.doctor.diagnosis import diagnosis_lines, examine_surroundings
from harness.doctor.surroundings import (
    DataNeed,
    Diagnosis,
    PlanEstimate,
    Surroundings,
    reach_hosts,
)
from harness.engine.container import shared_memory_bytes
from harness.engines import ENGINES
from harness.errors import GpudynoError, MachineError, NoDevice, NotBuilt
from harness.machine import machine_id, read_load, user_state_folder
from harness.run import setup as run_setup
from harness.run.choice import Chosen, choose_trials
from harness.run.obstacles import look_around, written_disks
from harness.run.setup import RunSetup, data_folders
from harness.settings import Settings


def diagnose(root: Path, settings: Settings) -> tuple[Diagnosis, ...]:
    """Look at everything and change nothing. Raises NoDevice for a device that is not there."""
    machine, selection = seen = run_setup.look_at_devices(settings)
    try:
        setup = run_setup.prepare_run(root, settings, seen=seen)
    except NoDevice as error:
        disks = written_disks(root, "")
        around = Surroundings(machine, selection, read_load(), None, in_the_way=(error,), disks=disks)
        return examine_surroundings(around)
    return diagnose_line(setup)


def diagnose_line(setup: RunSetup, chosen: Chosen | None = None) -> tuple[Diagnosis, ...]:
    """Look at everything that a line needs here; its trials are `chosen` unless they are by now."""
    around, needs = look_around(setup), data_needs(setup)
    met, refusal, estimate = list(around.in_the_way), None, None
    try:
        machine_id(user_state_folder())
    except MachineError as error:
        met.append(error)
    try:
        if not around.in_the_way:
            estimate = estimate_plan(setup, chosen or choose_trials(setup))
    except GpudynoError as error:
        refusal = Diagnosis("problem", error.problem, error.remedy or "")
    surroundings = replace(
        around,
        load=read_load(),
        in_the_way=tuple(met),
        plan_problem=refusal,
        data=needs,
        answered=reach_hosts(_addresses(needs)),
    )
    return examine_surroundings(surroundings, estimate)


def data_needs(setup: RunSetup) -> tuple[DataNeed, ...]:
    """Return each data set and weight file of a plan, and whether it is at hand."""
    kind = setup.selection.kind
    folders = data_folders(setup.settings, setup.root)
    needs = []
    for name in chain.from_iterable(run_setup.data_names(setup.plan, kind)):
        made_here = name == chest_xray.NAME
        copies = [
            chest_xray.xray_presence(folder) if made_here else check_dataset(DATASETS[name], folder)
            for folder in (folders.own, folders.cache)
            if folder is not None
        ]
        corrupt = next((copy for copy in copies if copy.state == "corrupt"), None)
        needs.append(
            DataNeed(
                name=name,
                at_hand=any(copy.state == "complete" for copy in copies),
                download_bytes=0 if made_here else DATASETS[name].download_bytes,
                may_be_generated=not made_here and (setup.plan.generated_data or name.startswith("weights-")),
                problem=f"data: '{corrupt.file}' is not what its hash says: {corrupt.why}" if corrupt else "",
            )
        )
    return tuple(needs)


def _addresses(needs: tuple[DataNeed, ...]) -> tuple[str, ...]:
    """Return the first address of each data set that is missing, one a host."""
    fetched = [need.name for need in needs if not need.at_hand and need.name != chest_xray.NAME]
    first = [DATASETS[name].downloads[0].urls[0] for name in fetched]
    return tuple({urlsplit(url).hostname: url for url in reversed(first)}.values())


def estimate_plan(setup: RunSetup, chosen: Chosen, *, anywhere: bool = False) -> PlanEstimate:
    """Return what the plan's trials will need; `anywhere` has nothing of it yet."""
    return PlanEstimate(
        plan=setup.plan.name,
        image=setup.image.name,
        built=not anywhere and _is_built(setup),
        trials=len(chosen.planned),
        time=chosen.time,
        build_seconds=ENGINES[setup.engine.name].build_seconds,
        build_bytes=setup.image.build_bytes,
        as_it_is=setup.settings.python is not None,
        shared_memory_bytes=max(shared_memory_bytes(item.trial) for item in chosen.planned),
        left_out=sum(left.trials for left in chosen.left_out),
    )


def _is_built(setup: RunSetup) -> bool:
    """Return whether the environment is made already."""
    try:
        setup.engine.built_environment(setup.image)
    except NotBuilt:
        return False
    return True


def doctor(root: Path, settings: Settings) -> None:
    """Print what this machine can do; raises MachineError where a problem prevents a run."""
    diagnoses = diagnose(root, settings)
    print("\n".join(diagnosis_lines(diagnoses)))
    refuse_problems(diagnoses)


def refuse_problems(diagnoses: Iterable[Diagnosis]) -> None:
    """Raise MachineError where a diagnosis is a problem."""
    if any(diagnosis.level == "problem" for diagnosis in diagnoses):
        raise MachineError("this machine is not ready", remedy="correct what is marked PROBLEM above")
