"""Which devices are taken, and what is passed on of the user's variables."""

from __future__ import annotations

import pytest

from harness.errors import NoDevice
from harness.files import unit_hash
from harness.machine.devices import passed_variables, recorded_variables, select_devices
from harness.record import Gpu, Machine
from tests.helpers.machines import box

UUIDS = [f"GPU-{n}f2a1b2c-1111-2222-3333-123456789abc" for n in range(4)]


def card(index: int, name: str, gigabytes: float, vendor: str = "NVIDIA") -> Gpu:
    memory = int(gigabytes * 2**30)
    return Gpu(index=index, vendor=vendor, name=name, memory_bytes=memory, unit=unit_hash(UUIDS[index]))


MIXED = box(card(0, "GTX 1660", 6), card(1, "RTX 4090", 24), card(2, "RTX 4090", 24))


def test_unasked_all_cards_of_the_model_with_the_most_memory_are_taken_and_the_others_named():
    found = select_devices(MIXED, None, uuids={unit_hash(uuid): uuid for uuid in UUIDS})
    assert (found.kind, [gpu.index for gpu in found.gpus]) == ("cuda", [1, 2])
    assert found.others == ("0: GTX 1660 (6 GiB)",)
    assert found.uuids == tuple(UUIDS[1:3])


def test_without_a_card_the_processor_is_taken():
    assert select_devices(box(), None).kind == "cpu"
    assert select_devices(MIXED, "cpu").gpus == ()


@pytest.mark.parametrize("asked", ["0", UUIDS[0], f" {UUIDS[0]} ", "0,0"])
def test_a_card_is_found_by_its_index_and_by_its_uuid(asked):
    assert [gpu.index for gpu in select_devices(MIXED, asked).gpus] == [0]


def test_the_beginning_of_a_uuid_is_enough_where_the_driver_s_are_known():
    known = {unit_hash(uuid): uuid for uuid in UUIDS}
    assert [gpu.index for gpu in select_devices(MIXED, "GPU-2f2", uuids=known).gpus] == [2]
    with pytest.raises(NoDevice, match="names several cards"):
        select_devices(MIXED, "GPU-", uuids=known)


@pytest.mark.parametrize("asked", ["3", "GPU-00000000-1111-2222-3333-123456789abc", "MIG-1", "cuda", ","])
def test_a_device_that_is_not_there_is_refused_with_what_is(asked):
    with pytest.raises(NoDevice, match=r"there is: 0: GTX 1660 \(6 GiB\), 1: RTX 4090"):
        select_devices(MIXED, asked)


def test_cards_of_two_makers_are_not_mixed_and_an_amd_card_is_rocm():
    both = box(card(0, "RTX 4090", 24), card(1, "MI300X", 192, "AMD"))
    assert select_devices(both, None).kind == "rocm"
    with pytest.raises(NoDevice, match="two makers"):
        select_devices(both, "0,1")


def sliced() -> Machine:
    whole = card(0, "A100-SXM4-40GB", 40).model_copy(update={"mig": "off"})
    slices = [
        card(at, "A100-SXM4-40GB MIG 3g.20gb", 20).model_copy(update={"mig": "3g.20gb of card 1"})
        for at in (2, 3)
    ]
    return box(whole, *slices)


def test_a_slice_is_taken_by_its_uuid_as_cuda_s_own_variable_names_it():
    uuid = "MIG-3f2a1b2c-1111-2222-3333-123456789abc"
    gpus = [
        gpu.model_copy(update={"unit": unit_hash(uuid)} if gpu.index == 3 else {}) for gpu in sliced().gpus
    ]
    found = select_devices(
        box(*gpus), None, uuids={unit_hash(uuid): uuid}, environ={"CUDA_VISIBLE_DEVICES": uuid}
    )
    assert ([gpu.index for gpu in found.gpus], found.uuids, found.kind) == ([3], (uuid,), "cuda")


def test_of_several_slices_one_is_taken_for_cuda_shows_a_process_no_more():
    found = select_devices(box(*sliced().gpus[1:]), None)
    assert ([gpu.index for gpu in found.gpus], found.note) == ([2], "CUDA shows a process one slice alone")
    assert found.others == ("3: A100-SXM4-40GB MIG 3g.20gb (20 GiB)",)
    assert [gpu.index for gpu in select_devices(sliced(), "2,3").gpus] == [2]


def test_a_card_in_mig_mode_without_a_slice_is_not_taken_unasked():
    empty = card(0, "A100-SXM4-40GB", 40).model_copy(update={"mig": "on"})
    assert select_devices(box(empty), None).kind == "cpu"


def test_a_small_card_inside_the_processor_is_not_taken_unasked():
    inside = box(card(0, "Radeon Graphics", 0.5, "AMD"))
    found = select_devices(inside, None)
    assert (found.kind, found.others) == ("cpu", ("0: Radeon Graphics (0 GiB)",))
    assert select_devices(inside, "0").kind == "rocm"


def test_the_user_s_visible_devices_decide_where_nothing_is_asked():
    environ = {"CUDA_VISIBLE_DEVICES": "2"}
    assert [gpu.index for gpu in select_devices(MIXED, None, environ=environ).gpus] == [2]
    assert [gpu.index for gpu in select_devices(MIXED, "1", environ=environ).gpus] == [1]
    assert select_devices(MIXED, None, environ={"CUDA_VISIBLE_DEVICES": ""}).kind == "cpu"


def test_variables_that_change_what_runs_are_passed_and_no_others():
    environ = {
        "HSA_OVERRIDE_GFX_VERSION": "10.3.0",
        "NVIDIA_TF32_OVERRIDE": "0",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "OMP_NUM_THREADS": "2",
        "HOME": "/home/maren",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    passed = passed_variables(environ)
    assert set(passed) == set(environ) - {"HOME", "AWS_SECRET_ACCESS_KEY"}
    assert recorded_variables(passed, ()) == passed


def test_a_uuid_in_a_variable_is_recorded_as_the_unit():
    recorded = recorded_variables({"CUDA_VISIBLE_DEVICES": f"{UUIDS[0]},1"}, ())
    assert recorded == {"CUDA_VISIBLE_DEVICES": f"unit:{unit_hash(UUIDS[0])},1"}
