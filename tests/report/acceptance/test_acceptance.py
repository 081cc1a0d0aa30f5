"""The acceptance clause and its answer: chances against simulation, answers on constructed records."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import accept, offer
from harness.errors import GateError, UserError
from harness.record import Failure, Record, Trial
from harness.settings import Settings
from report.acceptance import clause
from report.acceptance.clause import Clause, Demand
from report.acceptance.delivery import judge, unanswered
from report.analysis import Question, analyse, evidence_in
from report.comparisons import unit_spread
from report.comparisons.cells import Cell
from report.comparisons.unit_spread import UnitSpread
from tests.helpers import bundled
from tests.helpers import records_builder as build
from tests.report.comparisons.test_groups import found, series

DELIVERED = "20260310-dddddd"


def cells_in(folder: Path, session: str) -> tuple[Cell, ...]:
    """The cells of one session, from raw samples."""
    question = Question(datetime(2026, 12, 1, tzinfo=UTC), session=session, from_raw=True)
    return analyse(evidence_in(folder, purchase=False), question).own_cells


def clause_of(folder: Path, session: str = bundled.LEAD, **more: Any) -> Clause:
    found = clause.clause(cells_in(folder, session), **more)
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
    found = clause.chances(demands, units, margin=0.05, slow=0.1)
    good, slow = simulated(demands, units, margin=0.05, slow=0.1)
    assert found.good_fails == pytest.approx(good, abs=0.004)
    assert found.slow_passes == pytest.approx(slow, abs=0.004)


def test_units_that_were_measured_have_heavier_tails_than_assumed_ones(demand):
    demands = [with_spread(demand, 0.01)]
    measured = UnitSpread(0.02, 3, 4)
    found = clause.chances(demands, measured, margin=0.05, slow=0.1)
    assert found.good_fails == pytest.approx(
        simulated(demands, measured, margin=0.05, slow=0.1)[0], abs=0.004
    )
    assert (
        found.good_fails
        > clause.chances(demands, replace(measured, df=math.inf), margin=0.05, slow=0.1).good_fails
    )


@given(st.floats(0.01, 0.09), st.floats(0.001, 0.05), st.floats(0, 0.06))
def test_a_wider_margin_fails_fewer_good_cards_and_passes_more_slow_ones(margin, spread, scale):
    one = Demand(None, "a card", "token", 100.0, (1.0,) * 5, spread, 5, False, False)  # type: ignore[arg-type]
    units = UnitSpread(scale, math.inf, 1)
    tight = clause.chances([one], units, margin=margin, slow=0.1)
    wide = clause.chances([one], units, margin=margin + 0.01, slow=0.1)
    assert wide.good_fails <= tight.good_fails
    assert wide.slow_passes >= tight.slow_passes
    assert all(0 <= chance <= 1 for chance in (tight.good_fails, tight.slow_passes))


def test_without_any_spread_the_rule_is_never_wrong(demand):
    found = clause.chances([with_spread(demand, 0.0)], UnitSpread(0, math.inf, 1), margin=0.05, slow=0.1)
    assert (found.good_fails, found.slow_passes) == (0, 0)


def test_three_units_replace_the_assumed_band():
    assert not unit_spread.unit_spread([100, 104]).measured
    found = unit_spread.unit_spread([100, 104, 108, 112])
    assert (found.units, found.df) == (4, 3)
    assert found.scale == pytest.approx(math.sqrt(2) * np.log([100, 104, 108, 112]).std(ddof=1))


def test_the_clause_says_command_figures_margin_runs_and_both_chances(tmp_path):
    found = clause_of(bundled.write(tmp_path, bundled.one_card()))
    said = "\n".join(clause.lines(found, "invoke accept offer.tar.gz"))
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
    assert not [said for said in clause.caveats(found) if "decides little" in said]
    loud = [with_spread(one, 0.5) for one in found.demands]
    wrong = clause.chances(loud, UnitSpread(0, math.inf, 1), margin=0.05, slow=0.1)
    assert [said for said in clause.caveats(replace(found, same=wrong)) if "decides little" in said]


def test_a_session_of_single_runs_supports_no_clause(tmp_path):
    folder = bundled.write(tmp_path, bundled.one_card(repeats=1))
    assert clause.clause(cells_in(folder, bundled.LEAD)) is None


@pytest.fixture
def bench(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    return tmp_path


def answered(bench: Path, delivered: list[Record], capsys) -> str:
    """What `accept` prints for a delivered session; raises as it does."""
    ordered = bundled.write(bench / "ordered", bundled.one_card())
    bundle = offer.pack(ordered, offer.Packing(out=bench / "offer.tar.gz"))
    capsys.readouterr()
    here = bundled.write(bench / "here", delivered)
    accept.accept(here, Settings(), bundle, DELIVERED)
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
    bundle = offer.pack(bundled.write(bench / "ordered", ordered), offer.Packing(out=bench / "o.tar.gz"))
    here = bundled.write(bench / "here", of_machine(delivered(), power_limit_watts=350.0))
    with pytest.raises(GateError, match=r"power limit watts: ordered 450\.0, delivered 350\.0"):
        accept.accept(here, Settings(), bundle, DELIVERED)


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


def with_a_failure(records: list[Record], failure: Failure) -> list[Record]:
    """The last trial ended without a measurement."""
    last = records[-1].model_copy(
        update={"status": "failed", "measurement": None, "summary": None, "failure": failure}
    )
    return [*records[:-1], last]


def test_a_trial_that_fails_on_the_delivered_card_is_a_figure_that_was_not_reached(bench, capsys):
    with pytest.raises(GateError, match="FAIL: 1 of 1"):
        answered(bench, with_a_failure(delivered(), build.out_of_memory()), capsys)
    assert "2 of 3 runs were measured, and one trial does not fit" in capsys.readouterr().out


def test_a_trial_that_the_machinery_lost_is_no_answer(bench, capsys):
    lost = build.out_of_memory().model_copy(update={"kind": "machinery", "reason": "killed"})
    with pytest.raises(UserError, match="2 of 3 runs were measured, so there is no answer"):
        answered(bench, with_a_failure(delivered(), lost), capsys)


def test_generated_data_in_place_of_real_is_told_by_the_field(bench, capsys):
    def generated(record: Record) -> Record:
        asked = record.trial.asked.model_copy(update={"data": "generated"})
        assert record.measurement
        data = record.measurement.data.model_copy(update={"source": "generated", "sha256": None})
        return record.model_copy(
            update={
                "trial": Trial.of(asked, record.trial.repeat, seed=1, timeout_seconds=600.0),
                "measurement": record.measurement.model_copy(update={"data": data}),
            }
        )

    said = (
        "it was measured with another data source: ordered real, delivered generated, so there is no answer"
    )
    with pytest.raises(UserError, match=said):
        answered(bench, [generated(one) for one in delivered()], capsys)


def test_another_protocol_is_told_by_the_field(bench, capsys):
    kind = {**build.LM, "protocol": "published/2"}
    on = build.machine("Constructed Card A", label="card-a", digits="a")
    other = build.series_of(
        kind,
        "fp32-ieee",
        0.012,
        batch_size=20,
        on=on,
        card="Constructed Card A",
        session=DELIVERED,
        within=build.environment(lock_sha256=bundled.lock_sha256()),
    )
    with pytest.raises(UserError, match="another protocol: ordered published/1, delivered published/2"):
        answered(bench, other, capsys)


def test_other_software_is_told_by_the_field(bench, capsys):
    within = build.environment(lock_sha256="c" * 64)
    other = [one.model_copy(update={"environment": within}) for one in delivered()]
    with pytest.raises(GateError, match="NOT THE MACHINE THAT WAS ORDERED: lock_sha256: ordered"):
        answered(bench, other, capsys)


def test_windows_too_short_to_be_proven_answer_no_order_that_was_proven(bench, capsys):
    at: dict[str, Any] = {"card": "Constructed Card A", "digits": "a", "batch_size": 20}
    proven = bundled.proven(build.LM, "fp32-ieee", 0.012, session=bundled.LEAD, **at)
    ordered = bundled.write(bench / "ordered", proven)
    bundle = offer.pack(ordered, offer.Packing(out=bench / "offer.tar.gz"))
    here = bundled.write(bench / "here", delivered())
    with pytest.raises(UserError, match="too short to be proven, where the order's were proven"):
        accept.accept(here, Settings(), bundle, DELIVERED)
    assert "NOT KNOWN: LSTM" in capsys.readouterr().out


def test_one_run_that_did_not_settle_among_others_that_did_is_no_missing_run():
    def cell(verdicts):
        records = [
            series(repeats=len(verdicts), verdict=verdict)[place] for place, verdict in enumerate(verdicts)
        ]
        return found(records)[0].entries[0].cell

    ordered = clause.clause([cell(["valid"] * 5)])
    assert ordered and ordered.demands[0].runs == 5
    (one,) = judge(ordered, [cell(["valid"] * 4 + ["unproven"])])
    assert one.passed and one.ratio == pytest.approx(1.0, rel=0.02)
    (short,) = judge(ordered, [cell(["valid"] * 4)])
    assert short.passed is None and short.why == "4 of 5 runs were measured"


def test_work_that_was_not_measured_at_all_is_not_known(demand):
    chances = clause.Chances(0, 0)
    both = (demand, replace(demand, key=replace(demand.key, model="another")))
    wanted = Clause(0.05, 0.1, both, unit_spread.assumed_units(), chances, chances)
    found = judge(wanted, ())
    assert [one.passed for one in found] == [None, None]
    assert [one.why for one in unanswered(found)] == ["0 of 3 runs were measured"] * 2


def test_the_records_that_the_order_stands_on_are_no_delivery(bench, capsys):
    ordered = bundled.write(bench / "ordered", bundled.one_card())
    bundle = offer.pack(ordered, offer.Packing(out=bench / "o.tar.gz"))
    with pytest.raises(UserError, match=f"session {bundled.LEAD} is one that the bundle itself stands on"):
        accept.accept(ordered, Settings(), bundle, bundled.LEAD)


@pytest.mark.parametrize("margin", [0.0, 1.0, float("nan")])
def test_a_margin_that_is_no_share_is_a_sentence(bench, margin):
    ordered = bundled.write(bench / "ordered", bundled.one_card())
    with pytest.raises(UserError, match="is no share of a figure"):
        offer.pack(ordered, offer.Packing(out=bench / "o.tar.gz", margin=margin))


def test_the_limits_of_a_device_are_no_figure_of_the_clause(tmp_path):
    records = bundled.one_card()
    first = records[0].measurement
    assert first
    limit = first.model_copy(update={"ceilings": {"copy_gb_per_second": 100.0}})
    ceilings = [
        one.model_copy(
            update={
                "measurement": limit,
                "trial": Trial.of(
                    one.trial.asked.model_copy(update={"workload": "ceilings"}),
                    one.trial.repeat,
                    seed=1,
                    timeout_seconds=60.0,
                ),
            }
        )
        for one in records
    ]
    found = clause_of(bundled.write(tmp_path, [*records, *ceilings]))
    assert [one.key.workload for one in found.demands] == ["word_lm"]


@pytest.mark.parametrize("sigma", [0.01, 0.03, 0.06])
def test_over_many_orders_the_printed_chances_are_no_rosier_than_what_happens(demand, sigma):
    """The whole way: runs are drawn for the figure, its chances are printed, then the delivery is drawn."""
    draw = np.random.default_rng(11)
    said, happened = [], []
    for _ in range(1500):
        runs = draw.normal(0, sigma, 5)
        one = with_spread(demand, float(runs.std(ddof=1)))
        said.append(clause.chances([one], UnitSpread(0.0, math.inf, 1), margin=0.05, slow=0.1))
        edge = runs.mean() + math.log(0.95)
        happened.append(
            (draw.normal(0, sigma, 5).mean() < edge, draw.normal(math.log(0.9), sigma, 5).mean() >= edge)
        )
    for place, name in enumerate(("good_fails", "slow_passes")):
        printed = float(np.mean([getattr(one, name) for one in said]))
        truth = float(np.mean([one[place] for one in happened]))
        assert truth - 0.02 < printed < truth + 0.06


def test_a_bundle_that_was_changed_judges_nothing(bench, capsys):
    ordered = bundled.write(bench / "ordered", bundled.one_card())
    bundle = offer.pack(ordered, offer.Packing(out=bench / "o.tar.gz"))
    bundle.write_bytes(bundle.read_bytes()[:-10])
    with pytest.raises(GateError, match="is not as it was packed"):
        accept.accept(ordered, Settings(), bundle, bundled.LEAD)


def test_a_session_that_is_not_there_is_told(bench, capsys):
    with pytest.raises(UserError, match="there is no record of session '20260310-dddddd'"):
        answered(bench, bundled.one_card("20260311-eeeeee"), capsys)
