"""What `report` adds to a page of this clone that the records alone do not say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commands.report import LONGER_ON_CPU, LONGER_ON_GPU, How, report_on
from harness.plan.plan import names
from tests.helpers import ROOT

QUICK, DESK = "20261121-38cb4c", "20261121-8a1add"


@pytest.mark.parametrize(("session", "leads_on"), [(QUICK, True), (DESK, False)])
def test_a_first_look_names_the_line_whose_figures_may_be_ranked(
    session: str, leads_on: bool, tmp_path: Path
):
    _, written = report_on(ROOT, tmp_path, How(session=session))
    text = written.markdown.read_text()
    assert (f"`{LONGER_ON_CPU}`" in text) == leads_on
    assert ("Runs long enough to be ranked" in text) == leads_on


@pytest.mark.parametrize("line", [LONGER_ON_CPU, LONGER_ON_GPU])
def test_the_plan_that_a_first_look_leads_to_is_there(line: str):
    (plan,) = re.findall(r"--plan (\S+)", line)
    assert plan in names(ROOT)
