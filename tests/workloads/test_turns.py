"""Two programs that take turns on a device: who works, what stands still, and what is left of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from harness.telemetry.reader import EnergyReadings, trial_energy
from tests.helpers import wait_for
from tests.helpers.programs import marked
from tests.helpers.workload_runner import WORKLOADS, module

child, turns = module("parts.program.child"), module("parts.program.turns")
progress = module("parts.program.progress")
Failed = module("parts.trial").Failed


class Trial:
    """Where one side writes, and where it reads the other."""

    def __init__(self, own, data):
        self.out_folder, self.data_folder, self.paused_seconds = str(own), str(data), 0.0


@pytest.fixture
def sides(tmp_path):
    """Both sides, each of which sees the other's folder among its data."""
    made = []
    for own, other in (("a", "b"), ("b", "a")):
        (tmp_path / own).mkdir(exist_ok=True)
        (tmp_path / other).mkdir(exist_ok=True)
        (tmp_path / f"data-{own}").mkdir()
        (tmp_path / f"data-{own}" / turns.PARTNER).symlink_to(tmp_path / other)
        trial = Trial(tmp_path / own, tmp_path / f"data-{own}")
        made.append(turns.Turns(trial, "ab".index(own)))
    return made


def test_the_sides_take_turns_as_abba_then_baab_and_end_with_a_whole_quartet(sides, monkeypatch):
    monkeypatch.setattr(turns, "RESTART_SECONDS", 7.0)
    for side in sides:
        side.end_slice(0.0)
    worked = []
    for place in "ABBABAAB":
        side = sides["AB".index(place)]
        assert side.wait()
        side.end_slice(1.0)
        worked.append(place)
    assert not any(side.wait() for side in sides), "8 s of slices are a whole quartet after 7 s"


def test_a_side_waits_for_its_partner_and_its_pauses_are_counted(sides, monkeypatch):
    monkeypatch.setattr(turns, "WAIT_SECONDS", 0.2)
    sides[0].end_slice(0.0)
    with pytest.raises(Failed, match="took no turn"):
        sides[0].wait()
    assert sides[0]._trial.paused_seconds >= 0.15


def test_a_slice_of_which_four_do_not_fit_between_two_restarts_fails(sides):
    with pytest.raises(Failed, match="four do not fit"):
        sides[0].end_slice(turns.LONGEST_SECONDS + 1)


def test_no_slice_and_no_restart_is_long_enough_for_an_energy():
    longest = ((0.0, turns.LONGEST_SECONDS), (10.0, 10.0 + 2 * turns.LONGEST_SECONDS))
    readings = EnergyReadings(
        [(float(at), 100.0 * at) for at in range(60)], [(float(at), 100.0) for at in range(60)]
    )
    assert all(trial_energy([readings], [window], 10).joules is None for window in longest)
    assert trial_energy([readings], [*longest, (35.0, 45.0)], 10).joules is None


WORKS = "import time\nwhile True: time.sleep(0.01); print(time.monotonic(), flush=True)  # {mark}"
STARTS = (
    "import subprocess, sys\n"
    "subprocess.Popen([sys.executable, '-c', {works!r}], start_new_session=True, stdout=subprocess.DEVNULL)\n"
    "exec({works!r})"
)
PAUSES = """
import sys
from parts.program import child
import psutil, time
heard, stood = [], []
class Turns:
  over = property(lambda self: len(heard) >= 5 and "pause" not in heard[-4:])
  def pause(self):
    time.sleep(0.1)
    stood.append([each.status() for each in psutil.Process().children(recursive=True)])
    heard.append("pause")
    time.sleep(0.5)
    return len(stood) < 2
ended = child.run([sys.executable, "-c", sys.argv[1]], ".", None, 60,
    lambda line, at: heard.append(float(line)) or True, turns=Turns())
moments = [each for each in heard if each != "pause"]
first = heard.index("pause")
print(stood, max(moments[:first]) < heard[first + 1] - 0.4, ended.code)
"""


def test_a_pause_stops_what_the_program_started_in_other_sessions_and_leaves_nothing(tmp_path):
    works = WORKS.format(mark=tmp_path)
    argv = [sys.executable, "-c", PAUSES, STARTS.format(works=works)]
    environ = {**os.environ, "PYTHONPATH": str(WORKLOADS)}
    done = subprocess.run(argv, env=environ, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert done.stdout.strip() == f"{[['stopped'] * 2] * 2} True None"
    assert wait_for(lambda: not marked(tmp_path))


def test_a_trial_that_is_told_to_end_while_its_program_stands_still_leaves_nothing_of_it(tmp_path):
    source = PAUSES.replace("time.sleep(0.5)", "print('stands', flush=True); time.sleep(600)")
    source = "import signal, sys; signal.signal(15, lambda *_: sys.exit(1))\n" + source
    argv = [sys.executable, "-c", source, STARTS.format(works=WORKS.format(mark=tmp_path))]
    environ = {**os.environ, "PYTHONPATH": str(WORKLOADS)}
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE) as trial:
        assert trial.stdout.readline() == b"stands\n"
        began = time.monotonic()
        trial.terminate()
        trial.wait()
    assert time.monotonic() - began < 30
    assert wait_for(lambda: not marked(tmp_path))


def rows(rates, seconds=0.5):
    made = [
        progress.Row(at * seconds, (at + 1) * seconds, 10, f"step 1 {rate} tok/s")
        for at, rate in enumerate(rates)
    ]
    return progress.held_samples(made)


def test_what_a_step_holds_is_read_from_the_rate_of_its_own_row():
    assert rows([2000, 2000, 2100]) == (100, "token")
    assert rows([]) is None
