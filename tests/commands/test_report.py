"""What `report` adds to a page of this clone that the records alone do not say."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from commands import report, run
from commands.check import optional_problems
from commands.report import ReportOptions, write_report
from harness.errors import CardError
from harness.plan.plan_file import plan_questions
from harness.record.store import read_sessions
from report.analysis import AnalysisRequest, analyse, evidence_in
from report.page import render
from report.page.whole_page import page_of
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.here import evidence_here
from tests.helpers.records_card import checked_card

ON_CPU, ON_CARD, DESK = "20261121-38cb4c", "20261126-cb0794", "20261121-8a1add"


@pytest.mark.parametrize(("session", "plan"), [(ON_CPU, None), (ON_CARD, "resnet18"), (DESK, None)])
def test_a_first_look_names_the_longer_line_of_its_device(
    session: str, plan: str | None, tmp_path: Path, undrawn: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(report, "evidence_in", lambda root: evidence_here())
    analysis, written = write_report(ROOT, tmp_path, ReportOptions((session,)))
    text = written.markdown.read_text()
    line = f"invoke build --plan {plan} run --blocks 3 report"
    assert (f"`{line}`" in text) == bool(plan)
    assert (page_of(analysis).one.answer.following.data["commands"] == (line,)) == bool(plan)


def test_the_first_page_of_a_clone_shows_published_studies_and_the_records_that_came_with_it(
    tmp_path: Path, undrawn: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path / "state"))
    # What was measured beside the checkout since would lead.
    fresh = tmp_path / "fresh"
    subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(fresh)], check=True)
    analysis, written = write_report(fresh, tmp_path / "out", ReportOptions())
    assert (analysis.own, analysis.clause) == ((), None)
    assert analysis.request.prospects.ways, "some claims can be judged on a CPU"
    page = page_of(analysis)
    assert page.one.about.state == "nothing"
    views = {part.name: part.view for part in page.parts}
    assert len(views["published"].studies) > 1 and views["workloads"]
    assert not page.systems.own and page.systems.all
    assert [chip.name for chip in page.one.chips] == ["no-records", "published-once"]
    assert (written.html.parent / "charts" / "lead.svg").is_file()


def test_a_faulty_card_leaves_exit_code_5_and_the_answer_is_the_terminals(tmp_path):
    sound, weak = checked_card("c", machine="a"), checked_card("d", machine="a", speed=0.8)
    build.write(tmp_path, [*sound, *weak, *checked_card("e", machine="a")])
    found = [
        analyse(evidence_in(tmp_path), AnalysisRequest(datetime(2026, 2, 1, tzinfo=UTC), each[0].session))
        for each in (sound, weak)
    ]
    run.refuse_faulty_card(found[0])
    with pytest.raises(CardError, match=r"slow in 9 of 9: .* 0\.80 of what the others do") as refused:
        run.refuse_faulty_card(found[1])
    assert refused.value.exit_code == 5
    said = render.answer_text(page_of(found[1]).one.answer.headline)
    assert said.startswith("This Constructed Card A is slow in 9 of 9")


def test_a_file_of_the_user_s_that_cannot_be_read_is_named_and_left_out(tmp_path):
    build.write(tmp_path, checked_card("c", machine="a"))
    (tmp_path / "purchase.toml").write_text("[[offer]]\nprice = 0\n")
    (tmp_path / "results" / "claims").mkdir()
    (tmp_path / "results" / "claims" / "mine.toml").write_text("x = 1\n")
    evidence = evidence_in(tmp_path)
    assert evidence.left_out == ("results/claims/mine.toml", "purchase.toml")
    problems = evidence.results.problems[-2:]
    assert [problem.partition(":")[0] for problem in problems] == [*evidence.left_out]
    assert tuple(optional_problems(tmp_path)) == problems
    assert analyse(evidence, AnalysisRequest(datetime(2026, 2, 1, tzinfo=UTC))).costs is None


@pytest.mark.parametrize(
    ("session", "ratio"),
    [(ON_CPU, 1.623), ("20261123-7d4985", 1.158), ("20261121-cb7a72", 1.0), ("20261126-6f810e", None)],
)
def test_the_ratio_of_the_last_lines_is_the_first_of_the_headline(session: str, ratio: float | None):
    request = AnalysisRequest(datetime(2026, 12, 1, tzinfo=UTC), session, questions=plan_questions(ROOT))
    headline = page_of(analyse(evidence_here(), request)).one.answer.headline
    said = report.first_ratio(headline).value
    assert said == pytest.approx(ratio, abs=0.02)
    assert ratio is None or f"{said:.2f}" in render.answer_text(headline)


def test_a_run_that_no_report_follows_ends_as_a_report_of_its_session_does(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUDYNO_STATE", str(tmp_path))
    session = next(one for one in read_sessions(ROOT) if one.id == ON_CPU)
    found = [
        run._analyse_session(ROOT, SimpleNamespace(session=session), session.plan, run.RunOptions(answers=on))
        for on in (False, True)
    ]
    assert found[0] is None and found[1] is not None
    said = report.last_lines(found[1], page_of(found[1]).one.answer, {})
    assert said["session"] == session.id and said["low"] < said["ratio"] < said["high"]
    assert said["next"].startswith("invoke ")
