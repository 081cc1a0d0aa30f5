"""A pattern, other at every address, written to most of the free memory, then read back and compared."""

from __future__ import annotations

import os
import time
from typing import Any

import torch

from parts.timing.clock import stopwatch

SHARE = 0.9
SMALL_BYTES, SMALL_SHARE = 256 * 2**20, 0.1
"""Of a processor's memory, at most and of what is free."""
BLOCK_BYTES, SMALL_BLOCK_BYTES = 256 * 2**20, 16 * 2**20
SECONDS = 10.0
"""After these no further pass begins, and the memory is what was written by half of them."""
FACTOR = -7046029254386353131
"""Odd, so that no two addresses have one word; of 2^64 over the golden ratio."""


@torch.no_grad()
def kept(device: torch.device, *, small: bool) -> dict[str, Any]:
    """How many words came back otherwise than they were written, in two passes, the second one turned."""
    began, words = time.perf_counter(), (SMALL_BLOCK_BYTES if small else BLOCK_BYTES) // 8
    free = _free_bytes(device, small)
    wanted = min(SMALL_BYTES, SMALL_SHARE * free) if small else SHARE * free
    blocks = _blocks(device, words, max(1, int(wanted // (8 * words)) - 2))
    expected = torch.empty(words, dtype=torch.int64, device=device)
    wrong = torch.zeros((), dtype=torch.int64, device=device)
    write_seconds = read_seconds = 0.0
    passes = 0
    for turned in (False, True):
        if passes and time.perf_counter() - began > SECONDS / 2:
            break
        with stopwatch(device) as written:
            for number, block in enumerate(blocks):
                _pattern(block, number, turned)
                if not passes and number % 8 == 7 and device.type == "cuda":
                    torch.cuda.synchronize(device)
                    if time.perf_counter() - began > SECONDS / 2:
                        del blocks[number + 1 :]
                        break
        with stopwatch(device) as read:
            for number, block in enumerate(blocks):
                _pattern(expected, number, turned)
                wrong += (block != expected).sum()
        write_seconds, read_seconds = write_seconds + written[0], read_seconds + read[0]
        passes += 1
    found = {
        "free_bytes": free,
        "tested_bytes": 8 * words * len(blocks),
        "passes": passes,
        "wrong_words": int(wrong),
        "write_seconds": write_seconds,
        "read_seconds": read_seconds,
    }
    del blocks, block, expected
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return found


def _pattern(into: torch.Tensor, number: int, turned: bool) -> None:
    first = number * len(into)
    torch.arange(first, first + len(into), out=into)
    into.mul_(FACTOR)
    if turned:
        into.bitwise_not_()


def _blocks(device: torch.device, words: int, most: int) -> list[torch.Tensor]:
    """As many blocks as are wanted, or as there is memory for."""
    blocks: list[torch.Tensor] = []
    try:
        while len(blocks) < most:
            blocks.append(torch.empty(words, dtype=torch.int64, device=device))
    except torch.OutOfMemoryError:
        # What compares needs room too.
        del blocks[-4:]
    return blocks


def _free_bytes(device: torch.device, small: bool) -> int:
    if small:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    torch.cuda.empty_cache()
    return int(torch.cuda.mem_get_info(device)[0])
