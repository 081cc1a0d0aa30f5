"""Every measurement here is constructed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.record import Measurement
from harness.record.finding import finding_sentence
from harness.summary.statistics import differing_part, find_bound, speedup_limit, summarise
from tests.helpers import records_builder as build

STEPS = 400
STEP_US = 200_000


ASKED = build.trial(build.CIFAR, "fp32-ieee", 1, batch_size=10)
PROTOCOL = {"steps_per_epoch": 1000, "epochs": 3, "valid_batches": 50}
CLEAN: dict[str, Any] = {
    **build.measurement(
        {**build.CIFAR, **PROTOCOL}, ASKED, STEP_US / 1e6, card="Constructed 1000", complete=False, steps=1
    ).model_dump(mode="json"),
    "data": {"name": "constructed", "source": "real", "valid_items": 10_000},
    "losses": [[1, 4.6], [400, 2.0]],
    "structure": {"classes": 100},
}


def measured(**changed: Any) -> Measurement:
    """A clean trial of 400 steps of 0.2 s on 10 samples; `changed` replaces parts, and updates dicts."""
    step_us = changed.pop("step_us", [STEP_US + (at * 37) % 1000 for at in range(STEPS)])
    window = {"seconds": sum(step_us) / 1e6 or 1, "steps": len(step_us), "samples": 10 * len(step_us)}
    partial = epoch(steps=400, train_seconds=80.0, quality=0.5, complete=False)
    whole = {**CLEAN, "window": window, "step_us": step_us, "epochs": [partial]}
    for name, value in changed.items():
        whole[name] = {**whole[name], **value} if isinstance(whole.get(name), dict) else value
    return Measurement.model_validate(whole)


def epoch(index: int = 1, **changed: Any) -> dict[str, Any]:
    return {"index": index, "steps": 1000, "train_seconds": 200.0, "valid_seconds": 4.0, **changed}


COMPLETE = {"complete": True, "stopped_by": "protocol", "epochs": 2}


def names(measurement: Measurement) -> tuple[str, set[str]]:
    summary = summarise(measurement)
    return summary.verdict, {cause.name for cause in summary.causes}


def test_a_clean_trial_is_valid_and_its_throughput_is_samples_over_the_host_window():
    measurement = measured(window={"seconds": 90.0})
    summary = summarise(measurement)
    assert (summary.verdict, summary.causes) == ("valid", ())
    assert summary.throughput == pytest.approx(4000 / 90)
    assert summary.step_seconds_p5 < summary.step_seconds_median < summary.step_seconds_p95
    assert summary.step_seconds_median == pytest.approx(0.2005, abs=1e-4)
    assert summary.input_share is None and summary.host_bound_share is None


def test_what_is_cut_is_left_out_of_throughput_and_step_times():
    step_us = [400_000] * 100 + [STEP_US + (at * 37) % 1000 for at in range(STEPS)]
    summary = summarise(measured(step_us=step_us))
    assert summary.steady.kind == "warm-up"
    assert summary.steady.first_step == 100
    assert summary.throughput == pytest.approx(10 / 0.2005, rel=1e-3)
    assert summary.step_seconds_p95 < 0.21


def test_packed_series_give_seconds_of_single_steps():
    step_us = [4_000 + (at * 37) % 100 for at in range(40_000)]
    summary = summarise(measured(step_us=step_us))
    assert summary.step_seconds_median == pytest.approx(0.00405, rel=1e-2)
    assert summary.verdict == "valid"


def test_shares_are_of_the_steady_steps():
    input_us = [120_000] * 100 + [STEP_US // 4] * STEPS
    step_us = [400_000] * 100 + [STEP_US] * STEPS
    kernels = {"steps": 1, "busy_seconds": STEP_US / 2e6}
    summary = summarise(measured(step_us=step_us, input_us=input_us, kernels=kernels))
    assert summary.input_share == pytest.approx(0.25)
    assert summary.host_bound_share == pytest.approx(0.5)


def test_the_host_s_part_is_what_the_kernels_leave_of_a_step_and_no_wait_is_longer():
    kernels = {"steps": 4, "busy_seconds": 4 * 0.15}
    told = {"step_us": [STEP_US] * STEPS, "kernels": kernels}
    waited = summarise(measured(**told, input_us=[STEP_US // 2] * STEPS))
    assert waited.host_bound_share == pytest.approx(0.25)
    assert waited.input_share == pytest.approx(0.25), "the device worked while the host waited"
    hardly = summarise(measured(**told, input_us=[STEP_US // 20] * STEPS))
    assert hardly.input_share == pytest.approx(0.05)
    busier = {"steps": 1, "busy_seconds": 0.21}
    assert summarise(measured(**told | {"kernels": busier})).host_bound_share == 0.0


def test_steps_of_a_device_and_their_window_agree_within_1_percent_or_2_ms_a_segment():
    def causes(apart_seconds: float, **told: Any) -> set[str]:
        window = {"seconds": sum([STEP_US] * STEPS) / 1e6 + apart_seconds}
        return names(measured(step_us=[STEP_US] * STEPS, window=window, step_clock="device", **told))[1]

    assert causes(0.7) == causes(-0.7) == set()
    assert causes(0.9) == causes(-0.9) == {"device-clock"}
    many = {"epochs": [epoch(steps=1)] * 500, "protocol": {"steps_per_epoch": 1}}
    assert causes(0.9, **many) == set()
    assert names(measured(window={"seconds": 90.0}))[1] == set(), "the host's steps leave out the drain"


def test_a_share_measured_on_other_steps_is_unknown():
    assert summarise(measured(input_us=[1000] * 7)).input_share is None


STEADY = 1000 * 0.2005
PARTIAL = epoch(steps=400, train_seconds=80.0, complete=False)


@pytest.mark.parametrize(
    ("changed", "projected", "epoch_seconds", "protocol_seconds"),
    [
        ({}, True, STEADY + 4, 3 * (STEADY + 4)),
        ({"epochs": [{**PARTIAL, "valid_batches": 10}]}, True, STEADY + 20, 3 * (STEADY + 20)),
        ({"epochs": [{**PARTIAL, "valid_seconds": None}]}, True, None, None),
        ({"epochs": [{**PARTIAL, "valid_batches": 0}]}, True, None, None),
        (
            {"epochs": [{**PARTIAL, "valid_seconds": None}], "protocol": {"valid_batches": 0}},
            True,
            STEADY,
            3 * STEADY,
        ),
        ({"epochs": [epoch(1, train_seconds=300.0)]}, True, 304, 3 * (STEADY + 4)),
        ({"epochs": [epoch(1, train_seconds=300.0), epoch(2, train_seconds=210.0)]}, True, 259, 3 * 214),
        (
            {
                "epochs": [
                    epoch(1, train_seconds=300.0),
                    *(epoch(at) for at in (2, 3, 4)),
                    epoch(5, train_seconds=240.0, valid_seconds=9.0),
                ]
            },
            True,
            233,
            3 * 215,
        ),
        (
            {"epochs": [epoch(1, train_seconds=260.0, valid_seconds=6.0), epoch(2)], "protocol": COMPLETE},
            False,
            235,
            260 + 6 + 200 + 4,
        ),
    ],
)
def test_a_whole_protocol_is_added_up_and_a_part_projects_from_later_whole_epochs_or_steady_steps(
    changed, projected, epoch_seconds, protocol_seconds
):
    summary = summarise(measured(**changed))
    assert summary.projected is projected
    for found, expected in (
        (summary.epoch_seconds, epoch_seconds),
        (summary.protocol_seconds, protocol_seconds),
    ):
        assert found == (expected and pytest.approx(expected, rel=1e-3))


def test_rare_slow_steps_are_in_the_projection_as_they_are_in_the_throughput():
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(40):
        burst = rng.random(STEPS) < 1 / 200
        summary = summarise(measured(step_us=[int(STEP_US * (10 if slow else 1)) for slow in burst]))
        assert summary.epoch_seconds == pytest.approx(1000 * 10 / summary.throughput + 4)
        errors.append((summary.epoch_seconds - 4) / (1000 * STEP_US / 1e6 * (1 + 9 / 200)) - 1)
    assert abs(np.mean(errors)) < 0.015


def test_a_trial_without_step_times_is_unproven():
    summary = summarise(measured(step_us=[], window={"steps": 1, "samples": 10}))
    assert summary.verdict == "unproven"
    assert np.isnan(summary.step_seconds_median)


@pytest.mark.parametrize(
    ("changed", "verdict", "name"),
    [
        ({"losses": [[1, 4.6], [9, "nan"]]}, "invalid", "not-finite"),
        ({"epochs": [epoch(valid_loss="inf")]}, "invalid", "not-finite"),
        ({"window": {"seconds": 40.0}}, "invalid", "clock"),
        ({"data": {"distinct_batches": 1}}, "invalid", "constant-batch"),
        ({"data": {"distinct_batches": 3}}, "warn", "constant-batch"),
        ({"data": {"distinct_batches": 4}}, "valid", ""),
        ({"epochs": [epoch(quality=0.0102)], "protocol": COMPLETE}, "invalid", "collapsed"),
        ({"epochs": [epoch(quality="nan")], "protocol": COMPLETE}, "invalid", "collapsed"),
        (
            {"epochs": [epoch(1, quality=0.6), epoch(2, quality=0.1)], "protocol": COMPLETE},
            "invalid",
            "collapsed",
        ),
        (
            {
                "epochs": [epoch(quality=40_000.0)],
                "protocol": COMPLETE,
                "quality_name": "perplexity",
                "structure": {"vocabulary": 33_278},
            },
            "invalid",
            "collapsed",
        ),
        ({"epochs": [epoch(quality=0.0102)]}, "valid", ""),
        (
            {"epochs": [epoch(quality=0.0102)], "protocol": COMPLETE, "data": {"source": "synthetic"}},
            "valid",
            "",
        ),
        ({"epochs": [epoch(quality=0.02)], "protocol": COMPLETE}, "valid", ""),
        ({"epochs": [epoch(quality=None)], "protocol": COMPLETE}, "valid", ""),
        ({"data": {"source": "generated"}}, "warn", "generated-data"),
        ({"input_us": [22_000] * STEPS}, "warn", "input-bound"),
        ({"input_us": [19_000] * STEPS}, "valid", ""),
        (
            {"step_us": [STEP_US] * 50, "losses": [[1, "nan"]], "data": {"source": "generated"}},
            "invalid",
            "not-finite short-window generated-data",
        ),
    ],
)
def test_the_gravest_of_what_a_measurement_says_against_itself_decides_and_all_are_named(
    changed, verdict, name
):
    assert names(measured(**changed)) == (verdict, set(name.split()))


def probe(reads_as: str) -> dict[str, Any]:
    return {"operation": "convolution", "error": 1e-3, "reads_as": reads_as}


@pytest.mark.parametrize(
    ("label", "outputs", "parameters", "reads_as", "verdict"),
    [
        ("fp32-ieee", {"float32": 9}, {"float32": 9}, "fp32-ieee", "valid"),
        ("fp32-ieee", {"float32": 9}, {"float32": 9}, "tf32", "invalid"),
        ("fp32-ieee", {"float32": 8, "float16": 1}, {"float32": 9}, "fp32-ieee", "invalid"),
        ("fp32-tf32", {"float32": 9}, {"float32": 9}, "tf32", "valid"),
        ("fp32-tf32", {"float32": 9}, {"float32": 9}, "fp32-ieee", "invalid"),
        ("fp32-default", {"float32": 9}, {"float32": 9}, "tf32", "valid"),
        ("fp32-default", {"float32": 9}, {"float32": 9}, "bf16", "invalid"),
        ("amp-bf16", {"torch.bfloat16": 8, "torch.float32": 1}, {"torch.float32": 9}, "bf16", "valid"),
        ("amp-bf16", {"float32": 9}, {"float32": 9}, "bf16", "invalid"),
        ("amp-bf16", {"bfloat16": 9}, {"float32": 9}, "fp16", "invalid"),
        ("amp-bf16", {"bfloat16": 1, "float16": 1}, {"float32": 9}, "bf16", "invalid"),
        ("fp16-master", {"float16": 8, "bfloat16": 1}, {"float16": 9}, "fp16", "invalid"),
        ("amp-fp16", {"float16": 9}, {"float32": 9}, "fp16", "valid"),
        ("amp-fp16", {"float16": 9}, {"float32": 9}, "fp32-ieee", "invalid"),
        ("amp-fp16", {"float16": 9}, {"float16": 9}, "fp16", "invalid"),
        ("fp16-master", {"float16": 9}, {"float16": 5, "float32": 4}, "fp16", "valid"),
        ("fp16-master", {"float16": 9}, {"float32": 9}, "fp16", "invalid"),
        ("pure-bf16", {"bfloat16": 9}, {"bfloat16": 9}, "bf16", "valid"),
        ("pure-fp16", {"bfloat16": 9}, {"float16": 9}, "fp16", "invalid"),
    ],
)
def test_a_precision_label_that_probe_outputs_or_parameters_contradict_is_invalid(
    label, outputs, parameters, reads_as, verdict
):
    precision = {
        "label": label,
        "output_dtypes": outputs,
        "parameter_dtypes": parameters,
        "probes": [probe(reads_as)],
    }
    found, causes = names(measured(precision=precision))
    assert found == verdict
    assert causes == ({"precision"} if verdict == "invalid" else set())


@pytest.mark.parametrize(
    ("last", "skipped", "expected"),
    [
        (512.0, 20, ("valid", set())),
        (512.0, 21, ("warn", {"loss-scale"})),
        (0.5, 0, ("invalid", {"loss-scale"})),
        ("nan", 0, ("invalid", {"loss-scale"})),
    ],
)
def test_a_loss_scale_that_fell_or_skips_steps_is_named(last, skipped, expected):
    scale = {"kind": "dynamic", "first": 65536.0, "last": last, "skipped_steps": skipped}
    precision = {"label": "amp-fp16", "output_dtypes": {"float16": 1}, "loss_scale": scale}
    assert names(measured(precision=precision)) == expected


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ([STEP_US] * 50, ("unproven", {"short-window"})),
        ([STEP_US, STEP_US * 11 // 10] * 200, ("valid", set())),
        ([STEP_US] * 400 + [STEP_US * 3 // 2] * 40 + [STEP_US] * 400, ("unproven", {"short-window"})),
        ([STEP_US] * 600 + [STEP_US * 11 // 10] * 600, ("warn", {"slowdown"})),
        ([STEP_US] * 1900 + [STEP_US * 9 // 10] * 100, ("unproven", {"short-window"})),
        ([STEP_US] * 1900 + [STEP_US * 2] * 20, ("unproven", {"short-window"})),
        ([STEP_US - at for at in range(2000)], ("invalid", {"no-steady-state"})),
    ],
)
def test_the_steady_state_enters_the_verdict(shape, expected):
    step_us = [value + (at * 37) % 1000 for at, value in enumerate(shape)]
    assert names(measured(step_us=step_us)) == expected


def test_a_long_window_that_proves_nothing_says_what_it_lacks():
    def cause(shape: list[int]) -> str:
        (found,) = summarise(measured(step_us=shape)).causes
        return f"{found.name}: {finding_sentence(found)}"

    once = cause([STEP_US] * 400 + [STEP_US * 3 // 2] * 40 + [STEP_US] * 400)
    assert once.startswith(
        "short-window: levels came back too seldom in 172 s and 840 steps: the standard error"
    )
    end = cause([STEP_US] * 1900 + [STEP_US * 2] * 20)
    assert end.startswith("short-window: the last level held for 8 s and 20 steps; 60 s and 200 steps")
    half = cause([STEP_US] * 1000 + [STEP_US * 2] * 400)
    assert "43% of the window, differ by +98% a step" in half
    noise = np.random.default_rng(3).normal(0, 0.04, 400)
    ramp = cause([int(STEP_US * (1 + 0.03 * at / 400 + noise[at])) for at in range(400)])
    assert "whether there is a drift of +" in ramp


@pytest.mark.parametrize(("change", "expected"), [(1e-12, ""), (1e-3, "findings")])
def test_the_last_digits_of_a_finding_make_no_other_summary(change: float, expected: str):
    record = build.two_cards()[0]
    stored, given = (
        record.summary.model_copy(
            update={"findings": (build.Finding(name="stalled", severity="warn", data={"share": share}),)}
        )
        for share in (0.0066, 0.0066 * (1 + change))
    )
    assert differing_part(record.model_copy(update={"summary": stored}), given) == expected


def test_forty_one_percent_of_waiting_lets_a_card_twice_as_fast_gain_at_most_1_42_times():
    assert speedup_limit(0.41) == pytest.approx(1.418, abs=1e-3)
    assert speedup_limit(0.0) == 2.0


@pytest.mark.parametrize(
    ("waited", "busy", "compute", "memory", "kind", "share"),
    [
        (0.61, None, 0.9, None, "input", 0.61),
        (0.01, 0.95, 0.9, None, "compute", 0.9),
        (0.05, 0.40, 0.9, None, "host", 0.55),
        (0.40, 0.20, None, None, "nothing", None),
        (0.01, 0.98, 0.7, 0.6, "compute", 0.7),
        (0.01, 0.98, 0.3, 0.8, "memory", 0.8),
        (0.01, 0.98, 0.3, None, "unknown", None),
        (0.01, 0.98, 0.3, 0.2, "compute", 0.3),
        (None, None, None, None, "unknown", None),
    ],
)
def test_a_trial_names_what_it_waits_for_and_unknown_where_nothing_says_so(
    waited, busy, compute, memory, kind, share
):
    parts: dict[str, Any] = {"step_us": [STEP_US] * STEPS}
    if waited is not None:
        parts["input_us"] = [int(waited * STEP_US)] * STEPS
    if busy is not None:
        parts["kernels"] = {"steps": 1, "busy_seconds": busy * STEP_US / 1e6}
    found = find_bound(summarise(measured(**parts)), compute_share=compute, memory_share=memory)
    assert found.kind == kind
    assert found.share == (None if share is None else pytest.approx(share))
