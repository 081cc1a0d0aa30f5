"""Archives that others send: bundles of records, and packs across an air gap."""

from __future__ import annotations

import gzip
import io
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random

from commands import offer
from harness.bundle.bundle import SUMS, open_bundle
from harness.errors import UserError
from harness.pack import unpack
from tests.campaign.attack import Attack, Broken
from tests.campaign.mutation import STRINGS, changed_bytes, changed_json
from tests.harness.pack.test_unpack import FILES, packed, tree
from tests.helpers import bundled
from tests.helpers.forged_bundles import forged

TYPES = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, b"S", b"x")


@cache
def bundle() -> bytes:
    """Of two constructed sessions."""
    with tempfile.TemporaryDirectory() as name:
        other = bundled.one_card(bundled.OTHER, digits="b", seconds=0.009, card="Constructed Card B")
        clone = bundled.write(Path(name) / "clone", [*bundled.one_card(), *other])
        (clone / "results" / "claims").mkdir()
        return offer.pack(clone, offer.Packing(out=Path(name) / "offer.tar.gz")).read_bytes()


@cache
def _pack() -> bytes:
    with tempfile.TemporaryDirectory() as name:
        return packed(Path(name)).read_bytes()


def _changed(archive: bytes, rng: Random) -> bytes:
    """Its bytes, or one of its members: another name, kind, owner or content, or it stands twice."""
    if rng.random() < 0.4:
        return changed_bytes(archive, rng)
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as old, tarfile.open(fileobj=out, mode="w") as new:
        members = old.getmembers()
        chosen = rng.randrange(len(members))
        for at, info in enumerate(members):
            file = old.extractfile(info)
            content = file.read() if file else b""
            if at == chosen:
                content = _member(info, content, rng)
            info.size = len(content) if info.type == tarfile.REGTYPE else 0
            for _ in range(2 if at == chosen and rng.random() < 0.1 else 1):
                new.addfile(info, io.BytesIO(content))
    return out.getvalue()


def _member(info: tarfile.TarInfo, content: bytes, rng: Random) -> bytes:
    how = rng.randrange(4)
    if how == 0:
        name = rng.choice(STRINGS).replace("\0", "") or "x"
        info.name = rng.choice((name, f"{info.name.split('/')[0]}/{name}", f"{info.name}/{name}"))
    elif how == 1:
        info.type, info.linkname = rng.choice(TYPES), rng.choice(("/etc/passwd", "../../outside", "x"))
    elif how == 2 and content.startswith(b"{"):
        return changed_json(content, rng)
    else:
        return changed_bytes(content, rng)
    return content


def _one_changed(rng: Random) -> Callable[[Path], None]:
    """Changes one file of a bundle."""

    def change(work: Path) -> None:
        path = rng.choice(sorted(path for path in work.rglob("*") if path.is_file() and path.name != SUMS))
        content = path.read_bytes()
        as_json = content.startswith(b"{") and path.suffix == ".json"
        path.write_bytes((changed_json if as_json else changed_bytes)(content, rng))

    return change


@cache
def _bundled_files() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "a"
        path.write_bytes(bundle())
        (Path(name) / "out").mkdir()
        open_bundle(path, Path(name) / "out")
        return tree(Path(name) / "out")


def _bundle_attack(rng: Random, root: Path) -> None:
    """A bundle that is said to be whole holds what was packed, byte for byte."""
    resealed = rng.random() < 0.5
    path, folder = root / "offer.tar.gz", root / "out"
    path.write_bytes(bundle())
    if resealed:
        content = forged(path, root, _one_changed(rng)).read_bytes()
    else:
        content = gzip.compress(_changed(gzip.decompress(bundle()), rng), 1)
    path.write_bytes(content if rng.random() < 0.9 else changed_bytes(content, rng))
    folder.mkdir()
    whole = not open_bundle(path, folder).problems
    if whole and not resealed and tree(folder) != _bundled_files():
        raise Broken("silent wrong figures", "a bundle with other files is said to be whole")


def _pack_attack(rng: Random, root: Path) -> None:
    """A pack that is unpacked holds what was packed, byte for byte."""
    path, folder = root / "mine.tar", root / "out"
    path.write_bytes(_changed(_pack(), rng))
    try:
        unpack.unpack(str(path), str(folder))
    except unpack.Refused as error:
        raise UserError(str(error)) from None
    found = tree(folder)
    if any(found.get(name) != content for name, content in FILES.items()):
        raise Broken("silent wrong figures", "a pack with other files is unpacked")


ATTACKS: Mapping[str, Attack] = {"bundle": _bundle_attack, "pack": _pack_attack}
