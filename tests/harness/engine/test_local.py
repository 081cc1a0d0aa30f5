"""Trials as plain processes."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import psutil

from harness.engine.base import Running
from harness.engine.venv import VenvEngine, first_that_works
from tests.helpers.engine_bench import laid_out, run_spec

WORKLOAD = """
import os, socket, tempfile
from pathlib import Path
folder = tempfile.mkdtemp()
socket.socket(socket.AF_UNIX).bind(folder + "/listener-12345678")
Path(os.environ["GPUDYNO_OUT"], "told").write_text(folder)
"""


def test_a_trial_s_loader_can_open_its_sockets_however_long_the_clone_s_path_is(tmp_path):
    work = tmp_path / ("long" * 20)
    spec = laid_out(run_spec(work, interpreter=Path(sys.executable)), WORKLOAD)
    engine = VenvEngine(tmp_path)
    handle = engine.start(spec)
    while isinstance(state := engine.poll(handle, work), Running):
        time.sleep(0.05)
    assert state.code == 0, state.log
    told = Path((spec.folders.output / "told").read_text())
    assert told.is_relative_to(tempfile.gettempdir())
    engine.forget(handle, work)
    assert not told.exists()


def test_what_builds_a_source_finds_the_programs_of_its_environment_before_the_machine_s(tmp_path):
    programs, log = tmp_path / "bin", tmp_path / "log"
    programs.mkdir()
    (programs / "uname").write_text("#!/bin/sh\necho one of the environment\n")
    (programs / "uname").chmod(0o755)
    first_that_works("packages", (("sh", "-c", "uname"),), log, lambda *_: None, programs=programs)
    assert "one of the environment" in log.read_text()


DETACHED = """
import os, subprocess, sys
from pathlib import Path
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"], start_new_session=True)
Path(os.environ["GPUDYNO_OUT"], "told").write_text(str(child.pid))
"""


def test_what_a_trial_left_running_in_a_session_of_its_own_ends_with_it(tmp_path):
    spec = laid_out(run_spec(tmp_path, interpreter=Path(sys.executable)), DETACHED)
    engine = VenvEngine(tmp_path)
    handle = engine.start(spec)
    while isinstance(engine.poll(handle, tmp_path), Running):
        time.sleep(0.05)
    child = int((spec.folders.output / "told").read_text())
    assert psutil.pid_exists(child)
    engine.forget(handle, tmp_path)
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
