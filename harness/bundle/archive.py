"""One archive: the same bytes for the same files, sealed, and read as if an enemy had written it.

A gzipped tar file. Owners, modes and times are fixed, and an extra field of the gzip header, which other
readers skip, holds the SHA-256 of all that follows: no byte of it can change unseen.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import struct
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from harness.errors import UserError

TOP = "gpudyno-bundle"
"""The one folder that every name lies in."""

UNSEALED = "it has no seal"

MOST_FILES = 50_000
MOST_FILE_BYTES = 64 * 2**20
MOST_BYTES = 2 * 2**30

_CHUNK = 2**20
_BLOCK = 512
_FIXED = b"\x1f\x8b\x08\x04\x00\x00\x00\x00\x02\xff" + struct.pack("<H2sH", 36, b"GD", 32)
"""Deflate, an extra field, no time, best compression, an unknown system; the seal's own header."""
_SEAL_BYTES = 32
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,180}"
_NAME = re.compile(rf"{_PART}(?:/{_PART}){{0,7}}")


@dataclass
class Unpacked:
    """The names of the files that were read, in their order, and what is wrong with the archive itself."""

    names: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def pack(files: Sequence[tuple[str, Path]], out: IO[bytes]) -> None:
    """Writes the files, in their order, under their names below the top folder; `out` can be sought in.

    Raises UserError for a name that `unpack` would refuse.
    """
    out.write(_FIXED + bytes(_SEAL_BYTES))
    seal, checksum, size = hashlib.sha256(), 0, 0
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)

    def write(data: bytes) -> None:
        seal.update(data)
        out.write(data)

    for piece in _tar(files):
        checksum, size = zlib.crc32(piece, checksum), size + len(piece)
        write(squeezed.compress(piece))
    write(squeezed.flush())
    write(struct.pack("<LL", checksum, size % 2**32))
    out.seek(len(_FIXED))
    out.write(seal.digest())
    out.seek(0, 2)


def _tar(files: Sequence[tuple[str, Path]]) -> Iterator[bytes]:
    for name, path in files:
        if not _NAME.fullmatch(name):
            raise UserError(f"'{name}' is no name for a file of a bundle", remedy="rename it")
        size = path.stat().st_size
        yield _header(name, size)
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
        yield bytes(-size % _BLOCK)
    yield bytes(2 * _BLOCK)


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(f"{TOP}/{name}")
    info.size = size
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def unpack(path: Path, folder: Path) -> Unpacked:
    """Reads an archive into an empty `folder`, as far as it can be read; what is damaged is a problem.

    Raises UserError where it holds a name that leaves its folder, a link or a device, a name twice, or more
    files or bytes than a bundle has; and where it cannot be opened or is no gzip file at all.
    """
    found = Unpacked()
    try:
        source = path.open("rb")
    except OSError as error:
        raise UserError(f"'{path}' cannot be read ({error.strerror})", remedy="name a bundle") from None
    with source, TemporaryFile() as plain:
        _inflate(source, plain, found)
        plain.seek(0)
        _files(plain, folder, found)
    return found


def _inflate(source: IO[bytes], plain: IO[bytes], found: Unpacked) -> None:
    """The tar file of a gzip file, with every fault of the outer form as a problem."""
    head = source.read(len(_FIXED) + _SEAL_BYTES)
    sealed = head[len(_FIXED) :] if head.startswith(_FIXED) else None
    if sealed is None:
        found.problems.append(f"the archive: {UNSEALED}, so another program packed it, or it was changed")
        source.seek(0)
    squeezed = zlib.decompressobj(-zlib.MAX_WBITS if sealed is not None else zlib.MAX_WBITS | 16)
    seal, size, checksum = hashlib.sha256(), 0, 0
    try:
        for piece in _pieces(squeezed, _chunks(source, seal)):
            size, checksum = size + len(piece), zlib.crc32(piece, checksum)
            if size > MOST_BYTES:
                raise UserError(
                    f"the archive unfolds to more than {MOST_BYTES // 2**20} MiB",
                    remedy="no bundle is as large; do not unpack it",
                )
            plain.write(piece)
    except zlib.error as error:
        found.problems.append(f"the archive: its compressed data breaks after {size:,} bytes ({error})")
    tail = squeezed.unused_data
    for chunk in _chunks(source, seal):
        tail = (tail + chunk)[:64]
    if not squeezed.eof:
        found.problems.append("the archive: its compressed data has no end")
    if sealed is not None and tail != struct.pack("<LL", checksum, size % 2**32):
        found.problems.append("the archive: its checksum and length are not those of its content")
    if sealed is not None and seal.digest() != sealed:
        found.problems.append("the archive: its bytes are not those that its seal was made of")


def _chunks(source: IO[bytes], seal: hashlib._Hash) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK):
        seal.update(chunk)
        yield chunk


def _pieces(squeezed: zlib._Decompress, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """What the chunks unfold to, a bounded piece at a time."""
    for chunk in chunks:
        left = chunk
        while left and not squeezed.eof:
            yield squeezed.decompress(left, _CHUNK)
            left = squeezed.unconsumed_tail
        if squeezed.eof:
            return


def _files(plain: IO[bytes], folder: Path, found: Unpacked) -> None:
    taken: set[str] = set()
    """Files, and the folders that they lie in with a slash behind."""
    long_name: str | None = None
    while True:
        block = plain.read(_BLOCK)
        if block == bytes(_BLOCK):
            break
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError, ValueError):
            after = f"after '{found.names[-1]}'" if found.names else "at its beginning"
            found.problems.append(f"the archive: its list of files breaks {after}")
            return
        _within_bounds(info, len(found.names))
        if info.type == tarfile.XHDTYPE:
            long_name = _long_name(plain.read(info.size + -info.size % _BLOCK)[: info.size])
            continue
        if info.type == tarfile.DIRTYPE:
            continue
        name = _safe(long_name or info.name, info, taken)
        long_name = None
        _take(plain, folder / name, info.size, name, found)
        if block != _header(name, info.size)[-_BLOCK:] and not _said(found):
            found.problems.append(f"'{name}': its entry is not as gpudyno writes it")
    if plain.read(_BLOCK + 1) != bytes(_BLOCK) and not _said(found):
        found.problems.append("the archive: something follows its end")


def _said(found: Unpacked) -> bool:
    """Whether the archive is another program's, whose entries differ in form."""
    return any(UNSEALED in problem for problem in found.problems)


def _within_bounds(info: tarfile.TarInfo, files: int) -> None:
    if not 0 <= info.size <= MOST_FILE_BYTES:
        raise UserError(
            f"the archive's '{info.name[:200]}' has {info.size:,} bytes, where a file has at most "
            f"{MOST_FILE_BYTES:,}",
            remedy="no bundle holds as large a file; do not unpack it",
        )
    if files >= MOST_FILES:
        raise UserError(
            f"the archive holds more than {MOST_FILES:,} files",
            remedy="no bundle is as large; do not unpack it",
        )


def _long_name(data: bytes) -> str:
    """The path of an extended header that holds nothing else, which is all that a bundle's own has."""
    found = re.fullmatch(rb"\d+ path=([^\n\0]{1,1000})\n", data)
    if found is None:
        raise UserError(
            "the archive has an extended header that says more than a path", remedy="do not unpack it"
        )
    return found[1].decode("utf-8", errors="replace")


def _safe(name: str, info: tarfile.TarInfo, taken: set[str]) -> str:
    """The name below the top folder; raises UserError for whatever is no plain file inside it."""
    shown = name[:200].encode("unicode_escape").decode()
    if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        what = "a link" if info.type in (tarfile.SYMTYPE, tarfile.LNKTYPE) else "no plain file"
        raise UserError(f"the archive's '{shown}' is {what}", remedy="do not unpack it")
    inner = name.removeprefix("./").removeprefix(f"{TOP}/")
    if inner in (name, name.removeprefix("./")) or not _NAME.fullmatch(inner):
        raise UserError(
            f"the archive's '{shown}' is no name of a file inside '{TOP}'", remedy="do not unpack it"
        )
    folders = {"/".join(inner.split("/")[:depth]) + "/" for depth in range(1, inner.count("/") + 1)}
    if taken & {inner, f"{inner}/", *(folder.rstrip("/") for folder in folders)}:
        raise UserError(f"the archive holds '{shown}' twice", remedy="do not unpack it")
    taken |= {inner, *folders}
    return inner


def _take(plain: IO[bytes], path: Path, size: int, name: str, found: Unpacked) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    left = size
    with path.open("xb") as file:
        while left and (chunk := plain.read(min(left, _CHUNK))):
            file.write(chunk)
            left -= len(chunk)
    found.names.append(name)
    if left or plain.read(-size % _BLOCK) != bytes(-size % _BLOCK):
        found.problems.append(f"'{name}': it is cut short, or something follows it")


def copy_into(folder: Path, name: str, source: Path) -> None:
    """Copies one file to its name below a folder."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, path)
