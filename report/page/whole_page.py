"""An analysis → one HTML file, its Markdown twin and its charts, written last."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from gzip import GzipFile
from io import BytesIO
from pathlib import Path
from tarfile import TarFile, TarInfo
from typing import Any

from harness.errors import as_typed
from harness.record.store import dump_json, record_name
from report.analysis import Analysis, AnalysisRequest, analyse
from report.page.compared_view import ComparedView, view_others
from report.page.one import cost, limits, sound
from report.page.one.page_one import page_one
from report.page.parts import published, ran, uncertainty, workloads
from report.page.render import render, render_gallery
from report.page.values import Page, PageOne, PagePart, Systems, systems_of
from report.trials.factors import question_of_session
from report.trials.table import write_csv

PARTS: tuple[tuple[str, str, Callable[[Analysis, Systems], Any]], ...] = (
    ("check", "The check", lambda analysis, _: sound.viewed(analysis) if analysis.checks else None),
    ("compared", "Compared by what else differs", view_others),
    ("published", "Published studies", published.view),
    ("workloads", "Workloads", workloads.view),
    ("limits", "What limits the speed", limits.viewed),
    ("costs", "Costs", lambda of, systems: cost.viewed(of, systems) if _asks_else(of) else None),
    ("expected", "What to expect", lambda analysis, systems: analysis.request.asked or None),
    ("acceptance", "Acceptance", lambda of, _: None if of.clause and of.clause.unproven else of.clause),
    ("uncertainty", "How sure", lambda analysis, _: uncertainty.view(analysis)),
    ("ran", "What ran", ran.view),
)
"""In their order: name, title, and view."""
MOST_INSIDE = 500_000
"""Bytes of files that a page takes along."""


@dataclass(frozen=True, slots=True)
class WrittenPage:
    """Where a page was written, and what is first on it."""

    html: Path
    markdown: Path
    one: PageOne


def write(analysis: Analysis, out: Path, *, gallery: tuple[PageOne, ...] = ()) -> WrittenPage:
    """Write index.html, report.md, a card to share, charts/*.svg and trials.csv into `out`.

    The table and the records of each session that is named are inside index.html, too, where they are few
    enough.
    """
    folder = out / "charts"
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(analysis.on_record, out / "trials.csv")
    sessions = analysis.request.named or {trial.session for trial in analysis.leading_trials}
    packed = [packed_records(analysis, session) for session in sessions]
    inside = _files_inside(("trials.csv", (out / "trials.csv").read_bytes()), *packed)
    page = replace(page_of(analysis), inside=inside, gallery=gallery)
    rendered = render(page)
    for old in filter(Path.is_file, folder.iterdir()):
        old.unlink()
    for name, content in rendered.files.items():
        (out / name).write_bytes(content)
    html, markdown = out / "index.html", out / "report.md"
    markdown.write_text(as_typed(rendered.markdown), encoding="utf-8")
    html.write_text(as_typed(rendered.html), encoding="utf-8")
    return WrittenPage(html, markdown, page.one)


def packed_records(analysis: Analysis, session: str) -> tuple[str, bytes]:
    """Return a session's records as an archive, the same bytes each time."""
    packed = BytesIO()
    with GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped, TarFile(fileobj=zipped, mode="w") as tar:
        for record in (trial.record for trial in analysis.on_record if trial.session == session):
            content = dump_json(record).encode()
            member = TarInfo(record_name(record.trial.id, record.attempt))
            member.size = len(content)
            tar.addfile(member, BytesIO(content))
    return f"{session}.tar.gz", packed.getvalue()


def _files_inside(*files: tuple[str, bytes]) -> tuple[tuple[str, str], ...]:
    """Return the files in base64, the smaller first, as many as are at most MOST_INSIDE bytes together."""
    taken, left = [], MOST_INSIDE
    for name, content in sorted(files, key=lambda file: len(file[1])):
        left -= len(content)
        if left >= 0:
            taken.append((name, b64encode(content).decode()))
    return tuple(taken)


def _parts(analysis: Analysis) -> Iterable[tuple[str, str, Callable[[Analysis, Systems], Any]]]:
    """A buyer's begin with what is expected, and end there where nothing of his or an offer was measured."""
    if analysis.question.kind != "cost" or not analysis.costs:
        return PARTS
    expected = [part for part in PARTS if part[0] == "expected"]
    measured = analysis.own or any(one.measured for one in analysis.costs.offers)
    return [*expected, *(part for part in PARTS if measured and part not in expected)]


def _asks_else(analysis: Analysis) -> bool:
    """Whether there are offers, and page one is about something else."""
    return analysis.costs is not None and analysis.question.kind != "cost"


def _without_answer(part: PagePart, answer: Any) -> PagePart | None:
    """Return a part without the comparison or the limits that page one shows; null where nothing is left."""
    if part.name == "limits" and answer == list(part.view.devices) and not part.view.waits:
        return part if any(device.rows for device in answer) else None
    if part.name != "compared" or not isinstance(answer, ComparedView):
        return part
    others = [each for each in part.view if each.comparison is not answer.comparison]
    return replace(part, view=others) if others else None


def page_of(analysis: Analysis) -> Page:
    """Page one, whose chips lead to what is there, and each part below it that has something to say."""
    systems = systems_of(analysis)
    one = page_one(analysis, systems)
    views = ((name, title, view(analysis, systems)) for name, title, view in _parts(analysis))
    made = (PagePart(name, title, view) for name, title, view in views if view is not None)
    parts = tuple(part for each in made if (part := _without_answer(each, one.answer.table)))
    there = {part.name for part in parts}
    chips = (chip if chip.anchor in there else replace(chip, anchor="") for chip in one.chips)
    return Page(analysis, systems, replace(one, chips=tuple(chips)), parts)


# The gallery: one answer for each device and question on record, real cards first


def gallery_sessions(analysis: Analysis) -> tuple[str, ...]:
    """Return for each device and question the session with the most trials that have a figure."""
    most: dict[tuple[bool, str, str], tuple[int, str]] = {}
    for session in analysis.evidence.results.sessions:
        trials = [one for one in analysis.on_record if one.session == session.id and not one.failure]
        if trials:
            asked = question_of_session(session, analysis.request.questions, trials)
            on_cpu, card = trials[0].environment.device == "cpu", trials[0].device_model
            place = (on_cpu, card, f"{asked.kind} {asked.by}")
            most[place] = max(most.get(place, (0, "")), (len(trials), session.id))
    return tuple(session for _, (_, session) in sorted(most.items()))


def _analysis_of_session(analysis: Analysis, session: str, url: str = "") -> Analysis:
    """Return the analysis that one session leads, on nobody's own machine."""
    asked = analysis.request
    request = AnalysisRequest(asked.now, session, questions=asked.questions, software=asked.software, url=url)
    return analyse(replace(analysis.evidence, purchase=None), request)


def gallery_pages(analysis: Analysis) -> tuple[PageOne, ...]:
    """Return page one of each session of the gallery."""
    of_each = (_analysis_of_session(analysis, session) for session in gallery_sessions(analysis))
    return tuple(page_one(each, systems_of(each)) for each in of_each)


def write_gallery(analysis: Analysis, out: Path, url: str) -> Path:
    """Write a page for each device and question on record, and one of their cards, which leads to them.

    `url` is where `out` will be published; empty where it is not known.
    """
    entries = []
    for session in gallery_sessions(analysis):
        of = _analysis_of_session(analysis, session, url and f"{url.rstrip('/')}/{session}")
        entries.append(write(of, out / session).one)
    index = out / "index.html"
    index.write_text(as_typed(render_gallery(entries)), encoding="utf-8")
    return index
