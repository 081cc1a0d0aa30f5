"""A plan of stand-ins that was run whole."""

from __future__ import annotations

import pytest

from harness.record import Record
from harness.run.runner import Outcome
from harness.telemetry import recorder
from tests.helpers import clone
from tests.helpers.runs import go, records


@pytest.fixture(autouse=True)
def _unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that watches costs as much as the stand-in itself."""
    monkeypatch.setattr(recorder, "start", lambda work, device, pid: None)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, list[Record]]:
    """How it went, and its four records in their order."""
    root = clone.make(tmp_path_factory.mktemp("clone"), repeats=2)
    outcome = go(root)
    return outcome, sorted(records(root), key=lambda record: record.order)
