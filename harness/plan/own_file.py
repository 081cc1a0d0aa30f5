"""The file of the user's that a measure of the workload `custom` names."""

from __future__ import annotations

import hashlib
from pathlib import Path

from harness.errors import PlanError
from harness.record.trial import OwnFile

CUSTOM = "custom"


def sha256(workload: str, file: str | None, folder: str | None, root: Path, where: str) -> str | None:
    """The hash of the file that a measure of a workload names; null where the workload takes none.

    Raises PlanError where it names none that is there, or has to name none.
    """
    if workload != CUSTOM:
        for key, named in (("file", file), ("folder", folder)):
            if named:
                raise PlanError(
                    f"{where}: {workload}: it takes no '{key}'",
                    remedy=f"leave it out, or take workload = '{CUSTOM}'",
                )
        return None
    if file is None:
        raise PlanError(
            f"{where}: the workload '{CUSTOM}' needs a file",
            remedy="write file = 'examples/gpt_wikitext.py', or another; see docs/extending.md",
        )
    path = (root / file).resolve()
    if not path.is_file() or not path.is_relative_to(root.resolve()):
        raise PlanError(
            f"{where}: there is no file '{file}' in the clone",
            remedy="name it as it lies below the clone's folder",
        )
    text = path.read_bytes()
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise PlanError(f"'{file}' is not UTF-8: {error}", remedy="save it as UTF-8") from None
    return hashlib.sha256(text).hexdigest()


def content(root: Path, file: OwnFile) -> str:
    """The file's text; raises PlanError if it is not what was planned any more."""
    path = root / file.name
    text = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(text).hexdigest() != file.sha256:
        raise PlanError(f"'{file.name}' was changed since the session began", remedy="start the line again")
    return text.decode()
