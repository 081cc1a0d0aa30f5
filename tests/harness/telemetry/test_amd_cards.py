"""AMD's cards, by amdsmi and by the kernel's files."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.files import unit_of
from harness.gpu import amd, amdgpu
from harness.record import Telemetry
from harness.telemetry import sampler
from harness.telemetry.reader import read
from tests.helpers.fake_amdsmi import FakeAmdsmi
from tests.helpers.fake_clock import Clock, Family, OnlyCpu


def amd_lines(tmp_path, smi: FakeAmdsmi, monkeypatch, seconds: int = 70) -> Telemetry:
    def moved(now: int) -> None:
        smi.seconds = now

    clock = Clock(moved)
    monkeypatch.setattr(amd, "time", clock)
    cards = amd.AmdsmiCards(smi, [])
    path = tmp_path / "telemetry.jsonl"
    ending = sampler.Ending(SimpleNamespace(parent=None, stop_file=None, max_seconds=seconds))
    with path.open("w") as out:
        sampler.run(out, sampler.Sampler(cards, OnlyCpu(), Family(100)), 1.0, ending, clock)
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
    device = tmp_path / "sys/class/drm/card1/device"
    (device / "hwmon/hwmon2").mkdir(parents=True)
    for name, text in {
        "vendor": "0x1002", "unique_id": "7d3b", "gpu_busy_percent": "97", "mem_info_vram_used": "1024",
        "hwmon/hwmon2/power1_average": "250000000", "hwmon/hwmon2/temp1_input": "61000",
    }.items():  # fmt: skip
        (device / name).write_text(text + "\n")
    cards = amdgpu.KernelCards([], str(tmp_path))
    (card,) = cards.sample(Family(), True)
    assert (card["power_watts"], card["temperature_c"], card["utilization_percent"]) == (250.0, 61.0, 97)
    assert cards.described[0]["unit"] == unit_of("7d3b")
