"""A model, data and loss of the user's own, measured as the other workloads are.

The plan names a file in the clone, which comes beside the trial: see docs/extending.md for what it holds. The
protocol is the user's, its name the plan's, and the record has the hash of the file and of what it imports
from here.
"""

from parts.trial import TrialProcess, main  # isort: skip  (its clock starts with this line)

from functools import partial
from typing import Any

from parts import launcher
from parts.training.fit import fit
from parts.training.own_file import (
    OwnFile,
    checked_data,
    checked_model,
    failing_with_line,
    load,
)
from parts.training.setting import SHARING, Setting, over_processes


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the user's file, in this process or in its ranks."""
    file = load(trial)
    return over_processes(trial, partial(train, file), {**SHARING, **file.constant("OPTIONS")})


def train(file: OwnFile, setting: Setting) -> dict[str, Any]:
    """Train in this process and return what it measured."""
    trial, loop, quality = setting.trial, file.loop, file.quality
    with failing_with_line(file):
        trial.stage("data")
        with trial.phase("data"):
            batches, valid = checked_data(file, setting)
        trial.stage("setup")
        model = checked_model(file, setting)
        measured = fit(
            setting,
            model,
            batches,
            valid,
            file.loss,
            lambda model: file.optimiser(model, setting),
            loop,
            quality=quality,
            schedule=lambda given: file.schedules(given, setting),
            data={"name": "own", **setting.data_read},
        )
    titles = {"title": file.constant("TITLE"), "about": file.constant("ABOUT")}
    return dict(measured, **titles)


if __name__ == "__main__":
    launcher.settle()
    main(run)
