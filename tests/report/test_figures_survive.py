"""Whatever the code is called and however it is cut, a reader finds the same figures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from report.page.remake import differences
from tests.helpers.cases import CASES, Case, analysis_of
from tests.helpers.checks import GOLDEN
from tests.helpers.figures import figures_of
from tests.helpers.plain import laid_out, packed, unpacked

MOST_SHOWN = 20
AS_IN = "as_in"
"""Keys whose values are the same as in another case, which alone holds them."""


def path_of(case: str) -> Path:
    return GOLDEN / "figures" / f"{case}.json"


def held(case: str) -> dict[str, Any]:
    """The figures of a golden file, those that stand in another one among them."""
    found: dict[str, Any] = unpacked(json.loads(path_of(case).read_text(encoding="utf-8")))
    for other, keys in found.pop(AS_IN, {}).items():
        beside = held(other)
        found |= {key: beside[key] for key in keys}
    return found


def accept(case: Case, now: dict[str, Any]) -> None:
    shared = held(case.alike) if case.alike else {}
    same = [key for key, value in now.items() if key in shared and shared[key] == value]
    own = {key: value for key, value in now.items() if key not in same}
    text = laid_out(packed({AS_IN: {case.alike: same}, **own} if same else own))
    path_of(case.name).parent.mkdir(exist_ok=True)
    path_of(case.name).write_text(f"{text}\n", encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_the_figures_of_these_records_are_those_that_were_held(name: str):
    found = figures_of(analysis_of(CASES[name]))
    if os.environ.get("GPUDYNO_ACCEPT") == "1":
        accept(CASES[name], found)
    apart = list(differences(held(name), found))
    if apart:
        shown = "\n".join(apart[:MOST_SHOWN])
        pytest.fail(
            f"{len(apart)} figures differ; GPUDYNO_ACCEPT=1 takes the new ones\n{shown}", pytrace=False
        )


def test_every_golden_file_has_its_case():
    assert {path.stem for path in (GOLDEN / "figures").glob("*.json")} == set(CASES)
