"""What the architecture page names for one more of a kind is all that it takes, from the plan to the page."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from harness.record import Flops
from tests.helpers import ROOT, TESTS, bundled, copied, invoked
from tests.helpers import records_builder as build
from tests.helpers.workload_runner import PYTHON
from tests.project.test_project import MOST_MODULES

PATCHES = Path(__file__).with_name("extensions")
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROWS = {
    "precision": ("a precision", 4),
    "engine": ("an engine", 3),
    "chart": ("a chart", 1),
    "claim_kind": ("a kind of claim", 3),
    "check": ("a check of one trial", 2),
    "workload": ("a workload", 1),
    "card": ("a card", 1),
    "part": ("a part below page one", 3),
    "device_kind": ("a kind of device", 6),
}
"""By patch, which adds a made-up one: the page's row, and the most files."""
COPIED = ("commands", "harness", "report", "tasks.py", "docker", "plans", "workloads")
CARD = "NVIDIA Made-up GX 9"
PLAN = """
name = "{name}"
title = "made up for a test"
repeats = 1

[[measure]]
workload = "{workload}"
protocol = "{protocol}"
model = "{model}"
precision = "fp64"
batch_size = 1
data_mode = "cached"
{more}
"""
CLAIM = """
[[studies]]
id = "made-up"
name = "Made up 2026"
title = "Made up for a test"
source = "a test"

[[claims]]
id = "made-up-gap"
study = "made-up"
kind = "gap"
workload = "cifar_fastai"
protocol = "published/1"
metric = "step_seconds"
of = { model = "resnet50", precision = "fp32-ieee", batch_size = 98 }
over = { model = "resnet50", precision = "fp32-ieee", batch_size = 196 }
value = 0.15
unit = "s"
card_class = "matrix-units"
words = "a made-up gap"
source = "made up for a test"
"""


def constructed(root: Path) -> None:
    """Proven records of one work on the made-up card, in two batches; the claim is of their difference."""
    at = {"card": CARD, "digits": "a", "session": bundled.LEAD}
    counted = Flops(per_sample=840e6, bytes_per_sample=1e6)
    records = []
    for order, (batch_size, seconds) in enumerate(((98, 0.15), (196, 0.3))):
        work = {"batch_size": batch_size, "order": 10 * order, "flops": counted}
        records += bundled.proven(build.CIFAR, "fp32-ieee", seconds, **work, **at)
    bundled.write(root, records)
    (root / "results" / "claims").mkdir()
    (root / "results" / "claims" / "made-up.toml").write_text(CLAIM, encoding="utf-8")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product with one more of each kind."""
    root = copied(tmp_path_factory.mktemp("extended") / "clone", *COPIED, compiled=True)
    constructed(root)
    # Inside of another clone git would look for the files in that one.
    environ = {**os.environ, "GIT_CEILING_DIRECTORIES": str(root.parent)}
    for kind in ROWS:
        subprocess.run(["git", "apply", PATCHES / f"{kind}.patch"], cwd=root, env=environ, check=True)
    return root


def page_of(root: Path, *words: str) -> str:
    """What a line of invoke leaves as report.md, made by the clone's own modules."""
    done = invoked(root, *words, PYTHONPATH=str(root), HOME=str(root), OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    page = (root / "report" / "out" / "report.md").read_text(encoding="utf-8")
    return page.replace("\N{NO-BREAK SPACE}", " ")


def planned(root: Path, name: str, **measure: str) -> tuple[str, ...]:
    """The words that run and show a plan in the made-up precision, after its file is written."""
    plan = PLAN.format(name=name, **{"more": "", **measure})
    (root / "plans" / f"{name}.toml").write_text(plan, encoding="utf-8")
    return ("run", "report", "--plan", name, "--device", "cpu")


@pytest.fixture(scope="module")
def of_a_run(clone: Path) -> str:
    """The page of the made-up workload's trials in the made-up engine."""
    asked = planned(clone, "made-up", workload="spare_sums", protocol="sums/1", model="sum")
    return page_of(clone, *asked, "--engine", "spare")


@pytest.fixture(scope="module")
def of_records(clone: Path) -> str:
    """The page of the constructed records."""
    return page_of(clone, "report", "--session", bundled.LEAD)


def named(row: str) -> set[str]:
    """The files and folders that a row of the page names."""
    (cell,) = re.findall(rf"^\| {row} \| (.+) \|$", PAGE, re.M)
    return set(re.findall(r"`([\w/.-]+/[\w/.-]*)`", cell.replace("<name>.py", "")))


@pytest.mark.parametrize("kind", ROWS)
def test_one_more_of_a_kind_takes_the_files_that_the_page_names_and_no_more_than_was_promised(kind):
    row, most = ROWS[kind]
    touched = re.findall(r"^\+\+\+ b/(.+)$", (PATCHES / f"{kind}.patch").read_text(encoding="utf-8"), re.M)
    assert 1 <= len(touched) <= most
    there = named(row)
    assert not [path for path in touched if path not in there and f"{Path(path).parent}/" not in there]


def test_a_made_up_workload_is_run_and_stands_on_the_page_under_its_title(of_a_run):
    assert "### Made-up sums\n" in of_a_run
    assert "1 trial finished" in of_a_run


def test_a_made_up_precision_reads_as_itself_and_is_explained_on_the_page(of_a_run):
    row = r"\| fp64 · 64-bit floats throughout[^|]* \| cpu \| none \| matmul \S+: fp64 \|"
    assert re.search(row, of_a_run)


def test_a_made_up_engine_runs_trials_and_says_on_the_page_what_it_does_not_pin(of_a_run):
    assert re.search(r"^\| .* · spare", of_a_run, re.M)
    assert "a made-up engine pins nothing" in of_a_run


def test_a_made_up_check_fires_on_the_trial_that_was_run_and_on_no_constructed_one(of_a_run, of_records):
    trials = re.findall(r"^\| sum \|.*made-up: equal steps.*\| [\d,]+ samples/s \|$", of_a_run, re.M)
    assert len(trials) == 1
    assert "equal steps" not in of_records


def test_a_made_up_card_is_found_by_its_name_and_its_peak_stands_on_the_page(of_records):
    assert re.search(r"^\| FP32 products \| 51.2 TFLOP/s \|", of_records, re.M)


def test_a_claim_of_a_made_up_kind_is_judged_on_the_class_of_the_made_up_card(of_records):
    assert re.search(r"^\| a made-up gap .*\| 0.150 s \| 0.150 s \|.*✓ holds", of_records, re.M)


def test_a_made_up_chart_is_drawn_in_its_place_on_the_page(clone, of_records):
    (name,) = re.findall(r"^!\[.*; Made-up marks\]\((charts/.+\.svg)\)$", of_records, re.M)
    assert ">Made-up marks<" in (clone / "report" / "out" / name).read_text(encoding="utf-8")


def test_a_made_up_part_stands_in_both_formats_under_its_title(clone, of_records):
    assert "## Made-up part\n" in of_records
    html = (clone / "report" / "out" / "index.html").read_text(encoding="utf-8")
    assert 'href="#longest"' in html and "The longest trial took" in html


def test_no_folder_is_so_full_that_one_more_module_does_not_fit(clone):
    modules = [path for folder in ("harness", "report") for path in (clone / folder).rglob("*.py")]
    counts = Counter(path.parent for path in modules if path.name != "__init__.py")
    assert len(counts) > 20
    assert max(counts.values()) <= MOST_MODULES


@pytest.mark.torch
def test_on_a_made_up_kind_of_device_torch_trains_in_a_made_up_precision_and_is_watched(clone):
    """Its framework answers as torch.cuda does: a fake one, as no such device is here."""
    more = "sequence_length = 32\nlimit = { steps = 60 }"
    planned(clone, "made-up-npu", workload="llm_step", protocol="synthetic/1", model="tiny", more=more)
    fake = clone / "fake-python"
    fake.write_text(f'#!/bin/sh\nPYTHONPATH={TESTS / "fake_cuda"} exec {PYTHON} "$@"\n')
    fake.chmod(0o755)
    line = ("run", "report", "--plan", "made-up-npu", "--device", "0", "--python", str(fake))
    page = page_of(clone, *line)
    row = r"^\| fp64[^|]*\| spare \(npu\) \| none \| matmul \S+: fp64, convolution \S+: fp64 \|"
    assert re.search(row, page, re.M)
    (record,) = clone.glob("results/*/1x-fake-card-*/llm_step-*.json")
    assert json.loads(record.read_text())["telemetry"]["cards"][0]["power_watts"]["mean"]["count"] > 1
    assert "contradicts" not in page
