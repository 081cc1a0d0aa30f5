"""Two sides in the terminal: every record here is constructed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from commands.compare import compare_two
from harness.errors import GateError, UserError
from harness.record import Machine, Record
from report.compare.named_sides import NamedSides, compare_named
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


def compared(folder: Path, first: str, second: str) -> NamedSides:
    return compare_named(load(folder)["trial"], first, second)


def shown(found: NamedSides) -> str:
    return render.comparison_text(found, (), None, ())


@pytest.fixture
def updated(tmp_path) -> Path:
    """One card before and after a driver update that cost 10 %."""
    return clone(tmp_path, *runs(OLD, 0.0100), *runs(NEW, 0.0111, driver="590.10"))


def test_the_ratio_is_how_many_times_as_fast_the_first_is_with_its_range_and_what_it_assumes(updated):
    (ratio,) = compared(updated, NEW, OLD).comparison.ratios
    assert (ratio.estimate, ratio.n) == (pytest.approx(0.0100 / 0.0111, rel=0.01), (5, 5))
    assert (ratio.order, [(each.name, each.size) for each in ratio.assumed]) == (
        "slower",
        [("session", 0.01)] * 2,
    )
    said = shown(compared(updated, NEW, OLD))
    assert re.search(r"0\.90 \(95\s% range 0\.\d\d to 0\.\d\d\); . slower; 5 and 5 runs, whole", said)
    assert "each session 1 %" in said and "  also differs: driver 590.10 | 580.65" in said


def test_a_session_with_repeats_goes_before_a_newer_single_run(updated):
    clone(updated, *runs("20260201-cccccc", 0.0500, driver="590.10", repeats=1, first_order=90))
    (ratio,) = compared(updated, "driver=590", OLD).comparison.ratios
    assert ratio.n == (5, 5)


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
    assert re.search(r"LSTM, .*: constructed-card- \(\w{4}\) over constructed-card-d\n", said)


def test_a_work_of_one_side_alone_is_listed_with_the_field_that_keeps_it_there(tmp_path):
    folder = clone(tmp_path, *runs(OLD, 0.01), *runs(NEW, 0.01, batch_size=40, digits="b"))
    found = compared(folder, NEW, OLD)
    assert found.comparison.ratios == ()
    assert [(each.reason, [term.name for term in each.terms]) for each in found.comparison.missing] == [
        ("other-work", ["batch size"])
    ] * 2


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
    (ratio,) = compared(folder, "constructed card", "constructed card ti").comparison.ratios
    assert ratio.estimate == pytest.approx(2, rel=0.01)


def test_a_part_of_another_card_s_name_names_no_card(tmp_path):
    there = clone(tmp_path, *runs(OLD, 0.01, card="NVIDIA A100-SXM4-40GB"), *runs(NEW, 0.02, digits="b"))
    (ratio,) = compared(there, "A100", "Card A").comparison.ratios
    assert ratio.of.card == "NVIDIA A100-SXM4-40GB"
    with pytest.raises(UserError, match="no record is of 'A10'"):
        compared(there, "A10", "Card A")


def test_two_precisions_are_compared_within_the_newest_session_that_has_both(tmp_path):
    def in_bf16(session: str, seconds: float, digits: str = "a") -> list[Record]:
        on = machine_with("580.65", digits=digits)
        values: dict[str, Any] = {"repeats": 5, "spread": 0.004, "batch_size": 20}
        return build.series_of(
            build.LM, "amp-bf16", seconds, on=on, card="Constructed Card A", session=session, **values
        )

    both = [*runs(OLD, 0.03), *in_bf16(OLD, 0.01), *runs(NEW, 0.03), *in_bf16(NEW, 0.02)]
    alone = in_bf16("20260201-cccccc", 0.005, digits="c")
    (ratio,) = compared(clone(tmp_path, *both, *alone), "amp-bf16", "fp32-ieee").comparison.ratios
    assert (ratio.of.session, ratio.over.session, ratio.n) == (NEW, NEW, (5, 5))
    assert ratio.estimate == pytest.approx(1.5, rel=0.02)


def test_a_batch_that_alone_tells_two_sessions_apart_is_what_they_are_compared_by(tmp_path):
    found = compared(clone(tmp_path, *runs(OLD, 0.01), *runs(NEW, 0.01, batch_size=40)), NEW, OLD)
    assert len(found.comparison.ratios) == 1 and "  by batch: 40 | 20" in shown(found)


def test_the_gate_says_no_where_the_upper_end_lies_below_and_what_loss_it_would_have_seen(updated, capsys):
    with pytest.raises(GateError) as refused:
        compare_two(updated, "driver 590", "driver 580", "0.95")
    assert refused.value.exit_code == 3
    said = capsys.readouterr().out
    assert "where the upper end of its range lies below 0.95" in said
    assert re.search(r"the gate fails a loss of [78]\.\d % or more", said)
    assert re.search(r"FAILS: LSTM.*: 0\.8\d to 0\.9\d times as fast, which is below 0\.95", said)
    assert "WARNING" not in said


def test_the_gate_lets_pass_what_is_slower_by_less_than_it_can_tell(tmp_path, capsys):
    noisy = [*runs(OLD, 0.01, spread=0.04), *runs(NEW, 0.0106, spread=0.04)]
    compare_two(clone(tmp_path, *noisy), NEW, OLD, "0.95")
    said = capsys.readouterr().out
    assert "passed" in said and re.search(r"WARNING: LSTM.*, which holds 0\.95", said)


def test_with_three_blocks_a_side_nothing_is_assumed_of_the_hours(tmp_path):
    both = [
        one.model_copy(update={"block": 1 + place % 3})
        for made in (runs(OLD, 0.01, repeats=6), runs(NEW, 0.0111, driver="590.10", repeats=6))
        for place, one in enumerate(made)
    ]
    (ratio,) = compared(clone(tmp_path, *both), NEW, OLD).comparison.ratios
    assert (ratio.order, ratio.assumed) == ("slower", ())


@pytest.mark.parametrize("fault", ["failed", "invalid", "single"])
def test_the_gate_says_no_where_the_first_side_has_no_figure_or_no_range(fault, tmp_path, capsys):
    both = [*runs(OLD, 0.01), *runs(NEW, 0.01), *runs(OLD, 0.01, batch_size=80)]
    if fault == "failed":
        asked = build.trial(build.LM, "fp32-ieee", 1, batch_size=80)
        both.append(build.record(asked, None, on=both[5].machine, session=NEW, failure=build.out_of_memory()))
    elif fault == "invalid":
        both += runs(NEW, 0.01, batch_size=80, verdict="invalid")
    else:
        both = [*runs(OLD, 0.01, repeats=1), *runs(NEW, 0.01, repeats=1)]
    with pytest.raises(GateError):
        compare_two(clone(tmp_path, *both), NEW, OLD, "0.95")
    said = {"failed": "does not fit, where", "invalid": "invalid, where"}
    assert said.get(fault, "nothing could be judged") in capsys.readouterr().out


def test_what_differs_between_the_machines_is_named(tmp_path, capsys):
    other = [build.changed(one, machine__memory_bytes=2**30) for one in runs(OLD, 0.01, digits="b")]
    compare_two(clone(tmp_path, *other, *runs(NEW, 0.01)), NEW, OLD, None)
    assert f"memory_bytes: {2**30} → {64 * 2**30}" in capsys.readouterr().out
