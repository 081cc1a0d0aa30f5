"""What devices reach together, and what gradients need of it, on constructed records."""

from __future__ import annotations

import pytest

from report.trials.all_reduce import devices_of, gradient_bytes, least_seconds, reached
from tests.helpers.records_builder import changed
from tests.helpers.records_devices import runs, summed, with_parameters


def test_what_devices_reach_is_the_median_of_their_valid_trials_by_their_number():
    several = [one for gb in (30.0, 50.0, 40.0) for one in summed(2, gb, repeats=1)]
    (invalid,) = summed(2, 900.0, repeats=1)
    doubtful = changed(invalid, summary__verdict="invalid")
    found = reached([*summed(8, 20.0), *several, doubtful, *runs("fp32-ieee", 0.1)])
    two, eight = found.values()
    assert list(found) == [devices_of(several[0]), devices_of(summed(8, 20.0)[0])]
    assert (two.devices, two.trials, two.backend) == (2, 3, "nccl 2.27.3")
    assert two.bus_bytes_per_second == 40e9
    assert eight.bus_bytes_per_second == 35e9


def test_a_record_that_tells_no_figure_is_left_out():
    (made,) = summed(2, 40.0, repeats=1)
    assert reached([changed(made, measurement__ceilings={})]) == {}


@pytest.mark.parametrize(
    ("way", "types", "size"),
    [
        ("ddp", {"torch.float32": 25_557_032}, 102_228_128),
        ("ddp", {"bfloat16": 1000, "float32": 10}, 2040),
        ("ddp", {"int3": 10}, None),
        ("ddp", {}, None),
        ("dp", {"torch.float32": 25_557_032}, None),
        ("each", {"torch.float32": 25_557_032}, None),
    ],
)
def test_gradients_are_as_many_bytes_as_the_parameters_in_their_own_type(way, types, size):
    told = with_parameters("fp32-ieee", 1)["precision"].model_copy(update={"parameter_dtypes": types})
    (made,) = runs("fp32-ieee", 0.1, repeats=1, way=way, gpus=2, changes={"precision": told})
    assert gradient_bytes(made.measurement) == size
    assert least_seconds(made.measurement, 40e9) == (None if size is None else size / 40e9)
