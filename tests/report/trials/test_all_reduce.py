"""What devices reach together, and what gradients need of it, on constructed records."""

from __future__ import annotations

import pytest

from harness.record import Series
from report.trials.ceilings import device_of, reached_together
from tests.helpers.records_builder import changed
from tests.helpers.records_devices import runs, summed


def test_what_devices_reach_is_the_median_of_their_valid_trials_by_their_number():
    several = [one for gb in (30.0, 50.0, 40.0) for one in summed(2, gb, repeats=1)]
    (invalid,) = summed(2, 900.0, repeats=1)
    doubtful = changed(invalid, summary__verdict="invalid")
    found = reached_together([*summed(8, 20.0), *several, doubtful, *runs("fp32-ieee", 0.1)])
    two, eight = found
    assert [one.device for one in found] == [device_of(several[0]), device_of(summed(8, 20.0)[0])]
    assert (two.devices, two.trials, two.backend) == (2, 3, "nccl 2.27.3")
    assert two.bus_bytes_per_second == 40e9
    assert dict(two.bus_of_sizes) == pytest.approx({2**20: 10e9, 2**24: 20e9, 2**28: 40e9}, rel=1e-2)
    assert eight.bus_bytes_per_second == 35e9
    assert dict(eight.bus_of_sizes)[2**28] == pytest.approx(35e9, rel=1e-2)


def test_a_record_whose_samples_took_no_time_or_that_tells_no_figure_breaks_nothing():
    (made,) = summed(2, 40.0, repeats=1)
    (size, *rest) = made.measurement.all_reduce.sizes
    empty = [
        size.model_copy(update={"sample_us": Series.from_microseconds(samples)}) for samples in ([], [0, 0])
    ]
    odd = changed(made, measurement__all_reduce__sizes=(*empty, *rest))
    (found,) = reached_together([odd])
    assert [size for size, _ in found.bus_of_sizes] == [2**24, 2**28]
    assert reached_together([changed(made, measurement__ceilings={})]) == []
