"""What the committed records answer: each ratio of raw throughputs, its range, and what may be said by it."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from report.analysis import AnalysisRequest, analyse
from report.compare.batch_sweeps import without_sweeps
from report.compare.cells import cells_of
from report.compare.comparison import ComparedWork, Comparison, compare_sides
from tests.helpers.here import evidence_here
from tests.helpers.records_builder import STARTED

H100, H200 = "20261126-cb0794", "20261127-63ddd7"
QUICK, CLASSIFIERS = "20261121-38cb4c", "20261125-08b1ee"
KERAS, MXNET, TORCH = "20261123-7d4985", "20261123-cccefa", "20261123-f41240"
CORES, LOADS, LATER_LOADS, DIGITS = "20261125-53f079", "20261123-f8ab7f", "20261124-555dca", "20261126-28f1ee"
TWICE, AGAIN = "20261121-cb7a72", "20261121-e09923"

HALF, BRAIN, FULL = {"precision": "fp16-master"}, {"precision": "amp-bf16"}, {"precision": "fp32-ieee"}
ALONE, FOUR = {"gpus": 1}, {"gpus": 4, "parallel": "ddp"}
PROCESSES, THREADS = {"data_mode": "host"}, {"data_mode": "host", "loader": "threads"}
MANY = {"data_mode": "host", "workers": 24}
OF_H200, OF_H100 = {"card": "NVIDIA H200"}, {"card": "NVIDIA H100 80GB HBM3"}
FILES = {"data": "files", "source_pixels": None, "format": None}


@cache
def trials():
    found = analyse(evidence_here(), AnalysisRequest(STARTED)).on_record
    return [trial for trial in found if not trial.is_ceiling]


@cache
def compared(factor: str, *sessions: str) -> Comparison:
    own = [trial for trial in trials() if trial.session in sessions]
    cells = without_sweeps(cells_of(own), sessions[0])
    return compare_sides(factor, cells, failed=[trial for trial in own if trial.failure])


def place(comparison: Comparison, values: dict[str, Any]) -> int:
    sides = [dict(side.values) for side in comparison.sides]
    return next(
        at for at, side in enumerate(sides) if side == values or (side | values == side and "card" in side)
    )


def work_of(comparison: Comparison, values: dict[str, Any]) -> ComparedWork:
    def has(work: ComparedWork) -> bool:
        options = dict(work.key.options)
        return all(getattr(work.key, name, options.get(name)) == value for name, value in values.items())

    return next(work for work in comparison.works if has(work))


@pytest.mark.parametrize(
    ("asked", "work", "of", "over", "ratio", "ends", "processes", "said"),
    [
        (("machine", H100, H200), HALF, OF_H200, OF_H100, 1.061, None, (1, 2), "counts-only"),
        (("machine", H200, H100), FULL, OF_H200, OF_H100, 1.095, None, (1, 1), "counts-only"),
        (("precision", H100), {"model": "resnet18"}, HALF, FULL, 2.035, None, (2, 1), "counts-only"),
        (("precision", H100), {"model": "LSTM"}, HALF, FULL, 1.020, (0.867, 1.200), (2, 2), "not-shown"),
        (("precision", H200), {"model": "resnet18"}, HALF, FULL, 1.971, None, (1, 1), "counts-only"),
        (("precision", QUICK), {"model": "LSTM"}, BRAIN, FULL, 1.623, (1.506, 1.749), (3, 3), "faster"),
        (("precision", QUICK), {"model": "resnet18"}, BRAIN, FULL, 1.426, (1.302, 1.563), (3, 3), "faster"),
        (("gpus", CLASSIFIERS), FULL, FOUR, ALONE, 1.124, (0.774, 1.632), (3, 3), "not-shown"),
        (
            ("framework", KERAS),
            {},
            {"framework": "tensorflow"},
            {"framework": "keras-tensorflow"},
            1.158,
            (0.898, 1.494),
            (3, 3),
            "not-shown",
        ),
        (
            ("framework", MXNET, TORCH),
            {},
            {"framework": "pytorch"},
            {"framework": "mxnet-gluon"},
            1.308,
            (1.116, 1.532),
            (5, 5),
            "faster",
        ),
        (("precision", CORES), {"data_mode": "device"}, BRAIN, FULL, 2.115, (1.954, 2.289), (3, 3), "faster"),
        (("precision", CORES), {"model": "mlp"}, BRAIN, FULL, 1.086, (0.955, 1.236), (3, 3), "not-shown"),
        (("loader", LOADS), FILES, PROCESSES, THREADS, 1.308, (1.114, 1.535), (3, 3), "faster"),
        (("loader", LATER_LOADS), FILES, PROCESSES, THREADS, 1.304, (1.104, 1.541), (3, 3), "faster"),
        (("loader", LOADS), FILES, MANY, PROCESSES, 0.978, (0.882, 1.085), (3, 3), "not-shown"),
        (("loader", LATER_LOADS), FILES, MANY, PROCESSES, 0.963, (0.835, 1.110), (3, 3), "not-shown"),
        (
            ("loader", DIGITS),
            {},
            {"data_mode": "device"},
            {"data_mode": "host"},
            1.064,
            None,
            (1, 1),
            "counts-only",
        ),
        (("side", TWICE), {}, {"side": "A"}, {"side": "B"}, 1.010, (0.968, 1.055), (5, 5), "not-shown"),
        (("side", AGAIN), {}, {"side": "A"}, {"side": "B"}, 1.024, (0.979, 1.070), (5, 5), "not-shown"),
    ],
)
def test_a_record_answers_with_this_ratio(asked, work, of, over, ratio, ends, processes, said):
    comparison = compared(*asked)
    found = comparison.ratio(work_of(comparison, work), place(comparison, of), place(comparison, over))
    assert found is not None
    assert found.estimate == pytest.approx(ratio, abs=6e-4)
    shown = found.interval and (found.interval.low, found.interval.high)
    assert shown == (None if ends is None else pytest.approx(ends, abs=6e-4))
    assert (found.n, found.order) == (processes, said)


@pytest.mark.parametrize("sessions", [(H100, H200), (H200, H100)])
def test_two_cards_bundles_show_both_whichever_is_named_first(sessions):
    comparison = compared("machine", *sessions)
    assert {side.card for side in comparison.sides} == {"NVIDIA H100 80GB HBM3", "NVIDIA H200"}
    (term,) = comparison.ratios[0].terms
    assert (term.field, round(term.of), round(term.over)) in (
        ("window_seconds", 120, 3),
        ("window_seconds", 3, 120),
    )
    assert {(missing.work.key.model, missing.side.card) for missing in comparison.missing} == {
        ("LSTM", "NVIDIA H200")
    }


def test_a_framework_is_placed_behind_another_and_two_that_differ_by_less_than_their_range_share_places():
    for sessions, places in (((MXNET, TORCH), {(1, 1), (2, 2)}), ((KERAS,), {(1, 2)})):
        comparison = compared("framework", *sessions)
        assert set(comparison.places) == places
