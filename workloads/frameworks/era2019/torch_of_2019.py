"""What the shared parts ask of torch by names that torch 1.0 does not have; import it before them.

Nothing here computes: a later name for what is there, an argument that was not taken yet, and two things that
this torch is without.
"""

from __future__ import annotations

import torch

_synchronize = torch.cuda.synchronize


def _synchronize_device(device: torch.device | None = None) -> None:
    with torch.cuda.device(device):
        _synchronize()


torch.cuda.synchronize = _synchronize_device
torch.cuda.max_memory_reserved = torch.cuda.max_memory_cached
torch.bfloat16 = None
torch.version.hip = None
