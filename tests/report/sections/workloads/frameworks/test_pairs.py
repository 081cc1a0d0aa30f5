"""Each framework against itself: several devices over one, and real data over synthetic."""

from __future__ import annotations

from typing import Any

from harness.record import Record
from tests.helpers.records_frameworks import runs
from tests.report.sections.workloads.frameworks.test_section import of


def real(framework: str, seconds: float, **told: Any) -> list[Record]:
    options = {"framework": framework, "data": "real"}
    return runs(framework, seconds, data="real", options=options, **told)


def both(framework: str, step: float) -> list[Record]:
    return [*runs(framework, step), *real(framework, 1.2 * step), *runs(framework, 1.25 * step, gpus=4)]


def test_four_devices_stand_over_one_and_real_data_over_synthetic_for_each_framework():
    pairs = of([*both("pytorch", 0.2), *both("tensorflow", 0.3)]).pairs
    assert pairs is not None
    assert [(row[0], *row[2:4], row[4][:4], row[5][:4]) for row in pairs.rows] == [
        ("PyTorch", "real", "1", "–", "1.20"),
        ("PyTorch (DataParallel)", "synthetic", "4", "3.20", "–"),
        ("TensorFlow", "real", "1", "–", "1.20"),
        ("TensorFlow (MirroredStrategy)", "synthetic", "4", "3.20", "–"),
    ]
    assert " to " in pairs.rows[0][5], "a ratio has its interval"


def test_what_has_no_other_of_its_own_is_not_set_against_another_framework_s():
    assert of([*runs("pytorch", 0.2), *runs("tensorflow", 0.25)]).pairs is None
