"""The acceptance clause and its answer, on constructed records."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from commands import accept
from commands.bundle import Packing, pack
from harness.bundle.judgement import Demand
from harness.errors import GateError, UserError
from harness.files import hash_file
from harness.record import Failure, Question, Record, TrialSpec
from harness.record.store import read_results
from harness.run.runner import Outcome
from harness.settings import Settings
from report import text
from report.analysis import Analysis, AnalysisRequest, analyse, evidence_in
from report.buying import clause
from report.buying.clause import AcceptanceClause, SpeedRequirement, judge
from report.compare.card_units import UnitSpread
from report.compare.cells import Cell
from report.page import render
from report.page.one.page_one import page_one
from report.page.values import systems_of
from tests.helpers import bundled
from tests.helpers import records_builder as build
from tests.helpers.forged_bundles import packed

DELIVERED = "20260310-dddddd"


def analysis_of(folder: Path, session: str = bundled.LEAD) -> Analysis:
    """What leads with one session, from raw samples."""
    request = AnalysisRequest(datetime(2026, 12, 1, tzinfo=UTC), session=session)
    return analyse(evidence_in(folder, purchase=False), request)


def cells_in(folder: Path, session: str) -> tuple[Cell, ...]:
    return analysis_of(folder, session).own_cells


def clause_of(folder: Path, session: str = bundled.LEAD, **more: Any) -> AcceptanceClause:
    found = clause.clause(cells_in(folder, session), {}, **more)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def ordered(tmp_path_factory) -> Path:
    """The clone that an order stands on."""
    return bundled.write(tmp_path_factory.mktemp("ordered"), bundled.one_card())


@pytest.fixture(scope="module")
def order(ordered, tmp_path_factory) -> Path:
    return packed(ordered, tmp_path_factory.mktemp("order"))


@pytest.fixture
def demand(ordered) -> SpeedRequirement:
    return clause_of(ordered).demands[0]


def test_the_clause_asks_for_the_ordered_mean_less_five_percent_by_as_many_runs(ordered):
    order = analysis_of(ordered)
    found = order.clause
    assert found is not None
    (demand,) = found.demands
    assert (found.margin, demand.runs, len(demand.cell.trials), found.disturbed) == (0.05, 3, 3, 0)
    assert demand.figure.low < demand.figure.estimate < demand.figure.high
    assert (found.unproven, demand.figure.hour_assumed) == (True, 0.01)
    said = render.terminal_text("clause.md", view=found, command="invoke accept mine.tar.gz")
    assert "invoke accept mine.tar.gz" in said
    assert "another hour: ± 1 % assumed" in said
    assert f" {text.rounded(demand.figure.estimate * 0.95, 3)}\N{NO-BREAK SPACE}" in said


def test_a_session_of_single_runs_supports_no_clause(tmp_path):
    folder = bundled.write(tmp_path, bundled.one_card(repeats=1))
    assert clause.clause(cells_in(folder, bundled.LEAD), {}) is None


@pytest.fixture
def bench(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def bundle(order, bench) -> Path:
    """The order's bundle in a folder of the test's own, in which its answers are kept."""
    return Path(shutil.copy(order, bench))


def answered(bundle: Path, delivered: list[Record], capsys) -> str:
    """What `accept` prints for a delivered session; raises as it does."""
    here = bundled.write(bundle.parent / "here", delivered)
    accept.accept(here, Settings(), bundle, DELIVERED, Demand())
    return capsys.readouterr().out


def delivered(**more: Any) -> list[Record]:
    """Runs of their own: equal to those of the order but for the order of their steps."""
    ordered = bundled.one_card()
    runs = build.with_own_steps([*ordered, *bundled.one_card(DELIVERED, **more)])
    return list(runs)[len(ordered) :]


def of_machine(records: list[Record], **gpu: Any) -> list[Record]:
    return [
        build.changed(record, machine__gpus=(record.machine.gpus[0].model_copy(update=gpu),))
        for record in records
    ]


def test_the_machine_that_was_ordered_passes(bundle, capsys):
    said = answered(bundle, delivered(seconds=0.0122), capsys)
    assert said.endswith("PASS\n") and "of its figure, 95 % range" in said


def test_a_machine_that_is_a_tenth_slower_fails(bundle, capsys):
    with pytest.raises(GateError, match="FAIL: 1 of 1 figures were not reached"):
        answered(bundle, delivered(seconds=0.0133), capsys)
    assert "NOT REACHED: LSTM, fp32-ieee, batch 20, cached data: 0.90" in capsys.readouterr().out


OTHER = "Constructed Card B"


@pytest.mark.parametrize(
    ("gpu", "environment", "said"),
    [
        ({"name": OTHER}, {}, f"card 0 name: ordered Constructed Card A, delivered {OTHER}"),
        ({"memory_bytes": 16 * 2**30}, {}, "card 0 memory: ordered 24.0 GiB, delivered 16.0 GiB"),
        ({"driver": "570.12"}, {}, "card 0 driver: ordered 580.00, delivered 570.12"),
        ({}, {"passed_variables": {"OMP_NUM_THREADS": "1"}}, "OMP_NUM_THREADS: ordered none, delivered 1"),
        ({}, {"lock_sha256": "c" * 64}, "lock: ordered"),
    ],
)
def test_another_machine_or_other_software_is_told_by_the_field(bundle, capsys, gpu, environment, said):
    changes = {f"environment__{name}": value for name, value in environment.items()}
    other = [build.changed(one, **changes) for one in of_machine(delivered(), **gpu)]
    with pytest.raises(GateError, match="NOT THE MACHINE THAT WAS ORDERED") as refused:
        answered(bundle, other, capsys)
    assert said in str(refused.value) and refused.value.exit_code == 3


def test_a_power_limit_that_was_lowered_is_another_machine(bench, capsys):
    ordered = of_machine(bundled.one_card(), power_limit_watts=450.0)
    bundle = pack(bundled.write(bench / "ordered", ordered), Packing(out=bench / "o.tar.gz"))
    here = bundled.write(bench / "here", of_machine(delivered(), power_limit_watts=350.0))
    with pytest.raises(GateError, match=r"power limit: ordered 450 W, delivered 350 W"):
        accept.accept(here, Settings(), bundle, DELIVERED, Demand())


def test_another_patch_of_one_driver_branch_and_unknown_fields_are_the_same_machine(bundle, capsys):
    same = of_machine(
        delivered(), driver="580.65.06", power_limit_watts=450.0, memory_bytes=int(24.2 * 2**30)
    )
    assert answered(bundle, same, capsys).endswith("PASS\n")


def with_a_failure(records: list[Record], failure: Failure) -> list[Record]:
    """The last trial ended without a measurement."""
    last = records[-1].model_copy(
        update={"status": "failed", "measurement": None, "summary": None, "failure": failure}
    )
    return [*records[:-1], last]


def test_a_trial_that_fails_on_the_delivered_card_is_a_figure_that_was_not_reached(bundle, capsys):
    with pytest.raises(GateError, match="FAIL: 1 of 1"):
        answered(bundle, with_a_failure(delivered(), build.out_of_memory()), capsys)
    assert "2 of 3 runs were measured, and one trial does not fit" in capsys.readouterr().out


@pytest.mark.parametrize("is_lost", [False, True])
def test_too_few_runs_or_a_trial_that_the_machinery_lost_are_no_answer(bundle, capsys, is_lost):
    lost = build.out_of_memory().model_copy(update={"kind": "machinery", "reason": "killed"})
    few = with_a_failure(delivered(), lost) if is_lost else delivered(repeats=2)
    with pytest.raises(UserError, match="2 of 3 runs were measured, so there is no answer"):
        answered(bundle, few, capsys)


def asked_otherwise(record: Record, **request: Any) -> Record:
    asked = record.trial.asked.model_copy(update=request)
    trial = TrialSpec.from_request(asked, record.trial.repeat, seed=1, timeout_seconds=60.0)
    return build.changed(record, trial=trial)


@pytest.mark.parametrize(
    ("request_", "data", "said"),
    [
        ({"protocol": "published/2"}, {}, "protocol: ordered published/1, delivered published/2"),
        (
            {"data": "generated"},
            {"measurement__data__source": "generated", "measurement__data__sha256": None},
            "data source: ordered real, delivered generated, so there is no answer",
        ),
    ],
)
def test_another_work_is_told_by_the_field(bundle, capsys, request_, data, said):
    other = [build.changed(asked_otherwise(one, **request_), **data) for one in delivered()]
    with pytest.raises(UserError, match=f"it was measured with another {said}"):
        answered(bundle, other, capsys)


def test_windows_too_short_to_be_proven_answer_no_order_that_was_proven(bench, capsys):
    at: dict[str, Any] = {"card": "Constructed Card A", "digits": "a", "batch_size": 20}
    proven = bundled.proven(build.LM, "fp32-ieee", 0.012, session=bundled.LEAD, **at)
    ordered = bundled.write(bench / "ordered", proven)
    bundle = pack(ordered, Packing(out=bench / "offer.tar.gz"))
    here = bundled.write(bench / "here", delivered())
    with pytest.raises(UserError, match="too short to be proven, where the order's were proven"):
        accept.accept(here, Settings(), bundle, DELIVERED, Demand())
    assert "NOT KNOWN: LSTM" in capsys.readouterr().out


def test_work_that_was_not_measured_at_all_is_not_known(demand):
    both = (demand, replace(demand, cell=replace(demand.cell, key=replace(demand.cell.key, model="another"))))
    wanted = AcceptanceClause(0.05, both, 0, UnitSpread())
    found = judge(wanted, ())
    assert [one.passed for one in found] == [None, None]
    assert [one.why for one in found if one.passed is None] == ["0 of 3 runs were measured"] * 2


def test_the_records_that_the_order_stands_on_are_no_delivery(ordered, bundle):
    with pytest.raises(UserError, match=f"session {bundled.LEAD} is part of the bundle itself"):
        accept.accept(ordered, Settings(), bundle, bundled.LEAD, Demand())


def renamed(records: list[Record]) -> list[Record]:
    """The order's own records under the id and the date of another session."""
    later = timedelta(days=40)
    return [
        one.model_copy(update={"session": DELIVERED, "started_at": one.started_at + later}) for one in records
    ]


def test_the_order_s_own_step_times_under_another_name_are_no_delivery(bundle, capsys):
    with pytest.raises(GateError, match=f"NO DELIVERY: the step times of .* in session {DELIVERED}"):
        answered(bundle, renamed(bundled.one_card()), capsys)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"order": "PO 4711"}, "it states no order"),
        ({"at_least": "signed"}, "it is recomputed, and 'recomputed, signed' was asked for"),
        ({"sha256": ("0" * 64,)}, "is another file"),
    ],
)
def test_a_bundle_that_is_less_than_was_asked_for_ends_it_before_anything_runs(bundle, asked, said):
    with pytest.raises(GateError, match=said):
        accept.accept(bundle.parent, Settings(), bundle, None, Demand(**asked))


def test_a_bundle_that_is_compared_with_nothing_is_said_to_be(bundle, capsys):
    with_digest = Demand(sha256=(hash_file(bundle),))
    here = bundled.write(bundle.parent / "here", delivered(seconds=0.0122))
    for asked, compared in ((Demand(), False), (with_digest, True)):
        accept.accept(here, Settings(), bundle, DELIVERED, asked)
        assert ("not compared with your order" in capsys.readouterr().out) is not compared


def box(session: str, loss: float = 0.0, missing: int | None = None) -> list[Record]:
    """One work on each of eight cards, of which the fourth has a loss."""
    one = bundled.one_card()[0].machine.gpus[0]
    gpus = tuple(
        one.model_copy(update={"index": at, "unit": f"{at:x}" * 16, "bus": f"0000:{at + 27:02x}:00.0"})
        for at in range(8)
    )
    found = []
    for at in (place for place in range(8) if place != missing):
        slower = 0.012 * (1 + 0.002 * at) / (1 - loss * (at == 3))
        for one in bundled.one_card(session, seconds=slower + 1e-6 * (session != bundled.LEAD)):
            unit = {"machine__gpus": gpus, "measurement__device__unit": gpus[at].unit}
            found.append(build.changed(asked_otherwise(one, card=at), cards_given=(at,), **unit))
    return found


@pytest.fixture(scope="module")
def order_of_eight(tmp_path_factory) -> Path:
    return packed(
        bundled.write(tmp_path_factory.mktemp("eight"), box(bundled.LEAD)), tmp_path_factory.mktemp("order8")
    )


@pytest.mark.parametrize(("loss", "missing"), [(0.0, None), (0.12, None), (0.0, 6)])
def test_of_eight_delivered_cards_one_behind_the_others_fails_and_one_that_is_missing_is_no_answer(
    order_of_eight, bench, capsys, loss, missing
):
    bundle = Path(shutil.copy(order_of_eight, bench))
    runs = build.with_own_steps([*box(bundled.LEAD), *box(DELIVERED, loss, missing)])
    mine = [one for one in runs if one.session == DELIVERED]
    if loss:
        with pytest.raises(GateError, match=r"FAIL: card 3 \(0000:1e:00.0\) lies behind the others"):
            answered(bundle, mine, capsys)
    elif missing:
        with pytest.raises(UserError, match=r"card 6 \(0000:21:00.0\) was not measured"):
            answered(bundle, mine, capsys)
    else:
        answered(bundle, mine, capsys)
    said = capsys.readouterr().out
    assert missing is None or "7 of 8 cards measured" in said
    by_unit = replace(
        analysis_of(bench / "here", DELIVERED).request, question=Question(kind="faster", by="unit")
    )
    page = page_one(found := analyse(evidence_in(bench / "here", purchase=False), by_unit), systems_of(found))
    assert (page.answer.headline.state == "behind") is bool(loss)
    assert any(chip.name == "box" and chip.kind == ("care" if missing else "good") for chip in page.chips)
    order = analysis_of(bundled.write(bench / "order", box(bundled.LEAD))).clause
    assert order and (order.box.present, order.box.missing, order.behind) == (8, (), ())
    assert order.least_beside == pytest.approx(0.92, abs=0.005)


@pytest.mark.parametrize(("opened", "anew"), [(None, False), (DELIVERED, False), (bundled.LEAD, True)])
def test_a_stopped_acceptance_goes_on_where_it_was_but_never_in_a_session_of_the_bundle(
    bundle, monkeypatch, opened, anew
):
    own = bundled.one_card()
    here = bundled.write(bundle.parent / "here", [*own, *delivered(seconds=0.0121)])
    sessions = {session.id: session for session in read_results(here).sessions}
    asked = []

    def measured(root, settings, how):
        asked.append(how.new_session)
        return Outcome(sessions[DELIVERED], ran=0, failed=0, left=0, complete=True)

    monkeypatch.setattr(accept, "look_at_machine", lambda: (own[0].machine, {}))
    monkeypatch.setattr(accept, "find_open_session", lambda root, plan: sessions.get(opened))
    monkeypatch.setattr(accept.run, "run_plan", measured)
    accept.accept(here, Settings(), bundle, None, Demand())
    assert asked == [anew]


@pytest.mark.parametrize("margin", [0.0, 1.0, float("nan")])
def test_a_margin_that_is_no_share_is_a_sentence(ordered, bench, margin):
    with pytest.raises(UserError, match="is no share of a figure"):
        pack(ordered, Packing(out=bench / "o.tar.gz", margin=margin))


def test_the_limits_of_a_device_are_no_figure_of_the_clause(tmp_path):
    records = bundled.one_card()
    limits = {"measurement__ceilings": {"copy_gb_per_second": 100.0}}
    ceilings = [build.changed(asked_otherwise(one, workload="ceilings"), **limits) for one in records]
    found = clause_of(bundled.write(tmp_path, [*records, *ceilings]))
    assert [one.cell.key.workload for one in found.demands] == ["word_lm"]


def test_a_bundle_that_was_changed_judges_nothing(ordered, bundle):
    bundle.write_bytes(bundle.read_bytes()[:-10])
    with pytest.raises(GateError, match="is not as it was packed"):
        accept.accept(ordered, Settings(), bundle, bundled.LEAD, Demand())


def test_a_session_that_is_not_there_is_told(bundle, capsys):
    with pytest.raises(UserError, match="there is no session '20260310-dddddd'"):
        answered(bundle, bundled.one_card("20260311-eeeeee"), capsys)
