"""What lies between a machine's cards, on machines that are made up."""

from __future__ import annotations

import pytest

from harness.files import Files
from harness.gpu import amd, nvidia
from harness.probe import topology
from harness.record import Link, differing_fields
from tests.helpers.fake_nvml import CARD, SLICES, FakeNvml
from tests.helpers.machines import box, tree

BUSES = ("0000:03:00.0", "0000:04:00.0")
LONG = tuple(f"0000{bus}" for bus in BUSES)


def ways(files: Files, *nvlinks: list[str]) -> list[str]:
    """What is said of each pair of NVIDIA's cards with these NVLinks."""
    told = [CARD | {"bus": long} for long in LONG]
    for card, ends in zip(told, nvlinks, strict=False):
        card["nvlinks"] = ends
    nvml = FakeNvml(told)
    found = topology.links(nvidia.describe(nvml, files), nvml, files)
    return [f"{link.first}-{link.second} {link.words}" for link in map(Link.model_validate, found)]


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ([LONG[1]] * 4 + [""], [LONG[0]] * 4 + [""], "NVLink × 4"),
        (["switch"] * 18, ["switch"] * 12, "NVSwitch × 12"),
        (["00000000:09:00.0"], ["00000000:0A:00.0"], "PCIe"),
    ],
)
def test_nvlinks_that_are_up_are_counted_between_two_cards_or_to_a_switch(tmp_path, first, second, words):
    assert ways(Files(tmp_path), first, second) == [f"0-1 {words}"]


def test_slices_of_one_card_have_no_way_between_them(tmp_path):
    slices = [dict(one) for one in SLICES]
    slices[1]["bus"] = LONG[1]
    nvml = FakeNvml(slices)
    found = topology.links(nvidia.describe(nvml, Files(tmp_path)), nvml, Files(tmp_path))
    assert [(link["first"], link["second"]) for link in found] == [(1, 2)]


def test_xgmi_is_read_of_the_compute_driver_s_nodes(tmp_path):
    told = {}
    for at, address in enumerate(BUSES):
        device, node = f"sys/class/drm/card{at}/device", f"{amd.KFD}/{at + 1}"
        told[f"{device}/vendor"] = "0x1002"
        told[f"{device}/uevent"] = f"PCI_SLOT_NAME={address}"
        place = int(address[5:7], 16) << 8
        told[f"{node}/properties"] = f"gfx_target_version 90402\nlocation_id {place}\ndomain 0"
        link = f"type 11\nnode_from {at + 1}\nnode_to {2 - at}\nweight 15"
        told[f"{node}/io_links/0/properties"] = link
    files = tree(tmp_path, told)
    (found,) = topology.links(amd.describe(files), None, files)
    assert found["way"] == "XGMI"


def test_the_ways_of_a_machine_are_a_difference_only_where_they_are_known_and_differ():
    here = box()
    link = Link(vendor="NVIDIA", first=0, second=1, way="NVLink", lanes=4)
    assert list(differing_fields(here, here)) == []
    (found,) = differing_fields(here, here.model_copy(update={"links": (link,)}))
    assert found == ("links", None, ("0–1: NVLink × 4",))
