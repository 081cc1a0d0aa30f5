"""A published program as it is run: constructed programs that do as they should, and that do not."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.record import Series
from harness.summary.statistics import summarise
from tests.helpers import wait_for
from tests.helpers.programs import LINES, OPTIONS, TRAINS, fields, marked, ran, repository
from tests.helpers.workload_runner import WORKLOADS, module, printed

child, program = module("parts.program.child"), module("program")
reading = module("parts.program.reading")
LEAVES = (
    "import subprocess, sys, time\n"
    "program = [sys.executable, '-c', 'import time; time.sleep(600)  # {mark}']\n"
    "subprocess.Popen(program, start_new_session=True)\n"
)
FAST = {**OPTIONS, "each": 0.002}


def run_of(folder: Path, source: str = TRAINS, **told):
    there = repository(folder / "repository", source)
    asked = told.pop("asked", {})
    return ran(folder, fields(there, **{"options": FAST, **told}), there / "code", **asked)


def test_a_program_s_own_lines_become_the_steps_of_a_measurement(tmp_path):
    measured = run_of(tmp_path, options={**OPTIONS, "each": 0.06}).measured
    assert measured.step_us.count == measured.window.steps == 12
    assert 0.06 <= statistics.median(measured.step_us.values()) / 1e6 < 6
    assert measured.window.seconds == pytest.approx(sum(measured.step_us.values()) / 1e6)
    assert (measured.window.samples, measured.samples_per_step) == (48, 4)
    assert measured.losses[0] == (1, 5.0)
    assert measured.losses[-1] == (12, 0.417)
    assert (measured.precision.label, measured.protocol.complete) == ("program", True)
    assert (measured.quality_name, measured.test_quality) == ("accuracy", 0.75)
    program = measured.program
    assert program.command == ("python", "train.py", "12", "0.06")
    assert program.clock_ratio is not None
    assert not (program.changed_itself or program.processes_left)
    assert not list((tmp_path / "tmp").iterdir()), "its copy is gone"


def test_options_of_the_plan_go_into_the_command_before_those_of_the_device(tmp_path):
    on = {"cpu": {"options": {"steps": 5}, "arguments": ["{seed}", ""]}}
    ended = run_of(tmp_path, on=on, asked={"options": {"each": 0.001}, "seed": 7})
    assert ended.measured.program.command == ("python", "train.py", "5", "0.001", "7")


@pytest.mark.parametrize(
    ("limit", "least", "most"), [({"steps": 5}, 5, 8), ({"seconds": 0.2}, 3, 60), ({"epochs": 1}, 3, 6)]
)
def test_a_limit_of_the_plan_ends_a_program_that_would_go_on(tmp_path, limit, least, most):
    source = TRAINS.replace(
        "    begin = now\n", "    begin = now\n    if step == 3: print('evaluated: 0.5')\n"
    )
    told = {"read": {"evaluations": "^evaluated: (?P<quality>.*)"}, "options": {"steps": 400, "each": 0.05}}
    measured = run_of(tmp_path, source, **told, asked={"limit": limit}).measured
    assert least <= measured.window.steps <= most
    assert (measured.protocol.complete, measured.protocol.stopped_by) == (False, *limit)
    assert measured.protocol.steps_per_epoch == 400


def test_a_value_with_an_evaluation_in_it_is_left_out_and_its_quality_is_an_epoch_s(tmp_path):
    source = TRAINS.replace(
        "    time.sleep(each)\n", "    if step == 6: time.sleep(0.5); print('evaluated: 0.25')\n"
    )
    measured = run_of(tmp_path, source, read={"evaluations": "^evaluated: (?P<quality>.*)"}).measured
    assert measured.window.steps == 11
    assert max(measured.step_us.values()) < 400_000
    assert [(epoch.steps, epoch.quality) for epoch in measured.epochs] == [(6, 0.25)]


@pytest.mark.parametrize("after_the_last", [0, 1])
def test_an_epoch_ends_with_an_evaluation_where_no_line_says_how_long_it_is(tmp_path, after_the_last):
    source = TRAINS.replace(
        "    begin = now\n", "    begin = now\n    if step % 4 == 3: print('evaluated: 0.5')\n"
    )
    read = {"lines": LINES.replace("(?P<steps>\\d+)", "\\d+"), "evaluations": "^evaluated: (?P<quality>.*)"}
    options = {**FAST, "steps": 12 + after_the_last}
    measured = run_of(tmp_path, source, read=read, steps="steps", options=options).measured
    assert [epoch.steps for epoch in measured.epochs] == [4, 4, 4]
    assert (measured.protocol.steps_per_epoch, measured.protocol.epochs) == (4, 3 + after_the_last)
    assert "short-epoch" not in {found.name for found in summarise(measured).findings}


@pytest.mark.parametrize(
    ("are", "first_step", "lines", "expected", "together"),
    [
        ("step", 0, ["0 5", "10 7", "20 6"], [5, 7, 6], 1),
        ("mean", 0, ["10 5", "20 7", "30 6"], [70, 60], 10),
        ("mean", 1, ["10 5", "20 7", "30 6"], [50, 70, 60], 10),
        ("mean-so-far", 1, ["8 5", "16 6", "24 6"], [40, 56, 48], 8),
        ("so-far", 1, ["1 5", "2 11", "3 18"], [5, 6, 7], 1),
        ("mean", 1, ["10 5", "20 7", "10 6", "20 8", "27 9"], [50, 70, 60, 80], 10),
        ("run", 1, ["1 5", "2 11", "3 18"], [5, 11, 18], 1),
    ],
)
def test_a_time_is_of_the_steps_that_the_program_means(are, first_step, lines, expected, together):
    pattern = r"^(?P<step>\d+) (?P<milliseconds>\d+)"
    reader = reading.Reader({"lines": pattern, "seconds_are": are, "first_step": first_step, "skip": 0})
    for place, line in enumerate(lines):
        reader.hear(line, float(place))
    found = reading.figures(reader, 1)
    assert found.steps_together == together
    assert len(found.step_us) == len(expected) * together
    assert [value / 1000 for value in Series.from_microseconds(found.step_us, together).values()] == expected


@pytest.mark.parametrize(("are", "witness"), [("step", 2.0), ("run", None)])
def test_our_clock_is_no_witness_of_trainings_between_which_other_things_happen(are, witness):
    pattern = r"^(?P<step>\d+) (?P<seconds>[\d.]+)"
    reader = reading.Reader({"lines": pattern, "seconds_are": are, "first_step": 1, "skip": 0})
    for number in range(1, 8):
        reader.hear(f"{number} 0.5", float(number))
    assert reading.figures(reader, 1).witness == witness


def test_lines_without_a_time_are_timed_by_our_clock_and_what_is_skipped_is_not_in_the_window():
    pattern = r"^pass (?P<step>\d+) done"
    reader = reading.Reader({"lines": pattern, "seconds_are": "mean", "first_step": 1, "skip": 1})
    for number, at in enumerate((10.0, 11.0, 13.0, 16.0), start=1):
        reader.hear(f"pass {number} done", at)
    found = reading.figures(reader, 1)
    assert found.step_us == [2_000_000, 3_000_000]
    assert found.stretches == [[11.0, 16.0]]
    assert found.witness is None


def test_a_clock_that_runs_otherwise_than_ours_is_seen_where_lines_are_far_apart(tmp_path):
    slow = TRAINS.replace("1000 * (now", "100 * (now")
    measured = run_of(tmp_path, slow, options={"steps": 8, "each": 0.06}).measured
    assert measured.program.clock_ratio > 3
    assert "program-clock" in {found.name for found in summarise(measured).findings}


def test_a_program_of_one_figure_a_run_has_a_window_of_its_own_and_no_steady_state(tmp_path):
    source = "print('done in 12.5 s, accuracy 0.94')"
    read = {"lines": r"done in (?P<seconds>[\d.]+) s", "seconds_are": "so-far", "done": "accuracy"}
    measured = run_of(tmp_path, source, figure="run", read=read).measured
    summary = summarise(measured)
    assert (measured.window.seconds, measured.window.steps) == (12.5, 1)
    assert summary.throughput == pytest.approx(4 / 12.5)
    assert (summary.verdict, [found.name for found in summary.findings]) == ("valid", ["own-window"])


@pytest.mark.parametrize("name", ["figures.json", "figures.csv"])
def test_figures_are_read_from_a_file_that_the_program_leaves(tmp_path, name):
    rows = [{"i": 1, "rate": 8.0, "batch": 16}, {"i": 2, "rate": 4.0, "batch": 16}]
    text = "i,rate,batch\n1,8.0,16\n2,4.0,16\n" if name.endswith("csv") else json.dumps(rows)
    fields_of_it = {"step": "i", "samples_per_second": "rate", "samples": "batch"}
    read = {"lines": None, "done": None, "file": name, "fields": fields_of_it, "seconds_are": "mean"}
    told = {"samples_per_step": ["each_batch"], "options": {**FAST, "each_batch": 16}}
    there = repository(tmp_path / "repository", f"open({name!r}, 'w').write({text!r})")
    table = fields(there, **told)
    table["read"] = {key: value for key, value in {**table["read"], **read}.items() if value is not None}
    measured = ran(tmp_path, table, there / "code").measured
    assert list(measured.step_us.values()) == [2_000_000, 4_000_000]
    assert measured.samples_per_step == 16


@pytest.mark.parametrize(
    ("source", "reason", "words"),
    [
        (
            "import nothing_of_this_name",
            "error",
            "code 1; its last line: ModuleNotFoundError: No module named",
        ),
        ("raise SystemExit(3)", "error", "ended with code 3; its last line: none"),
        ("import os; os.kill(os.getpid(), 9)", "error", "killed by signal 9"),
        ("print('RuntimeError: CUDA out of memory.'); raise SystemExit(1)", "out-of-memory", "out of memory"),
        ("pass", "error", "ended with code 0, and it printed nothing"),
        ("print('all is well')", "error", "none of its 1 lines is of a step; its last line: all is well"),
        ("print('step 1/9: 5.00 ms, loss 1.0')", "error", "it did not say that it was through"),
        ("import time; time.sleep(600)", "timeout", "ran past its limit of"),
        ("import os; os.close(1); os.close(2)\nwhile True: pass", "timeout", "ran past its limit of"),
    ],
)
def test_a_program_that_does_not_train_says_so_in_one_sentence(tmp_path, source, reason, words):
    ended = run_of(tmp_path, source, asked={"timeout_seconds": 16.0})
    assert (ended.exit_code, ended.failed.reason) == (1, reason)
    assert words in ended.failed.message
    assert "\n" not in ended.failed.message
    assert str(tmp_path) not in ended.failed.message


@pytest.mark.parametrize(
    ("told", "reason", "message"),
    [
        (
            {"command": ["no-such-program", "{steps}"]},
            "error",
            "'no-such-program' cannot be started (No such file or directory)",
        ),
        (
            {"command": ["python", "{image_size}"]},
            "unsupported",
            "its command needs 'image_size', and the plan has none",
        ),
        (
            {
                "input": {"data": "mnist", "file": "x", "at": "in/x"},
                "data": "real",
                "asked": {"data": "generated"},
            },
            "bad-data",
            "no data can replace 'mnist': it has to be fetched",
        ),
        (
            {"prepare": [["python", "-c", "raise ValueError('no text')"]]},
            "error",
            "' ended with code 1; its last line: ValueError: no text",
        ),
    ],
)
def test_a_program_that_cannot_begin_says_what_it_lacks(tmp_path, told, reason, message):
    failed = run_of(tmp_path, **told).failed
    assert failed.reason == reason
    assert message in failed.message


def test_another_tree_than_was_published_is_not_run(tmp_path):
    there = repository(tmp_path / "repository")
    table = fields(there)
    (there / "code" / "train.py").write_text("print('something else')")
    failed = ran(tmp_path, table, there / "code").failed
    assert failed.reason == "bad-data"
    assert f"where {table['tree'][:12]} was published" in failed.message


def test_a_program_that_writes_to_its_own_source_is_noticed_and_the_next_trial_has_it_whole(tmp_path):
    measured = run_of(tmp_path, TRAINS + "open('train.py', 'a').write('# more')\nopen('new', 'w')\n").measured
    assert measured.program.changed_itself
    assert "program-changed" in {found.name for found in summarise(measured).findings}
    assert "more" not in (tmp_path / "repository" / "code" / "train.py").read_text().splitlines()[-1]


@pytest.mark.parametrize("place", ["../../../out/measurement.json", "../../../data/new"])
def test_a_program_that_writes_outside_its_copy_leaves_no_measurement(tmp_path, place):
    failed = run_of(tmp_path, TRAINS + f"open({place!r}, 'w').write('{{}}')\n").failed
    assert failed.message == f"the program wrote outside its copy: {place.removeprefix('../../../')}"
    assert not (tmp_path / "out" / "measurement.json").exists()


def test_processes_that_a_program_leaves_are_ended_and_counted(tmp_path):
    began = time.monotonic()
    measured = run_of(tmp_path, LEAVES.format(mark=tmp_path) + TRAINS).measured
    assert time.monotonic() - began < 60
    assert measured.program.processes_left == 1
    assert not marked(tmp_path)


def test_a_program_that_is_stopped_takes_all_that_it_started_along(tmp_path):
    stays = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
    source = LEAVES.format(mark=tmp_path) + stays
    failed = run_of(tmp_path, source, asked={"timeout_seconds": 16.5}).failed
    assert failed.reason == "timeout"
    assert not marked(tmp_path)


def test_a_program_ends_with_a_trial_that_is_killed(tmp_path):
    code = "import sys; from parts.program import child; "
    sleeps = f"[sys.executable, '-c', 'import time; print(1, flush=True); time.sleep(600)  # {tmp_path}']"
    code += f"child.run({sleeps}, '.', None, 600, lambda line, at: print(line, flush=True) or True)"
    environ = {**os.environ, "PYTHONPATH": str(WORKLOADS)}
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environ)
    assert parent.stdout.readline() == b"1\n"
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert wait_for(lambda: not marked(tmp_path))


def test_a_program_whose_lines_end_is_stopped_after_the_patience_for_it_and_blanks_are_no_lines():
    endless = "import time; print('begins')\\nwhile True: print(' ', flush=True); time.sleep(0.05)"
    code = "import sys; from parts.program import child; heard = []; "
    code += "hear = lambda line, at: heard.append(line) or True; "
    code += f"program = [sys.executable, '-c', \"{endless}\"]; "
    code += "print(child.run(program, '.', None, 60, hear, patience=lambda: 1.0).code, heard)"
    assert printed(code, python=sys.executable) == ["None ['begins']"]


def test_many_lines_and_control_characters_keep_the_log_short_and_the_figures_right(tmp_path):
    noise = "import sys\nfor n in range(100000): sys.stdout.write('\\x1b[2K\\rnoise %d' % n)\nprint()\n"
    ended = run_of(tmp_path, "print('\\x1b]0;title\\x07\\x1b[31mred\\x1b[0m')\n" + noise + TRAINS)
    assert ended.measured.window.steps == 12


def test_lines_end_at_either_sign_and_command_no_terminal():
    lines = child.Lines()
    assert lines.cut(b"one\rtwo\r\n\x1b[2Kthr") == ["one", "two"]
    assert lines.cut(b"\x00ee\n" + b"x" * 100_000) == ["three"]
    assert [len(line) for line in lines.last()] == [child.LINE_LETTERS]


def test_the_input_lies_in_the_copy_and_what_prepares_it_runs_before(tmp_path):
    source = (
        "text = open('in/text').read(); assert text == open('made').read() and len(text) == 500\n" + TRAINS
    )
    told = {
        "input": {"data": "tiny-shakespeare", "file": "x", "at": "in/text", "generated_letters": 500},
        "prepare": [["python", "-c", "open('made', 'w').write(open('in/text').read())"]],
        "data": "real",
    }
    measured = run_of(tmp_path, source, **told, asked={"data": "generated"}).measured
    assert (measured.data.name, measured.data.source) == ("tiny-shakespeare", "generated")
    assert measured.data.sha256 is None


def test_a_tree_has_the_id_that_git_gives_it(tmp_path):
    there = repository(tmp_path / "r", a="1\r\n", **{"b/c": "2", "b.d": "3", "b0": "", "deep/er/x": "é"})
    (there / "code" / "link").symlink_to("b/c")
    (there / "code" / "b0").chmod(0o755)
    for words in (("add", "--all"), ("write-tree", "--prefix=code/")):
        done = subprocess.run(["git", "-C", str(there), *words], capture_output=True, text=True, check=True)
    assert program.tree_id(program.read_blobs(str(there / "code"))) == done.stdout.strip()
