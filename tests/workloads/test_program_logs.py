"""Output of the programs that are here, read as their files say.

The logs in tests/traces/programs are of trials of plan `programs` on two busy cores of an EPYC, by torch
2.13.0; that of nanoGPT is cut to its beginning and its end, nnU-Net's to three epochs. Apex's is of the
example's own year: torch 1.0.0 and Python 3.7 on the same cores, in full precision. What ends in `-published`
is what the README of github:leolui2004/tensorcore@b98a4ac prints of a T4. What ends in `-constructed` nobody
measured: it has the columns and widths of airbench94_muon.py's own print statements at f1c599c.
"""

from __future__ import annotations

import pytest

from harness.plan import own_file
from harness.record import Series
from tests.helpers import ROOT, TESTS
from tests.helpers.programs import fields, ran, repository
from tests.helpers.workload_runner import module

reading = module("parts.program.reading")


def file_of(name):
    path = ROOT / "workloads" / "programs" / f"{name}.toml"
    return own_file.read_program(path.read_bytes(), path.name)


def log_of(name):
    return (TESTS / "traces" / "programs" / f"{name}.log").read_text(encoding="utf-8")


def read(name):
    reader = reading.Reader(file_of(name).read.model_dump(mode="json"))
    log = log_of(name)
    for place, line in enumerate(log.splitlines()):
        reader.hear(line, float(place))
    found = reading.figures(reader, 1)
    return (
        reader,
        found,
        [value / 1000 for value in Series.from_microseconds(found.step_us, found.steps_together).values()],
    )


def test_the_language_model_s_lines_are_of_ten_steps_but_for_the_first_one():
    reader, found, milliseconds = read("word-language-model")
    assert milliseconds == [28763.2, 28875.7, 28307.3]
    assert (found.steps_together, found.steps, found.steps_per_epoch) == (10, 41, 2983)
    assert found.losses == [(11, 10.27), (21, 8.37), (31, 7.95), (41, 7.83)]
    assert reader.done is None


def test_nanogpt_s_lines_are_of_one_step_and_those_with_an_evaluation_in_them_are_left_out():
    reader, found, milliseconds = read("nanogpt")
    assert max(milliseconds) < 1000 < 3861.11
    assert [says["quality"] for _, says in reader.evaluations] == [4.2058, 4.1151]
    assert found.epochs[0]["valid_loss"] == 4.1151


def test_timm_s_lines_are_means_so_far_whose_last_is_the_figure_that_it_prints():
    reader, found, milliseconds = read("timm-benchmark")
    assert (found.steps_together, found.steps, len(milliseconds)) == (4, 20, 5)
    assert sum(milliseconds) / 20 == pytest.approx(932.588, abs=1e-3)
    assert reader.done is not None


def test_apex_s_example_of_2018_prints_the_lines_of_its_successor():
    reader, found, milliseconds = read("apex-word-language-model")
    assert milliseconds[:4] == pytest.approx([17970.4, 14531.38, 13285.46, 15501.46])
    assert (found.steps_together, found.steps_per_epoch) == (2, 2983)
    assert found.losses[:2] == [(3, 15.01), (5, 9.15)]
    assert reader.done is None


def test_nnu_net_s_epochs_are_steps_and_the_one_that_compiles_is_left_out():
    reader, found, milliseconds = read("nnunet")
    assert milliseconds == [87_290, 59_980]
    assert (found.steps_together, found.steps, found.witness) == (1, 3, None)
    assert reader.done is None


@pytest.mark.parametrize(
    ("name", "log", "batch_size", "seconds", "samples", "test"),
    [
        ("airbench", "airbench-constructed", 2000, [2.61, 2.60, 2.59], 400_000, 0.9401),
        ("tensorcore-mlp", "tensorcore-mlp-published", 512, [7.02], 76_800, None),
        ("tensorcore-mnist", "tensorcore-mnist-published", 512, [107.228], 1_200_000, None),
    ],
)
def test_a_program_that_times_whole_trainings_has_each_as_a_step_and_no_clock_of_ours_beside_it(
    tmp_path, name, log, batch_size, seconds, samples, test
):
    program = file_of(name)
    prints = repository(tmp_path / "repository", "print(open('log').read())", log=log_of(log))
    own = {key: getattr(program, key) for key in ("samples_per_step", "sample_unit", "figure", "options")}
    table = fields(prints, **own, command=["python", "train.py"])
    table["read"] = program.read.model_dump(exclude_none=True, exclude_defaults=True)
    measured = ran(tmp_path, table, prints / "code", batch_size=batch_size).measured
    assert [value / 1e6 for value in measured.step_us.values()] == seconds
    assert measured.samples_per_step == samples
    assert measured.program.clock_ratio is None
    assert (measured.test_quality, measured.protocol.complete) == (test, True)
