"""Two alike failures of the machine end a plan, and records have the driver's own words."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from commands import run
from harness.errors import MachineError
from harness.run import assemble, runner
from harness.run.assemble import fault_words, repeated_fault
from harness.settings import Settings
from tests.helpers import clone
from tests.helpers.runs import go, records

FABRIC = (
    "/v/torch/cuda/__init__.py:182: UserWarning: CUDA initialization: Unexpected error from "
    "cudaGetDeviceCount(). Error 802: system not yet initialized (Triggered internally at /pytorch/c10/x.cpp)"
)
LIBRARY = (
    "ImportError: /home/ada/lib/libcudnn.so.9: cannot open shared object file: No such file or directory"
)


def ending(root: Path, said: str) -> None:
    """Each trial prints this and ends with 1."""
    (root / "workloads" / "fake.py").write_text(f"import sys\nprint({said!r}, flush=True)\nsys.exit(1)\n")


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (FABRIC, "Error 802: system not yet initialized"),
        (LIBRARY, "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory"),
        ("ModuleNotFoundError: No module named 'timm'", "ModuleNotFoundError: No module named 'timm'"),
        ("RuntimeError: CUDA error: unspecified launch failure", "CUDA error: unspecified launch failure"),
        ("RuntimeError: CUDA error: device-side assert triggered", ""),
        ("RuntimeError: CUDA error: out of memory", ""),
        ("ValueError: the batch is odd", ""),
        ("ImportError: cannot import name 'x' from 'y' (http://ada.example/z)", ""),
    ],
)
def test_a_record_takes_the_driver_s_and_the_loader_s_words_without_folders(log, words):
    assert fault_words(f"before\n{log}\nafter") == words


@pytest.mark.parametrize(("said", "ran"), [(FABRIC, 2), (LIBRARY, 2), ("ValueError: odd", 4)])
def test_two_trials_that_the_machine_failed_alike_end_the_plan(tmp_path, said, ran):
    root = clone.make(tmp_path, repeats=2)
    ending(root, said)
    outcome = go(root)
    assert (outcome.ran, outcome.left, bool(outcome.fault)) == (ran, 4 if ran == 2 else 0, ran == 2)
    assert all(fault_words(said) in record.failure.message for record in records(root))
    if ran == 2:
        assert go(root).left == 4
        # Once it is mended, the same line takes all of them up again.
        shutil.copy(clone.FAKE, root / "workloads" / "fake.py")
        assert go(root).complete


def test_other_words_or_other_devices_are_no_second_failure_of_the_machine():
    def failed(cards: tuple[int, ...], said: str) -> SimpleNamespace:
        failure = SimpleNamespace(reason="error", message=f"it ended with code 1: {said}")
        return SimpleNamespace(cards_given=cards, failure=failure)

    one = failed((0,), "Error 802: system not yet initialized")
    assert repeated_fault([one, one]) == "Error 802: system not yet initialized"
    assert repeated_fault([one]) == repeated_fault([one, failed((1,), "Error 802: system not yet")]) == ""
    assert repeated_fault([one, failed((0,), "CUDA error: unknown error")]) == ""
    assert repeated_fault([one, SimpleNamespace(cards_given=(0,), failure=None), one]) == ""


def test_several_devices_without_a_first_step_are_ended_with_what_to_try(tmp_path, monkeypatch):
    monkeypatch.setattr(assemble, "NO_STEP_SECONDS", 0.6)
    root = clone.make(tmp_path, repeats=2)
    plan = root / "plans" / "mine.toml"
    plan.write_text(plan.read_text() + "gpus = 2\n")
    (root / "workloads" / "fake.py").write_text("import time\ntime.sleep(60)\n")
    outcome = go(root)
    assert (outcome.ran, [record.failure.reason for record in records(root)]) == (2, ["timeout"] * 2)
    assert "NCCL_P2P_DISABLE=1" in records(root)[0].failure.message
    assert "NCCL_P2P_DISABLE=1" in outcome.fault


def test_a_line_whose_machine_fails_ends_with_its_words(tmp_path, monkeypatch):
    outcome = runner.Outcome(SimpleNamespace(id="x"), 2, 2, 5, complete=False, fault="Error 802: not yet")
    setup = SimpleNamespace(notes=(), images_used=(), engine=None, plan=SimpleNamespace(name="card"))
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path))
    monkeypatch.setattr(run, "prepare_with_pins", lambda *given: setup)
    monkeypatch.setattr(run, "replace", lambda setup, **changed: setup)
    monkeypatch.setattr(run, "build_environments", lambda *given: ((), None, ()))
    monkeypatch.setattr(run.run_setup, "resolve_data", lambda *given: {})
    monkeypatch.setattr(run, "_run_trials", lambda *given: outcome)
    with pytest.raises(MachineError, match="two trials failed alike on the same devices: Error 802") as ended:
        run.run_plan(tmp_path, Settings(plan="card"), run.RunOptions())
    assert ended.value.exit_code == 4
