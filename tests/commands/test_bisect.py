"""A bisection over constructed wheels of a package that holds its step time, in real environments."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from commands import bisect, run
from harness.errors import UserError
from harness.record import store
from harness.settings import Settings
from tests.helpers.clone import FAKE
from tests.helpers.wheels import tiny_image, wheel

PLAN = """
name = "mine"
title = "stand-ins"
repeats = 3

[[measure]]
workload = "fake"
protocol = "published/1"
model = "none"
precision = "fp32-ieee"
batch_size = 8
data_mode = "cached"
"""
STEPS = {"1.0": 1000, "1.1": 1000, "1.2": 1100, "1.3": 1100}


def clone_of(root: Path, steps: dict[str, int]) -> Path:
    (root / "plans").mkdir()
    (root / "plans" / "mine.toml").write_text(PLAN)
    (root / "workloads").mkdir()
    text = FAKE.read_text().replace("import json\n", "import json\nimport random\n\nimport pace\n", 1)
    text = text.replace("[1000] * steps", "[round(pace.STEP_US * NOISE)] * steps")
    text = text.replace("0.001 * steps", "1e-6 * pace.STEP_US * NOISE * steps")
    text = text.replace('"packages": {}', '"packages": {"pace": pace.VERSION}')
    text = text.replace("\n\ndef event", "\nNOISE = random.gauss(1.0, 0.002)\n\n\ndef event", 1)
    (root / "workloads" / "fake.py").write_text(text)
    (root / "wheelhouse").mkdir()
    for version, step in steps.items():
        wheel(root / "wheelhouse", "pace", version, body=f"VERSION = '{version}'\nSTEP_US = {step}\n")
    return tiny_image(root, {"pace": max(steps)})


def answer(root: Path, capsys, asked: str, **how) -> list[str]:
    settings = Settings(plan="mine", engine="venv", device="cpu")
    bisect.bisect_versions(root, settings, asked, run.RunOptions(**how))
    return capsys.readouterr().out.splitlines()


@pytest.mark.whole
def test_the_first_version_that_is_slower_is_found_and_the_same_line_measures_nothing_again(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    root = clone_of(tmp_path, STEPS)
    wheel(root / "wheelhouse", "pace", "1.1.5", tag="cp27-none-any")
    lines = answer(root, capsys, "pace==1.0..1.3")
    assert any(line.startswith("pace 1.1.5 is skipped: ") for line in lines)
    assert "4 versions of pace, 1.0 to 1.3, halved in at most 3 sessions" in lines
    assert lines[-1].startswith("pace 1.2 is the first that is slower for none in fp32-ieee: 1.3 is 0.9")
    sessions = store.read_sessions(root)
    seconds = [session.against.asked for session in sessions if session.against]
    assert sorted(seconds) == [("pace==1.0",), ("pace==1.1",), ("pace==1.2",)][: len(seconds)]
    assert {session.trials[0].asked.environment for session in sessions} == {"tiny"}
    again = answer(root, capsys, "pace==1.0..1.3")
    assert again[-1] == lines[-1] and len(store.read_sessions(root)) == len(sessions)


@pytest.mark.whole
def test_where_the_ends_are_equal_nothing_between_is_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    root = clone_of(tmp_path, dict.fromkeys(STEPS, 1000))
    lines = answer(root, capsys, "pace==1.0..1.3")
    assert lines[-1].startswith("pace 1.0 and 1.3 are equal within 5 % for none in fp32-ieee: ")
    assert len(store.read_sessions(root)) == 1


@pytest.mark.parametrize("asked", ["torch", "torch==2.9", "torch==2.9...2.13", "torch==a..b"])
def test_what_is_no_range_of_versions_is_refused(tmp_path, asked):
    with pytest.raises(UserError, match="is no range of versions"):
        bisect.bisect_versions(tmp_path, Settings(), asked, run.RunOptions())


def test_a_last_version_takes_in_its_own_releases_and_a_build_is_its_release(tmp_path):
    for version in ("2.8.0", "2.9.0", "2.9.1", "2.13.0", "2.13.1+cpu", "2.14.0", "2.13.2rc1"):
        shutil.copy(FAKE, tmp_path / f"pace_of_nobody-{version}-py3-none-any.whl")
    versions = bisect.released_versions("pace-of-nobody", tmp_path)
    assert bisect._versions_between(versions, "2.9", "2.13") == ["2.9.0", "2.9.1", "2.13.0", "2.13.1"]
