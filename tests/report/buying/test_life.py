"""What an accepted machine has kept, on constructed records: no figure here was measured."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from commands import accept
from harness.errors import GateError, UserError
from harness.record import Record, Trace, TraceStats
from harness.record.store import read_all
from harness.run.runner import Outcome
from harness.settings import Settings
from report.analysis import Question, analyse, evidence_in
from report.buying import life
from report.buying.life import Life, Order, changes
from report.page.parts.acceptance import life_picture
from tests.helpers import bundled, watched_records
from tests.helpers import records_builder as build
from tests.helpers.forged_bundles import packed

UNIT, OTHER_UNIT = "0123456789abcdef", "fedcba9876543210"
FIRST, SECOND, THIRD = "20260310-dddddd", "20280312-eeeeee", "20300315-ffffff"


def session(name: str, *, unit: str = UNIT, **more: Any) -> list[Record]:
    return bundled.visit(name, unit=unit, **more)


ACCEPTED = session(FIRST)


@pytest.fixture(scope="module")
def ordered(tmp_path_factory) -> Path:
    """The clone that an order stands on, of another unit of the card."""
    records = session(bundled.LEAD, seconds=0.012, unit=OTHER_UNIT)
    return bundled.write(tmp_path_factory.mktemp("order") / "ordered", records)


@pytest.fixture(scope="module")
def bundle(ordered) -> Path:
    return packed(ordered, ordered.parent, quiet=True)


@pytest.fixture
def order(ordered, bundle, tmp_path, monkeypatch) -> Path:
    """The order's bundle beside its clone, in a folder of the test's own, in which answers are kept."""
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    shutil.copytree(ordered, tmp_path / "ordered")
    return Path(shutil.copy(bundle, tmp_path))


def clone(order: Path, *sessions: list[Record], name: str = "here") -> Path:
    """A clone with these sessions, no two runs of which have the same steps."""
    ordered = session(bundled.LEAD, seconds=0.012, unit=OTHER_UNIT)
    records = build.with_own_steps([*ordered, *(record for one in sessions for record in one)])
    return bundled.write(order.parent / name, list(islice(records, len(ordered), None)))


def lived(order: Path, asked: str, *sessions: list[Record]) -> Life | None:
    """The life that these sessions show of the asked one's units."""
    ordered = analyse(evidence_in(order.parent / "ordered"), Question(datetime.now(UTC)))
    assert ordered.clause is not None
    held = Order(ordered.clause, [trial.record for trial in ordered.own], (bundled.LEAD,))
    analysis = analyse(evidence_in(clone(order, *sessions)), Question(datetime.now(UTC), session=asked))
    return life.life(held, life.visits(analysis.trials), asked)


def test_a_machine_that_passed_is_held_to_what_it_did_then_whatever_driver_it_has_by_now(order, capsys):
    now = session(SECOND, seconds=0.0121, driver="610.10", power_limit_watts=450.0)
    root = clone(order, ACCEPTED, now)
    accept.accept(root, Settings(), order, FIRST)
    assert capsys.readouterr().out.endswith("PASS\n")
    accept.accept(root, Settings(), order, SECOND)
    said = capsys.readouterr().out
    assert said.endswith("KEPT\n")
    assert "as fast as then: 1.00" in said
    assert "card 0 driver: 580.00 → 610.10" in said
    assert "power limit" not in said


@pytest.mark.parametrize(("times", "kept"), [(1.08, True), (1.13, False)])
def test_at_least_nine_tenths_of_the_acceptance_must_be_kept(order, times, kept):
    found = lived(order, SECOND, ACCEPTED, session(SECOND, seconds=0.0121 * times))
    assert found is not None
    (result,) = found.results[-1]
    assert result.passed is kept
    assert result.ratio == pytest.approx(1 / times, rel=0.01)
    assert result.low < result.ratio < result.high < 1


def test_a_slower_machine_is_told_with_its_range_and_is_kept_beside_the_first(order, capsys):
    root = clone(order, ACCEPTED, session(SECOND, seconds=0.0142))
    accept.accept(root, Settings(), order, FIRST)
    with pytest.raises(GateError, match="NOT KEPT: 1 of 1 figures"):
        accept.accept(root, Settings(), order, SECOND)
    assert "slower by 14." in capsys.readouterr().out
    beside = sorted(path.name for path in order.parent.glob("offer-*"))
    assert beside == [f"offer-{FIRST}.tar.gz", f"offer-{SECOND}.svg", f"offer-{SECOND}.tar.gz"]


def test_another_clone_knows_the_acceptance_by_the_file_beside_the_order(order, capsys):
    accept.accept(clone(order, ACCEPTED), Settings(), order, FIRST)
    installed_anew = clone(order, session(SECOND, digits="b", driver="610.10", seconds=0.01201), name="anew")
    accept.accept(installed_anew, Settings(), order, SECOND)
    assert capsys.readouterr().out.endswith("KEPT\n")


def test_another_unit_was_never_accepted_and_is_judged_as_a_delivery(order):
    other = session(SECOND, unit="00000000ffffffff", driver="610.10")
    assert lived(order, SECOND, ACCEPTED, other) is None
    with pytest.raises(GateError, match="NOT THE MACHINE THAT WAS ORDERED: card 0 driver"):
        accept.accept(order.parent / "here", Settings(), order, SECOND)


def test_a_session_that_missed_the_clause_or_had_another_driver_accepts_nothing(order):
    missed, driven = session(FIRST, seconds=0.0142), session(SECOND, driver="570.12")
    assert lived(order, THIRD, missed, driven, session(THIRD)) is None


def test_the_order_s_own_session_on_the_very_unit_accepts_nothing(order):
    supplier = session(bundled.LEAD, seconds=0.012)
    assert lived(order, FIRST, supplier, ACCEPTED) is None


def test_sessions_between_and_their_events_stand_in_the_picture_in_their_order(order):
    found = lived(
        order,
        THIRD,
        session(THIRD, seconds=0.0123, driver="610.10", remapped_rows=2),
        session(SECOND, driver="610.10", remapped_rows=0),
        session(FIRST, remapped_rows=0),
    )
    assert found is not None
    assert [visit.session for visit in found.visits] == [FIRST, SECOND, THIRD]
    assert [[each.what for each in events] for events in found.events] == [
        ["card 0 driver"],
        ["card 0 remapped rows"],
    ]
    (curves,) = life_picture(found).chart.panels
    line, least = curves.lines
    assert [y for _, y in line.points] == pytest.approx([1.0, 1.0, 0.0121 / 0.0123], rel=0.005)
    assert all(low < y < high for (low, high), (_, y) in zip(line.ranges, line.points, strict=True))
    assert {y for _, y in least.points} == {0.9}
    assert next(label for _, label in curves.ticks) == "10 March 2026, dddddd"


def test_units_on_record_that_had_both_stacks_say_what_the_new_one_may_be_worth(order):
    others = [
        session(f"{day}-{mark * 6}", digits=digits, unit=digits * 16, seconds=seconds, **driver)
        for day, mark, digits, seconds, driver in (
            ("20260311", "1", "1", 0.0120, {}),
            ("20280311", "2", "1", 0.0126, {"driver": "610.10"}),
            ("20260311", "3", "2", 0.0120, {}),
            ("20280311", "4", "2", 0.0124, {"driver": "610.10"}),
            ("20280311", "5", "3", 0.0100, {"driver": "610.10"}),
        )
    ]
    found = lived(order, SECOND, ACCEPTED, session(SECOND, driver="610.10", seconds=0.0126), *others)
    assert found is not None
    assert len(found.worth) == 2
    assert found.worth == pytest.approx((120 / 126, 120 / 124), rel=0.005)
    assert not found.other_release


def steady(value: float) -> TraceStats:
    return TraceStats(mean=Trace.of([value] * 91, 0.1))


def watched(temperature: float = 70.0, **card: Any) -> Record:
    on = watched_records.machine()
    asked = build.trial(build.LM, "fp32-ieee", 1)
    measured = build.measurement(build.LM, asked, 0.01, card=watched_records.CARD)
    seen = watched_records.telemetry(watched_records.card(temperature_c=steady(temperature), **card))
    return build.record(asked, measured, on=on, telemetry=seen)


def test_what_was_read_under_load_is_told_where_it_differs_by_more_than_noise():
    before = [watched(ecc_corrected=0)] * 2
    within_noise: dict[str, Any] = {"sm_mhz": steady(1810.0), "temperature": 71.0}
    assert changes(before, [watched(ecc_corrected=0, **within_noise)]) == ()
    now: dict[str, Any] = {"sm_mhz": steady(1600.0), "temperature": 83.0}
    found = {
        each.what: (each.before, each.now) for each in changes(before, [watched(ecc_corrected=2, **now)])
    }
    assert found == {
        "clock under load": ("1800 MHz", "1600 MHz"),
        "temperature under load": ("70 °C", "83 °C"),
        "corrected memory errors a trial": ("0", "2"),
    }


def test_an_accepted_machine_runs_a_session_of_its_own_whatever_driver_it_has(order, monkeypatch):
    root = clone(order, ACCEPTED, session(SECOND, driver="610.10"))
    sessions = {one.id: one for one in read_all(root).sessions}
    now = session(SECOND, driver="610.10")[0].machine
    asked = []

    def measured(root, settings, how):
        asked.append(how.new_session)
        return Outcome(sessions[SECOND], ran=3, failed=0, left=0, complete=True)

    monkeypatch.setattr(accept, "look", lambda: (now, {}))
    monkeypatch.setattr(accept, "find_open", lambda root, plan: sessions[FIRST])
    monkeypatch.setattr(accept.measure, "run", measured)
    accept.accept(root, Settings(), order, None)
    assert asked == [True]


def test_a_session_that_is_not_whole_answers_nothing_and_is_not_packed(order, capsys):
    root = clone(order, ACCEPTED, session(SECOND)[:2])
    accept.accept(root, Settings(), order, FIRST)
    with pytest.raises(UserError, match="2 of 3 runs were measured, so there is no answer"):
        accept.accept(root, Settings(), order, SECOND)
    assert sorted(path.name for path in order.parent.glob("offer-*")) == [f"offer-{FIRST}.tar.gz"]
