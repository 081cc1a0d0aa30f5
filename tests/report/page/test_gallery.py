"""The gallery: one page for each device and question on record, real cards first."""

from __future__ import annotations

import re

from report.analysis import AnalysisRequest, analyse
from report.page import whole_page
from report.page.whole_page import gallery_sessions, write_gallery
from tests.helpers.cases import MEASURED
from tests.helpers.here import evidence_here

H200_CHECK, ON_CPU = "20261127-aee4d4", "20261126-6f810e"


def test_real_cards_come_first_and_a_device_and_question_once():
    analysis = analyse(evidence_here(), AnalysisRequest(MEASURED))
    chosen = gallery_sessions(analysis)
    devices = {one.session: one.environment.device for one in analysis.on_record}
    kinds = [devices[session] for session in chosen]
    assert kinds == sorted(kinds, key="cpu".__eq__) and kinds.count("cuda") == 4
    assert {H200_CHECK, ON_CPU} <= set(chosen) and len(set(chosen)) == len(chosen) < 20


def test_a_gallery_is_files_that_lead_to_each_other_and_name_their_picture_by_the_address(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(whole_page, "gallery_sessions", lambda _: (H200_CHECK, ON_CPU))
    index = write_gallery(analyse(evidence_here(), AnalysisRequest(MEASURED)), tmp_path, "https://x.example/")
    linked = re.findall(r'(?:href|src)="([^"]+)"', index.read_text())
    assert len(linked) == 4 and all((tmp_path / name).is_file() for name in linked)
    page = (tmp_path / H200_CHECK / "index.html").read_text()
    assert f'property="og:image" content="https://x.example/{H200_CHECK}/card.png"' in page
