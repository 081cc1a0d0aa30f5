"""Bundles that are packed, opened, changed as a forger would, and verified."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import bundle
from harness.bundle import archive, contents
from harness.errors import GateError

PURCHASE = """
currency = "EUR"

[[offer]]
card = "Constructed Card A"
price_per_hour = 1.5
date = 2026-01-02
source = "constructed for a test"
"""


def packed(clone: Path, folder: Path, **how: Any) -> Path:
    """A clone's bundle for many tests, packed on a machine whose state lies in the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUDYNO_STATE", str(folder / "state"))
        return bundle.pack(clone, bundle.Packing(out=folder / "offer.tar.gz", **how))


def opened(path: Path, folder: Path) -> contents.Opened:
    folder.mkdir()
    return contents.open_bundle(path, folder)


def differs(path: Path, capsys, signers: Path | None = None) -> str:
    """What `verify` says of a bundle that is not as it was packed."""
    with pytest.raises(GateError, match="not as they were packed"):
        bundle.verify(path, signers)
    return capsys.readouterr().err


def forged(good: Path, folder: Path, change: Callable[[Path], object], *, sums: bool = True) -> Path:
    """The bundle with something changed and, as a forger would, with fitting checksums."""
    work = folder / "forged"
    work.mkdir(parents=True)
    archive.unpack(good, work)
    change(work)
    out = folder / "forged.tar.gz"
    if sums:
        names = contents.names_in(work)
        lines = [f"{contents.sha256_of(work / name)}  {name}\n" for name in names]
        (work / contents.SUMS).write_text("".join(lines))
    first = [name for name in (contents.SUMS, contents.SIGNATURE) if (work / name).is_file()]
    with out.open("wb") as file:
        archive.pack([(name, work / name) for name in (*first, *contents.names_in(work))], file)
    return out


def replaced(name: str, old: str, new: str) -> Callable[[Path], object]:
    def change(work: Path) -> None:
        (path,) = work.glob(name)
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change
