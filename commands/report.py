"""The page of a clone or of bundles, and the line that it leads to."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from commands.expect import expect_cards, expected_speeds, paper_speeds, say_expectation
from commands.prospects import find_prospects
from commands.recipient import bundle_files, judged, together
from commands.terminal import Screen, account_lines, page_folder, relative_path
from harness.bundle.judgement import Demand
from harness.engine.local import LOG, log_tail
from harness.files import name_in_errors
from harness.machine.fingerprint import machine_id, user_state_folder
from harness.plan.plan_file import plan_questions
from harness.record import Question, store
from harness.run.jobs import submission
from harness.settings import Settings
from report import text
from report.analysis import Analysis, AnalysisRequest, analyse, evidence_in
from report.expected.relative import CardsOnPaper
from report.expected.software_effect import read_software_effect
from report.expected.specs import FOLDER
from report.page import render
from report.page.pdf import write as write_pdf
from report.page.values import AnswerPage, Quantity, Sentence
from report.page.whole_page import WrittenPage, gallery_pages, write, write_gallery

LONGER = {"cuda": "resnet18", "rocm": "resnet18"}
"""By the kind of device the plan of longer runs of the precisions that the short plan compares."""
LOG_LINES, LOG_LETTERS = 12, 200


def _longer_line(analysis: Analysis) -> str:
    """Return the line that the short plan leads to on its one kind of device; empty for another plan."""
    session, devices = analysis.leading_session, {trial.environment.device for trial in analysis.own}
    plan = LONGER.get(devices.pop()) if len(devices) == 1 else None
    asked = analysis.question.by == "precision"
    short = asked and session is not None and session.plan == Settings().plan
    return f"invoke build --plan {plan} run --blocks 3 report" if short and plan else ""


def _log_ends(root: Path, analysis: Analysis) -> dict[str, tuple[str, ...]]:
    """Return the last lines of each failed trial's log that is still here, by the record's path."""
    ends = {}
    for stored in analysis.evidence.results.records:
        record = stored.record
        if record.failure is None:
            continue
        trial, attempt = record.trial.id, record.attempt
        places = (
            store.work_folder(root, record.session, trial, attempt),
            submission.attempt_folder(submission.submission_folder(root, record.session), trial, attempt),
        )
        words = "\n".join(log_tail(place / LOG) for place in places).splitlines()
        lines = [text.clean(line, LOG_LETTERS) for line in words if line.strip()]
        if lines:
            ends[stored.path] = tuple(lines[-LOG_LINES:])
    return ends


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The switches of `report`."""

    session: tuple[str, ...] = ()
    """The first leads."""
    mine: tuple[str, ...] = ()
    """Sessions to count as this machine's from now on."""
    question: Question | None = None
    bundle: tuple[str | Path, ...] = ()
    """Files, folders of them, and patterns."""
    expect: str = ""
    """A card's name."""
    note: str = ""
    """For the page alone."""
    pdf: bool = False
    json: bool = False
    gallery: str = ""
    """A folder for the pages of all that is on record, in place of one page."""
    url: str = ""
    """Where the page or the gallery will be published."""
    asked: Demand = field(default_factory=Demand)
    verifies: bool = False
    """Whether a bundle is held to today's layout and to its own content: no older one, and no price."""


def make_report(root: Path, how: ReportOptions) -> None:
    """Write the page, and print in a few lines what it holds, where it is, and what to do next.

    Where nothing is asked but what to expect of a card, the lines alone answer.
    """
    if how.expect and how == ReportOptions(expect=how.expect) and say_expectation(root, how.expect):
        return
    for session in how.mine:
        store.keep_as_own(root, session)
    if how.gallery:
        analysis = analyse_clone(root, questions=plan_questions(root), software=read_software_effect(root))
        print(f"page: {relative_path(write_gallery(analysis, Path(how.gallery), how.url))}")
        return
    out = page_folder(root)
    analysis, written = write_report(root, out, how)
    screen = Screen()
    for line in account_lines(analysis.accounts) if how.bundle else ():
        screen.say(f"  {line}")
    pdf = write_pdf(written.html, out / "report.pdf", root=os.geteuid() == 0) if how.pdf else None
    places = {"page": relative_path(written.html), "pdf": relative_path(pdf) if pdf else None}
    screen.say_found(last_lines(analysis, written.one.answer, places), as_json=how.json)


def last_lines(
    analysis: Analysis, answer: AnswerPage, places: Mapping[str, Path | None]
) -> dict[str, object]:
    """Return what a verb ends with: the answer, its ratio, where all of it is, and what to do next."""
    times = first_ratio(answer.headline)
    return {
        "answer": render.answer_text(answer.headline),
        "ratio": times.value,
        "low": times.low,
        "high": times.high,
        "session": analysis.lead if not analysis.of_others else None,
        **places,
        "left out": ", ".join(analysis.evidence.left_out) or None,
        "next": " && ".join(answer.following.data["commands"]) or "invoke claims --here",
    }


def first_ratio(headline: Sentence) -> Quantity:
    """Return the ratio that a headline says first, of no value where it says none."""
    if headline.state not in ("pair", "many", "same"):
        return Quantity(None, "ratio")
    said = headline.data["decided"] or headline.data["open"]
    return cast(Quantity, said[0].times)


def write_report(root: Path, out: Path, how: ReportOptions) -> tuple[Analysis, WrittenPage]:
    """Write the page of this clone's records, or of several bundles' with equal work side by side."""
    analysis = analyse_records(root, out, how)
    foreign = analysis.of_others and analysis.question.kind != "cost"
    gallery = gallery_pages(analysis) if foreign else ()
    with name_in_errors(out):
        written = write(analysis, out, gallery=gallery)
    for warning in analysis.evidence.results.problems:
        print(f"warning: {warning}", file=sys.stderr)
    return analysis, written


def analyse_records(root: Path, out: Path, how: ReportOptions) -> Analysis:
    """Return what this clone's records say, or several bundles', for a page in the folder `out`."""
    bundles = [judged(root, path, how.asked, older=not how.verifies) for path in bundle_files(how.bundle)]
    named = how.session or tuple(dict.fromkeys(bundle.stated.session for bundle in bundles))
    request = AnalysisRequest(
        datetime.now(UTC),
        next(iter(named), None),
        question=how.question,
        note=how.note,
        questions=plan_questions(root),
        url=how.url.rstrip("/"),
        clone=quote(os.path.relpath(root, out)),
        named=named if len(named) > 1 else (),
        bundles=tuple((bundle.name, bundle.sha256) for bundle in bundles),
    )
    if bundles:
        analysis = analyse(evidence_in(root, together(bundles), purchase=not how.verifies), request)
    else:
        request = replace(request, **own_fields(root))
        analysis = analyse(evidence_in(root), request)
        request = replace(request, prospects=find_prospects(root, analysis), logs=_log_ends(root, analysis))
    request = replace(
        request, longer=_longer_line(analysis), **_expectation_fields(root, analysis, how.expect)
    )
    tables = paper_speeds(root, analysis) if (root / FOLDER).is_dir() else CardsOnPaper()
    return analysis.with_request(request, tables)


def analyse_clone(root: Path, session: str | None = None, **asked: Any) -> Analysis:
    """Return what this clone's records say, led by a session; `asked` are more fields of the request."""
    return analyse(evidence_in(root, purchase=False), AnalysisRequest(datetime.now(UTC), session, **asked))


def own_fields(root: Path) -> dict[str, Any]:
    """Return the fields of a request that say what of this clone is its user's own."""
    return {
        "machine": machine_id(user_state_folder()),
        "own": store.own_sessions(root),
        "questions": plan_questions(root),
    }


def _expectation_fields(root: Path, analysis: Analysis, card: str) -> dict[str, Any]:
    """Return the parts of a request that the tables of this clone answer; none where it has no tables."""
    if not card and not (root / FOLDER).is_dir():
        return {}
    return {
        "asked": expect_cards(root, analysis, card),
        "should": expected_speeds(root, analysis),
        "software": read_software_effect(root),
    }
