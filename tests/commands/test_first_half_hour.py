"""The lines that a person with an unknown card types, as the documents have them, on two fake cards.

The plans are those of the same names, in tiny shapes. No figure means anything.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.record import Record
from harness.record.store import read_results
from tests.helpers import ROOT, TESTS
from tests.helpers.checks import require
from tests.helpers.programs import git, refused
from tests.helpers.workload_runner import PYTHON

pytestmark = [pytest.mark.torch, pytest.mark.whole]

APEX = os.environ.get("GPUDYNO_TEST_APEX", "")
HEAD = 'title = "tiny shapes"\nrepeats = 1\ntimeout_seconds = 120\ngenerated_data = true\n'
LSTM = """
workload = "word_lm"
protocol = "published/1"
data = "wikitext-2"
model = "LSTM"
precision = "fp16-master"
batch_size = 2
sequence_length = 4
data_mode = "device"
options = { emsize = 8, nhid = 8 }
limit = { steps = 5, valid_batches = 1 }
"""
TWO_CARDS = """
workload = "llm_step"
protocol = "synthetic/1"
model = "tiny"
precision = "amp-bf16"
batch_size = 2
sequence_length = 16
data_mode = "cached"
gpus = 2
options = { parallel = "ddp" }
limit = { steps = 5 }
"""
PLANS = {
    "quick": (LSTM,),
    "mission": (TWO_CARDS,),
}


def lines_of(heading: str) -> list[str]:
    """The commands in the first fenced block after a text of the document on running, without comments."""
    text = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    block = text.partition(heading)[2].partition("```sh\n")[2].partition("```")[0]
    return [line.partition("  #")[0].strip() for line in block.splitlines()]


@dataclass(frozen=True)
class Tried:
    """A clone in which all lines were typed: each with its exit code and all that it printed."""

    root: Path
    ended: dict[str, tuple[int, str]]

    @property
    def records(self) -> list[Record]:
        return [stored.record for stored in read_results(self.root).records]

    def said(self, line: str) -> str:
        return next(said for typed, (_, said) in self.ended.items() if line in typed)


def clone(folder: Path) -> Path:
    """This clone's product, committed, with plans and products that a processor can bear."""
    root = folder / "clone"
    listed = subprocess.check_output(["git", "-C", str(ROOT), "ls-files", "-z"], text=True).split("\0")[:-1]
    for name in (name for name in listed if not name.startswith((".", "tests/", "results/2"))):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    for name, measures in PLANS.items():
        text = "".join(f"\n[[measure]]\n{measure}" for measure in measures)
        (root / "plans" / f"{name}.toml").write_text(f'name = "{name}"\n{HEAD}{text}', encoding="utf-8")
    (root / ".gitignore").write_text("results/.*\nreport/out/\n")
    for words in (
        ("init", "--quiet", "--initial-branch", "main"),
        ("add", "--all"),
        ("commit", "--quiet", "-m", "x"),
    ):
        git(root, *words)
    return root


def surroundings(folder: Path, root: Path) -> dict[str, str]:
    """Two fake cards behind NVML, and an interpreter in which CUDA is a fake; Apex beside it where it is."""
    python, shown = folder / "python", folder / "bin" / "invoke"
    fake = TESTS / "fake_cuda" / "python"
    given = f"GPUDYNO_TEST_PYTHON={PYTHON} PYTHONPATH={APEX}"
    python.write_text(f'#!/bin/sh\n{given} exec {fake} "$@"\n')
    shown.parent.mkdir()
    shown.write_text(f'#!/bin/sh\nexec {sys.executable} -m invoke "$@"\n')
    for made in (python, shown):
        made.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUDYNO_", "CUDA_"))}
    settings = {"STATE": folder / "state", "CACHE": folder / "cache", "PYTHON": python, "ENGINE": "venv"}
    return {
        **kept,
        **{f"GPUDYNO_{name}": str(value) for name, value in settings.items()},
        "GPUDYNO_DATA_SECONDS": "0",
        "OMP_NUM_THREADS": "1",
        "PATH": f"{shown.parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{root}:{TESTS / 'fake_cuda' / 'driver'}:{ROOT}",
    }


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    folder = tmp_path_factory.mktemp("half-hour")
    root = clone(folder)
    environ, ended = surroundings(folder, root), {}
    for line in (*lines_of("first half hour"), "invoke bundle"):
        done = subprocess.run(
            line, shell=True, cwd=root, env=environ, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        ended[line] = done.returncode, done.stdout
    return Tried(root, ended)


def of(records: Iterable[Record], plan: str) -> list[Record]:
    return [record for record in records if record.plan == plan]


def test_every_line_of_the_first_half_hour_ends_well_but_those_that_would_send_it(tried: Tried):
    codes = [code for code, _ in tried.ended.values()]
    assert codes == [0, 0, 3, 2], [said for code, said in tried.ended.values() if code]


def test_every_trial_is_measured_on_a_card_that_its_record_calls_simulated(tried: Tried):
    records = tried.records
    for plan, trials in {"quick": 1, "mission": 1}.items():
        measured = [record for record in of(records, plan) if record.measurement]
        assert len(measured) == trials and all(record.simulated for record in measured)
        for record in measured:
            assert record.telemetry is not None
            assert [card.unit for card in record.telemetry.cards][:1] == [record.measurement.device.unit]
            assert record.measurement.parallel == ("ddp" if plan == "mission" else None)


def test_a_page_of_a_fake_card_says_that_no_card_was_measured(tried: Tried):
    page = (tried.root / "report" / "out" / "index.html").read_text(encoding="utf-8")
    assert 'class="made"' in page and "Fake Card" in page


def test_apex_s_own_optimiser_updates_in_fp16_where_its_python_is_there(tried: Tried):
    require("apex", bool(APEX), "GPUDYNO_TEST_APEX names no folder with the Python package apex in it")
    methods = {
        record.trial.asked.variant.precision: record.measurement.precision.method
        for record in of(tried.records, "quick")
        if record.measurement
    }
    assert methods["fp16-master"] == "apex FP16_Optimizer"


def test_what_a_fake_card_gave_goes_through_no_gate_and_into_no_bundle(tried: Tried):
    sentence = "its device is simulated, so nothing in it was measured"
    assert sentence in tried.said("gate --mine") and sentence in tried.said("bundle")
    assert not list(tried.root.glob("report/out/*.tar.gz"))
    git(tried.root, "switch", "--quiet", "--create", "mine")
    git(tried.root, "add", "results")
    git(tried.root, "commit", "--quiet", "-m", "x")
    found = refused(tried.root, "main", "mine")
    assert sum(one.endswith(sentence) for one in found) == sum(record.simulated for record in tried.records)
