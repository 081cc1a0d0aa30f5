"""What doctor, plan, build and run refuse in the same words, on machines that are made up."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from commands import build, doctor, plan, run
from harness.data import fetch
from harness.engine import venv
from harness.errors import GpudynoError, MachineError
from harness.gpu import cuda_start
from harness.gpu.cuda_start import NOT_TRIED, CudaStart, start_cuda
from harness.record import Gpu
from harness.run import obstacles
from harness.run import setup as run_setup
from harness.settings import Settings
from tests.helpers import ROOT
from tests.helpers.machines import box

ADA = Gpu(index=0, vendor="NVIDIA", name="L40S", architecture="sm_89", driver="580.65", memory_bytes=48 << 30)
AMD = Gpu(index=0, vendor="AMD", name="MI300X", architecture="gfx942")
FABRIC = CudaStart(False, "cuInit: system not yet initialized (802)", "start the fabric manager")
VERBS: dict[str, Callable[[Settings], None]] = {
    "doctor": lambda asked: doctor.doctor(ROOT, asked),
    "plan": lambda asked: plan.show_plan(ROOT, asked),
    "build": lambda asked: build.build_plan(ROOT, asked, with_data=False),
    "run": lambda asked: run.run_plan(ROOT, asked, run.RunOptions()) and None,
}


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """No engine, no network, a Python that no lock names, and no other."""
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    version = SimpleNamespace(major=3, minor=99)
    monkeypatch.setattr(venv, "sys", SimpleNamespace(version_info=version, executable=sys.executable))
    has_torch = {sys.executable: "ModuleSpec(name='torch')", "/bin/true": ""}
    monkeypatch.setattr(obstacles, "command_output", lambda python, *words: has_torch[python])
    monkeypatch.setattr(venv, "find_python", lambda version: None)
    monkeypatch.setattr(venv, "_unpinned_reasons", lambda folder: None)
    return monkeypatch


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("machine", "asked", "start", "words"),
    [
        (box(AMD), {}, NOT_TRIED, "image 'rocm' takes torch and torchvision from its base, which no venv"),
        (
            box(ADA),
            {},
            NOT_TRIED,
            "image 'cuda' is locked for Python 3.11 or 3.12 or 3.13, and none of",
        ),
        (box(ADA), {"python": "/bin/true"}, NOT_TRIED, "the interpreter '/bin/true' has no PyTorch"),
        (box(ADA), {"python": "/no/python"}, NOT_TRIED, "there is no interpreter '/no/python'"),
        (
            box(ADA.model_copy(update={"mig": "on"})),
            {"python": sys.executable, "device": "0"},
            NOT_TRIED,
            "device 0 is in MIG mode and has no slice",
        ),
        (
            box(ADA),
            {"python": sys.executable},
            FABRIC,
            "CUDA does not start: cuInit: system not yet",
        ),
        (box(silent_cards=("NVIDIA card 10de:2204: no answer",)), {}, NOT_TRIED, "does not answer: NVIDIA"),
    ],
)
def test_what_one_verb_refuses_every_verb_refuses_in_the_same_words(
    bare, capsys, machine, asked, start, words, verb
):
    bare.setattr(run_setup, "look_at_machine", lambda label: (machine, {}))
    bare.setattr(obstacles, "start_cuda", lambda: start)
    with pytest.raises(MachineError) as refused:
        VERBS[verb](Settings(plan="card", **asked))
    assert refused.value.exit_code == 4
    assert words in capsys.readouterr().out + refused.value.problem


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("plan", "free", "code", "words"),
    [
        ("mission", 1 << 50, 2, "plan 'mission' has nothing for the device kind 'cpu'"),
        ("quick", 1 << 27, 4, "of disk and 128 MiB are free in"),
    ],
)
def test_a_plan_without_a_trial_here_and_data_without_room_are_refused_by_every_verb(
    bare, tmp_path, capsys, plan, free, code, words, verb
):
    bare.setenv("GPUDYNO_CACHE", str(tmp_path))
    bare.setattr(run_setup, "look_at_machine", lambda label: (box(), {}))
    bare.setattr(fetch, "free_bytes", lambda folder: free)
    with pytest.raises(GpudynoError) as refused:
        VERBS[verb](Settings(plan=plan, python=sys.executable))
    assert refused.value.exit_code == code
    assert words in capsys.readouterr().out + refused.value.problem


def test_a_program_of_the_user_s_own_needs_no_framework_of_ours(bare):
    bare.setattr(run_setup, "look_at_machine", lambda label: (box(), {}))
    setup = run_setup.prepare_run(ROOT, Settings(plan="card", python="/bin/true"))
    own = setup.plan.measure[0].model_copy(update={"workload": "own_program"})
    of_user = replace(setup, plan=setup.plan.model_copy(update={"measure": (own,)}))
    assert [len(obstacles.look_around(each).in_the_way) for each in (setup, of_user)] == [1, 0]


@pytest.mark.parametrize(
    ("driver", "start"),
    [
        ("print('0 no error')", CudaStart(True)),
        ("print('802 system not yet initialized')", 802),
        ("import time; time.sleep(60)", "no answer in 0.5 s"),
        ("raise OSError('libcuda.so.1')", NOT_TRIED),
        ("import os; os.abort()", "signal 6"),
    ],
)
def test_a_start_of_cuda_is_tried_in_a_process_of_its_own_and_keeps_the_driver_s_words(
    monkeypatch, driver, start
):
    monkeypatch.setattr(cuda_start, "START", driver)
    found = start_cuda(seconds=0.5 if "sleep" in driver else 10)
    if isinstance(start, CudaStart):
        assert found == start
    else:
        assert found.starts is False and str(start) in found.said
        assert ("fabricmanager" in found.remedy) == (start == 802)
