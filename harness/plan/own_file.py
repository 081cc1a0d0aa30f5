"""The file that a measure of the workload `program` names."""

from __future__ import annotations

import json
from pathlib import Path

from harness.data.datasets import CHEST_XRAY, check_name, find_dataset
from harness.errors import PlanError
from harness.files import text_sha256
from harness.record import Variant
from harness.record.published.program import Program
from harness.record.trial_spec import OwnFile

PROGRAM, ENDING = "program", ".toml"
NAME = "program.json"
"""What it is called beside a trial, in JSON, which the interpreter of every image reads."""
PROGRAMS = "workloads/programs/*.toml"
"""Those that are here."""
LEAST_RUNS = 3
"""Fresh processes by which a program is judged that prints one figure a run."""


def own_file_sha256(workload: str, file: str | None, root: Path, where: str) -> str | None:
    """Return the hash of the file that a measure of a workload names; null where the workload takes none.

    Raises PlanError where it names none that is there, or has to name none.
    """
    if workload != PROGRAM:
        if file:
            raise PlanError(f"{where}: {workload}: it takes no 'file'", remedy="leave it out")
        return None
    if file is None or not file.endswith(ENDING):
        raise PlanError(
            f"{where}: the workload '{workload}' needs a file that ends in {ENDING}",
            remedy="write file = 'workloads/programs/nanogpt.toml', or another; see docs/extending.md",
        )
    path = root / file
    if not path.is_file() or Path(file).is_absolute() or ".." in Path(file).parts:
        raise PlanError(
            f"{where}: there is no file '{file}' in the clone",
            remedy="name it as it lies below the clone's folder",
        )
    return text_sha256(path.read_bytes())


def own_file_text(root: Path, file: OwnFile) -> str:
    """Return the JSON that goes with a trial; raises PlanError if the file has changed since its plan."""
    path = root / file.name
    text = path.read_bytes() if path.is_file() else b""
    if text_sha256(text) != file.sha256:
        raise PlanError(f"'{file.name}' was changed since the session began", remedy="start the line again")
    program = read_program(text, file.name)
    given = {**program.model_dump(mode="json"), "folder": program.folder}
    if program.input is not None:
        given["input"]["sha256"] = find_dataset(program.input.data).sha256
    return json.dumps(given, indent=1)


def read_program(text: bytes, where: str) -> Program:
    """Return a program's file; raises PlanError naming the file, the key and what is wrong with it."""
    program = Program.parse_toml(text, where, "docs/extending.md has an example")
    try:
        check_name(program.input.data if program.input else CHEST_XRAY)
    except ValueError as error:
        raise PlanError(f"{where}: 'input.data': {error}", remedy="correct the name") from None
    return program


def check_program(
    program: Program, protocol: str, repeats: int, variants: tuple[Variant, ...], where: str
) -> None:
    """Raise PlanError where a measure asks of a program what it cannot do."""
    here = f"{where}: program '{program.name}'"
    if protocol.partition("/")[0] != program.name:
        raise PlanError(f"{here}: its protocol is '{protocol}'", remedy=f"write '{program.name}/1'")
    if program.figure == "run" and repeats < LEAST_RUNS:
        raise PlanError(
            f"{here} prints one figure a run, and {repeats} are asked for", remedy=f"ask for {LEAST_RUNS}"
        )
    for variant in variants:
        if variant.precision != "program":
            raise PlanError(f"{here}: its precision is its own", remedy="write precision = 'program'")
        for name in ("valid_batches", "seconds_at_most"):
            if getattr(variant.limit, name) is not None:
                raise PlanError(f"{here}: nothing can hold it to '{name}'", remedy="leave that limit out")
