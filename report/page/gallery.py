"""What is on record: one answer for each device and question, real cards first."""

from __future__ import annotations

from dataclasses import replace

from report.analysis import Analysis, AnalysisRequest, analyse
from report.page.one.page_one import page_one
from report.page.values import SEVERAL, GalleryEntry, systems_of
from report.trials.asked import question_of_session


def gallery_sessions(analysis: Analysis) -> tuple[str, ...]:
    """Return for each device and question the session with the most trials that have a figure."""
    most: dict[tuple[bool, str, str], tuple[int, str]] = {}
    for session in analysis.evidence.results.sessions:
        trials = [one for one in analysis.on_record if one.session == session.id and not one.failure]
        if trials:
            asked = question_of_session(session, analysis.request.questions, trials)
            on_cpu, card = trials[0].environment.device == "cpu", trials[0].card.rpartition(SEVERAL)[2]
            place = (on_cpu, card, f"{asked.kind} {asked.by}")
            most[place] = max(most.get(place, (0, "")), (len(trials), session.id))
    return tuple(session for _, (_, session) in sorted(most.items()))


def analysis_of_session(analysis: Analysis, session: str, url: str = "") -> Analysis:
    """Return the analysis that one session leads, on nobody's own machine."""
    asked = analysis.request
    request = AnalysisRequest(asked.now, session, questions=asked.questions, sizes=asked.sizes, url=url)
    return analyse(replace(analysis.evidence, purchase=None), request)


def gallery_entry(analysis: Analysis) -> GalleryEntry:
    """Return the entry of the session that leads."""
    one = page_one(analysis, systems_of(analysis))
    return GalleryEntry(analysis.lead or "", one.about, one.answer.headline)
