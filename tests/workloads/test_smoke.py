"""The workload that takes each path once, on the CPU."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.workload_runner import PYTHON, Ended, run, trial

pytestmark = pytest.mark.torch


def check(folder: Path, name: str, precision: str = "fp32-ieee", *, python: str = "", **told: Any) -> Ended:
    given = {"batch_size": 1, "data_mode": "cached", "data": "synthetic", "limit": {}, **told}
    return run(
        folder, trial("smoke", protocol="smoke/1", model=name, precision=precision, **given), python=python
    )


@pytest.mark.parametrize(
    ("precision", "kind"), [("fp32-ieee", "float32"), ("amp-bf16", "bfloat16"), ("pure-bf16", "bfloat16")]
)
def test_a_precision_s_arithmetic_is_a_product_a_convolution_and_a_recurrent_layer(tmp_path, precision, kind):
    measured = check(tmp_path, "eager", precision).measured
    assert [note.partition(",")[0] for note in measured.notes] == [
        f"product {kind}",
        f"convolution {kind}",
        f"recurrent layer {kind}",
    ]
    assert measured.precision.output_dtypes == {kind: 3}


def test_a_clock_keeps_the_device_busy_for_its_seconds(tmp_path):
    measured = check(tmp_path, "clock", limit={"seconds": 0.5}).measured
    assert 0.5 <= measured.window.seconds < 5
    assert measured.window.steps > 1
    assert sum(measured.step_us.values()) / 1e6 <= 1.02 * measured.window.seconds


def test_a_trial_writes_where_it_may_and_says_as_whom(tmp_path):
    measured = check(tmp_path, "folders").measured
    assert not any("/" in note for note in measured.notes), "a record names no folder of its machine"
    assert "writes results and caches" in measured.notes[0]
    assert [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".gpudyno-")] == []


def test_a_temporary_folder_from_which_no_program_runs_is_named_as_the_cause(tmp_path, monkeypatch):
    folder = tmp_path / "noexec"
    folder.mkdir()
    words = ("mount", "-t", "tmpfs", "-o", "noexec,size=16m", "tmpfs", str(folder))
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("this user mounts no file system")
    try:
        monkeypatch.setenv("TMPDIR", str(folder))
        # A process of its own: one that is warm has looked for its temporary folder before.
        failed = check(tmp_path, "folders", python=str(Path(PYTHON).with_name("python3"))).failed
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    assert failed.reason == "error" and "noexec" in failed.message


@pytest.mark.parametrize("name", ["memory-wall", "collectives", "apex", "tuning"])
def test_a_gpu_s_path_is_not_here_on_a_cpu(tmp_path, name):
    failed = check(tmp_path, name).failed
    assert (failed.reason, failed.message) == ("unsupported", "it is a GPU's")


def test_a_compiler_that_is_missing_is_no_defect(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    failed = check(tmp_path, "compiled").failed
    assert failed.reason == "unsupported"
    assert "no C++ compiler" in failed.message
