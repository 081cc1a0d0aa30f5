"""Reads all that `invoke doctor` judges; what cannot be settled goes in as its reason."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

from harness.data import chest_xray
from harness.data.datasets import DATASETS, check_dataset
from harness.data.fetch import default_folder
from harness.doctor.diagnosis import diagnosis_lines, examine_surroundings
from harness.doctor.surroundings import (
    DataNeed,
    Diagnosis,
    Disk,
    PlanEstimate,
    Surroundings,
    device_files,
    reach_hosts,
)
from harness.engine.choose import search_engines
from harness.engine.container import shared_memory_bytes
from harness.engine.docker import DockerEngine
from harness.engines import ENGINES
from harness.errors import GpudynoError, MachineError, NoDevice, NotBuilt
from harness.files import Files, free_bytes
from harness.image.spec import ENGINE_NEEDED
from harness.machine import machine_id, read_load, user_state_folder
from harness.run import setup as run_setup
from harness.run.choice import choose_trials
from harness.run.setup import RunSetup, data_folders
from harness.settings import Settings


def diagnose(root: Path, settings: Settings) -> tuple[Diagnosis, ...]:
    """Look at everything and change nothing. Raises NoDevice for a device that is not there."""
    machine, selection = seen = run_setup.look_at_devices(settings, refuse=False)
    setup, in_the_way = None, list[MachineError]()
    try:
        machine_id(user_state_folder())
    except MachineError as error:
        in_the_way.append(error)
    try:
        setup = run_setup.prepare_run(root, settings, seen=seen, refuse=False)
    except NoDevice as error:
        in_the_way.append(error)
    engine = setup.engine if setup and isinstance(setup.engine, DockerEngine) else None
    needs = data_needs(setup) if setup else ()
    estimate, refusal = _plan_estimate(setup) if setup else (None, None)
    surroundings = Surroundings(
        machine=machine,
        selection=selection,
        load=read_load(),
        engine=engine.facts if engine else None,
        refused=search_engines(os.environ).refused if engine is None else (),
        refusal=engine.refusal(run_setup.device_request(selection)) if engine else None,
        nodes=device_files(Files()),
        in_the_way=tuple(in_the_way),
        older_rocm=setup.older_rocm if setup else "",
        plan_problem=refusal,
        disks=(
            Disk("this clone", root, free_bytes(root), "" if engine else "image"),
            Disk("data", default_folder(), free_bytes(default_folder()), "data"),
            Disk("this user's state", user_state_folder(), free_bytes(user_state_folder())),
        ),
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


def _plan_estimate(setup: RunSetup) -> tuple[PlanEstimate | None, Diagnosis | None]:
    """Return what the plan will need here; else why `run` would refuse it."""
    if lacking := run_setup.environment_problem(setup.image, setup.engine, setup.settings):
        return None, Diagnosis("problem", lacking, ENGINE_NEEDED)
    try:
        chosen = choose_trials(setup)
        built = is_built(setup)
    except GpudynoError as error:
        return None, Diagnosis("problem", error.problem, error.remedy or "")
    estimate = PlanEstimate(
        plan=setup.plan.name,
        image=setup.image.name,
        built=built,
        trials=len(chosen.planned),
        time=chosen.time,
        build_seconds=ENGINES[setup.engine.name].build_seconds,
        build_bytes=setup.image.build_bytes,
        as_it_is=setup.settings.python is not None,
        shared_memory_bytes=max(shared_memory_bytes(item.trial) for item in chosen.planned),
        left_out=sum(left.trials for left in chosen.left_out),
    )
    return estimate, None


def is_built(setup: RunSetup) -> bool:
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
    if any(diagnosis.level == "problem" for diagnosis in diagnoses):
        raise MachineError("this machine is not ready", remedy="correct what is marked PROBLEM above")
