"""Where a run's data lies: the user's own folder, and what of it one trial sees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.data import fetch
from harness.errors import DataError
from harness.plan.plan import Plan
from harness.record import TrialSpec
from harness.settings import Settings

DATA = "data"


def data_folders(settings: Settings, root: Path) -> fetch.DataFolders:
    """The user's own data folder, else the clone's where it has one, and ours."""
    own = Path(settings.data).expanduser().absolute() if settings.data else root / DATA
    return fetch.DataFolders(own if settings.data or own.is_dir() else None, cache=fetch.default_folder())


def trial_data(
    run_plan: Plan, trial: TrialSpec, resolved: Mapping[str, fetch.Resolved], own: Path | None = None
) -> tuple[tuple[str, Path], ...]:
    """The folders under /data that one trial sees: its data, its weights or program, one of the user's own.

    `own` is the user's data folder; raises DataError where it lacks what a measure names.
    """
    request = trial.asked
    measures = [
        measure
        for measure in run_plan.measure
        if (measure.workload, measure.protocol) == (request.workload, request.protocol)
        and measure.file == (request.file.name if request.file else None)
    ]
    names = [measure.data for measure in measures if measure.data]
    if request.weights == "pretrained":
        names.append(f"weights-{request.variant.model}")
    program = run_plan.programs.get(request.file.name) if request.file else None
    if program is not None:
        names.append(program.folder)
    folders = {
        answer.subfolder: answer.folder / answer.subfolder
        for name in names
        if (answer := resolved.get(name)) and answer.folder is not None and answer.subfolder is not None
    }
    for folder in (measure.folder for measure in measures if measure.folder):
        if own is None or not (own / folder).is_dir():
            raise DataError(
                f"plan '{run_plan.name}' needs the folder '{folder}', and your data folder has none",
                remedy="put it there, and name the data folder with GPUDYNO_DATA",
            )
        folders[folder] = own / folder
    return tuple(sorted(folders.items()))
