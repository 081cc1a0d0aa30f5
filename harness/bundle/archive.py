"""One archive: the same bytes for the same files, and read as if an enemy had written it.

A gzipped tar file whose owners, modes and times are fixed. Its checksum finds damage; a change that somebody
meant is found by the list of checksums in it, and by that list's signature.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from harness.errors import MachineError, UserError

TOP = "gpudyno-bundle"
"""The one folder that every name lies in."""

MOST_FILES = 50_000
MOST_FILE_BYTES = 64 * 2**20
MOST_BYTES = 2 * 2**30
MOST_RATIO = 200
"""The most times its packed bytes that a bundle unfolds to, from the first few MiB on."""

_FREE_BYTES = 32 * 2**20
_PIECE_BYTES = 16 * 2**10
"""Files are copied in pieces of this size, and no extended header may be larger."""
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,180}"
_NAME = re.compile(rf"{_PART}(?:/{_PART}){{0,7}}")
_BROKEN = (tarfile.TarError, EOFError, zlib.error, ValueError, LookupError, RecursionError)
"""What a damaged archive makes the readers raise."""


@dataclass
class Unpacked:
    """The names of the files that were read, in their order, and what is wrong with the archive itself."""

    names: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def pack(files: Mapping[str, bytes], out: IO[bytes]) -> None:
    """Write the files, in their order, under their names below the top folder, with no owner, mode or time.

    Raises UserError for a name that `unpack` would refuse.
    """
    with (
        gzip.GzipFile("", "wb", 9, out, mtime=0) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, content in files.items():
            if not _NAME.fullmatch(name):
                raise UserError(f"'{name}' is no name for a file of an archive", remedy="rename it")
            info = tarfile.TarInfo(f"{TOP}/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def unpack(path: Path, folder: Path) -> Unpacked:
    """Read an archive into an empty `folder`, as far as it can be read; what is damaged is a problem.

    Raises UserError where it cannot be opened, or holds a name that leaves its folder, a link or a device, a
    name twice, or more files or bytes than a bundle has; MachineError where Python is too old.
    """
    if not hasattr(tarfile, "data_filter"):
        raise MachineError("this Python cannot unpack a bundle safely", remedy="take Python 3.11.4 or newer")
    unpacked = Unpacked()
    try:
        source = path.open("rb")
    except OSError as error:
        raise UserError(f"'{path}' cannot be read ({error.strerror})", remedy="name a bundle") from None
    with source:
        most_bytes = min(MOST_BYTES, _FREE_BYTES + MOST_RATIO * path.stat().st_size)
        try:
            _extract(_Bounded(source, most_bytes), folder, unpacked)
        except _BROKEN as error:
            after = f"after '{unpacked.names[-1]}'" if unpacked.names else "at its beginning"
            unpacked.problems.append(f"the archive: it breaks {after} ({error})")
    return unpacked


class _Bounded(io.BufferedIOBase):
    """What one gzip member unfolds to: read forward, in small pieces, and no further than `most_bytes`."""

    def __init__(self, source: IO[bytes], most_bytes: int) -> None:
        self._source = source
        self._unfolding = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        self._most_bytes = most_bytes
        self._at = 0

    def tell(self) -> int:
        return self._at

    def read(self, size: int | None = None, /) -> bytes:
        if size is None or not 0 <= size <= _PIECE_BYTES:
            raise tarfile.ReadError("a header is longer than any of ours")
        piece = b""
        while len(piece) < size and not self._unfolding.eof:
            packed = self._unfolding.unconsumed_tail or self._source.read(_PIECE_BYTES)
            more = self._unfolding.decompress(packed, size - len(piece))
            if not packed and not more:
                raise EOFError("it is cut short")
            piece += more
        self._at += len(piece)
        if self._at > self._most_bytes:
            raise UserError(
                f"the archive unfolds to more than {self._most_bytes // 2**20} MiB",
                remedy="no bundle is as large; do not unpack it",
            )
        return piece

    def seek(self, offset: int, whence: int = 0, /) -> int:
        if offset < self._at:
            raise tarfile.ReadError("its list of files leads back")
        while self._at < offset and self.read(min(offset - self._at, _PIECE_BYTES)):
            pass
        return self._at

    def finish(self) -> None:
        """Read to the end of the file, where its checksum is; raises ReadError where more is there."""
        while piece := self.read(_PIECE_BYTES):
            if piece.strip(b"\0"):
                raise tarfile.ReadError("something follows its end")
        if self._unfolding.unused_data or self._source.read(1):
            raise tarfile.ReadError("a second archive follows its end")


def _extract(source: _Bounded, folder: Path, unpacked: Unpacked) -> None:
    taken: set[str] = set()
    with tarfile.TarFile(fileobj=source, copybufsize=_PIECE_BYTES) as tar:
        for count, info in enumerate(tar, 1):
            if count > MOST_FILES:
                raise UserError(
                    f"the archive holds more than {MOST_FILES:,} files",
                    remedy="no bundle is as large; do not unpack it",
                )
            name = _safe_name(info, taken)
            unpacked.names.append(name)
            tar.extract(info.replace(name=name, mode=0o644, mtime=0, deep=False), folder, filter="data")
    source.finish()


def _safe_name(info: tarfile.TarInfo, taken: set[str]) -> str:
    """Return the name below the top folder, added to `taken` with a slash behind each folder that it lies in.

    Raises UserError for whatever is no plain file of a bundle.
    """
    name = info.name.removeprefix(f"{TOP}/")
    folders = {name[: end + 1] for end, letter in enumerate(name) if letter == "/"}
    if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        refused = "is a link" if info.islnk() or info.issym() else "is no plain file"
    elif name == info.name or not _NAME.fullmatch(name):
        refused = f"is no name of a file inside '{TOP}'"
    elif info.linkname or info.pax_headers.keys() - {"path"}:
        refused = "has a header that says more than a name and a size"
    elif not 0 <= info.size <= MOST_FILE_BYTES:
        refused = f"has {info.size:,} bytes, where a file has at most {MOST_FILE_BYTES:,}"
    elif taken & {name, f"{name}/", *(folder.rstrip("/") for folder in folders)}:
        refused = "is there twice"
    else:
        taken |= {name, *folders}
        return name
    shown = info.name[:200].encode("unicode_escape").decode()
    raise UserError(f"the archive's '{shown}' {refused}", remedy="do not unpack it")
