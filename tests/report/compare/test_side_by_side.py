"""Two sides in the terminal: every record here is constructed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from commands import report
from harness.errors import GateError, UserError
from harness.record import Machine, Record
from report.compare import side_by_side
from report.page import render
from report.trials.reading import load
from tests.helpers import records_builder as build

OLD, NEW = "20260130-bbbbbb", "20260131-aaaaaa"


def machine_with(driver: str, card: str = "Constructed Card A", digits: str = "a") -> Machine:
    on = build.machine(card, label=f"card-{digits}", digits=digits)
    return on.model_copy(update={"gpus": (on.gpus[0].model_copy(update={"driver": driver}),)})


def runs(
    session: str, seconds: float, *, digits: str = "a", driver: str = "580.65", **more: Any
) -> list[Record]:
    """Five proven runs of one work, on a machine of its own driver."""
    card = more.pop("card", "Constructed Card A")
    on = machine_with(driver, card, digits)
    values: dict[str, Any] = {"repeats": 5, "spread": 0.004, "batch_size": 20, **more}
    return build.series_of(build.LM, "fp32-ieee", seconds, on=on, card=card, session=session, **values)


def clone(folder: Path, *records: Record) -> Path:
    build.write(folder, records)
    return folder


def compared(folder: Path, first: str, second: str) -> side_by_side.TwoSides:
    return side_by_side.compare(load(folder)["trial"], first, second)


def shown(found: side_by_side.TwoSides) -> str:
    return render.comparison(found, (), None, ())


@pytest.fixture
def updated(tmp_path) -> Path:
    """One card before and after a driver update that cost 10 %."""
    return clone(tmp_path, *runs(OLD, 0.0100), *runs(NEW, 0.0111, driver="590.10"))


def test_the_ratio_is_how_many_times_as_fast_the_first_is_with_its_interval_and_runs(updated):
    (pair,) = compared(updated, NEW, OLD).pairs
    assert pair.ratio.estimate == pytest.approx(0.0100 / 0.0111, rel=0.01)
    assert pair.ratio.n == (5, 5)
    said = shown(compared(updated, NEW, OLD))
    assert re.search(
        r"0\.90 \(95 % range 0\.\d\d to 0\.\d\d\).*; first look; 5 and 5 runs; whole training", said
    )


def test_a_session_with_repeats_goes_before_a_newer_single_run(updated):
    clone(updated, *runs("20260201-cccccc", 0.0500, driver="590.10", repeats=1, first_order=90))
    (pair,) = compared(updated, "driver=590", OLD).pairs
    assert pair.ratio.n == (5, 5)


def test_the_other_way_round_gives_the_reciprocal(updated):
    (one,), (other,) = compared(updated, NEW, OLD).pairs, compared(updated, OLD, NEW).pairs
    assert one.ratio.estimate * other.ratio.estimate == pytest.approx(1)
    assert one.ratio.interval and other.ratio.interval
    assert one.ratio.interval.high * other.ratio.interval.low == pytest.approx(1)


def test_a_side_is_named_by_its_driver_and_the_difference_is_shown(updated):
    comparison = compared(updated, "driver 590", "driver=580")
    said = shown(comparison)
    assert comparison.driver_or_hour and "cannot be told from the hour" in said
    assert "  word_lm, driver: 590.10 | 580.65" in said


def test_stacks_are_compared_workload_by_workload(tmp_path):
    def on(record: Record) -> Record:
        package = {"word_lm": "none", "cifar_fastai": "2.8.12"}[record.trial.asked.workload]
        return build.changed(record, measurement__versions={"fastai": package})

    records = [
        on(record)
        for session, driver in ((OLD, "580.65"), (NEW, "590.10"))
        for record in (
            *runs(session, 0.01, driver=driver),
            *build.series_of(
                build.CIFAR,
                "fp32-ieee",
                0.02,
                on=machine_with(driver),
                card="Constructed Card A",
                session=session,
                repeats=5,
                batch_size=64,
                first_order=50,
            ),
        )
    ]
    differ = dict(compared(clone(tmp_path, *records), NEW, OLD).stacks)
    assert set(differ) == {"word_lm", "cifar_fastai"}
    assert {name for found in differ.values() for name, _ in found} == {"driver"}


def test_a_name_of_several_machines_says_which_and_each_work_whose_it_is(tmp_path):
    alike = [
        build.changed(record, machine__label="constructed-card-a")
        for record in runs("20260130-cccccc", 0.01, digits="b")
    ]
    records = [*runs(OLD, 0.011), *alike, *runs(NEW, 0.012, digits="d", card="Constructed Card D")]
    said = shown(compared(clone(tmp_path, *records), "constructed-card-a", "Card D"))
    assert (
        "'constructed-card-a' names 2 machines: constructed-card- (aaaa), constructed-card- (bbbb)." in said
    )
    assert re.search(r"batch 20, .*: constructed-card- \(\w{4}\) over constructed-card-d\n", said)


def test_equal_sides_are_tied_and_not_ranked(tmp_path):
    folder = clone(tmp_path, *runs(OLD, 0.01), *runs(NEW, 0.01))
    assert "tied: no difference shown" in shown(compared(folder, NEW, OLD))


def test_generated_data_is_shown_and_never_ranked(tmp_path):
    folder = clone(tmp_path, *(record for id_ in (OLD, NEW) for record in runs(id_, 0.01, data="generated")))
    said = shown(compared(folder, NEW, OLD))
    assert "; not ranked yet;" in said and "generated data" in said


def test_what_stands_on_one_side_alone_is_listed_with_the_field_that_keeps_it_there(tmp_path):
    folder = clone(tmp_path, *runs(OLD, 0.01), *runs(NEW, 0.01, batch_size=40))
    found = compared(folder, NEW, OLD)
    assert found.pairs == ()
    assert [why for _, why in found.apart] == ["batch size 40, there 20", "batch size 20, there 40"]


def test_the_level_of_the_intervals_holds_over_all_rows(tmp_path):
    both = [runs(id_, 0.01, batch_size=size) for id_ in (OLD, NEW) for size in (20, 40)]
    found = compared(clone(tmp_path, *(record for some in both for record in some)), NEW, OLD)
    assert [pair.ratio.interval.comparisons for pair in found.pairs if pair.ratio.interval] == [2, 2]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("Card Z", "Card A", "no record is of 'Card Z'; cards and machines on record are Constructed Card A"),
        ("Card A", "Constructed", "both name records of session"),
        ("", "Card A", "no record is of ''"),
    ],
)
def test_a_name_that_is_unknown_or_names_both_sides_is_told(updated, first, second, said):
    with pytest.raises(UserError, match=said):
        compared(updated, first, second)


def test_an_exact_name_goes_before_a_part_of_a_longer_one(tmp_path):
    folder = clone(
        tmp_path,
        *runs(OLD, 0.01, card="Constructed Card"),
        *runs(NEW, 0.02, card="Constructed Card Ti", digits="b"),
    )
    (pair,) = compared(folder, "constructed card", "constructed card ti").pairs
    assert pair.ratio.estimate == pytest.approx(2, rel=0.01)


def test_two_precisions_are_compared_within_the_newest_session_that_has_both(tmp_path):
    def in_bf16(session: str, seconds: float, digits: str = "a") -> list[Record]:
        on = machine_with("580.65", digits=digits)
        values: dict[str, Any] = {"repeats": 5, "spread": 0.004, "batch_size": 20}
        return build.series_of(
            build.LM, "amp-bf16", seconds, on=on, card="Constructed Card A", session=session, **values
        )

    both = [*runs(OLD, 0.03), *in_bf16(OLD, 0.01), *runs(NEW, 0.03), *in_bf16(NEW, 0.02)]
    alone = in_bf16("20260201-cccccc", 0.005, digits="c")
    (pair,) = compared(clone(tmp_path, *both, *alone), "amp-bf16", "fp32-ieee").pairs
    assert (pair.first.session, pair.second.session, pair.runs) == (NEW, NEW, (5, 5))
    assert pair.ratio.estimate == pytest.approx(1.5, rel=0.02)


def test_the_gate_says_no_where_the_upper_end_lies_below_and_says_why(updated, capsys):
    with pytest.raises(GateError) as refused:
        report.compare_two(updated, "driver 590", "driver 580", "0.95")
    assert refused.value.exit_code == 3
    said = capsys.readouterr().out
    assert "where the upper end of its range lies below 0.95" in said
    assert re.search(
        r"FAILS: word_lm .*: 0\.8\d to 0\.9\d times as fast, which is below 0\.95; 1 block of time: another",
        said,
    )
    assert "WARNING" not in said


def test_the_gate_lets_pass_what_is_slower_by_less_than_it_can_tell(tmp_path, capsys):
    noisy = [*runs(OLD, 0.01, spread=0.04), *runs(NEW, 0.0106, spread=0.04)]
    report.compare_two(clone(tmp_path, *noisy), NEW, OLD, "0.95")
    said = capsys.readouterr().out
    assert "passed" in said and re.search(
        r"WARNING: word_lm .*, which holds 0\.95; 1 block of time: another hour: ± 1 %", said
    )


def test_three_blocks_a_side_are_called_slower_and_one_a_first_look(tmp_path):
    both = [
        one.model_copy(update={"block": 1 + place % 3})
        for made in (runs(OLD, 0.01, repeats=6), runs(NEW, 0.0111, driver="590.10", repeats=6))
        for place, one in enumerate(made)
    ]
    (pair,) = compared(clone(tmp_path, *both), NEW, OLD).pairs
    assert pair.standing == "slower"


def test_the_gate_says_no_where_the_first_side_failed_at_what_the_second_did(tmp_path, capsys):
    both = [*runs(OLD, 0.01), *runs(NEW, 0.01), *runs(OLD, 0.01, batch_size=80)]
    asked = build.trial(build.LM, "fp32-ieee", 1, batch_size=80)
    both.append(build.record(asked, None, on=both[5].machine, session=NEW, failure=build.out_of_memory()))
    with pytest.raises(GateError):
        report.compare_two(clone(tmp_path, *both), NEW, OLD, "0.95")
    assert "failed where" in capsys.readouterr().out


def test_the_gate_says_no_where_no_run_of_the_first_side_is_valid_and_the_second_s_are(tmp_path, capsys):
    spoiled = runs(NEW, 0.01, batch_size=80, verdict="invalid")
    both = [*runs(OLD, 0.01), *runs(NEW, 0.01), *runs(OLD, 0.01, batch_size=80), *spoiled]
    with pytest.raises(GateError):
        report.compare_two(clone(tmp_path, *both), NEW, OLD, "0.95")
    assert re.search("FAILS: word_lm .*, batch 80, .*: no run is valid", capsys.readouterr().out)


def test_a_part_of_another_card_s_name_names_no_card(tmp_path):
    there = clone(tmp_path, *runs(OLD, 0.01, card="NVIDIA A100-SXM4-40GB"), *runs(NEW, 0.02, digits="b"))
    (pair,) = compared(there, "A100", "Card A").pairs
    assert pair.first.card == "NVIDIA A100-SXM4-40GB"
    with pytest.raises(UserError, match="no record is of 'A10'"):
        compared(there, "A10", "Card A")


def test_the_gate_says_no_where_it_has_nothing_to_judge(tmp_path, capsys):
    single = [*runs(OLD, 0.01, repeats=1), *runs(NEW, 0.01, repeats=1)]
    with pytest.raises(GateError):
        report.compare_two(clone(tmp_path, *single), NEW, OLD, "0.5")
    assert "nothing could be judged" in capsys.readouterr().out


def test_what_differs_between_the_machines_is_named(tmp_path, capsys):
    other = [build.changed(one, machine__memory_bytes=2**30) for one in runs(OLD, 0.01, digits="b")]
    report.compare_two(clone(tmp_path, *other, *runs(NEW, 0.01)), NEW, OLD, None)
    assert f"memory_bytes: {2**30} → {64 * 2**30}" in capsys.readouterr().out
