"""A plan that is deliberately spoiled is caught by name, in every case.

Runs of the workloads are real, and spoiled by a script around them. Telemetry is constructed, as each trace
says of itself; so are the records around it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.record import Measurement, Record, finding
from harness.run import assemble
from harness.summary.statistics import judge_trial, summarise
from harness.telemetry.reader import read
from report.compare import cells as stats
from report.page.one.chips import confidence
from tests.helpers import records_builder as build
from tests.helpers.fake_clock import replay
from tests.helpers.trial_tables import trials_of
from tests.helpers.watched_records import gpu, machine, record
from tests.helpers.workload_runner import WORKLOADS, run, tiny_language_model, tiny_resnet

ASIDE = {"short-window", "generated-data"}
"""What every trial of a few steps on generated data says of itself."""


def caught(measurement: Measurement) -> tuple[str, set[str]]:
    summary = summarise(measurement)
    return summary.verdict, {cause.name for cause in summary.causes} - ASIDE


def judged(found: Record) -> tuple[str, set[str]]:
    summary = judge_trial(found)
    assert summary is not None
    return summary.verdict, {cause.name for cause in summary.causes}


def spoiled(folder: Path, how: str, workload: str = "word_lm") -> Path:
    """A script that runs a workload after doing something to it."""
    script = folder / "spoiled.py"
    lines = [
        "import sys",
        f"sys.path.insert(0, {str(WORKLOADS)!r})",
        f"from parts import trial as trial_part; import {workload}",
        "import torch",
    ]
    script.write_text(
        "\n".join([*lines, how, f"trial_part.main({workload}.run, {workload}.__file__)"]) + "\n"
    )
    return script


BF16_EVERYWHERE = """
torch.set_autocast_dtype("cpu", torch.bfloat16)
torch.set_autocast_enabled("cpu", True)
"""

TF32_EVERYWHERE = """
# What a card does with TF32 on: operands of ten bits of mantissa, sums in fp32.
def rounded(tensor):
    if tensor.dtype is not torch.float32:
        return tensor
    bits = tensor.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)

def in_tf32(operation):
    return lambda a, b, *more, **named: operation(rounded(a), rounded(b), *more, **named)

torch.matmul = in_tf32(torch.matmul)
torch.nn.functional.conv2d = in_tf32(torch.nn.functional.conv2d)
"""


@pytest.mark.torch
def test_the_same_runs_unspoiled_are_only_short(tmp_path):
    assert caught(run(tmp_path, tiny_language_model(limit={"steps": 20})).measured) == ("unproven", set())


@pytest.mark.torch
@pytest.mark.parametrize(("how", "reads_as"), [(BF16_EVERYWHERE, "bf16"), (TF32_EVERYWHERE, "tf32")])
def test_other_arithmetic_under_an_fp32_ieee_label_is_caught_by_the_probes(how, reads_as, tmp_path):
    found = run(tmp_path, tiny_language_model(), script=spoiled(tmp_path, how)).measured
    assert caught(found) == ("invalid", {"precision"})
    seen = {"operation": "matmul", "precision": "fp32-ieee", "reads_as": reads_as}
    assert seen in [cause.data for cause in summarise(found).causes]


@pytest.mark.torch
def test_a_constant_batch_is_caught_by_looking_at_what_came(tmp_path):
    asked = tiny_language_model(data_mode="cached", limit={"steps": 20})
    found = run(tmp_path, asked, script=spoiled(tmp_path, "word_lm.CACHED_BATCHES = 1")).measured
    assert (found.data.distinct_batches, found.data.looked_at_batches) == (1, 16)
    assert caught(found) == ("invalid", {"constant-batch"})


SLEEPY_LOADER = """
import time
from parts.inputs import images
quick = images.OneByOne.__getitem__

def slow(self, item):
    time.sleep(0.05)
    return quick(self, item)

images.OneByOne.__getitem__ = slow
"""


@pytest.mark.torch
def test_a_starved_loader_is_caught_by_the_time_that_steps_wait(tmp_path):
    asked = tiny_resnet(data_mode="host", options={"workers": 0}, limit={"steps": 4, "valid_batches": 0})
    script = spoiled(tmp_path, SLEEPY_LOADER, "cifar_fastai")
    found = run(tmp_path, asked, script=script).measured
    assert "input-bound" in caught(found)[1]
    assert summarise(found).input_share > 0.3


@pytest.mark.torch
def test_a_loss_that_is_not_finite_ends_the_trial_with_that_word(tmp_path):
    asked = tiny_language_model(options={"lr": 1e38, "clip": 1e30}, limit={"steps": 30, "valid_batches": 0})
    ended = run(tmp_path, asked)
    assert ended.measurement is None
    assert ended.failed.reason == "not-finite"
    assert "the training loss is" in ended.failed.message


def test_a_loss_that_is_not_finite_in_a_measurement_is_caught_too():
    losses = ((1, 4.6), (2, float("nan")))
    assert judged(record(measured={"losses": losses})) == ("invalid", {"not-finite"})


def replayed(tmp_path: Path, name: str) -> Record:
    """A clean trial beside which that trace was watched."""
    path = tmp_path / "telemetry.jsonl"
    replay(name, path, 100)
    seen = read(path, ((1010.0, 1080.0),), 7000)
    assert seen is not None
    unit = seen.cards[0].unit
    default = gpu(unit=unit, power_limit_watts=450.0, power_limit_default_watts=450.0)
    return record(on=machine(default), seen=seen)


@pytest.mark.parametrize(
    ("trace", "verdict", "names"),
    [
        ("clean", "valid", set()),
        ("throttling", "invalid", {"thermal-throttling"}),
        ("foreign_process", "invalid", {"foreign-process"}),
        ("foreign_busy", "invalid", {"foreign-process"}),
        ("locked_clocks", "invalid", {"locked-clocks"}),
        ("ecc_errors", "invalid", {"memory-error"}),
        ("mig", "invalid", {"mig-changed"}),
        ("xid", "invalid", {"device-fault"}),
        ("vanishing_driver", "invalid", {"driver-gone"}),
        ("missing_counters", "valid", set()),
    ],
)
def test_what_a_trace_shows_is_caught_by_name(trace, verdict, names, tmp_path):
    assert judged(replayed(tmp_path, trace)) == (verdict, names)


def twice(**changes: Any) -> tuple[Record, Record]:
    """Two repeats of a session, the second with something changed."""
    second = record(repeat=2)
    return record(repeat=1), second.model_copy(update=changes)


def after(first: Record, second: Record) -> Record:
    """The second as a run would write it."""
    return assemble.judged(second.model_copy(update={"warnings": assemble.changed_since((first,), second)}))


def test_a_data_set_that_was_swapped_within_a_session_is_named_with_both_hashes():
    first, second = twice()
    swapped = build.changed(second, measurement__data__sha256="f" * 64)
    found = after(first, swapped).summary
    assert found.verdict == "warn"
    changed = finding("changed", what="data constructed", before="d" * 64, after="f" * 64)
    assert found.causes == (changed,)
    keys = {trial.key for trial in trials_of([first, swapped])}
    assert len(keys) == 2


def test_another_image_under_the_same_name_is_named_with_both_ids():
    environment = build.environment(image_id="sha256:" + "2" * 64)
    first, second = twice(environment=environment)
    assert first.environment.tag == second.environment.tag
    found = after(first, second).summary
    ids = {"before": f"sha256:{'1' * 64}", "after": f"sha256:{'2' * 64}"}
    assert found.causes == (finding("changed", what="image", **ids),)
    assert found.verdict == "warn"


def test_two_runs_are_a_quick_look_on_the_page_with_their_number():
    chip = confidence(stats.cells_of(trials_of(twice())))
    assert (chip.kind, chip.data["level"], chip.data["runs"]) == ("care", 1, 2)
