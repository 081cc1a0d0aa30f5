"""What every test has, and which are left out."""

from __future__ import annotations

import atexit
import gc
import os
import pickle
import tempfile
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

# Before NumPy comes. Matrices here are small: a second thread of its library waits at a processor's price.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import pytest
from hypothesis import settings

from harness.record import Record, store
from harness.run.session import LOCK_VARIABLE
from report.page import render
from tests.helpers import ROOT
from tests.helpers.undrawn import leave_undrawn
from tests.helpers.workload_runner import need_data, need_torch, need_torch_era

del os.environ["OPENBLAS_NUM_THREADS"]  # trials record it

# Tests of several clones at once do not wait for each other.
os.environ[LOCK_VARIABLE] = f"/dev/shm/gpudyno-test-{os.getpid()}.lock"
atexit.register(Path(os.environ[LOCK_VARIABLE]).unlink, missing_ok=True)

# How long an example takes says how busy the machine is, and nothing else.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


LEFT_OUT = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is marked `whole`, unless GPUDYNO_REQUIRE names that or tests are asked for by name."""
    by_name = config.option.keyword or config.option.markexpr or any("::" in one for one in config.args)
    if by_name or "whole" in os.environ.get("GPUDYNO_REQUIRE", "").split(","):
        return
    long = [item for item in items if item.get_closest_marker("whole")]
    items[:] = [item for item in items if item not in long]
    config.hook.pytest_deselected(items=long)
    config.stash[LEFT_OUT] = len(long)


def pytest_collection_finish() -> None:
    """What was imported stays: looking for garbage in it would take a tenth of all processor time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


NEEDED = {"torch": need_torch, "torch_era": need_torch_era, "data": need_data}
"""By mark, what skips a test, or fails it, where that is missing."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before a test's fixtures are made, what it is marked to need is asked for."""
    for mark, need in NEEDED.items():
        if item.get_closest_marker(mark):
            need()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many were left out, and how they are run."""
    if count := terminalreporter.config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(f"long tests left out: {count}; `invoke test --whole` runs them, too")


@pytest.fixture(scope="session", autouse=True)
def _temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a killed trial, a browser or a framework leaves in the system's goes with the tests."""
    folder = str(tmp_path_factory.mktemp("t"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """No page is drawn."""
    leave_undrawn(monkeypatch)


@pytest.fixture(scope="session", autouse=True)
def _each_chart_table_and_committed_record_is_made_once() -> Iterator[None]:
    """Hundreds of tests draw the same charts, parse the same tables and read all records of the clone.

    Each gets its own copy of a table; a record is frozen.
    """
    parse, read = tomllib.loads, store.read_record
    parsed = lru_cache(maxsize=500)(lambda text: pickle.dumps(parse(text)))
    known = cache(lambda path, where, changed: read(path, where))

    def once(path: Path, where: str, *others: object) -> Record:
        committed = path.is_relative_to(ROOT / "results")
        return known(path, where, path.stat().st_mtime_ns) if committed else read(path, where, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render, "draw_chart", cache(render.draw_chart))
        patch.setattr(tomllib, "loads", lambda text: pickle.loads(parsed(text)))
        patch.setattr(store, "read_record", once)
        yield
