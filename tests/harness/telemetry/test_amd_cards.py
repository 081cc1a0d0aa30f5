"""AMD's cards by the kernel's files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.files import Files, unit_hash
from harness.gpu import amd
from harness.telemetry import sampler
from tests.helpers.fake_clock import Family
from tests.helpers.machines import tree


def test_an_amd_card_is_watched_by_files_that_its_driver_does_not_label(tmp_path):
    unlabelled = {"temp1_input": "59000", "temp2_label": "", "power1_average": "240000000"}
    kernel(tmp_path, {f"hwmon/hwmon2/{name}": text for name, text in unlabelled.items()})
    cards = amd.AmdCards([], str(tmp_path))
    (card,) = cards.sample(Family(), True)
    assert (card["power_watts"], card["temperature_c"], card["utilization_percent"]) == (240.0, 59.0, 97)
    assert cards.described[0]["unit"] == unit_hash("7d3b")


KERNEL = {
    "vendor": "0x1002", "uevent": "PCI_SLOT_NAME=0000:c3:00.0", "unique_id": "7d3b", "gpu_busy_percent": "97",
    "mem_info_vram_used": "1024", "mem_info_vram_total": str(192 * 2**30),
    "product_name": "AMD Instinct MI300X",
    "hwmon/hwmon2/power1_input": "250000000", "hwmon/hwmon2/freq1_input": "1900000000",
    "hwmon/hwmon2/temp2_label": "junction", "hwmon/hwmon2/temp2_input": "61000",
    "hwmon/hwmon2/temp3_label": "mem", "hwmon/hwmon2/temp3_input": "55000",
}  # fmt: skip


def kernel(root: Path, more: dict[str, str]) -> Files:
    """One MI300X as the kernel shows it."""
    device, kfd = "sys/class/drm/card1/device", "sys/class/kfd/kfd/topology/nodes"
    told = {f"{device}/{name}": text for name, text in (KERNEL | more).items()}
    told[f"{kfd}/0/properties"] = "gfx_target_version 0"
    told[f"{kfd}/1/properties"] = (
        f"gfx_target_version 90402\nlocation_id {0xC300}\ndomain 0\nsimd_count 1216\nsimd_per_cu 4"
    )
    told[f"{kfd}/1/gpu_id"] = "1001"
    told["sys/class/kfd/kfd/proc/200/vram_1001"] = str(2**30)
    return tree(root, told)


def test_a_healthy_card_s_values_come_from_the_kernel_s_files_and_what_they_lack_has_its_reason(tmp_path):
    kernel(tmp_path, {"current_compute_partition": "SPX", "ras/umc_err_count": "ue: 1\nce: 3"})
    (tmp_path / "sys/class/drm/card1/device/ras/gfx_err_count").write_text("ue: 0\nce: 4")
    cards = amd.AmdCards([], str(tmp_path))
    watched = sampler.Sampler(cards, Family(100))
    (card,) = watched.sample(0, edge=False)["cards"]
    assert (card["ecc_uncorrected"], card["ecc_corrected"]) == (1, 7)
    assert (card["power_watts"], card["sm_mhz"], card["utilization_percent"]) == (250.0, 1900.0, 97)
    assert (card["temperature_c"], card["memory_temperature_c"]) == (61.0, 55.0)
    assert card["others"] == {"processes": 1, "memory_bytes": 2**30}
    assert {"energy", "limited"} <= cards.missing.keys() and "0.ecc" not in cards.missing


def test_a_card_whose_files_are_gone_gives_nulls_with_reasons(tmp_path):
    kernel(tmp_path, {})
    cards = amd.AmdCards([], str(tmp_path))
    shutil.rmtree(tmp_path / "sys")
    (card,) = cards.sample(Family(), True)
    assert set(card.values()) == {None}
    assert {"0.ecc", "0.processes"} <= cards.missing.keys()


@pytest.mark.parametrize(("form", "told"), [("CPX NPS4", "CPX NPS4"), ("SPX NPS1", None)])
def test_a_card_that_is_divided_says_how(tmp_path, form, told):
    compute, memory = form.split()
    modes = {"current_compute_partition": compute, "current_memory_partition": memory}
    (found,) = amd.describe(kernel(tmp_path, modes))
    assert found["mig"] == told
    assert amd.AmdCards([], str(tmp_path)).sample(Family(), True)[0]["mig"] is (told is not None or None)


@pytest.mark.parametrize(("level", "held"), [("auto", False), ("high", True), ("manual", True), ("", None)])
def test_a_performance_level_that_a_user_set_is_held_clocks(tmp_path, level, held):
    files = kernel(tmp_path, {"power_dpm_force_performance_level": level})
    assert amd.describe(files)[0]["clocks_locked"] is held
    (sample,) = amd.AmdCards([], str(tmp_path)).sample(Family(), True)
    assert (sample["reasons"] == ["application_clocks"]) is bool(held)
