"""Over what devices reach each other: NCCL tells it in its log alone."""

from __future__ import annotations

import pytest

from tests.helpers.workload_runner import module

NCCL = "node1:41:97 [0] NCCL INFO "


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA", "Channel 1 : 0 -> 1 via P2P/CUMEM"),
         "NET/IB, P2P"),
        (("Using network Socket", "Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0"), "NET/Socket"),
        (("Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",), "SHM"),
        (("Channel 00/0 : 0[0] -> 1[0] [send] via NET/AWS Libfabric/0",), "NET/AWS Libfabric"),
        (("Using network IB", "comm 0x55 rank 0 nranks 2 via nothing"), "unknown"),
        ((), "unknown"),
    ],
)  # fmt: skip
def test_over_what_devices_reach_each_other_is_read_of_what_nccl_says_of_its_channels(tmp_path, lines, told):
    launcher = module("parts.launcher")
    for number, line in enumerate(lines):
        (tmp_path / launcher.NCCL_LOGS.format("node", number)).write_text(f"{NCCL}{line}\n")
    assert launcher.transport(tmp_path) == told
