"""What the shared parts ask of torch by names that torch 1.0 does not have; import it before them.

Nothing here computes: a later name for what is there, an argument that was not taken yet, and two things that
this torch is without.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

_synchronize = torch.cuda.synchronize


def _synchronize_device(device: torch.device | None = None) -> None:
    with torch.cuda.device(device):
        _synchronize()


def _frombuffer(buffer: Any, dtype: torch.dtype) -> torch.Tensor:
    names = {torch.int32: "int32", torch.uint8: "uint8"}
    return torch.from_numpy(np.frombuffer(buffer, dtype=names[dtype]))


torch.cuda.synchronize = _synchronize_device
torch.cuda.max_memory_reserved = torch.cuda.max_memory_cached
torch.frombuffer = _frombuffer
torch.bfloat16 = None
torch.version.hip = None
