"""PNG files decoded by NumPy, for images whose stacks have no decoder of their own.

Each image of 8 bits in grey or RGB, not interlaced, as the prepared X-rays are. A pixel needs those left of
it, above it, and between: so all pixels of a diagonal are computed at once.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import struct
import zlib
from typing import NoReturn

import numpy as np

from parts.trial import Failed

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3}
"""By the header's type of colour: grey, RGB."""
FILTERS = 5


def pixels(content: bytes) -> np.ndarray:
    """The image of a file as (height, width, 3) in 256 levels; raises Failed for another kind of file."""
    if not content.startswith(SIGNATURE):
        _refuse("begins otherwise")
    header, packed = None, []
    place = len(SIGNATURE)
    while place + 12 <= len(content):
        size, kind = struct.unpack(">I4s", content[place : place + 8])
        part = content[place + 8 : place + 8 + size]
        header = part if kind == b"IHDR" else header
        if kind == b"IDAT":
            packed.append(part)
        place += size + 12
    if header is None or len(header) != 13:
        _refuse("has no header")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    if depth != 8 or colour not in CHANNELS or interlaced:
        _refuse("is not of 8 bits in grey or RGB, or is interlaced")
    try:
        raw = np.frombuffer(zlib.decompress(b"".join(packed)), np.uint8)
    except zlib.error:
        _refuse("cannot be unpacked")
    channels = CHANNELS[colour]
    if len(raw) != height * (1 + width * channels):
        _refuse("is shorter or longer than its header says")
    rows = raw.reshape(height, 1 + width * channels)
    if (rows[:, 0] >= FILTERS).any():
        _refuse("has a filter that is not known")
    image = _unfiltered(rows[:, 0], rows[:, 1:].reshape(height, width, channels))
    return np.repeat(image, 3 // channels, axis=2)


def _unfiltered(filters: np.ndarray, told: np.ndarray) -> np.ndarray:
    """Each pixel is what is told of it and what its row's filter makes of its neighbours, modulo 256."""
    height, width, channels = told.shape
    found = np.zeros((height + 1, width + 1, channels), np.int16)
    for diagonal in range(height + width - 1):
        rows = np.arange(max(0, diagonal - width + 1), min(height, diagonal + 1))
        columns = diagonal - rows
        left, above, between = found[rows + 1, columns], found[rows, columns + 1], found[rows, columns]
        guesses = (0, left, above, (left + above) >> 1, _paeth(left, above, between))
        guess = np.choose(filters[rows][:, None], guesses)
        found[rows + 1, columns + 1] = (told[rows, columns] + guess) & 255
    return found[1:, 1:].astype(np.uint8)


def _paeth(left: np.ndarray, above: np.ndarray, between: np.ndarray) -> np.ndarray:
    """The neighbour nearest to left + above - between; of equals the first of these."""
    from_left, from_above = np.abs(above - between), np.abs(left - between)
    from_between = np.abs(left + above - 2 * between)
    other = np.where(from_above <= from_between, above, between)
    return np.where((from_left <= from_above) & (from_left <= from_between), left, other)


def _refuse(why: str) -> NoReturn:
    raise Failed("bad-data", "a PNG of the X-rays %s; prepare it again" % why)
