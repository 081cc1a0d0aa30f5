"""AMD's cards, by amdsmi and by the kernel's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.files import Files, unit_of
from harness.gpu import amd, amdgpu
from harness.record import Telemetry
from harness.record.published.cards import is_shared
from harness.telemetry import sampler
from harness.telemetry.reader import read
from tests.helpers.fake_amdsmi import AmdSmiClkType, FakeAmdsmi
from tests.helpers.fake_clock import Clock, Family, OnlyCpu, watch
from tests.helpers.machines import tree


def amd_lines(tmp_path, smi: FakeAmdsmi, monkeypatch) -> Telemetry:
    def moved(now: int) -> None:
        smi.seconds = now

    clock = Clock(moved)
    monkeypatch.setattr(amd, "time", clock)
    path = tmp_path / "telemetry.jsonl"
    watch(amd.AmdsmiCards(smi, []), path, clock, 100, seconds=70)
    found = read(path, ((1001.0, 1069.0),))
    assert found is not None
    return found


def test_an_amd_card_is_watched_through_amdsmi(tmp_path, monkeypatch):
    found = amd_lines(tmp_path, FakeAmdsmi(), monkeypatch)
    (card,) = found.cards
    assert found.source == "amdsmi"
    assert card.limited_share == {"power": pytest.approx(0.5, abs=0.02), "thermal": 0.0, "prochot": 0.0}
    assert card.reasons_share == {"throttle": 1.0}
    assert (card.others.processes, card.others.memory_bytes) == (1, 2**20)
    assert card.others.utilization_percent == pytest.approx(100 * 16 / 304, abs=0.001)
    assert set(card.memory_temperature_c.mean.values()) == {58.0}
    assert found.energy.joules == pytest.approx(600 * 68, rel=1e-3)
    assert found.energy.disagreement == pytest.approx(0, abs=1e-3)


def test_an_amd_card_whose_clocks_are_held_says_so(tmp_path, monkeypatch):
    smi = FakeAmdsmi()
    smi.locked = True
    assert amd_lines(tmp_path, smi, monkeypatch).cards[0].reasons_share["application_clocks"] == 1.0


def test_an_amd_card_without_counters_gives_nulls_with_reasons(tmp_path, monkeypatch):
    absent = ("amdsmi_get_energy_count", "amdsmi_get_violation_status", "amdsmi_get_gpu_process_list")
    found = amd_lines(tmp_path, FakeAmdsmi(absent=absent), monkeypatch)
    assert (found.cards[0].limited_share, found.cards[0].others) == ({}, None)
    assert found.missing == {
        "0.energy": "AmdSmiLibraryException",
        "0.limited": "AmdSmiLibraryException",
        "0.processes": "AmdSmiLibraryException",
    }
    assert found.energy.method == "sampled power"


def test_a_process_that_amdsmi_lists_under_a_card_of_which_it_holds_nothing_is_not_there(
    tmp_path, monkeypatch
):
    smi = FakeAmdsmi()
    elsewhere = [{"pid": 200, "mem": 0, "cu_occupancy": "N/A"}, {"pid": 300, "mem": 0, "cu_occupancy": 0}]
    monkeypatch.setattr(smi, "amdsmi_get_gpu_process_list", lambda handle: elsewhere, raising=False)
    others = amd_lines(tmp_path, smi, monkeypatch).cards[0].others
    assert (others.processes, others.memory_bytes) == (0, 0)
    elsewhere.append({"pid": 400, "mem": "N/A", "cu_occupancy": "N/A"})
    assert amd_lines(tmp_path, smi, monkeypatch).cards[0].others.processes == 1


def test_amd_s_cards_are_counted_by_bus_number_whatever_the_library_s_order():
    cards = amd.AmdsmiCards(FakeAmdsmi(("0000:C3:00.0", "0000:03:00.0")), ["0"])
    assert cards._handles == ["0000:03:00.0"]


def test_amd_s_cards_are_left_to_the_kernel_s_files_where_the_library_gives_no_address():
    cards = amd.AmdsmiCards(
        FakeAmdsmi(("0000:C3:00.0", "0000:03:00.0"), absent=("amdsmi_get_gpu_device_bdf",)), ["0"]
    )
    assert (cards.described, cards.missing["cards"]) == ([], "amdsmi gives no PCI address")


def test_an_amd_card_is_watched_by_the_kernel_s_files_without_amdsmi(tmp_path):
    unlabelled = {"temp1_input": "59000", "temp2_label": "", "power1_average": "240000000"}
    kernel(tmp_path, {f"hwmon/hwmon2/{name}": text for name, text in unlabelled.items()})
    cards = amdgpu.KernelCards([], str(tmp_path))
    (card,) = cards.sample(Family(), True)
    assert (card["power_watts"], card["temperature_c"], card["utilization_percent"]) == (240.0, 59.0, 97)
    assert cards.described[0]["unit"] == unit_of("7d3b")


class OldAmdsmi(FakeAmdsmi):
    """As ROCm 6.0 and 6.1 have it: handles of processes, other keys, and the largest number for N/A."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("amdsmi_get_violation_status", "AmdSmiTemperatureMetric"):
            raise AttributeError(name)
        return super().__getattribute__(name)

    def amdsmi_get_gpu_process_list(self, processor_handle: str) -> list[Any]:
        return [0x100, 0x200]

    def amdsmi_get_gpu_process_info(self, processor_handle: str, process: Any) -> dict[str, Any]:
        return super().amdsmi_get_gpu_process_list(processor_handle)[process // 0x100 - 1]

    def amdsmi_get_clock_info(self, processor_handle: str, clock_type: AmdSmiClkType) -> dict[str, Any]:
        return {"cur_clk": 2100, "max_clk": 2100, "min_clk": 132, "sleep_clk": 0}

    def amdsmi_get_gpu_vram_info(self, processor_handle: str) -> dict[str, Any]:
        return {"vram_size_mb": 196_592}

    def amdsmi_get_power_info(self, processor_handle: str) -> dict[str, Any]:
        return {"current_socket_power": 600, "average_socket_power": 0xFFFF}

    def amdsmi_get_energy_count(self, processor_handle: str) -> dict[str, Any]:
        told = super().amdsmi_get_energy_count(processor_handle)
        return {"power": told["energy_accumulator"], "counter_resolution": told["counter_resolution"]}

    def amdsmi_get_gpu_metrics_info(self, processor_handle: str) -> dict[str, Any]:
        return {"throttle_status": 0xFFFFFFFF, "indep_throttle_status": 0xFFFFFFFFFFFFFFFF}


def test_an_amdsmi_of_rocm_6_0_is_watched_through_its_handles_and_its_own_keys(tmp_path, monkeypatch):
    found = amd_lines(tmp_path, OldAmdsmi(), monkeypatch)
    (card,) = found.cards
    assert found.ended == "the given time is over"
    assert (card.limited_share, card.reasons_share) == ({}, {})
    assert (card.others.processes, card.others.memory_bytes) == (1, 2**20)
    assert set(card.sm_mhz.mean.values()) == {2100.0}
    assert set(card.power_watts.mean.values()) == {600.0}
    assert found.energy.joules == pytest.approx(600 * 68, rel=1e-3)
    assert found.missing["0.limited"] == "the library is older"
    (told,) = amd.describe(OldAmdsmi(), Files(tmp_path))
    assert told["memory_bytes"] == 196_592 * 2**20


KERNEL = {
    "vendor": "0x1002", "uevent": "PCI_SLOT_NAME=0000:c3:00.0", "unique_id": "7d3b", "gpu_busy_percent": "97",
    "mem_info_vram_used": "1024", "mem_info_vram_total": str(192 * 2**30),
    "product_name": "AMD Instinct MI300X",
    "hwmon/hwmon2/power1_input": "250000000", "hwmon/hwmon2/freq1_input": "1900000000",
    "hwmon/hwmon2/temp2_label": "junction", "hwmon/hwmon2/temp2_input": "61000",
    "hwmon/hwmon2/temp3_label": "mem", "hwmon/hwmon2/temp3_input": "55000",
}  # fmt: skip


def kernel(root: Path, more: dict[str, str], nodes: int = 1, **node: str) -> Files:
    """One MI300X as the kernel shows it, with so many of the compute driver's nodes."""
    device, kfd = "sys/class/drm/card1/device", "sys/class/kfd/kfd/topology/nodes"
    told = {f"{device}/{name}": text for name, text in (KERNEL | more).items()}
    told[f"{kfd}/0/properties"] = "gfx_target_version 0"
    for at in range(1, nodes + 1):
        told[f"{kfd}/{at}/properties"] = (
            f"gfx_target_version 90402\nlocation_id {0xC300}\ndomain 0\nunique_id {40 + at}\n"
            f"simd_count {1216 // nodes}\nsimd_per_cu 4"
        )
        told[f"{kfd}/{at}/gpu_id"] = str(1000 + at)
        told[f"{kfd}/{at}/mem_banks/0/properties"] = f"heap_type 1\nsize_in_bytes {192 * 2**30 // nodes}"
    told["sys/class/kfd/kfd/proc/200/vram_1001"] = str(2**30)
    return tree(root, told)


class Silent(FakeAmdsmi):
    """An amdsmi that answers N/A to all but what names a card."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("amdsmi_get_") and not name.endswith(("handles", "bdf", "asic_info")):
            return lambda *asked: "N/A" if "temp" in name else {} if "list" not in name else None
        return super().__getattribute__(name)


def test_what_amdsmi_does_not_know_comes_from_the_kernel_s_files(tmp_path):
    kernel(tmp_path, {"current_compute_partition": "SPX"})
    cards = amd.AmdsmiCards(Silent(), [], str(tmp_path))
    watched = sampler.Sampler(cards, OnlyCpu(), Family(100))
    for second in range(5):
        (card,) = watched.sample(second, edge=False)["cards"]
    assert watched.gone is None
    assert (card["power_watts"], card["sm_mhz"], card["utilization_percent"]) == (250.0, 1900.0, 97)
    assert (card["temperature_c"], card["memory_temperature_c"]) == (61.0, 55.0)
    assert card["others"] == {"processes": 1, "memory_bytes": 2**30}


@pytest.mark.parametrize(("form", "count"), [("DPX NPS2", 2), ("QPX NPS1", 4), ("CPX NPS4", 8)])
def test_a_card_that_is_divided_is_as_many_devices_each_of_which_says_so(tmp_path, form, count):
    compute, memory = form.split()
    modes = {"current_compute_partition": compute, "current_memory_partition": memory}
    files = kernel(tmp_path, modes, count)
    for library in (None, FakeAmdsmi()):
        found = amd.describe(library, files)
        assert [card["index"] for card in found] == list(range(count))
        assert {card["name"] for card in found} == {f"AMD Instinct MI300X {form}"}
        assert not any(is_shared(card["name"]) for card in found)
        assert {card["mig"] for card in found} == {f"{form} of card 0"}
        assert {card["memory_bytes"] for card in found} == {192 * 2**30 // count}
        assert {card["compute_units"] for card in found} == {304 // count}
        assert len({card["unit"] for card in found}) == count
    watched = amdgpu.KernelCards([f"{42:016x}"], str(tmp_path))
    assert [card["index"] for card in watched.described] == [1]
    assert watched.sample(Family(), True)[0]["mig"] is True
    assert [card["index"] for card in amd.AmdsmiCards(FakeAmdsmi(), ["1"], str(tmp_path)).described] == [1]


@pytest.mark.parametrize(("level", "held"), [("auto", False), ("high", True), ("manual", True), ("", None)])
def test_a_performance_level_that_a_user_set_is_held_clocks(tmp_path, level, held):
    files = kernel(tmp_path, {"power_dpm_force_performance_level": level})
    assert amd.describe(None, files)[0]["clocks_locked"] is held
    (sample,) = amdgpu.KernelCards([], str(tmp_path)).sample(Family(), True)
    assert (sample["reasons"] == ["application_clocks"]) is bool(held)
