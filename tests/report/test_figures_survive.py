"""Whatever the code is called and however it is cut, a reader finds the same figures."""

from __future__ import annotations

import json
import os

import pytest

from report.page.remake import differences
from tests.helpers.cases import CASES, analysis_of
from tests.helpers.checks import GOLDEN
from tests.helpers.figures import figures_of
from tests.helpers.plain import laid_out

MOST_SHOWN = 20
HELD = [name for name, case in CASES.items() if case.held]


@pytest.mark.parametrize("name", HELD)
def test_the_figures_of_these_records_are_those_that_were_held(name: str):
    path, found = GOLDEN / "figures" / f"{name}.json", figures_of(analysis_of(CASES[name]))
    if os.environ.get("GPUDYNO_ACCEPT") == "1":
        path.write_text(f"{laid_out(found)}\n", encoding="utf-8")
    apart = list(differences(json.loads(path.read_text(encoding="utf-8")), found))
    if apart:
        shown = "\n".join(apart[:MOST_SHOWN])
        pytest.fail(
            f"{len(apart)} figures differ; GPUDYNO_ACCEPT=1 takes the new ones\n{shown}", pytrace=False
        )


def test_every_golden_file_has_its_case():
    assert {path.stem for path in (GOLDEN / "figures").glob("*.json")} == set(HELD)
