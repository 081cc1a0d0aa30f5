"""What machine and devices do to a verdict. Every record here is constructed."""

from __future__ import annotations

from typing import Any

import pytest

from harness.record import DeviceUsed, Finding, Gpu, Load, OtherProcesses, Record, finding
from harness.record.store import Stored
from harness.summary.device_checks import (
    machine_findings,
    start_findings,
)
from harness.summary.statistics import judge_trial
from harness.summary.trial_devices import busy_share, device_name, used_cards
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


def seen(**told: Any) -> Record:
    return record(seen=telemetry(card(**told)))


LIMITED, UNLOCKED = {"power_limit_default_watts": 350.0}, {"clocks_locked": True}
FAR, OWN = machine(gpu(numa_node=1)), build.environment(engine="venv", pinned=False)
SET = machine(gpu(power_limit_watts=450.0, power_limit_default_watts=450.0))
OF_TOMORROW = Finding(name="of-tomorrow", severity="warn")
UNREAD = finding("telemetry", why="telemetry.jsonl is not what the telemetry writes")


@pytest.mark.parametrize(
    ("found", "verdict", "causes"),
    [
        (seen(others=others(201)), "invalid", "foreign-process"),
        (seen(others=others(1, 1.1)), "invalid", "foreign-process"),
        (seen(others=others(199)), "warn", "foreign-process"),
        (seen(others=others(199, 0.9)), "warn", "foreign-process"),
        (seen(reasons_share={"application_clocks": 0.02}), "invalid", "locked-clocks"),
        (seen(reasons_share={"application_clocks": 0.009}), "valid", ""),
        (seen(limited_share={"thermal": 0.011}), "invalid", "thermal-throttling"),
        (seen(limited_share={"thermal": 0.009}), "valid", ""),
        (
            seen(limited_share={}, reasons_share={"hw_thermal_slowdown": 0.02}),
            "invalid",
            "thermal-throttling",
        ),
        (seen(reasons_share={"hw_power_brake": 0.02, "hw_slowdown": 0.02}), "invalid", "power-brake"),
        (seen(reasons_share={"hw_slowdown": 0.03}), "invalid", "hardware-slowdown"),
        (seen(reasons_share={"hw_slowdown": 1 / 91}), "valid", ""),
        (seen(reasons_share={"sw_thermal_slowdown": 0.02}), "warn", "chassis-limited"),
        (
            seen(limited_share={"thermal": 0.3}, reasons_share={"sw_thermal_slowdown": 0.005}),
            "warn",
            "chassis-limited",
        ),
        (seen(limited_share={"low_utilization": 0.9}), "valid", ""),
        (seen(ecc_uncorrected=1), "invalid", "memory-error"),
        (seen(ecc_corrected=40), "valid", ""),
        (seen(xids=(79,)), "invalid", "device-fault"),
        (seen(mig_changed=True), "invalid", "mig-changed"),
        (seen(pcie_generation=3), "warn", "pcie-link"),
        (seen(pcie_width=8), "warn", "pcie-link"),
        (
            seen(others=None, ecc_uncorrected=None, pcie_generation=None, power_limit_watts=None),
            "valid",
            "",
        ),
        (seen(power_limit_changed=True), "invalid", "power-limit"),
        (seen(power_limit_watts=250.0), "invalid", "power-limit"),
        (seen(power_limit_watts=300.4), "valid", ""),
        (record(on=SET, seen=telemetry(card(power_limit_set_watts=450.0))), "valid", ""),
        (record(on=SET, seen=telemetry(card(power_limit_set_watts=300.0))), "invalid", "power-limit"),
        (record(on=machine(gpu(**LIMITED))), "invalid", "power-limit"),
        (record(on=machine(gpu(**LIMITED), declared=("power-limit",))), "valid", ""),
        (record(on=machine(gpu(**UNLOCKED))), "invalid", "locked-clocks"),
        (record(on=machine(gpu(**UNLOCKED), declared=("locked-clocks",))), "valid", ""),
        (record(on=machine(gpu(**UNLOCKED), declared=("power-limit",))), "invalid", "locked-clocks"),
        (record(on=machine(gpu(persistence=False))), "warn", "persistence-off"),
        (record(on=FAR, environment=OWN), "warn", "remote-numa"),
        (record(on=FAR), "valid", ""),
        # The load is of the moment before, so that no trial accuses itself or the next.
        (record(load=Load(busy_cpus=4.1)), "warn", "busy-machine"),
        (record(load=Load(busy_cpus=3.9)), "valid", ""),
        (record(load=Load(busy_cpus=0.2, load_average_1min=7.9)), "valid", ""),
        (record(load=Load()), "valid", ""),
        (record(seen=telemetry(missing={"cards": "the driver stopped answering"})), "warn", "driver-gone"),
        (record(seen=telemetry(missing={"0.power": "NVMLError_GpuIsLost"})), "invalid", "driver-gone"),
        (record(warnings=(OF_TOMORROW,)), "warn", "of-tomorrow"),
        (record(warnings=(UNREAD,)), "valid", ""),
        (record(telemetry=None), "warn", "unwatched"),
        (record(on=machine(gpu(**UNLOCKED)), telemetry=None), "invalid", "locked-clocks unwatched"),
        (seen(sm_mhz=None, power_watts=None, utilization_percent=None), "warn", "unwatched"),
        (record(seen=telemetry(card(), ended="cut short", windows=())), "warn", "unwatched"),
    ],
)
def test_a_trial_s_verdict_is_the_gravest_of_what_its_card_its_machine_and_its_session_did(
    found, verdict, causes
):
    assert judged(found) == (verdict, set(causes.split()))


def test_a_declared_limit_counts_though_somebody_moves_it_and_is_noted():
    on = machine(gpu(power_limit_watts=450.0, **LIMITED), declared=("power-limit",))
    assert judged(record(on=on, seen=telemetry(card(power_limit_changed=True)))) == ("valid", set())
    assert "power-limit" in notes(record(on=on))


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
    ("gpus", "verdict"), [((gpu(),), "invalid"), ((gpu(), gpu(index=1, unit="f" * 16)), "warn")]
)
def test_another_process_before_the_trial_counts_where_the_trial_itself_could_not_be_watched(gpus, verdict):
    load = Load(busy_cpus=0.0, other_gpu_processes=1, other_gpu_memory_bytes=2**30)
    unseen = telemetry(card(others=None), others_unknown_because="inside a container")
    found = record(on=machine(*gpus), load=load, seen=unseen, cards_given=(0,))
    assert judged(found) == (verdict, {"foreign-process"})
    assert "unwatched" in notes(found)
    assert judged(record(load=load)) == ("valid", set())


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


def test_a_start_more_than_five_degrees_from_its_session_s_median_is_named():
    degrees = (60.0, 61.0, 59.0, 66.5)
    starts = [
        record(repeat=at, seen=telemetry(card(start_temperature_c=found)))
        for at, found in enumerate(degrees, start=1)
    ]
    hot = finding("start-temperature", start_c=66.5, median_c=60.5)
    assert start_findings(starts) == ((), (), (), (hot,))
    elsewhere = starts[3].model_copy(update={"session": "20260201-aaaaaa"})
    assert start_findings([*starts[:3], elsewhere]) == ((), (), (), ())


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
    found = machine(virtual="kvm", cpu={"governor": "powersave", "usable": 2.0})
    assert [remark.name for remark in machine_findings(found)] == ["virtual-machine", "governor", "cpu-limit"]
    assert judged(record(on=found)) == ("valid", set())
    assert list(machine_findings(machine())) == []


CARDS = (
    "NVIDIA GeForce RTX 5090",
    "geforce rtx 5090",
    "AMD Radeon RX 9070",
    "AMD Instinct MI300X",
    "MI300X",
    "Intel Arc B580",
    "Intel(R) Xeon(R) GeForce RTX 5090",
    "NVIDIA H200",
    "NVIDIA Ge\u0421orce RTX 5090",
    "\uff28\uff11\uff10\uff10",
    "AMD\u200b EPYC",
)
PROCESSORS = (
    "AMD Ryzen 7 5700U with Radeon Graphics",
    "AMD A10-7850K Radeon R7, 12 Compute Cores 4C+8G",
    "12th Gen Intel(R) Core(TM) i7-1260P",
    "QEMU Virtual CPU version 2.5+",
    "Neoverse-V2",
    "NVIDIA Grace",
    "AMD EPYC",
)


@pytest.mark.parametrize("name", [*CARDS, *PROCESSORS])
def test_a_processor_has_its_maker_s_name_or_is_a_processor_whatever_it_is_called(name):
    asked = build.trial(build.LM, "fp32-ieee", 1)
    on = build.machine("Constructed CPU", label="cpu")
    measured = build.measurement(build.LM, asked, 0.02, card="Constructed CPU")
    record = build.changed(
        build.record(asked, measured, on=on), measurement__device__kind="cpu", measurement__device__name=name
    )
    called = name if name in PROCESSORS else f"processor, called {name} by its firmware"
    assert device_name(record) == called
