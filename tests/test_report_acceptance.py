"""The acceptance clause and its answer: chances against simulation, answers on constructed records."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import bundled
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import joint
from harness import store
from harness.errors import GateError, UserError
from harness.record import Record
from harness.settings import Settings
from report import acceptance, sides
from report.acceptance import Clause, Demand, UnitSpread

DELIVERED = "20260310-dddddd"


def clause_of(folder: Path, session: str = bundled.LEAD, **more: Any) -> Clause:
    rows = sides.rows_of(store.read_all(folder), folder, from_raw=True)
    found = acceptance.clause(sides.session_cells(rows, session), **more)
    assert found is not None
    return found


@pytest.fixture
def demand(tmp_path) -> Demand:
    return clause_of(bundled.write(tmp_path, bundled.one_card())).demands[0]


def with_spread(demand: Demand, spread: float, n: int = 5, runs: int = 5) -> Demand:
    return replace(demand, spread=spread, values=demand.values[:1] * n, runs=runs)


def simulated(demands: list[Demand], units: UnitSpread, *, margin: float, slow: float) -> tuple[float, float]:
    """By drawing: σ of each row from its posterior, then the unit, then both means."""
    draw, many = np.random.default_rng(7), 200_000
    shared = draw.normal(0, 1, many) if math.isinf(units.df) else draw.standard_t(units.df, many)
    good, slower = np.ones(many, bool), np.ones(many, bool)
    for one in demands:
        n = len(one.values)
        sigma = one.spread * np.sqrt((n - 1) / draw.chisquare(n - 1, many))
        noise = draw.normal(0, sigma / math.sqrt(n)) + draw.normal(0, sigma / math.sqrt(one.runs))
        level = shared * units.scale + noise
        good &= level >= math.log(1 - margin)
        slower &= level + math.log(1 - slow) >= math.log(1 - margin)
    return 1 - float(good.mean()), float(slower.mean())


@pytest.mark.parametrize("scale", [0.0, 0.01, 0.04])
@pytest.mark.parametrize("spreads", [(0.01,), (0.05,), (0.01, 0.03, 0.05)])
def test_the_chances_are_those_that_drawing_gives(demand, scale, spreads):
    demands = [with_spread(demand, spread, n=3 + place) for place, spread in enumerate(spreads)]
    units = UnitSpread(scale, math.inf, 1)
    found = acceptance.chances(demands, units, margin=0.05, slow=0.1)
    good, slow = simulated(demands, units, margin=0.05, slow=0.1)
    assert found.good_fails == pytest.approx(good, abs=0.004)
    assert found.slow_passes == pytest.approx(slow, abs=0.004)


def test_units_that_were_measured_have_heavier_tails_than_assumed_ones(demand):
    demands = [with_spread(demand, 0.01)]
    measured = UnitSpread(0.02, 3, 4)
    found = acceptance.chances(demands, measured, margin=0.05, slow=0.1)
    assert found.good_fails == pytest.approx(
        simulated(demands, measured, margin=0.05, slow=0.1)[0], abs=0.004
    )
    assert (
        found.good_fails
        > acceptance.chances(demands, replace(measured, df=math.inf), margin=0.05, slow=0.1).good_fails
    )


@given(st.floats(0.01, 0.09), st.floats(0.001, 0.05), st.floats(0, 0.06))
def test_a_wider_margin_fails_fewer_good_cards_and_passes_more_slow_ones(margin, spread, scale):
    one = Demand(None, "a card", "token", 100.0, (1.0,) * 5, spread, 5, False, False)  # type: ignore[arg-type]
    units = UnitSpread(scale, math.inf, 1)
    tight = acceptance.chances([one], units, margin=margin, slow=0.1)
    wide = acceptance.chances([one], units, margin=margin + 0.01, slow=0.1)
    assert wide.good_fails <= tight.good_fails
    assert wide.slow_passes >= tight.slow_passes
    assert all(0 <= chance <= 1 for chance in (tight.good_fails, tight.slow_passes))


def test_without_any_spread_the_rule_is_never_wrong(demand):
    found = acceptance.chances([with_spread(demand, 0.0)], UnitSpread(0, math.inf, 1), margin=0.05, slow=0.1)
    assert (found.good_fails, found.slow_passes) == (0, 0)


def test_three_units_replace_the_assumed_band():
    assert not acceptance.unit_spread([100, 104]).measured
    found = acceptance.unit_spread([100, 104, 108, 112])
    assert (found.units, found.df) == (4, 3)
    assert found.scale == pytest.approx(math.sqrt(2) * np.log([100, 104, 108, 112]).std(ddof=1))


def test_the_clause_says_command_figures_margin_runs_and_both_chances(tmp_path):
    found = clause_of(bundled.write(tmp_path, bundled.one_card()))
    said = "\n".join(acceptance.lines(found, "invoke accept offer.tar.gz"))
    for part in (
        "`invoke accept offer.tar.gz`",
        "margin of 5 %",
        "at least",
        "in 3 runs",
        "10 % too slow passes",
    ):
        assert part in said
    assert "A first look and no clause for an order" in said
    assert "fewer than three blocks" in said


def test_runs_that_scatter_as_much_as_the_margin_are_said_to_decide_little(tmp_path):
    found = clause_of(bundled.write(tmp_path, bundled.one_card()))
    assert not [said for said in acceptance.doubts(found) if "decides little" in said]
    loud = [with_spread(one, 0.5) for one in found.demands]
    wrong = acceptance.chances(loud, UnitSpread(0, math.inf, 1), margin=0.05, slow=0.1)
    assert [said for said in acceptance.doubts(replace(found, same=wrong)) if "decides little" in said]


def test_a_session_of_single_runs_supports_no_clause(tmp_path):
    folder = bundled.write(tmp_path, bundled.one_card(repeats=1))
    rows = sides.rows_of(store.read_all(folder), folder)
    assert acceptance.clause(sides.session_cells(rows, bundled.LEAD)) is None


@pytest.fixture
def bench(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    return tmp_path


def answered(bench: Path, delivered: list[Record], capsys) -> str:
    """What `accept` prints for a delivered session; raises as it does."""
    ordered = bundled.write(bench / "ordered", bundled.one_card())
    bundle = joint.pack(ordered, joint.Packing(out=bench / "offer.tar.gz"))
    capsys.readouterr()
    here = bundled.write(bench / "here", delivered)
    joint.accept(here, Settings(), bundle, DELIVERED)
    return capsys.readouterr().out


def delivered(**more: Any) -> list[Record]:
    return bundled.one_card(DELIVERED, **more)


def of_machine(records: list[Record], **gpu: Any) -> list[Record]:
    def changed(record: Record) -> Record:
        card = record.machine.gpus[0].model_copy(update=gpu)
        return record.model_copy(update={"machine": record.machine.model_copy(update={"gpus": (card,)})})

    return [changed(record) for record in records]


def test_the_machine_that_was_ordered_passes(bench, capsys):
    said = answered(bench, delivered(seconds=0.0122), capsys)
    assert said.endswith("PASS\n") and "of its figure, 95 % interval" in said


def test_a_machine_that_is_a_tenth_slower_fails(bench, capsys):
    with pytest.raises(GateError, match="FAIL: 1 of 1 figures were not reached"):
        answered(bench, delivered(seconds=0.0133), capsys)
    assert "NOT REACHED: LSTM, fp32-ieee, batch 20, cached data: 0.90" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        (
            "name",
            "Constructed Card B",
            "card 0 name: ordered Constructed Card A, delivered Constructed Card B",
        ),
        ("memory_bytes", 16 * 2**30, "card 0 memory bytes: ordered 25769803776, delivered 17179869184"),
        ("driver", "570.12", "card 0 driver: ordered 580.00, delivered 570.12"),
    ],
)
def test_another_machine_is_told_by_the_field(bench, capsys, field, value, said):
    with pytest.raises(GateError, match="NOT THE MACHINE THAT WAS ORDERED") as refused:
        answered(bench, of_machine(delivered(), **{field: value}), capsys)
    assert said in str(refused.value) and refused.value.exit_code == 3


def test_a_power_limit_that_was_lowered_is_another_machine(bench, capsys):
    ordered = of_machine(bundled.one_card(), power_limit_watts=450.0)
    bundle = joint.pack(bundled.write(bench / "ordered", ordered), joint.Packing(out=bench / "o.tar.gz"))
    here = bundled.write(bench / "here", of_machine(delivered(), power_limit_watts=350.0))
    with pytest.raises(GateError, match=r"power limit watts: ordered 450\.0, delivered 350\.0"):
        joint.accept(here, Settings(), bundle, DELIVERED)


def test_a_variable_that_was_passed_in_is_a_named_difference(bench, capsys):
    slowed = [
        record.model_copy(
            update={
                "environment": record.environment.model_copy(
                    update={"passed_variables": {"OMP_NUM_THREADS": "1"}}
                )
            }
        )
        for record in delivered()
    ]
    with pytest.raises(GateError, match="the variable OMP_NUM_THREADS: ordered none, delivered 1"):
        answered(bench, slowed, capsys)


def test_another_patch_of_one_driver_branch_and_unknown_fields_are_the_same_machine(bench, capsys):
    same = of_machine(
        delivered(), driver="580.65.06", power_limit_watts=450.0, memory_bytes=int(24.2 * 2**30)
    )
    assert answered(bench, same, capsys).endswith("PASS\n")


def test_too_few_runs_are_no_answer(bench, capsys):
    with pytest.raises(UserError, match="2 of 3 runs were measured, so there is no answer"):
        answered(bench, delivered(repeats=2), capsys)


def test_a_bundle_that_was_changed_judges_nothing(bench, capsys):
    ordered = bundled.write(bench / "ordered", bundled.one_card())
    bundle = joint.pack(ordered, joint.Packing(out=bench / "o.tar.gz"))
    bundle.write_bytes(bundle.read_bytes()[:-10])
    with pytest.raises(GateError, match="is not as it was packed"):
        joint.accept(ordered, Settings(), bundle, bundled.LEAD)


def test_a_session_that_is_not_there_is_told(bench, capsys):
    with pytest.raises(UserError, match="there is no record of session '20260310-dddddd'"):
        answered(bench, bundled.one_card("20260311-eeeeee"), capsys)
