"""`try`: a program of one's own is measured as it lies in its folder, and no record names anyone by it."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest

from commands.report import analyse_clone, last_lines
from commands.try_program import TryWatcher, parse_asked, try_program
from harness.errors import GateError, UserError
from harness.record import store
from harness.redact import WITHHELD
from harness.run.own_program import MOST_BYTES, OwnAsked, copy_folder, prepare_own_run, read_folder
from harness.run.runner import NO_TURNS
from harness.settings import Settings
from report.compare.cells import cells_of
from report.compare.ratio import work_ratio
from report.page.whole_page import page_of
from report.stats.own_figure import SLICED_LOOKS, SideRuns, answer_of
from report.trials.reading import read_trials
from tests.helpers import ROOT, clone, wait_for

SCRIPT = """
import sys, time
for step in range(10_000):
    time.sleep(0.01 * float(sys.argv[1] if len(sys.argv) > 1 else 1))
    if step % 10 == 0:
        print(f"step {step} loss 2.3 {64 / 0.1:.0f} tok/s")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a program that prints its steps, which is where the user stands."""
    made = tmp_path / "mine"
    made.mkdir()
    (made / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A clone whose trials are processes of this interpreter."""
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    made = clone.make(tmp_path / "clone")
    shutil.copy(ROOT / "workloads" / "own_program.py", made / "workloads")
    shutil.copytree(ROOT / "workloads" / "parts", made / "workloads" / "parts")
    with clone.unwatched():
        yield made


HERE = Settings(plan="mine", device="cpu", python=sys.executable)


def git(folder, *words):
    subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True)


def test_a_folder_is_what_git_does_not_ignore_and_its_hash_is_of_names_and_contents(folder):
    (folder / "data").mkdir()
    (folder / "data" / "large.bin").write_bytes(bytes(1000))
    (folder / ".gitignore").write_text("data/\n")
    git(folder, "init", "-q")
    first = read_folder(folder)
    assert [str(path) for path in first.files] == [".gitignore", "train.py"]
    (folder / "data" / "large.bin").write_bytes(bytes(2000))
    assert read_folder(folder).sha256 == first.sha256
    (folder / "new.py").write_text("")
    assert read_folder(folder).sha256 != first.sha256


def test_without_git_environments_and_caches_are_left_out(folder):
    for name in (".venv/lib/a.py", "own-env/lib/b.py", "__pycache__/c.pyc", "package/d.py"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("")
    (folder / "own-env" / "pyvenv.cfg").write_text("")
    assert [str(path) for path in read_folder(folder).files] == ["package/d.py", "train.py"]


def test_a_folder_of_more_than_200_mb_is_refused_by_its_largest_folders(folder):
    (folder / "checkpoints").mkdir()
    with (folder / "checkpoints" / "last.pt").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(UserError, match=r"checkpoints \(200 MB\)"):
        read_folder(folder)


def test_a_copy_is_made_once_and_keeps_links_and_modes(folder, tmp_path):
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link.py").symlink_to("train.py")
    taken = read_folder(folder)
    copy = copy_folder(taken, tmp_path / "copies")
    assert (copy / "link.py").is_symlink() and (copy / "run.sh").stat().st_mode & 0o100
    before = copy.stat().st_mtime_ns
    assert copy_folder(taken, tmp_path / "copies").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("python train.py --batch 16", ("python", "train.py", "--batch", "16")),
        ("python train.py --api-key sesame", ("python", "train.py", "--api-key", WITHHELD)),
        ("python train.py --hf_token=sesame x", ("python", "train.py", f"--hf_token={WITHHELD}", "x")),
        ("python train.py --data /home/me/set", ("python", "train.py", "--data", WITHHELD)),
        ("python train.py --out=~/runs", ("python", "train.py", f"--out={WITHHELD}")),
        ("python {here}/train.py --out={here}/a/b", ("python", "train.py", "--out=a/b")),
        ("{here}/.venv/bin/python train.py", (".venv/bin/python", "train.py")),
    ],
)
def test_paths_and_secrets_are_withheld_before_a_trial_is_named(folder, command, kept):
    run = prepare_own_run(OwnAsked(command.format(here=folder)), folder)
    assert (run.sides[0].asked.command, run.sides[0].name) == (kept, "train.py")
    assert "sesame" not in run.plan(60).canonical()
    assert json.loads(run.content(run.sides[0].asked))["command"][1] == "train.py"


def test_a_program_outside_of_the_folder_is_called_by_its_command(folder, tmp_path):
    command = f"python {tmp_path}/other.py --batch 8"
    run = prepare_own_run(OwnAsked(command, folder=str(folder)), tmp_path)
    assert run.sides[0].name == f"python {WITHHELD} --batch 8"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"command": "python missing.py"}, "no word of 'python missing.py' is a file here"),
        ({"command": "python 'train.py"}, "the command cannot be read"),
        ({"command": "python train.py", "env": ("NOT_SET_HERE",)}, "the variable is not set"),
        ({"command": "python train.py", "keep": ("nowhere",)}, "--keep 'nowhere' is not there"),
        ({"command": "python train.py", "folder": "nowhere"}, "is no folder"),
        (
            {"command": "python train.py --key a", "against_command": "python train.py --key b"},
            "equal once paths and secrets are withheld",
        ),
    ],
)
def test_what_cannot_be_tried_is_one_sentence(folder, how, words):
    with pytest.raises(UserError, match=words):
        prepare_own_run(OwnAsked(**how), folder)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"match": "("}, "no pattern"),
        ({"match": r"step (\d+)"}, "no group"),
        ({"metric": "loss"}, "no group"),
        ({"per_step": "many"}, "are numbers"),
        ({"per_step": "0"}, "above 0"),
        ({"steps": "0"}, "above 0"),
        ({"steps": "many"}, "are numbers"),
        ({"minutes": "0"}, "above 0"),
        ({"until": "5"}, "is a share"),
        ({"until": "x"}, "are numbers"),
        ({"until": "0"}, "is a share"),
    ],
)
def test_an_option_that_is_no_pattern_or_number_is_refused(words, said):
    with pytest.raises(UserError, match=said):
        parse_asked("python train.py", **words)


def side(*rates, name="a", unit="sample", **how):
    return SideRuns(name, ("cpu", None, ()), tuple(range(1, len(rates) + 1)), rates, unit, **how)


PRINTED = {"printed": (100, 101, 102), "printed_unit": "token"}


@pytest.mark.parametrize(
    ("sides", "state"),
    [
        ((), "nothing"),
        ((side(100, 101, 99, 100),), "too-few"),
        ((side(100, 101, 99, 100, 100),), "narrow"),
        ((side(100, 150, 80, 100, 130),), "wide"),
        ((side(100, 101), side(50, 51, name="b")), "too-few"),
        ((side(100, 101, 102), side(80, 81, 82, name="b")), "faster"),
        ((side(80, 81, 82), side(100, 101, 102, name="b")), "slower"),
        ((side(100, 101, 102, 101), side(100, 102, 102, 101, name="b")), "equal"),
        ((side(100, 130, 80), side(101, 90, 120, name="b")), "not-shown"),
        ((side(9, 9.1, 9.2, unit="step"), side(4, 4.1, 4.2, unit="step")), "faster"),
        ((side(9, 9.1, 9.2, unit="step"), side(4, 4.1, 4.2, name="b", unit="step")), "other-units"),
        ((side(9, 9, 9, unit="step", **PRINTED), side(4, 4, 4, name="b", unit="step", **PRINTED)), "equal"),
    ],
)
def test_processes_are_enough_once_a_range_is_narrow_or_an_order_is_known(sides, state):
    found = answer_of(sides, 0.05)
    assert found.state == state
    assert found.is_enough == (state in ("narrow", "faster", "slower", "equal"))


def test_a_program_is_measured_in_copies_and_only_its_steps_are_kept(folder, root, capsys):
    (folder / "data").mkdir()
    how = OwnAsked("python train.py 0.2", steps=60, keep=("data",), within=0.9, minutes=2)
    outcome = try_program(root, HERE, how, as_json=True)
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert re.match(
        r"train\.py: [\d,.]+\xa0steps/s \([\d,.]+\xa0to\xa0[\d,.]+\); it prints 640", said["answer"]
    )
    assert (said["session"], said["next"]) == (
        outcome.session.id,
        f"invoke report --session {outcome.session.id}",
    )
    records = [stored.record for stored in store.session_records(root, outcome.session)]
    assert outcome.complete and len(records) == 5
    measured = [record.measurement for record in records]
    assert {(each.sample_unit, each.steps_together) for each in measured} == {("step", 10)}
    assert {(each.own.printed_rate, each.own.printed_unit) for each in measured} == {(640, "token")}
    assert all(each.window.steps >= 60 for each in measured)
    kept = "".join(map(store.dump_json, (outcome.session, *records)))
    assert '"looks"' not in kept and '"slices"' not in kept, "one side has no key of two"
    assert str(folder.parent) not in "".join(store.dump_json(record) for record in records)


def test_two_commands_are_run_in_turns_until_one_is_faster(folder, root, capsys):
    how = OwnAsked(
        "python train.py 0.2", against_command="python train.py 2", steps=30, per_step=(8, 8), minutes=2
    )
    outcome = try_program(root, HERE, how)
    names = [trial.asked.variant.model for trial in outcome.session.trials]
    assert set(names[:2]) == {"train.py 0.2", "train.py 2"} and len(names) < 20
    said = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines()[-6:])
    assert [*said] == ["answer", "ratio", "low", "high", "session", "next"]
    assert said["answer"].startswith("train.py 0.2 is") and float(said["low"]) > 1
    analysis = analyse_clone(root, outcome.session.id)
    on_page = last_lines(analysis, page_of(analysis).one.answer, {})
    assert str(on_page["answer"]).startswith("train.py 0.2 trains ") and "  " not in str(on_page["answer"])
    assert [on_page[end] for end in ("low", "high")] == pytest.approx(
        [float(said[end]) for end in ("low", "high")], rel=1e-3
    ), "which was looked at after each process"


@pytest.fixture
def short_slices(root):
    """Slices of 0.2 s, and programs that start anew after 1.6 s of them."""
    path = root / "workloads" / "parts" / "program" / "turns.py"
    text = path.read_text()
    for name, seconds in {"SLICE": 0.2, "RESTART": 1.6, "SETTLE": 0.2}.items():
        text = re.sub(rf"^{name}_SECONDS = .*$", f"{name}_SECONDS = {seconds}", text, flags=re.MULTILINE)
    path.write_text(text.replace("LONGEST_SECONDS = RESTART_SECONDS / 2", "LONGEST_SECONDS = 60"))


TWO = OwnAsked("python train.py 0.5", against_command="python train.py 2", per_step=(8, 8), minutes=5)


def test_two_commands_take_turns_and_the_report_has_their_very_range(folder, root, short_slices, capsys):
    outcome = try_program(root, HERE, TWO, as_json=True)
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    session = outcome.session
    records = [stored.record for stored in store.session_records(root, session)]
    assert session.looks == SLICED_LOOKS and len(records) in [2 * look for look in SLICED_LOOKS]
    assert all(record.measurement.own.slices % 2 == 0 for record in records)
    assert said["low"] < said["ratio"] < said["high"] and said["ratio"] > 1.5
    cells = cells_of(read_trials(store.session_records(root, session), (), [session]))
    fast, slow = sorted(cells, key=lambda cell: cell.key.model)
    found = work_ratio(fast, slow, "throughput", ()).interval
    assert (found.low, found.high) == pytest.approx((said["low"], said["high"]), rel=1e-3)


def test_a_program_that_ends_before_its_slices_gets_its_device_for_itself(folder, root, short_slices, capsys):
    (folder / "train.py").write_text(SCRIPT.replace("10_000", "60"))
    outcome = try_program(root, HERE, replace(TWO, command="python train.py 0.5", minutes=2))
    assert outcome.session.looks is None and NO_TURNS in outcome.session.notes
    records = [stored.record for stored in store.session_records(root, outcome.session)]
    assert len(records) >= 6 and not any(record.measurement.own.slices for record in records)
    assert "ended before its slices were done" in capsys.readouterr().out


KILLED = """
import sys
from pathlib import Path
from commands.try_program import try_program
from tests.commands.test_try import HERE, TWO
from tests.helpers import clone
with clone.unwatched():
    try_program(Path(sys.argv[1]), HERE, TWO)
"""


def trials_of(root):
    listed = psutil.process_iter(["cmdline"])
    return [each for each in listed if str(root) in " ".join(each.info["cmdline"] or [])]


def kill_harness(folder, root):
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", KILLED, root], cwd=folder, env=environ) as harness:
        assert wait_for(lambda: len([*root.glob("results/.state/work/*/*/out/turns.txt")]) == 2)
        harness.kill()


def test_a_harness_that_is_killed_leaves_nothing_that_stands_still(folder, root, short_slices):
    kill_harness(folder, root)
    begun = [*root.glob("results/.state/work/*/*")]
    assert wait_for(lambda: not trials_of(root), 60), "both went on by turns, and ended"
    assert all((work / "out" / "measurement.json").is_file() for work in begun)


def end_after(most):
    """Let a line run no trial once its session has so many records."""
    return lambda self, trial, records: math.inf if len(records) >= most else 0.0


def test_two_of_which_one_was_killed_start_anew(folder, root, short_slices, monkeypatch):
    kill_harness(folder, root)
    trials_of(root)[0].kill()
    monkeypatch.setattr(TryWatcher, "estimate", end_after(2))
    outcome = try_program(root, HERE, TWO)
    records = [stored.record for stored in store.session_records(root, outcome.session)]
    assert [record.attempt for record in records] == [1, 1]
    assert all(record.measurement.own.slices for record in records)


def test_after_an_interrupt_between_two_records_no_side_runs_alone(folder, root, short_slices, monkeypatch):
    def interrupt(self, record):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(TryWatcher, "trial_ends", interrupt)
        try_program(root, HERE, TWO)
    monkeypatch.setattr(TryWatcher, "estimate", end_after(3))
    outcome = try_program(root, HERE, TWO)
    records = [stored.record for stored in store.session_records(root, outcome.session)]
    assert sorted(record.trial.repeat for record in records) == [1, 2, 2]
    assert all(record.measurement.own.slices for record in records)


def test_the_same_line_goes_on_with_its_session(folder, root, monkeypatch):
    how = OwnAsked("python train.py 0.2", steps=30, within=0.9, minutes=2)
    with monkeypatch.context() as patched:
        patched.setattr(TryWatcher, "estimate", lambda self, trial, records: math.inf if records else 0.0)
        first = try_program(root, HERE, how)
    assert not first.complete
    assert try_program(root, HERE, how).session.id == first.session.id


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("print('all done')", "none of its lines counts steps.*all done"),
        ("import nothing_of_that_name", "image cpu has no nothing_of_that_name; name yours with --python"),
        ("raise SystemExit('out of luck')", "ended with code 1; its last line: out of luck"),
    ],
)
def test_a_program_that_gives_no_figure_says_why(folder, root, program, said):
    (folder / "train.py").write_text(program)
    with pytest.raises(GateError, match=said):
        try_program(root, HERE, OwnAsked("python train.py", minutes=1))


def test_a_program_that_shows_its_progress_to_a_terminal_alone_gets_one(folder, root):
    text = SCRIPT.replace("print(", "sys.stdout.isatty() and print(").replace("10_000", "100")
    (folder / "train.py").write_text(text)
    outcome = try_program(root, HERE, OwnAsked("python train.py 0.1", within=0.9, minutes=2))
    records = [stored.record for stored in store.session_records(root, outcome.session)]
    assert {record.measurement.own.terminal for record in records} == {True}
