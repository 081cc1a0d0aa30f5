"""Cards that the bus shows and whose driver does not answer, on buses that are made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pynvml
import pytest

from harness.doctor.diagnosis import examine_surroundings, find_obstacles
from harness.doctor.surroundings import Surroundings
from harness.files import Files
from harness.gpu import nvidia
from harness.machine.devices import card_notes, select_devices
from harness.probe.describe import silent_cards
from harness.record import Gpu, Load, Machine
from harness.record.finding import finding_sentence
from harness.run import setup as run_setup
from harness.settings import Settings
from harness.summary.device_checks import machine_findings
from tests.helpers.fake_nvml import CARD, FakeNvml
from tests.helpers.machines import box

NVIDIA, AMD = "0x10de", "0x1002"


def bus(root: Path, *cards: tuple[str, str, str | None], first: int = 1) -> Files:
    """(vendor, class, module) of each card, at one address after the other."""
    for at, (vendor, kind, module) in enumerate(cards, first):
        folder = root / f"sys/bus/pci/devices/0000:{at:02x}:00.0"
        folder.mkdir(parents=True)
        for name, text in (("vendor", vendor), ("class", kind), ("device", "0x2204")):
            (folder / name).write_text(text + "\n")
        if module is not None:
            driver = root / "sys/bus/pci/drivers" / module
            driver.mkdir(parents=True, exist_ok=True)
            (folder / "driver").symlink_to(driver)
    return Files(root)


def refusing(code: int) -> Any:
    def refuses() -> None:
        raise pynvml.NVMLError(code)

    nvml = FakeNvml()
    vars(nvml)["nvmlInit"] = refuses
    return nvml


def test_a_board_whose_driver_has_no_nvml_is_named(tmp_path):
    tree = tmp_path / "proc" / "device-tree"
    tree.mkdir(parents=True)
    (tree / "compatible").write_text("nvidia,p3701\0nvidia,tegra234\0")
    assert list(silent_cards(Files(tmp_path), (), None)) == ["the GPU of this board: it has no NVML"]


@pytest.mark.parametrize(
    ("card", "library", "why"),
    [
        ((NVIDIA, "0x030000", "nvidia"), refusing(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH), "versions"),
        (
            (NVIDIA, "0x030200", "nvidia"),
            refusing(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND),
            "library",
        ),
        ((NVIDIA, "0x030000", None), refusing(pynvml.NVML_ERROR_DRIVER_NOT_LOADED), "not loaded"),
        ((NVIDIA, "0x030000", "nvidia"), refusing(pynvml.NVML_ERROR_UNKNOWN), "NVMLError_Unknown"),
        ((NVIDIA, "0x030000", "nvidia"), None, "no nvidia-ml-py"),
        ((NVIDIA, "0x030000", "nouveau"), None, "the module 'nouveau' holds it"),
        ((NVIDIA, "0x030200", "nvidia"), FakeNvml(), "does not list it"),
        ((AMD, "0x038000", None), None, "no module 'amdgpu' holds it"),
        ((AMD, "0x120000", "amdgpu"), None, "does not list it"),
    ],
)
def test_a_card_on_the_bus_that_no_driver_describes_is_told_with_the_reason(tmp_path, card, library, why):
    (said,) = silent_cards(bus(tmp_path, card), set(), library)
    assert why in said
    assert said.startswith(("NVIDIA card 10de:2204: ", "AMD card 1002:2204: "))


def test_a_card_of_windows_that_does_not_answer_in_wsl2_is_a_card(tmp_path, monkeypatch):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/dxg").touch()
    library = refusing(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    (said,) = silent_cards(Files(tmp_path), set(), library)
    assert said == "the card behind /dev/dxg: its driver's library is not here"
    assert list(silent_cards(Files(tmp_path), {"0000:01:00.0"}, library)) == []
    machine = box(silent_cards=(said,))
    found = examine_surroundings(Surroundings(machine, select_devices(machine, None), Load(), None))
    (told,) = [one for one in found if "/dev/dxg" in one.what]
    assert (told.level, told.remedy[:41]) == ("problem", "install its maker's driver in Windows, an")


def test_what_is_described_given_to_a_guest_or_no_card_is_none_of_them(tmp_path):
    files = bus(
        tmp_path,
        (NVIDIA, "0x030000", "nvidia"),
        (NVIDIA, "0x040300", "snd_hda_intel"),
        (NVIDIA, "0x030000", "vfio-pci"),
        ("0x1a03", "0x030000", "ast"),
        (AMD, "0x038000", "amdgpu"),
    )
    (tmp_path / "sys/bus/pci/devices/0000:05:00.0/physfn").mkdir()
    assert list(silent_cards(files, {"0000:01:00.0"}, FakeNvml())) == []


def test_one_of_several_cards_that_fell_off_the_bus_is_told_and_the_others_are_taken(tmp_path):
    lost = CARD | {"bus": "00000000:02:00.0"}
    nvml = FakeNvml([CARD, lost])
    found = nvml.nvmlDeviceGetHandleByIndex

    def without_the_second(index: int) -> Any:
        if index == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return found(index)

    vars(nvml)["nvmlDeviceGetHandleByIndex"] = without_the_second
    files = bus(tmp_path, *[(NVIDIA, "0x030200", "nvidia")] * 2)
    cards = nvidia.describe(nvml, files)
    (said,) = silent_cards(files, {card["bus"] for card in cards}, nvml)
    machine = box(Gpu(index=0, vendor="NVIDIA", name="RTX 4090"), silent_cards=(said,))
    assert card_notes(select_devices(machine, None), machine)[1] == f"does not answer: {said}"
    assert [gpu.index for gpu in select_devices(machine, None).gpus] == [0]


def test_of_a_job_that_was_given_some_cards_the_others_are_not_missed(tmp_path, monkeypatch):
    files = bus(tmp_path, *[(NVIDIA, "0x030200", "nvidia")] * 2)
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    assert list(silent_cards(files, {"0000:01:00.0"}, FakeNvml())) == []
    assert len(list(silent_cards(files, set(), FakeNvml()))) == 2


@pytest.mark.parametrize(
    ("device", "environ", "measured"),
    [(None, {}, False), ("cpu", {}, True), (None, {"CUDA_VISIBLE_DEVICES": ""}, True)],
)
def test_the_processor_is_measured_past_a_silent_card_only_when_asked(monkeypatch, device, environ, measured):
    machine = box(silent_cards=("NVIDIA card 10de:2204: no nvidia-ml-py",))
    monkeypatch.setattr(run_setup, "look_at_machine", lambda label: (machine, {}))
    asked = Settings(device=device)
    _, selection = run_setup.look_at_devices(asked, environ)
    met = find_obstacles(Surroundings(machine, selection, Load(), None))
    assert selection.kind == "cpu"
    assert ["--device cpu" in one.remedy for one in met] == ([] if measured else [True])


def test_a_record_keeps_the_silent_card_and_its_page_says_so():
    machine = box(silent_cards=("NVIDIA card 10de:2204: no nvidia-ml-py",))
    (found,) = machine_findings(Machine.model_validate_json(machine.model_dump_json()))
    assert (found.name, found.severity) == ("silent-card", "warn")
    assert "NVIDIA card 10de:2204" in finding_sentence(found)
    assert "silent_cards" not in box().model_dump()


@pytest.mark.parametrize(
    ("cards", "level"), [((), "problem"), ((Gpu(index=0, vendor="NVIDIA", name="RTX 4090"),), "warn")]
)
def test_the_doctor_names_the_silent_card_and_a_remedy_of_its_cause(cards, level):
    card = "NVIDIA card 10de:2204: the module 'nouveau' holds it, and not 'nvidia'"
    machine = box(*cards, silent_cards=(card,))
    said = examine_surroundings(Surroundings(machine, select_devices(machine, None), Load(), None))
    (silent_one,) = [finding for finding in said if "10de:2204" in finding.what]
    assert silent_one.level == level
    assert silent_one.remedy.startswith("install the maker's driver")
