"""fastai 1 without spaCy, which it always imports and needs for texts alone; import it before its parts."""

from __future__ import annotations

import sys
from types import ModuleType

_symbols = ModuleType("spacy.symbols")
_symbols.ORTH = None  # type: ignore[attr-defined]
sys.modules.setdefault("spacy", ModuleType("spacy"))
sys.modules.setdefault("spacy.symbols", _symbols)

import fastai  # noqa: E402

__all__ = ["fastai"]
