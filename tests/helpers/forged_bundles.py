"""Bundles that are packed, opened, changed as a forger would, and judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import bundle
from commands.recipient import judged
from harness.bundle import archive, contents
from harness.bundle.judgement import Demand, Judgement, judge
from harness.bundle.statement import Envelope, Predicate, Statement, json_bytes, resources
from harness.errors import GateError
from harness.record import store
from tests.helpers import ROOT


def packed(clone: Path, folder: Path, **how: Any) -> Path:
    """A clone's bundle for many tests, packed on a machine whose state lies in the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUDYNO_STATE", str(folder / "state"))
        return bundle.pack(clone, bundle.Packing(out=folder / "offer.tar.gz", **how))


def judgement(path: Path, **asked: Any) -> Judgement:
    """What a recipient finds who has this repository."""
    return judge(path, ROOT, Demand(**asked))


def differs(path: Path, capsys, **asked: Any) -> str:
    """What a recipient is told of a bundle that is refused."""
    with pytest.raises(GateError, match="is not as it was packed"):
        judged(ROOT, path, Demand(**asked))
    return capsys.readouterr().err


def files_of(path: Path, folder: Path) -> dict[str, bytes]:
    """Every file of a bundle by its name."""
    folder.mkdir(parents=True)
    return {name: (folder / name).read_bytes() for name in archive.unpack(path, folder).names}


def statement_of(files: dict[str, bytes]) -> Statement:
    """What a bundle states."""
    return Statement.parse(Envelope.parse(files[contents.STATEMENT], "").content, "")


def forged(
    good: Path, folder: Path, change: Callable[[Path], object], *, resealed: bool = True, **stated: Any
) -> Path:
    """The bundle with something changed and, as a forger would, with a statement that fits it.

    `stated` are parts of the predicate that are changed besides.
    """
    work, out = folder / "forged", folder / "forged.tar.gz"
    statement = statement_of(files_of(good, work))
    sealed = (work / contents.STATEMENT).read_bytes()
    (work / contents.STATEMENT).unlink()
    change(work)
    files = {
        path.relative_to(work).as_posix(): path.read_bytes() for path in work.rglob("*") if path.is_file()
    }
    if resealed:
        figures = contents.figures(store.read_results(work).records)
        predicate = statement.predicate.model_copy(update={"figures": figures, **stated})
        fitting = Statement(subject=resources(files), predicate=Predicate.model_validate(dict(predicate)))
        sealed = json_bytes(Envelope.of(json_bytes(fitting)))
    with out.open("wb") as file:
        archive.pack({contents.STATEMENT: sealed, **files}, file)
    return out


def replaced(name: str, old: str, new: str) -> Callable[[Path], object]:
    """A change of a text in one file."""

    def change(work: Path) -> None:
        (path,) = work.glob(name)
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def with_fields(name: str, **fields: Any) -> Callable[[Path], object]:
    """A change of fields of one JSON file, named as `machine__memory_bytes`."""

    def change(work: Path) -> None:
        (path,) = work.glob(name)
        raw = json.loads(path.read_text())
        for place, value in fields.items():
            *above, last = place.split("__")
            holder = raw
            for part in above:
                holder = holder[int(part) if part.isdigit() else part]
            holder[int(last) if last.isdigit() else last] = value
        path.write_text(json.dumps(raw))

    return change
