"""The telemetry of NVIDIA's cards, on replayed traces, none of which a device made."""

from __future__ import annotations

import os
from argparse import Namespace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest

from harness.engine.container import DeviceRequest
from harness.files import Files, unit_hash
from harness.gpu import nvidia, nvml
from harness.record import Record, Telemetry
from harness.redact import find_leaks
from harness.summary.statistics import judge_trial
from harness.telemetry import recorder, sampler
from harness.telemetry.reader import read_telemetry
from tests.helpers import ROOT
from tests.helpers.card_traces import SECONDS, TRACES, CardTrace
from tests.helpers.fake_clock import Clock, Family, replay, watch
from tests.helpers.fake_nvml import CARD, SLICES, FakeNvml
from tests.helpers.records_watched import record

WINDOW = ((1010.0, 1080.0),)


def replayed(trace: CardTrace) -> Telemetry:
    """What a trace is read as beside a trial of process 100."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "telemetry.jsonl"
        replay(trace, path)
        found = read_telemetry(path, WINDOW, 7000)
    assert found is not None
    return found


@cache
def watched(name: str) -> Telemetry:
    return replayed(TRACES[name])


@pytest.mark.parametrize("name", TRACES)
def test_every_trace_replays_to_a_clean_record(name):
    found = watched(name)
    assert found.samples == SECONDS + 1
    assert Telemetry.parse(found.model_dump_json(), "here") == found
    assert find_leaks(found.model_dump_json()) == ()
    assert len(found.model_dump_json()) < 20_000


def test_a_steady_card_has_whole_traces_no_limit_and_its_energy():
    found = watched("clean")
    (card,) = found.cards
    assert card.power_watts.mean.values() == pytest.approx([300.0] * 91)
    assert card.sm_mhz.least is None
    assert set(card.limited_share.values()) == {0.0}
    assert card.others.processes == 0
    assert set(card.memory_temperature_c.mean.values()) == {74.0}
    assert card.fan_percent.mean.values()[:2] == [45.0, None]
    assert card.performance_states == {"P2": 1.0}
    assert (found.energy.method, found.energy.joules) == ("counter", pytest.approx(21_000))
    assert found.energy.joules_per_sample == pytest.approx(3.0)
    assert found.energy.band == pytest.approx(0.0548, abs=1e-4)
    assert found.windows == ((10.0, 80.0),)
    assert found.ended == "stopped"


def test_throttling_is_told_by_the_counter_over_the_window_and_by_the_reasons():
    (card,) = watched("throttling").cards
    assert card.limited_share["thermal"] == pytest.approx(0.8 * 50 / 70, abs=0.02)
    assert card.limited_share["power"] == 0.0
    assert card.reasons_share == {
        "hw_slowdown": pytest.approx(51 / 71, abs=0.02),
        "hw_thermal_slowdown": pytest.approx(51 / 71, abs=0.02),
    }
    assert (card.start_temperature_c, card.temperature_c.mean.values()[-1]) == (65.0, pytest.approx(91.0))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ecc_errors", {"ecc_uncorrected": 2, "ecc_corrected": 53}),
        ("locked_clocks", {"reasons_share": {"application_clocks": 1.0}}),
        ("xid", {"xids": (63,)}),
        ("clean", {"xids": ()}),
    ],
)
def test_new_memory_errors_faults_by_their_number_and_clocks_that_a_user_holds_are_kept(name, told):
    (card,) = watched(name).cards
    assert {field: getattr(card, field) for field in told} == told


def test_another_process_is_seen_with_its_memory_and_its_share_of_the_time():
    (card,) = watched("foreign_process").cards
    assert (card.others.processes, card.others.memory_bytes) == (1, 2**30)
    assert card.others.samples_share == pytest.approx(10 / 71, abs=0.02)


ENFORCED, CHOSEN = "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit"


@pytest.mark.parametrize(
    ("limits", "changed"),
    [
        ({ENFORCED: [450_000]}, False),
        ({ENFORCED: [450_000, 300_000]}, True),
        ({ENFORCED: [80_000, 95_000], CHOSEN: [80_000]}, False),
        ({ENFORCED: [450_000, 300_000, 450_000], CHOSEN: [450_000, 300_000, 450_000]}, True),
    ],
)
def test_a_power_limit_that_somebody_changes_is_told_from_one_that_the_driver_moves(limits, changed):
    changes: dict[int, dict[str, int]] = {}
    for name, steps in limits.items():
        for at, watts in enumerate(steps):
            changes.setdefault(SECONDS * at // len(steps), {})[name] = watts
    (card,) = replayed(CardTrace(changes=changes)).cards
    assert card.power_limit_changed is changed


def test_what_another_process_uses_of_the_card_is_its_mean_over_the_window():
    found = watched("foreign_busy")
    (card,) = found.cards
    assert (card.others.processes, card.others.memory_bytes) == (1, 100 * 2**20)
    assert card.others.utilization_percent == pytest.approx(20 * 30 / 70, abs=0.5)
    assert "0.process_utilization" not in found.missing
    unseen = watched("foreign_process")
    assert unseen.cards[0].others.utilization_percent is None
    assert unseen.missing["0.process_utilization"] == "NVMLError_NotSupported"


def test_a_change_of_the_mig_mode_is_seen_and_what_a_slice_does_not_tell_is_null():
    found = watched("mig")
    (card,) = found.cards
    assert card.mig_changed is True
    assert card.utilization_percent.mean.values()[-1] is None
    assert found.missing["0.utilization"] == "NVMLError_NotSupported"
    assert found.energy.joules is None
    assert found.energy.unknown_because == "a divided card's energy is not that of one slice"


def test_a_card_without_counters_gives_nulls_with_reasons_and_energy_by_samples():
    found = watched("before_volta")
    (card,) = found.cards
    assert card.limited_share == {}
    assert card.reasons_share == {"sw_power_cap": 1.0}
    assert (card.ecc_uncorrected, card.mig_changed) == (None, None)
    assert {"0.energy", "0.limited.power", "0.ecc_uncorrected"} <= set(found.missing)
    assert (found.energy.method, found.energy.joules) == ("sampled power", pytest.approx(21_000))


def test_a_driver_that_vanishes_half_way_leaves_nulls_the_reason_and_no_energy():
    found = watched("falls_off_the_bus")
    (card,) = found.cards
    values = card.power_watts.mean.values()
    assert values[:20] == pytest.approx([300.0] * 20)
    assert values[20:] == [None] * 71
    assert found.missing["cards"] == "the driver stopped answering"
    assert found.missing["0.power"] == "NVMLError_GpuIsLost"
    assert found.energy.joules is None
    assert found.energy.unknown_because == "10 samples in the window are fewer than 60"


@pytest.mark.parametrize(
    ("nvml", "reason"),
    [(None, "nvidia-ml-py is not installed"), (FakeNvml(driver=False), "NVMLError_LibraryNotFound")],
)
def test_without_a_driver_the_cards_are_missing_with_the_reason(nvml, reason):
    cards = nvidia.NvidiaCards(nvml, [])
    assert (cards.described, cards.missing, cards.sample(Family(), True)) == ([], {"cards": reason}, [])


def test_only_the_wanted_cards_are_watched_by_uuid_unit_or_index():
    cards = [{"nvmlDeviceGetUUID": f"GPU-{n}"} for n in range(3)]
    unit = unit_hash("GPU-1")
    for wanted, expected in (["GPU-0"], [0]), ([unit], [1]), (["2"], [2]), ([], [0, 1, 2]):
        found = nvidia.NvidiaCards(FakeNvml(cards), wanted).described
        assert [card["index"] for card in found] == expected


@pytest.mark.parametrize(
    ("told", "processes", "held"),
    [
        ({"graphics": [{"pid": 7, "usedGpuMemory": 2**30}]}, 1, 2**30),
        ({"mps": [{"pid": pid, "usedGpuMemory": 2**30} for pid in (7, 8)]}, 2, 2**31),
        ({}, 0, 0),
        ({"nvmlDeviceGetComputeRunningProcesses": {"error": 3}}, None, None),
    ],
)
def test_who_else_uses_a_card_is_looked_for_in_each_list_of_the_driver(told, processes, held):
    ours = {"nvmlDeviceGetComputeRunningProcesses": [{"pid": 100, "usedGpuMemory": 2**30}]}
    nvml = FakeNvml([CARD | ours | {"process_sm_percent": {"100": 50, "9": 45}} | told])
    watched = nvidia.NvidiaCards(nvml, [])
    watched.sample(Family(100), True)
    nvml.at += 1
    (card,) = watched.sample(Family(100), True)
    found = card["others"] and tuple(card["others"].values())
    assert found == (None if processes is None else (processes, held, 45))
    assert nvidia.foreign_processes(nvml, frozenset({100})) == (
        None if processes is None else (processes, held)
    )


def test_of_a_slice_its_own_memory_and_processes_are_watched_and_the_rest_is_its_card_s():
    slices = [{**one, "violation_ns": {"error": 3}} for one in SLICES]
    slices[0] |= {"nvmlDeviceGetComputeRunningProcesses": {"error": 4}, "utilization": {"error": 3}}
    found = nvidia.NvidiaCards(FakeNvml(slices), [SLICES[2]["nvmlDeviceGetUUID"]])
    (card,) = found.sample(Family(100), True)
    assert [one["name"] for one in found.described] == ["NVIDIA A100-SXM4-40GB MIG 3g.20gb"]
    assert card["memory_used_bytes"] == 2**30
    assert card["others"]["processes"] == 0, "another slice's process is no neighbour"
    assert (card["sm_mhz"], card["mig"], card["utilization_percent"]) == (2520, True, None)
    (foreign,) = nvidia.NvidiaCards(FakeNvml(slices), [SLICES[3]["nvmlDeviceGetUUID"]]).sample(
        Family(100), True
    )
    assert foreign["others"]["processes"] == 1


@pytest.mark.parametrize(("instance", "xids"), [(1, [63]), (2, []), (0xFFFFFFFF, [63])])
def test_a_fault_of_another_slice_is_not_this_one_s(instance, xids):
    slices = [dict(one) for one in SLICES]
    slices[0] |= {"xids": [63], "xid_instance": instance}
    (card,) = nvidia.NvidiaCards(FakeNvml(slices), [SLICES[2]["nvmlDeviceGetUUID"]]).sample(Family(), True)
    assert card["xids"] == xids


def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: DeviceRequest) -> Namespace:
    """What the harness asks of the program that watches beside a trial."""
    lines: list[list[str]] = []
    monkeypatch.setattr(recorder, "_children", {})
    monkeypatch.setattr(
        recorder.subprocess, "Popen", lambda argv, **more: lines.append(argv) or SimpleNamespace(pid=0)
    )
    recorder.start_sampling(tmp_path, device, [os.getpid()])
    return sampler.options(lines[0][3:])


def recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: DeviceRequest, *watts: int, nodes: int = 1
) -> Record:
    """A record with what the sampler, asked as the harness asks it, sees of cards without a UUID."""
    given = asked(tmp_path, monkeypatch, device)
    told = [CARD | {"nvmlDeviceGetPowerUsage": 1000 * one} for one in watts]
    for name in ("nvmlDeviceGetUUID", "nvmlDeviceGetTotalEnergyConsumption"):
        for card in told:
            del card[name]
    monkeypatch.setattr(nvml, "load_library", lambda: FakeNvml(told))
    cards = sampler.find_cards(given.kind, given.cards)
    watch(cards, tmp_path / recorder.FILE, Clock(lambda seconds: None))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "events.jsonl").write_text('{"event": "segment", "begin": 1010.0, "end": 1080.0}\n')
    return recorder.add_telemetry(record().model_copy(update={"telemetry": None, "nodes": nodes}), tmp_path)


def test_without_uuids_the_joules_are_those_of_the_cards_that_the_trial_was_given(tmp_path, monkeypatch):
    found = recorded(tmp_path, monkeypatch, DeviceRequest("cuda", indices=(1,)), 100, 200, 400)
    assert [card.index for card in found.telemetry.cards] == [1]
    assert found.telemetry.energy.joules == pytest.approx(200 * 70)
    assert found.warnings == ()


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_joules_of_the_first_of_two_nodes_are_not_shared_out_over_the_samples_of_both(
    nodes, tmp_path, monkeypatch
):
    record = recorded(tmp_path, monkeypatch, DeviceRequest("cuda", indices=(0,)), 200, nodes=nodes)
    energy = record.telemetry.energy
    assert any(each.data.get("nodes") == 2 for each in record.warnings) == (nodes == 2)
    assert energy.joules == pytest.approx(200 * 70)
    assert (energy.joules_per_sample is None) == (nodes == 2)


@pytest.mark.parametrize("inside", [True, False])
def test_in_a_rented_container_the_neighbours_are_unknown_and_not_none(tmp_path, monkeypatch, inside):
    monkeypatch.setattr(recorder, "sees_processes", lambda files: not inside)
    assert asked(tmp_path, monkeypatch, DeviceRequest("cuda", indices=(0,))).inside is inside


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        (DeviceRequest("cuda"), "0 of the 0 cards asked for could be identified"),
        (DeviceRequest("cuda", indices=(1, 3)), "1 of the 2 cards asked for could be identified"),
        (DeviceRequest("cuda", ids=("GPU-1",)), "0 of the 1 cards asked for could be identified"),
    ],
)
def test_cards_that_cannot_be_told_have_no_joules_and_the_record_says_why(
    tmp_path, monkeypatch, device, reason
):
    found = recorded(tmp_path, monkeypatch, device, 100, 200)
    assert (found.telemetry.cards, found.telemetry.energy.joules) == ((), None)
    assert [warning.data for warning in found.warnings] == [{"unwatched_because": reason}]
    assert "unwatched" in {said.name for said in judge_trial(found).causes}


def test_nothing_of_ours_changes_a_card_s_clocks_or_power():
    sources = [
        path.read_text() for folder in ("harness", "workloads") for path in (ROOT / folder).rglob("*.py")
    ]
    assert sources
    assert not [text for text in sources if "nvmlDeviceSet" in text]


def test_a_library_that_breaks_ends_neither_the_telemetry_nor_goes_unsaid(tmp_path):
    class Breaking:
        source, missing, described = "nvml", {}, [{"index": 0, "unit": None, "name": "a card"}]

        def sample(self, ours: object, slow: bool) -> list[dict[str, object]]:
            raise AttributeError("NVML_NEW")

    path = tmp_path / "telemetry.jsonl"
    watch(Breaking(), path, Clock(lambda seconds: None))
    found = read_telemetry(path, WINDOW)
    assert (found.ended, found.missing["sampling"]) == ("stopped", "AttributeError")
    judged = judge_trial(record(seen=found))
    assert judged.verdict == "warn"
    assert "unwatched" in {said.name for said in judged.causes}


@pytest.mark.parametrize("name", ["NVML_PERF_POLICY_RELIABILITY", "nvmlEventSetCreate"])
def test_a_name_that_an_older_library_lacks_costs_its_own_value_alone(monkeypatch, name):
    monkeypatch.delattr(f"pynvml.{name}", raising=False)
    nvml = FakeNvml()
    vars(nvml).pop(name, None)
    (card,) = nvidia.describe(nvml, Files())
    assert card["name"] == CARD["nvmlDeviceGetName"]
    assert nvidia.NvidiaCards(nvml, []).sample(Family(), True)[0]["power_watts"] == 300.0
