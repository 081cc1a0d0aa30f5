"""Cards as the fingerprint tells them: NVIDIA's with their slices, and AMD's."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import SimpleNamespace

import pynvml
import pytest

from harness.files import Files, unit_hash
from harness.gpu import amd, nvidia
from harness.machine.fingerprint import make_machine, read_load_from
from harness.probe.describe import silent_cards
from harness.record.published.cards import load_cards
from tests.helpers import ROOT
from tests.helpers.fake_clock import Family
from tests.helpers.fake_nvml import CARD, SLICES, FakeNvml
from tests.helpers.machines import bare, tree


def test_a_nvidia_card_is_described_and_its_uuid_only_hashed():
    cards = nvidia.describe(FakeNvml(), Files(Path("/nowhere")))
    machine = make_machine(bare(cards), "0123456789ab", None, ())
    (card,) = machine.gpus
    assert (card.name, card.memory_bytes, card.driver_cuda) == (CARD["nvmlDeviceGetName"], 24 * 2**30, "12.8")
    assert (card.architecture, card.power_limit_watts, card.ecc, card.mig) == ("sm_89", 450.0, None, None)
    assert card.unit == unit_hash(CARD["nvmlDeviceGetUUID"]) == "739d08b7ff52fe19"
    assert CARD["nvmlDeviceGetUUID"][4:] not in machine.canonical()
    assert machine.label == "1x-rtx-4090"


@pytest.mark.parametrize(
    ("told", "rows"),
    [
        ({"nvmlDeviceGetRemappedRows": (1, 2, False, False)}, 3),
        ({}, None),
    ],
)
def test_a_card_s_replaced_memory_its_highest_limit_and_its_mode_are_told(told, rows):
    card = CARD | {
        "nvmlDeviceGetPowerManagementLimitConstraints": [100_000, 600_000],
        "nvmlDeviceGetComputeMode": pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
        "nvmlDeviceGetBAR1MemoryInfo": SimpleNamespace(bar1Total=2**28),
    }
    (found,) = nvidia.describe(FakeNvml([card | told]), Files())
    assert (found["power_limit_max_watts"], found["compute_mode"]) == (600.0, "exclusive")
    assert (found["bar1_bytes"], found["remapped_rows"]) == (2**28, rows)


GUEST = {"nvmlDeviceGetVirtualizationMode": pynvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU}


def license(*states: int) -> dict[str, object]:
    features = [SimpleNamespace(featureState=state) for state in (*states, 1)]
    told = SimpleNamespace(licensableFeaturesCount=len(states), gridLicensableFeatures=features)
    return {"nvmlDeviceGetGridLicensableFeatures": told}


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ({"nvmlDeviceGetGpuMaxPcieLinkGeneration": 5}, {"pcie_generation_of_card": 5}),
        ({"nvmlDeviceGetRemappedRows": (0, 1, 1, 0)}, {"remapping": "pending"}),
        ({"nvmlDeviceGetRemappedRows": (0, 9, 1, 1)}, {"remapping": "failed"}),
        ({"nvmlDeviceGetRemappedRows": (0, 9, 0, 0)}, {}),
        ({"ecc_uncorrected_ever": 7}, {"ecc_uncorrected_ever": 7}),
        (GUEST | license(0, 1), {"vgpu_license": "licensed"}),
        (GUEST | license(0, 0), {"vgpu_license": "unlicensed"}),
        (license(0), {}),
    ],
)
def test_what_a_driver_says_of_a_card_s_slot_memory_and_license_is_told_and_left_out_where_it_is_silent(
    told, found
):
    machine = make_machine(bare(nvidia.describe(FakeNvml([CARD | told]), Files())), "0123456789ab", None, ())
    kept = machine.gpus[0].model_dump(mode="json")
    more = ("pcie_generation_of_card", "remapping", "ecc_uncorrected_ever", "vgpu_license")
    assert {name: kept[name] for name in more if name in kept} == found


def test_a_driver_that_is_not_there_gives_no_cards():
    assert nvidia.describe(FakeNvml(driver=False), Files()) == []
    assert nvidia.describe(None, Files()) == []


def test_the_slices_of_a_card_stand_in_its_place_as_cards_of_their_own():
    machine = make_machine(bare(nvidia.describe(FakeNvml(SLICES), Files())), "0123456789ab", None, ())
    whole, first, second = machine.gpus
    assert [gpu.index for gpu in machine.gpus] == [1, 2, 3]
    assert (whole.name, whole.mig) == (CARD["nvmlDeviceGetName"], "off")
    assert (first.name, first.mig) == ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "3g.20gb of card 0")
    assert (first.memory_bytes, first.driver, first.architecture) == (20 * 2**30, whole.driver, "sm_89")
    assert first.unit == unit_hash(SLICES[2]["nvmlDeviceGetUUID"]) != second.unit


def test_a_card_in_mig_mode_without_a_slice_is_listed_and_says_so():
    card = CARD | {"nvmlDeviceGetMigMode": [1, 1], "nvmlDeviceGetMaxMigDeviceCount": 7}
    assert [found["mig"] for found in nvidia.describe(FakeNvml([card]), Files())] == ["on"]


def test_before_a_trial_processes_are_counted_over_slices_and_cards_alike(tmp_path):
    found = read_load_from(tree(tmp_path, {}), FakeNvml(SLICES), pid=100)
    assert (found.other_gpu_processes, found.other_gpu_memory_bytes) == (1, 2**30)


def test_the_stand_in_for_nvml_has_the_names_and_parameters_of_the_real_library():
    own = [name for name in vars(FakeNvml) if name.startswith("nvml")]
    answers = [name for name in CARD if name.startswith("nvml")]
    assert own
    for name in own + answers:
        assert hasattr(pynvml, name), name
    for name in own:
        real = list(inspect.signature(getattr(pynvml, name)).parameters)
        fake = list(inspect.signature(getattr(FakeNvml, name)).parameters)[1:]
        if real != ["args", "kwargs"] and real:
            assert fake == real, name


AMD = {
    "/sys/class/drm/card1/device/vendor": "0x1002",
    "/sys/class/drm/card1/device/uevent": "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:c3:00.0",
    "/sys/class/drm/card1/device/product_name": "AMD Instinct MI300X",
    "/sys/class/drm/card1/device/unique_id": "7d3b1c0a9f8e2d11",
    "/sys/class/drm/card1/device/mem_info_vram_total": str(192 * 2**30),
    "/sys/class/drm/card1/device/current_link_speed": "32.0 GT/s PCIe",
    "/sys/class/drm/card1/device/max_link_speed": "32.0 GT/s PCIe",
    "/sys/class/drm/card1/device/current_link_width": "16",
    "/sys/class/drm/card1/device/pp_dpm_sclk": "0: 132Mhz *\n1: 2100Mhz",
    "/sys/class/drm/card1/device/hwmon/hwmon3/power1_cap": "750000000",
    "/sys/class/drm/card1/device/numa_node": "-1",
    "/sys/class/kfd/kfd/topology/nodes/1/properties": "gfx_target_version 90402\nlocation_id 49920\ndomain 0",
    "/sys/class/drm/card0/device/vendor": "0x1a03",
}


@pytest.mark.parametrize(("header", "gib"), [("x\0\x01\x03", 4), ("x\0\x03\0", 100), ("", 4)])
def test_memory_that_a_processor_shares_with_its_gpu_counts_as_far_as_it_may_take_it(tmp_path, header, gib):
    folder = "/sys/class/drm/card1/device"
    sizes = {"vram": 4, "gtt": 96}
    files = {f"{folder}/mem_info_{name}_total": str(size * 2**30) for name, size in sizes.items()}
    (card,) = amd.describe(tree(tmp_path, {**AMD, **files, f"{folder}/gpu_metrics": header}))
    assert card["memory_bytes"] == gib * 2**30


def test_an_amd_card_is_described_by_the_kernel_alone(tmp_path):
    (card,) = amd.describe(tree(tmp_path, AMD))
    machine = make_machine(bare([card]), "0123456789ab", None, ())
    (found,) = machine.gpus
    assert (found.name, found.architecture, found.memory_bytes) == (
        "AMD Instinct MI300X",
        "gfx942",
        192 * 2**30,
    )
    assert (found.pcie_generation, found.pcie_width, found.numa_node) == (5, 16, None)
    assert (found.power_limit_watts, found.clock_max_mhz) == (750.0, 2100)
    assert "7d3b1c0a9f8e2d11" not in machine.canonical()
    assert machine.label == "1x-instinct-mi300x"


def test_a_card_that_its_driver_calls_by_a_shared_name_is_named_by_its_chip(tmp_path):
    node = AMD["/sys/class/kfd/kfd/topology/nodes/1/properties"] + "\nsimd_count 1216\nsimd_per_cu 4"
    told = AMD | {
        "/sys/class/drm/card1/device/product_name": "AMD Radeon Graphics",
        "/sys/class/drm/card1/device/device": "0x74a1",
        "/sys/class/drm/card1/device/revision": "0x00",
        "/sys/class/kfd/kfd/topology/nodes/1/properties": node,
    }
    cards = amd.describe(tree(tmp_path, told))
    named = [make_machine(bare(cards), "0123456789ab", None, (), known) for known in ((), load_cards(ROOT))]
    assert [(one.gpus[0].name, one.label) for one in named] == [
        ("AMD Radeon Graphics", "1x-unknown-card"),
        ("AMD MI300X", "1x-mi300x"),
    ]
    assert (named[1].gpus[0].pci_id, named[1].gpus[0].compute_units) == ("74a1:00", 304)


def test_of_four_cards_that_the_kernel_shows_a_container_has_those_of_its_compute_runtime(tmp_path):
    told, nodes = {}, "/sys/class/kfd/kfd/topology/nodes"
    for at in range(4):
        told |= {name.replace("card1", f"card{at}"): text for name, text in AMD.items() if "card1" in name}
        told[f"/sys/class/drm/card{at}/device/uevent"] = f"PCI_SLOT_NAME=0000:{at + 1:02x}:00.0"
        told[f"/sys/class/drm/card{at}/device/unique_id"] = f"7d3b1c0a9f8e2d1{at}"
        told[f"{nodes}/{at}/properties"] = (
            f"gfx_target_version 90402\nlocation_id {at + 1 << 8}\ndomain 0\ndrm_render_minor {128 + at}"
        )
    files = tree(tmp_path, {**told, "/dev/dri/renderD130": "", "/dev/kfd": ""})
    (card,) = amd.describe(files)
    assert (card["index"], card["uuid"], card["bus"]) == (0, "7d3b1c0a9f8e2d12", "0000:03:00.0")
    assert list(silent_cards(files, set(), None)) == []
    for at in range(4):
        (tmp_path / f"dev/dri/renderD{128 + at}").touch()
    assert len(amd.describe(files)) == 4


ANSWERS = (None, "a text", b"\xff", 3, -1, 1.5, True, [], (1,), ["a"], {}, object(), SimpleNamespace())


@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_an_answer_of_a_driver_in_another_shape_is_none_and_spoils_no_other(answer):
    names = [name for name in dir(pynvml) if name.startswith(("nvmlDeviceGet", "nvmlSystemGet"))]
    kept = {"nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetPowerUsage"}
    nvml = FakeNvml()
    vars(nvml).update({name: lambda *_, **__: answer for name in names if name not in kept})
    described = nvidia.describe(nvml, Files())
    make_machine(bare(described), "0123456789ab", None, ())
    assert isinstance(described[0]["name"], str)
    cards = nvidia.NvidiaCards(nvml, [])
    (values,) = cards.sample(Family(1), True)
    assert values["power_watts"] == 300.0
    assert nvidia.foreign_processes(nvml, frozenset()) in (None, (0, 0))
    assert answer == [] or "another shape" in cards.missing["0.memory"]


def test_files_of_amd_s_driver_in_another_shape_are_none_and_spoil_no_other(tmp_path):
    told = {name: "nobody knows" for name in AMD if not name.endswith(("vendor", "uevent", "unique_id"))}
    node = "/sys/class/kfd/kfd/topology/nodes"
    told |= {
        f"{node}/first/properties": "gfx_target_version 1",
        f"{node}/2/properties": "gfx_target_version x",
    }
    (card,) = amd.describe(tree(tmp_path, AMD | told))
    assert (card["bus"], card["memory_bytes"], card["power_limit_watts"]) == ("0000:c3:00.0", None, None)


@pytest.mark.parametrize(
    ("version", "name"), [(90402, "gfx942"), (90010, "gfx90a"), (110000, "gfx1100"), (100302, "gfx1032")]
)
def test_the_compute_driver_s_version_number_becomes_the_name_that_images_use(version, name):
    assert amd.gfx_name(version) == name
