"""A good bundle of two constructed cards, one of them with a trial that failed, and a key to sign with."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.record import Record
from tests.helpers import bundled
from tests.helpers import records_builder as build
from tests.helpers.forged_bundles import packed


def failed(session: str = bundled.LEAD) -> Record:
    on = build.machine("Constructed Card A", label="card-a", digits="a")
    asked = build.trial(build.CIFAR, "fp32-ieee", 1, batch_size=256, lock_sha256=bundled.lock_sha256())
    within = build.environment(
        lock_sha256=bundled.lock_sha256(), passed_variables={"CUDA_LAUNCH_BLOCKING": "1"}
    )
    return build.record(
        asked, None, on=on, within=within, session=session, order=50, failure=build.out_of_memory()
    )


@pytest.fixture(scope="session")
def clone(tmp_path_factory) -> Path:
    other = bundled.one_card(bundled.OTHER, digits="b", seconds=0.009, card="Constructed Card B")
    return bundled.write(tmp_path_factory.mktemp("clone"), [*bundled.one_card(), *other, failed()])


@pytest.fixture
def own_clone(clone, tmp_path) -> Path:
    """A copy of it that a test may change."""
    return Path(shutil.copytree(clone, tmp_path / "clone"))


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))


@pytest.fixture(scope="session")
def good(clone, tmp_path_factory) -> Path:
    return packed(clone, tmp_path_factory.mktemp("good"))


@pytest.fixture
def key(tmp_path) -> Path:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("there is no ssh-keygen")
    path = tmp_path / "key"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "constructed", "-f", str(path)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return path
