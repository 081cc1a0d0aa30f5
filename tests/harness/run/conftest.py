"""A plan of stand-ins that was run whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.record import Record
from harness.run.runner import Outcome
from tests.helpers import clone
from tests.helpers.runs import go, records


@pytest.fixture(autouse=True)
def _unwatched() -> Iterator[None]:
    with clone.unwatched():
        yield


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, list[Record]]:
    """How it went, and its four records in their order."""
    root = clone.make(tmp_path_factory.mktemp("clone"), repeats=2)
    with clone.unwatched():
        outcome = go(root)
    return outcome, sorted(records(root), key=lambda record: record.order)
