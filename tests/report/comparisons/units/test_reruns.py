"""Who else measured the same work: no figure here was measured."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from harness.record import Record
from report.analysis import Analysis, Question, analyse, evidence_in
from report.page.build import look
from tests.helpers import bundled
from tests.helpers import records_builder as build

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)


def analysed(root: Path, records: list[Record]) -> Analysis:
    return analyse(
        evidence_in(bundled.write(root, records), purchase=False), Question(NOW, session=bundled.LEAD)
    )


def test_a_run_of_the_same_work_on_another_machine_is_shown_with_both_figures_and_their_ratio(tmp_path):
    other = bundled.one_card(bundled.OTHER, digits="b", seconds=0.0126)
    found = analysed(tmp_path, [*build.with_own_steps([*bundled.one_card(), *other])])
    (rerun,) = found.reruns
    assert (rerun.own.session, rerun.other.session) == (bundled.LEAD, bundled.OTHER)
    assert rerun.ratio is not None and rerun.ratio.interval is not None
    assert rerun.ratio.estimate == rerun.other.throughput.mean / rerun.own.throughput.mean or (
        abs(rerun.ratio.estimate - 0.012 / 0.0126) < 0.01
    )
    table = look(found).reruns
    assert table is not None and "Also measured by" in table.columns
    assert bundled.OTHER in table.rows[0][2]


def test_no_run_of_the_same_machine_or_another_card_or_a_copy_stands_as_measured_by_others(tmp_path):
    same_machine = bundled.one_card(bundled.OTHER)
    other_card = bundled.one_card("20260129-cccccc", digits="c", card="Constructed Card B")
    mine = [*build.with_own_steps([*bundled.one_card(), *same_machine, *other_card])]
    assert analysed(tmp_path / "a", mine).reruns == ()
    copied = [
        record.model_copy(
            update={"session": "20260128-dddddd", "machine": other.machine, "measurement": record.measurement}
        )
        for record, other in zip(mine[:3], bundled.one_card(digits="d"), strict=True)
    ]
    assert analysed(tmp_path / "b", [*mine, *copied]).reruns == ()


def test_the_page_says_what_reading_cannot_show(tmp_path):
    said = look(analysed(tmp_path, bundled.one_card())).reading
    assert all(word in said for word in ("signed bundle", "second witness", "run by someone else"))
