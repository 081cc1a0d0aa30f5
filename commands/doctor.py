"""Reads all that `invoke doctor` judges; what cannot be settled goes in as its reason."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from harness.data.catalog import DATASETS
from harness.data.check import present
from harness.data.fetch import default_folder
from harness.doctor.findings import examine, lines
from harness.doctor.surroundings import (
    DataNeed,
    Diagnosis,
    Estimate,
    Surroundings,
    card_access,
    disk,
    reach,
    silent_cards,
)
from harness.engine.container import shared_memory
from harness.engine.docker import DockerEngine
from harness.engine.find import search
from harness.errors import GpudynoError, MachineError, NoDevice, NotBuilt
from harness.machine import Selection, load, state_folder
from harness.plan import plan
from harness.record import Machine
from harness.run import setup
from harness.run.choice import choose
from harness.run.setup import Bench
from harness.settings import Settings

BUILD_SECONDS = {"venv": 90.0, "docker": 180.0, "podman": 300.0}
BUILD_BYTES = {"cpu": 2 * 10**9, "cuda": 12 * 10**9, "rocm": 40 * 10**9}


def diagnose(root: Path, settings: Settings) -> Diagnosis:
    """Looks at everything and changes nothing. Raises NoDevice for a device that is not there."""
    machine, selection = seen = setup.devices(settings)
    bench, problem = _bench(root, settings, seen)
    engine = bench.engine if bench and isinstance(bench.engine, DockerEngine) else None
    needs = _data_needs(bench) if bench else ()
    around = Surroundings(
        machine=machine,
        selection=selection,
        load=load(),
        engine=engine.facts() if engine else None,
        refused=search(os.environ).refused if engine is None else (),
        access=card_access(),
        silent_cards=silent_cards(machine),
        image_problem=problem,
        disks=(
            disk("this clone", root),
            disk("data", default_folder()),
            disk("this user's state", state_folder()),
        ),
        data=needs,
        answered=reach(_hosts(needs)),
    )
    return examine(around, _estimate(bench) if bench else None)


def _bench(root: Path, settings: Settings, seen: tuple[Machine, Selection]) -> tuple[Bench | None, str]:
    try:
        return setup.bench(root, settings, seen=seen), ""
    except NoDevice as error:
        return None, str(error)


def _data_needs(bench: Bench) -> tuple[DataNeed, ...]:
    kind = bench.selection.kind
    folders = setup.data_folders(bench.settings)
    names = [
        *plan.datasets(bench.plan, kind),
        *(f"weights-{model}" for model in plan.pretrained_models(bench.plan, kind)),
    ]
    needs = []
    for name in names:
        there = [present(name, folder) for folder in (folders.own, folders.cache) if folder is not None]
        corrupt = next((found for found in there if found.state == "corrupt"), None)
        needs.append(
            DataNeed(
                name=name,
                at_hand=any(found.state == "complete" for found in there),
                download_bytes=DATASETS[name].download_bytes,
                may_be_generated=bench.plan.generated_data or name.startswith("weights-"),
                problem=f"data: '{corrupt.file}' is not what its hash says: {corrupt.why}" if corrupt else "",
            )
        )
    return tuple(needs)


def _hosts(needs: tuple[DataNeed, ...]) -> tuple[str, ...]:
    """The first host of each data set that is missing."""
    first = [DATASETS[need.name].ways[0][0].urls[0] for need in needs if not need.at_hand]
    return tuple(dict.fromkeys(urlsplit(url).hostname or "" for url in first))


def _estimate(bench: Bench) -> Estimate | None:
    try:
        chosen = choose(bench)
        built = _is_built(bench)
    except GpudynoError:
        return None
    return Estimate(
        plan=bench.plan.name,
        image=bench.image.name,
        built=built,
        trials=len(chosen.planned),
        trial_seconds=chosen.seconds,
        build_seconds=BUILD_SECONDS.get(bench.engine.name, 0.0),
        build_bytes=BUILD_BYTES.get(bench.image.name, 0),
        shared_memory_bytes=max(shared_memory(item.trial) for item in chosen.planned),
        left_out=sum(left.trials for left in chosen.left_out),
    )


def _is_built(bench: Bench) -> bool:
    try:
        bench.engine.built(bench.image)
    except NotBuilt:
        return False
    return True


def doctor(root: Path, settings: Settings) -> None:
    """Prints what this machine can do; raises MachineError where something stands in the way."""
    diagnosis = diagnose(root, settings)
    print("\n".join(lines(diagnosis)))
    if not diagnosis.ready:
        raise MachineError("something stands in the way", remedy="mend what is marked PROBLEM above")
