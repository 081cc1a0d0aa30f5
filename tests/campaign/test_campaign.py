"""A slice of the campaign, and that the campaign itself can fail."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from harness.errors import GpudynoError, UserError
from tests.campaign import __main__ as campaign
from tests.campaign import attack, records, tables, trials
from tests.campaign.attack import Broken
from tests.helpers import ROOT

ROUNDS = 15
"""About 30 s of processor time."""

FROM_FILES = sorted([*tables.FILES, *(trials.ATTACKS.keys() - {"log"}), "record", "session"])


@pytest.mark.whole
def test_a_slice_of_the_campaign_breaks_nothing():
    words = [sys.executable, "-m", "tests.campaign", "10m", "--seed", "1", "--rounds", str(ROUNDS)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.endswith(" 0 tracebacks, 0 hangs, 0 lost records, 0 silent wrong figures")


@pytest.mark.parametrize("kind", FROM_FILES)
def test_a_file_that_is_not_changed_is_read_without_a_word(monkeypatch, kind, tmp_path):
    for module in (tables, trials, records):
        monkeypatch.setattr(module, "changed", lambda content, rng, whole: content)
    campaign.ATTACKS[kind](Random(1), tmp_path)


def crashed(rng: Random, root: Path) -> None:
    raise ValueError("no sentence")


def with_our_code(rng: Random, root: Path) -> None:
    raise GpudynoError("a defect")


def endless(rng: Random, root: Path) -> None:
    time.sleep(30)


def outside(rng: Random, root: Path) -> None:
    (root.parent / "outside").touch()


def wrong(rng: Random, root: Path) -> None:
    raise Broken("silent wrong figures", "twice as fast")


def refused(rng: Random, root: Path) -> None:
    raise UserError("it is wrong", remedy="mend it")


@pytest.mark.parametrize(
    ("made", "count"),
    [
        (crashed, "tracebacks"),
        (with_our_code, "tracebacks"),
        (endless, "hangs"),
        (outside, "lost records"),
        (wrong, "silent wrong figures"),
    ],
)
def test_whatever_an_attack_breaks_is_counted_and_can_be_repeated(monkeypatch, capsys, made, count):
    monkeypatch.setattr(attack, "MOST_SECONDS", 1)
    monkeypatch.setattr(campaign, "bound_memory", lambda: None)
    monkeypatch.setattr(campaign, "ATTACKS", {"made": made, "fine": refused})
    assert campaign.main(["1m", "--seed", "7", "--rounds", "1"]) == 1
    first, broken, last = capsys.readouterr().out.splitlines()
    assert first == "seeds from 7 on"
    assert broken.startswith(f"made:7 ({count}): ")
    assert last.startswith("2 inputs, 0 faults, ") and f", 1 {count}" in last
    assert campaign.main(["made:7"]) == 1
    assert campaign.main(["fine:7"]) == 0


def test_a_figure_that_changes_is_silent_unless_a_sentence_or_a_cause_names_it():
    before = records.Stand({"a": (1.0,), "b": (2.0,)}, {"a": ("valid",), "b": ("valid",)}, ())
    changed = replace(before, figures={"a": (1.0,), "b": (3.0,)})
    assert "nobody says so" in records.silent(before, changed, "b")
    assert "which nobody changed" in records.silent(before, changed, "a")
    assert records.silent(before, replace(changed, named=("b: is odd",)), "b") == ""
    assert records.silent(before, replace(changed, causes={"a": ("valid",), "b": ("warn", "x")}), "b") == ""
    assert records.silent(before, before, "b") == ""
