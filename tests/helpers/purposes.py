"""A page for each purpose, of constructed records and of committed ones, each made once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path

import pytest

from report.analysis import Analysis, Question, analyse, evidence_in
from report.buying.purchase import parse_purchase
from report.page.build import WrittenPage, page_of, write
from report.page.page import Page
from report.trials import reading
from tests.helpers import records_builder as build
from tests.helpers import records_fleet
from tests.helpers.cases import CASES, MADE, published


@dataclass(frozen=True)
class Purpose:
    """Records below a folder, and what page one of them is about."""

    subject: str
    make: Callable[[Path], object]
    session: str | None = None
    now: datetime = MADE
    purchase: str | None = None


def _case(subject: str, name: str) -> Purpose:
    case = CASES[name]
    return Purpose(subject, case.make, case.session, case.now, case.purchase)


def _all_failed(root: Path) -> None:
    tried = build.two_cards()[0]
    failure = build.out_of_memory()
    failed = build.record(tried.trial, None, on=tried.machine, session=tried.session, failure=failure)
    build.write(root, [failed])
    published(root, "s004")


def _machines(count: int) -> Callable[[Path], object]:
    return lambda root: build.write(root, records_fleet.fleet(count, cards_per_machine=1, spread=0.2))


PURPOSES = {
    "buyer": _case("costs", "three-cards-watched-priced"),
    "buyer-without-watts": _case("costs", "two-cards-proven-priced"),
    "pair": _case("pair", "two-cards-proven"),
    "one-machine": _case("self", "profiles-and-modes"),
    "first-look": _case("first-look", "generated-data"),
    "twenty-machines": Purpose("class", _machines(20)),
    "forty-machines": Purpose("class", _machines(40)),
    "researcher": _case("verdicts", "published-judged"),
    "failed": Purpose("failed", _all_failed),
    "nothing": _case("nothing", "published-alone"),
    "committed": _case("pair", "results-desk"),
}


@cache
def analysis_of(name: str) -> Analysis:
    """The analysis of a purpose's records, whose constructed summaries are believed."""
    purpose = PURPOSES[name]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "other_summary", lambda record, anew: "")
        root = Path(folder)
        purpose.make(root)
        evidence = evidence_in(root, purchase=False)
    if purpose.purchase:
        evidence = replace(evidence, purchase=parse_purchase(purpose.purchase))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "other_summary", lambda record, anew: "")
        return analyse(evidence, Question(purpose.now, session=purpose.session))


@cache
def page(name: str) -> Page:
    """The page of a purpose as data."""
    return page_of(analysis_of(name))


@cache
def written(name: str) -> WrittenPage:
    """The page of a purpose as files."""
    return write(analysis_of(name), Path(tempfile.mkdtemp(prefix=f"page-{name}-")))
