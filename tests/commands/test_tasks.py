from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.machine.fingerprint import look_at_machine
from tests.helpers import ROOT, warm, without_settings

LOADED = (sys.executable, "invoke.main", "commands.run", "commands.claims", "commands.report")
PROGRAM = "from invoke.main import program; program.run()"


def invoke(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return warm.ran(LOADED, warm.Call(["-c", PROGRAM, *words], without_settings() | variables, ROOT))


@pytest.fixture
def state(tmp_path: Path) -> dict[str, str]:
    return {"GPUDYNO_STATE": str(tmp_path / "state"), "GPUDYNO_CACHE": str(tmp_path / "cache")}


@pytest.mark.parametrize(
    ("words", "says", "code"),
    [
        (("run", "--plan", "mision"), "there is no plan 'mision'; is 'mission' meant?", 2),
        (
            ("submit", "--site", "9" * 300),
            "cannot be read or written (File name too long); look at its name",
            4,
        ),
        (("run", "--device", "7"), "the device '7' is not on this machine", 4),
        (("run", "--engine", "kubernetes"), "'engine'", 2),
        (("run", "--engine", "here"), "inside one of gpudyno's own images, and this is none", 4),
        (("run", "--plan", "card", "--python", "/no/such/python"), "there is no interpreter", 4),
        (("run", "--claim", "000-no-such"), "there is no claim '000-no-such'; `invoke claims` lists them", 2),
        (
            ("run", "--device", "cpu", "--engine", "venv", "--claim", "001-mlp-amp-seconds"),
            "no plan that '001-mlp-amp-seconds' names can judge it here; `invoke claims --here` lists",
            2,
        ),
        (("build", "--only", "cifar-1000"), "cifar-1000", 2),
        (("compare", "a", "b", "--fail-below", "nan"), "--fail-below 'nan' is no ratio", 2),
    ],
)
def test_wrong_input_is_answered_in_one_sentence_and_a_code_of_its_kind(state, words, says, code):
    done = invoke(*words, **state)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert done.stderr.startswith("gpudyno: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_a_machine_without_a_card_is_told_what_can_be_answered_here(state):
    done = invoke("claims", "--here", "--device", "cpu", "--engine", "venv", **state)
    assert done.returncode == 0, done.stderr
    native = look_at_machine()[0].cpu.native_16_bit
    emulated = native is not None and "fp16" not in native
    assert ("001-mlp-amp-memory" in done.stdout) is not emulated
    assert "001-mlp-fp32-peak-by-arithmetic" in done.stdout
    assert re.search(r"^\d+ figures of \d+ can be answered here", done.stdout, re.M)
