"""Real output of the programs that are here, read as their files say.

The logs in tests/traces/programs are of trials of plan `programs` on two busy cores of an EPYC, by torch
2.13.0; that of nanoGPT is cut to its beginning and its end.
"""

from __future__ import annotations

import pytest

from harness.plan import own_file
from harness.record import Series
from tests.helpers import ROOT, TESTS
from tests.helpers.workload_runner import module

reading = module("parts.program.reading")


def read(name):
    path = ROOT / "workloads" / "programs" / f"{name}.toml"
    program = own_file.read_program(path.read_bytes(), path.name)
    reader = reading.Reader(program.read.model_dump(mode="json"))
    log = (TESTS / "traces" / "programs" / f"{name}.log").read_text(encoding="utf-8")
    for place, line in enumerate(log.splitlines()):
        reader.hear(line, float(place))
    found = reading.figures(reader, 1)
    return reader, found, [value / 1000 for value in Series.of(found.step_us, found.steps_together).values()]


def test_the_language_model_s_lines_are_of_ten_steps_but_for_the_first_one():
    reader, found, milliseconds = read("word-language-model")
    assert milliseconds == [28763.2, 28875.7, 28307.3]
    assert (found.steps_together, found.steps, found.steps_per_epoch, found.left_out) == (10, 41, 2983, 1)
    assert found.losses == [(11, 10.27), (21, 8.37), (31, 7.95), (41, 7.83)]
    assert reader.done is None


def test_nanogpt_s_lines_are_of_one_step_and_those_with_an_evaluation_in_them_are_left_out():
    reader, found, milliseconds = read("nanogpt")
    assert found.left_out == 2
    assert max(milliseconds) < 1000 < 3861.11
    assert [says["quality"] for _, says in reader.evaluations] == [4.2058, 4.1151]
    assert found.epochs[0]["valid_loss"] == 4.1151


def test_timm_s_lines_are_means_so_far_whose_last_is_the_figure_that_it_prints():
    reader, found, milliseconds = read("timm-benchmark")
    assert (found.steps_together, found.steps, len(milliseconds)) == (4, 20, 5)
    assert sum(milliseconds) / 20 == pytest.approx(932.588, abs=1e-3)
    assert reader.done is not None
