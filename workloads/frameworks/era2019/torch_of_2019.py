"""torch 1 with what the shared parts ask of it by later names, and fastai 1; import it before their parts.

Nothing here computes: a later name for what is there, an argument that was not taken yet, and two things that
these are without. fastai comes without spaCy, which it always imports and needs for texts alone.
"""

from __future__ import annotations

import sys
from types import ModuleType

import torch

_synchronize = torch.cuda.synchronize


def _synchronize_device(device: torch.device | None = None) -> None:
    with torch.cuda.device(device):
        _synchronize()


torch.cuda.synchronize = _synchronize_device
torch.cuda.max_memory_reserved = torch.cuda.max_memory_cached
torch.Tensor.untyped_storage = torch.Tensor.storage
torch.Tensor.nbytes = property(lambda tensor: tensor.numel() * tensor.element_size())
torch.storage._StorageBase.nbytes = lambda storage: storage.size() * storage.element_size()
torch.bfloat16 = None
torch.version.hip = None

_symbols = ModuleType("spacy.symbols")
_symbols.ORTH = None  # type: ignore[attr-defined]
sys.modules.setdefault("spacy", ModuleType("spacy"))
sys.modules.setdefault("spacy.symbols", _symbols)

import fastai  # noqa: E402

__all__ = ["fastai"]
