"""The small network of study 003 on CIFAR-10."""

from __future__ import annotations

import pytest

from tests.helpers.workload_runner import DATA, need_data, need_torch, run, trial

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def _torch_is_here():
    need_torch()


def cnn(**told):
    asked = {"model": "cnn", "batch_size": 64, "data_mode": "host", "limit": {"steps": 3, "valid_batches": 1}}
    return trial("cifar_cnn", **{**asked, **told})


def test_it_is_the_network_of_the_study_for_as_many_steps_and_labels_as_the_study_had(tmp_path):
    found = run(tmp_path, cnn()).measured
    assert found.structure == {"classes": 10, "parameters": 3_441_592}
    assert (found.protocol.steps_per_epoch, found.protocol.epochs, found.protocol.valid_batches) == (
        781,
        10,
        156,
    )
    assert (found.window.samples, found.samples_per_step, found.data.distinct_batches) == (192, 64, 3)
    # Guessing among ten classes: ln 10.
    assert found.losses[0][1] == pytest.approx(2.303, abs=0.02)
    assert found.precision.output_dtypes == {"float32": 6}
    assert "first_step" not in {phase.name for phase in found.phases}
    assert found.quality_name == "accuracy"


@pytest.mark.data
def test_it_trains_and_is_tested_on_the_real_images(tmp_path):
    need_data()
    found = run(tmp_path, cnn(data="real", data_mode="device"), data=DATA).measured
    assert (found.data.name, found.data.source, found.data.train_items) == ("cifar-10", "real", 50000)
    assert found.epochs[0].valid_loss == pytest.approx(2.303, abs=0.02)
    assert (found.epochs[0].quality * 64) % 1 == pytest.approx(0)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"options": {"framework": "tensorflow"}}, "there are: pytorch"),
        ({"data_mode": "cached"}, "there are: device, host"),
        ({"gpus": 2}, "2 GPUs are asked"),
    ],
)
def test_what_it_does_not_have_is_refused(told, words, tmp_path):
    assert words in run(tmp_path, cnn(**told)).failed.message
