"""What machine and devices do to a verdict. Every record here is constructed."""

from __future__ import annotations

from typing import Any

import pytest

from harness.record import DeviceUsed, Gpu, Load, OtherProcesses, Record, finding
from harness.record.store import Stored
from harness.summary.device_checks import (
    between_trials,
    busy_share,
    device_name,
    machine_findings,
    used_cards,
)
from harness.summary.statistics import judge_trial
from report.trials.key import stack_differences, stack_of
from report.trials.trial import trial_of
from tests.helpers import records_builder as build
from tests.helpers.records_watched import card, gpu, machine, record, telemetry


def judged(found: Record) -> tuple[str, set[str]]:
    summary = judge_trial(found)
    assert summary is not None
    return summary.verdict, {cause.name for cause in summary.causes}


def notes(found: Record) -> set[str]:
    summary = judge_trial(found)
    assert summary is not None
    return {note.name for note in summary.notes}


def others(mebibytes: int, percent: float | None = None) -> OtherProcesses:
    return OtherProcesses(
        processes=1, memory_bytes=mebibytes * 2**20, samples_share=0.1, utilization_percent=percent
    )


def test_an_undisturbed_trial_on_a_watched_card_is_valid_and_its_clock_is_noted():
    summary = judge_trial(record())
    assert summary is not None
    assert (summary.verdict, summary.causes) == ("valid", ())
    (clock,) = summary.notes
    assert clock.name == "card-clock" and clock.data["mean_mhz"] == pytest.approx(1800)
    assert clock.data["highest_share"] == pytest.approx(0.9)
    assert busy_share(record()) == pytest.approx(0.97)


@pytest.mark.parametrize(("window", "share"), [((9.5, 10.5), None), ((9.5, 11.5), 0.97), ((9.5, 10.9), None)])
def test_a_card_is_at_work_by_samples_that_saw_nothing_but_the_window(window, share):
    short = record(seen=telemetry(card(), windows=(window,)))
    assert busy_share(short) == (share if share is None else pytest.approx(share))


def test_a_failed_trial_has_no_summary():
    failed = build.record(
        build.trial(build.CIFAR, "fp32-ieee", 1), None, on=machine(), failure=build.out_of_memory()
    )
    assert judge_trial(failed) is None


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        ({"others": others(201)}, "foreign-process"),
        ({"others": others(1, 1.1)}, "foreign-process"),
        ({"reasons_share": {"application_clocks": 0.02}}, "locked-clocks"),
        ({"limited_share": {"thermal": 0.011}}, "thermal-throttling"),
        ({"limited_share": {}, "reasons_share": {"hw_thermal_slowdown": 0.02}}, "thermal-throttling"),
        ({"reasons_share": {"hw_power_brake": 0.02, "hw_slowdown": 0.02}}, "power-brake"),
        ({"reasons_share": {"hw_slowdown": 0.03}}, "hardware-slowdown"),
        ({"ecc_uncorrected": 1}, "memory-error"),
        ({"xids": (79,)}, "device-fault"),
        ({"mig_changed": True}, "mig-changed"),
        ({"power_limit_changed": True}, "power-limit"),
        ({"power_limit_watts": 250.0}, "power-limit"),
    ],
)
def test_what_a_card_did_makes_a_trial_invalid_by_name(seen: dict[str, Any], name: str):
    assert judged(record(seen=telemetry(card(**seen)))) == ("invalid", {name})


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        ({"others": others(199)}, "foreign-process"),
        ({"others": others(199, 0.9)}, "foreign-process"),
        ({"reasons_share": {"sw_thermal_slowdown": 0.02}}, "chassis-limited"),
        (
            {"limited_share": {"thermal": 0.3}, "reasons_share": {"sw_thermal_slowdown": 0.005}},
            "chassis-limited",
        ),
        ({"pcie_generation": 3}, "pcie-link"),
        ({"pcie_width": 8}, "pcie-link"),
    ],
)
def test_what_a_card_did_is_a_warning_by_name(seen: dict[str, Any], name: str):
    assert judged(record(seen=telemetry(card(**seen)))) == ("warn", {name})


@pytest.mark.parametrize(
    "seen",
    [
        {"limited_share": {"thermal": 0.009}},
        {"reasons_share": {"hw_slowdown": 1 / 91}},
        {"limited_share": {"low_utilization": 0.9}},
        {"power_limit_watts": 300.4},
        {"reasons_share": {"application_clocks": 0.009}},
        {"ecc_corrected": 40},
        {"others": None, "ecc_uncorrected": None, "pcie_generation": None, "power_limit_watts": None},
    ],
)
def test_what_is_below_its_limit_or_not_known_is_no_cause(seen: dict[str, Any]):
    assert judged(record(seen=telemetry(card(**seen)))) == ("valid", set())


def test_where_a_driver_lists_no_processes_nobody_is_accused_and_a_note_says_so():
    found = record(seen=telemetry(card(others=None)))
    assert judged(found) == ("valid", set())
    said = judge_trial(found).notes[-1]
    assert (said.name, said.data) == ("unwatched", {"why": "the driver does not list them"})
    assert "unwatched" not in notes(record())


def test_a_card_at_its_power_limit_is_in_its_normal_state_and_says_for_how_long():
    found = record(seen=telemetry(card(limited_share={"power": 0.8})))
    assert judged(found) == ("valid", set())
    assert judge_trial(found).notes[0] == finding("power-cap", card=0, share=0.8)


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        (machine(gpu(clocks_locked=True)), ("invalid", {"locked-clocks"})),
        (machine(gpu(clocks_locked=True), declared=("locked-clocks",)), ("valid", set())),
        (machine(gpu(power_limit_default_watts=350.0)), ("invalid", {"power-limit"})),
        (machine(gpu(power_limit_default_watts=350.0), declared=("power-limit",)), ("valid", set())),
        (machine(gpu(clocks_locked=True), declared=("power-limit",)), ("invalid", {"locked-clocks"})),
        (machine(gpu(persistence=False)), ("warn", {"persistence-off"})),
    ],
)
def test_settings_of_a_card_count_unless_they_are_declared(on, expected):
    assert judged(record(on=on)) == expected


def test_a_declared_limit_is_still_noted():
    on = machine(gpu(power_limit_default_watts=350.0), declared=("power-limit",))
    assert "power-limit" in notes(record(on=on))


def test_a_card_on_another_node_than_the_process_is_a_warning_where_the_process_is_ours():
    far = machine(gpu(numa_node=1))
    own = build.environment(engine="venv", pinned=False)
    assert judged(record(on=far, environment=own)) == ("warn", {"remote-numa"})
    assert judged(record(on=far)) == ("valid", set())


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (Load(busy_cpus=4.1), ("warn", {"busy-machine"})),
        (Load(busy_cpus=3.9), ("valid", set())),
        (Load(busy_cpus=0.2, load_average_1min=7.9), ("valid", set())),
        (Load(), ("valid", set())),
    ],
)
def test_the_load_is_of_the_moment_before_so_that_no_trial_accuses_itself_or_the_next(load, expected):
    assert judged(record(load=load)) == expected


@pytest.mark.parametrize(
    ("gpus", "verdict"), [((gpu(),), "invalid"), ((gpu(), gpu(index=1, unit="f" * 16)), "warn")]
)
def test_another_process_before_the_trial_counts_where_the_trial_itself_could_not_be_watched(gpus, verdict):
    load = Load(busy_cpus=0.0, other_gpu_processes=1, other_gpu_memory_bytes=2**30)
    unseen = telemetry(card(others=None), others_unknown_because="inside a container")
    found = record(on=machine(*gpus), load=load, seen=unseen, cards_given=(0,))
    assert judged(found) == (verdict, {"foreign-process"})
    assert "unwatched" in notes(found)
    assert judged(record(load=load)) == ("valid", set())


def test_a_driver_that_goes_silent_is_a_warning_and_a_lost_card_makes_it_invalid():
    silent = telemetry(missing={"cards": "the driver stopped answering"})
    lost = telemetry(missing={"0.power": "NVMLError_GpuIsLost"})
    assert judged(record(seen=silent)) == ("warn", {"driver-gone"})
    assert judged(record(seen=lost)) == ("invalid", {"driver-gone"})


def test_what_changed_within_the_session_is_a_warning():
    changed = finding("changed", what="data cifar-100", before="a", after="b")
    assert judged(record(warnings=(changed,))) == ("warn", {"changed"})
    unread = finding("telemetry", why="telemetry.jsonl is not what the telemetry writes")
    assert judged(record(warnings=(unread,))) == ("valid", set())


def test_a_trial_on_the_processor_is_not_judged_by_cards_that_it_did_not_use():
    asked = build.trial(build.CIFAR, "fp32-ieee", 1, device="cpu")
    found = build.measurement(build.CIFAR, asked, 0.3, card="Constructed CPU", steps=300)
    bad = machine(gpu(clocks_locked=True, persistence=False))
    load = Load(busy_cpus=0.0, other_gpu_processes=1, other_gpu_memory_bytes=2**30)
    assert judged(build.record(asked, found, on=bad, load=load)) == ("valid", set())


def test_the_cards_of_a_trial_are_those_given_and_none_where_that_is_not_known():
    two = machine(gpu(), gpu(index=1, unit="f" * 16))
    assert [one.index for one in used_cards(record(on=two, cards_given=(1,)))] == [1]
    assert used_cards(record(on=two)) == ()
    assert [one.index for one in used_cards(record(telemetry=None))] == [0]


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ({"cards_given": (1,)}, "Large"),
        ({"cards_given": (1, 0)}, "Large"),
        ({}, "unknown device"),
    ],
)
def test_a_trial_that_failed_stands_under_the_card_it_was_given_or_under_none(
    told: dict[str, Any], name: str
):
    box = machine(
        gpu(vendor="AMD", name="Other"), gpu(name="Small"), gpu(index=1, name="Large", unit="f" * 16)
    )
    asked = build.trial(build.CIFAR, "fp32-ieee", 1)
    failed = build.record(asked, None, on=box, failure=build.out_of_memory(), **told)
    row = trial_of(Stored("failed.json", failed))
    assert (row.device_name, row.card) == (name, name)


def test_a_trial_that_failed_among_cards_of_one_model_is_of_that_model():
    asked = build.trial(build.CIFAR, "fp32-ieee", 1)
    box = machine(gpu(), gpu(index=1, unit="f" * 16))
    assert device_name(build.record(asked, None, on=box, failure=build.out_of_memory())) == gpu().name
    assert device_name(record(on=box, cards_given=(1,))) == gpu().name


def test_an_unwatched_trial_on_a_card_says_so_and_is_judged_by_what_is_known():
    found = record(on=machine(gpu(clocks_locked=True)), telemetry=None)
    assert judged(found) == ("invalid", {"locked-clocks", "unwatched"})
    assert judged(record(telemetry=None)) == ("warn", {"unwatched"})


@pytest.mark.parametrize(
    "seen",
    [
        telemetry(card(sm_mhz=None, power_watts=None, utilization_percent=None)),
        telemetry(card(), ended="cut short", windows=()),
    ],
    ids=["all null", "died before the window ended"],
)
def test_a_telemetry_that_tells_nothing_or_died_is_never_plain_valid(seen):
    assert judged(record(seen=seen)) == ("warn", {"unwatched"})


@pytest.mark.parametrize(
    ("seen", "declared", "expected"),
    [
        ({"power_limit_changed": True}, ("power-limit",), ("valid", set())),
        ({"power_limit_set_watts": 450.0, "power_limit_watts": 300.0}, (), ("valid", set())),
        ({"power_limit_set_watts": 300.0, "power_limit_watts": 300.0}, (), ("invalid", {"power-limit"})),
    ],
)
def test_a_limit_that_somebody_set_makes_invalid_and_one_that_the_driver_moves_does_not(
    seen, declared, expected
):
    on = machine(gpu(power_limit_watts=450.0, power_limit_default_watts=450.0), declared=declared)
    assert judged(record(on=on, seen=telemetry(card(**seen)))) == expected


def test_a_start_more_than_five_degrees_from_its_session_s_median_is_named():
    degrees = (60.0, 61.0, 59.0, 66.5)
    starts = [
        record(repeat=at, seen=telemetry(card(start_temperature_c=found)))
        for at, found in enumerate(degrees, start=1)
    ]
    hot = finding("start-temperature", start_c=66.5, median_c=60.5)
    assert between_trials(starts) == ((), (), (), (hot,))
    elsewhere = starts[3].model_copy(update={"session": "20260201-aaaaaa"})
    assert between_trials([*starts[:3], elsewhere]) == ((), (), (), ())


def test_cards_whose_ecc_or_declared_limits_differ_differ_in_their_stack_by_name():
    off = record(on=machine(gpu(ecc=False)))
    limited = record(on=machine(gpu(power_limit_watts=250.0), declared=("power-limit",)))
    stacks = tuple(stack_of(found) for found in (record(), off, limited))
    assert stack_differences(stacks[:1] * 2) == ()
    assert stack_differences(stacks) == (
        ("ECC", ("True", "False")),
        ("power limit, W", ("none", "250.0")),
    )


def test_one_card_and_several_that_are_set_alike_have_one_stack_and_a_mixed_pair_has_another():
    second = gpu(index=1, unit="f" * 16)
    alone, both = ((0,), (0, 1))
    pair = [stack_of(record(on=machine(gpu(), second), cards_given=given)) for given in (alone, (1,), both)]
    assert stack_differences(tuple(pair)) == ()
    mixed = record(on=machine(gpu(), second.model_copy(update={"ecc": False})), cards_given=both)
    assert stack_differences((pair[2], stack_of(mixed))) == (("ECC", ("True", "False, True")),)


def on_amd(card_of: Gpu, name: str) -> Record:
    """A trial on a card that its framework calls by that name."""
    found = record(
        on=machine(card_of), measured={"device": DeviceUsed(kind="rocm", name=name)}, cards_given=(0,)
    )
    return build.changed(found, trial__asked__device="rocm")


def test_a_device_whose_framework_gives_it_a_shared_name_has_its_card_s():
    found = on_amd(gpu(vendor="AMD", name="AMD MI300X", unit=None), "AMD Radeon Graphics")
    assert device_name(found) == "AMD MI300X"


def test_a_card_that_is_divided_is_another_stack_than_the_whole_one_and_a_note_says_so():
    whole = gpu(vendor="AMD", name="AMD Instinct MI300X", unit=None, mig=None)
    part = whole.model_copy(update={"mig": "CPX NPS4"})
    found = [on_amd(card_of, "AMD Instinct MI300X") for card_of in (part, whole)]
    assert stack_differences(tuple(map(stack_of, found))) == (("slice", ("CPX NPS4", "none")),)
    assert "mig-slice" in notes(found[0])


def test_the_driver_of_a_trial_is_that_of_its_own_cards_maker():
    amd = gpu(vendor="AMD", name="AMD Instinct MI300X", driver="6.12.12")
    assert stack_of(record(on=machine(amd, gpu(driver="580.65")))).driver == "580.65"


def test_what_belongs_to_the_machine_is_said_of_the_machine_and_of_no_trial():
    cpu = {"governor": "powersave", "smt": True, "usable": 2.0}
    found = machine(gpu(display_attached=True), virtual="kvm", cpu=cpu, numa_balancing=True)
    names = [remark.name for remark in machine_findings(found)]
    assert names == ["virtual-machine", "governor", "smt", "cpu-limit", "numa-balancing", "display"]
    assert judged(record(on=found)) == ("valid", set())
    assert list(machine_findings(machine())) == []
