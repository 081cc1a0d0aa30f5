"""How peers are compared: step by step, until the interval is narrow, with a verdict inside fixed bounds."""

from __future__ import annotations

import itertools
import random
import re
import subprocess

import pytest

from benchmarks.peers import LEAST_FOURS, PeerRatio, peer_ratio
from report.stats.intervals import Runs, blocks_interval
from tests.helpers import ROOT
from tests.helpers.workload_runner import PYTHON, need_torch


def around(ratio: float, spread: float, seed: int = 1):
    """Ratios of four steps each, normal about one."""
    rng = random.Random(seed)
    return (rng.gauss(ratio, spread) for _ in itertools.count())


@pytest.mark.parametrize(
    ("ratio", "word"), [(1.0, "pass"), (0.995, "pass"), (0.9, "fail"), (1.1, "fail"), (1.02, "not shown")]
)
def test_a_ratio_passes_inside_its_bounds_fails_outside_and_else_is_not_shown(ratio, word):
    assert peer_ratio("x", around(ratio, 0.02), seconds=30).word == word


@pytest.mark.parametrize("apart", ["a gain", "a control"])
def test_what_is_no_comparison_cannot_fail(apart):
    assert peer_ratio("x", around(0.5, 0.01), seconds=30, apart=apart).word == apart


def test_no_interval_is_given_of_a_few_steps_and_it_stops_when_narrow_or_when_the_time_is_over():
    assert peer_ratio("x", around(1.0, 1e-6), seconds=30).fours == LEAST_FOURS
    assert peer_ratio("x", around(1.0, 0.05), seconds=30).fours > LEAST_FOURS
    late = peer_ratio("x", around(1.0, 0.02), seconds=0)
    assert (late.fours, late.interval, late.word) == (1, None, "not shown")
    assert "too few steps" in late.line()


def test_a_line_says_the_ratio_its_interval_and_the_verdict():
    found = PeerRatio("ours over theirs", blocks_interval(Runs(tuple([0.99, 1.0, 1.01] * 10))), 30, 12.0)
    said = "ours over theirs: 1.0000 of the seconds, 95 % interval 0.9969 to 1.0031 (30 × ABBA in 12 s): pass"
    assert found.line() == said


@pytest.mark.torch
@pytest.mark.parametrize("case", ["resnet18", "lstm"])
def test_both_sides_of_a_case_run_and_little_time_shows_nothing(case):
    need_torch()
    options = ("--profile", "default", "--minutes", "0", "--batch", "2")
    done = subprocess.run(
        [PYTHON, "-B", "benchmarks/peers.py", "--case", case, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith(" s: not shown")


@pytest.mark.torch
def test_a_peer_is_held_against_itself_on_demand():
    need_torch()
    options = ("--case", "resnet18", "--profile", "default", "--minutes", "0", "--batch", "2", "--control")
    done = subprocess.run(
        [PYTHON, "-B", "benchmarks/peers.py", *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"default: timm [\d.]+ over itself: too few steps", done.stdout)
