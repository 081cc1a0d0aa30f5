"""What tests share: where real parts are needed, and what happens when they are missing."""

from __future__ import annotations

import difflib
import os

import pytest

from tests.helpers import TESTS

GOLDEN = TESTS / "golden"


def require(need: str, present: bool, why: str) -> None:
    """Skips with the reason when a real part is missing; fails where GPUDYNO_REQUIRE names it."""
    if present:
        return
    if need in os.environ.get("GPUDYNO_REQUIRE", "").split(","):
        pytest.fail(f"{need} is required here: {why}")
    pytest.skip(why)


def golden(name: str, text: str) -> None:
    """Compares a whole text with tests/golden/<name>; GPUDYNO_ACCEPT=1 writes it instead."""
    path = GOLDEN / name
    if os.environ.get("GPUDYNO_ACCEPT") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), (
        f"{path.name} differs; GPUDYNO_ACCEPT=1 takes the new one"
    )


def golden_difference(name: str, text: str, base: str) -> None:
    """Compares a text with tests/golden/<name>.diff, which holds only how it differs from `base`."""
    _, _, *lines = difflib.unified_diff(base.splitlines(), text.splitlines(), lineterm="", n=0)
    golden(f"{name}.diff", "\n".join(lines) + "\n")
