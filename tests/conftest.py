"""What tests share: where real parts are needed, and what happens when they are missing."""

from __future__ import annotations

import os

import pytest


def require(need: str, present: bool, why: str) -> None:
    """Skips with the reason when a real part is missing; fails where GPUDYNO_REQUIRE names it."""
    if present:
        return
    if need in os.environ.get("GPUDYNO_REQUIRE", "").split(","):
        pytest.fail(f"{need} is required here: {why}")
    pytest.skip(why)
