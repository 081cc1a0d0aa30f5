"""Folders of records that tests look at: those of results/, of tests/records, and constructed sets.

Each is read once and analysed once, for all tests that look at it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from harness.record import LeftOut, Question, Record
from harness.record.store import read_results, write_session
from report.analysis import Analysis, AnalysisRequest, Evidence, analyse, evidence_in
from report.buying.purchase import parse_purchase
from report.trials import reading
from tests.helpers import ROOT, bundled, records_hostile
from tests.helpers import record_sets as sets
from tests.helpers import records_builder as build
from tests.helpers import records_watched as watch
from tests.helpers.purchase_builder import FILE
from tests.helpers.records_quick import quick_look

DAY = "2026-11-21"
MADE, MEASURED = datetime(2026, 2, 1, 12, tzinfo=UTC), datetime(2026, 11, 22, 12, tzinfo=UTC)
COMMITTED = {
    "desk": f"{DAY}/cpu-2-cores-20261121-8a1add",
    "desk-one-core": f"{DAY}/cpu-1-core-20261121-16668d",
    "quick": f"{DAY}/cpu-2-cores-20261121-38cb4c",
    "selfcheck": f"{DAY}/cpu-2-cores-20261121-cb7a72",
    "selfcheck-again": f"{DAY}/cpu-2-cores-20261121-e09923",
}
"""The sessions by name: what is measured later, or by whoever runs the tests, changes no golden file."""

DESKS = FILE.replace("Card A", "cpu-2-cores").replace("Card B", "cpu-1-core").replace("lstm", "LSTM")
DESKS = DESKS.replace("resnet50", "resnet18").replace("fp16-master", "fp32-ieee")
PAPER = FILE.replace("Card A", bundled.PAPER, 1).replace("Card B", "Constructed Card B", 1)
RENTED = """
[[offer]]
card = "Card C"
price_per_hour = { low = 0.5, best = 0.8, high = 0.9 }
date = 2026-02-20
source = "a third constructed offer"

[[offer]]
card = "Card Z"
price = 900
date = 2026-01-20
source = "an offer of what was never measured"
"""
THREE = FILE.replace("life_years", 'hours_on = "Card B"\nlife_years')
THREE = THREE.replace("[[work]]", f"{RENTED}\n[[work]]", 1).replace('"word_lm"', '"cifar_fastai"')
THREE = THREE.replace("lstm", "resnet18").replace("resnet50", "resnet18").replace("fp16-master", "amp-fp16")


@dataclass(frozen=True)
class Case:
    """One page: `make` writes its records below a folder. Of one that is not `held` parts are looked at."""

    name: str
    make: Callable[[Path], object]
    session: str | None = None
    now: datetime = MADE
    purchase: str | None = None
    question: Question | None = None
    held: bool = True


BY_MACHINE = Question(kind="faster", by="machine")


@cache
def evidence_of(make: Callable[[Path], object]) -> Evidence:
    """What it writes, read back; the summaries of constructed records are believed."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)  # thousands of files that need not last
        patch.setattr(reading, "differing_part", lambda record, anew: "")
        make(Path(folder))
        return evidence_in(Path(folder), purchase=False)


@cache
def analysis_of(case: Case) -> Analysis:
    purchase = parse_purchase(case.purchase) if case.purchase else None
    request = AnalysisRequest(case.now, session=case.session, question=case.question)
    return analyse(replace(evidence_of(case.make), purchase=purchase), request)


def published(root: Path, studies: str = "*") -> None:
    """The cards of this repository, and the published figures of its files that are called so."""
    folder = root / "results" / "claims"
    folder.mkdir(parents=True)
    for path in (ROOT / "results" / "claims").glob(f"{studies}.toml"):
        shutil.copy(path, folder)
    shutil.copy(ROOT / "results" / "cards.toml", root / "results")


def committed(root: Path) -> None:
    for folder in COMMITTED.values():
        shutil.copytree(ROOT / "results" / folder, root / "results" / folder)
    published(root)


def of(records: Callable[[], Iterable[Record]], studies: str | None = None) -> Callable[[Path], object]:
    """Writes the records and, where `studies` is given, the cards and what files of that name published."""

    def make(root: Path) -> None:
        build.write(root, records())
        if studies is not None:
            published(root, studies)

    return make


def odd(root: Path) -> None:
    """Figures that cannot be, a file that is cut short, and a session that left something out."""
    build.write(root, [*records_hostile.odd_numbers(), *sets.series()])
    next(iter(sorted(root.glob("results/*/*-aaaaaa/word_lm*.json")))).write_text('{"record": 1')
    (session,) = [one for one in read_results(root).sessions if one.id == sets.LEAD]
    left_out = (LeftOut(what="host mode", trials=12, reason="the budget of 8 h"),)
    notes = ("the budget of 8 h holds 20 of 32 trials",)
    write_session(root, session.model_copy(update={"left_out": left_out, "notes": notes}))


def _cases() -> Iterable[Case]:
    yield Case("results-desk", committed, COMMITTED["desk"][-15:], MEASURED)
    proven = Case("two-cards-proven", lambda root: bundled.write(root, bundled.two_cards()), bundled.LEAD)
    yield replace(proven, held=False)
    yield replace(proven, name="two-cards-proven-priced", purchase=PAPER)
    watched = of(lambda: watch.comparison(3, repeats=2, models=1))
    yield Case("three-cards-watched-priced", watched, sets.LEAD, purchase=THREE)
    yield Case("generated-data", of(quick_look), held=False)
    yield Case("one-record", of(lambda: quick_look()[:1]), held=False)
    yield Case("profiles-and-modes", of(sets.profiles_and_modes), sets.LEAD, held=False)
    yield Case("nothing", lambda root: None)
    yield Case("published-alone", lambda root: published(root, "s001"), held=False)
    yield Case("published-judged", of(sets.published, "s004"), sets.LEAD)
    yield Case("published-products", of(sets.published_products, "s001"), sets.LEAD)
    yield Case("odd", odd, sets.LEAD)
    yield Case("ceilings", of(sets.ceilings, "none"))
    yield Case("blocks", of(sets.blocks), sets.OTHER)
    for made in (sets.units, sets.unlike, sets.watched, sets.sharing):
        yield Case(made.__name__, of(made), sets.LEAD)
    yield Case("doubtful", of(sets.doubtful, "none"), sets.LEAD, held=False)
    for made in (sets.convergence, sets.sweep):
        yield Case(made.__name__, of(made), sets.LEAD, held=False)


CASES = {case.name: case for case in _cases()}
