"""The program that watches: how it ends, and whose a process is."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time

from harness.telemetry import sampler
from harness.telemetry.reader import read_telemetry
from tests.helpers import ROOT

PROGRAM = (sys.executable, "-m", sampler.__name__)


def test_the_program_watches_until_it_is_told_to_stop(tmp_path):
    path = tmp_path / "telemetry.jsonl"
    began = time.monotonic()
    process = subprocess.Popen([*PROGRAM, path, "--interval", "0.2", "--pids", str(os.getpid())])
    while not path.exists() or path.read_text().count("\n") < 5:
        assert time.monotonic() - began < 20
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    found = read_telemetry(path, ((began, time.monotonic() - 0.1),), 1)
    assert (found.source, found.ended) == ("none", "stopped")
    assert found.samples >= 4 and found.times.values() == sorted(found.times.values())
    assert found.energy.joules is None
    assert found.energy.unknown_because


def test_the_program_ends_with_its_parent_and_when_its_stop_file_is_there(tmp_path):
    parent = subprocess.Popen(["sleep", "60"])
    by_parent, by_file = (
        subprocess.Popen([*PROGRAM, tmp_path / name, "--interval", "0.2", *more])
        for name, more in (
            ("a", ["--parent", str(parent.pid)]),
            ("b", ["--stop-file", str(tmp_path / "stop")]),
        )
    )
    parent.kill()
    (tmp_path / "stop").touch()
    assert (by_parent.wait(10), by_file.wait(10)) == (0, 0)
    parent.wait()
    assert json.loads((tmp_path / "a").read_text().splitlines()[-1])["end"] == "the parent is gone"
    assert json.loads((tmp_path / "b").read_text().splitlines()[-1])["end"] == "stopped"


def test_a_full_disk_ends_the_program_and_is_told_in_a_line():
    done = subprocess.run([*PROGRAM, "/dev/full"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "telemetry: [Errno 28] No space left on device\n"


def test_a_child_of_the_trial_is_the_trial_s_own():
    child = subprocess.Popen(["sleep", "30"])
    try:
        assert sampler.TrialProcesses([os.getpid()]).among({child.pid, 1}) == {child.pid}
    finally:
        child.kill()
        child.wait()


def test_every_word_of_a_job_s_line_is_an_option_of_the_program():
    script = (ROOT / "tests" / "golden" / "slurm_venv_2_gpus.sh").read_text()
    line = script.partition(f"-m {sampler.__name__}")[2].partition(">")[0].replace("\\\n", "")
    assert sampler.options(shlex.split(line.replace("$$", "1"))).pids_file is not None
