"""A card's own mark: its UUID as a hash keyed by the project, so that the same unit is recognised."""

from __future__ import annotations

import hashlib


def unit_of(uuid: str | None) -> str | None:
    """The first 16 hex digits of SHA-256 over "gpudyno:" and the UUID as the driver writes it."""
    return hashlib.sha256(f"gpudyno:{uuid}".encode()).hexdigest()[:16] if uuid else None
