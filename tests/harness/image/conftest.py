"""A clone whose pins a test may change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.helpers import ROOT


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with docker/ alone, to be changed."""
    shutil.copytree(ROOT / "docker", tmp_path / "docker")
    return tmp_path
