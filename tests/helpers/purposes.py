"""A page for each purpose, of constructed records and of committed ones, each made once."""

from __future__ import annotations

import random
import shutil
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.record import Against, Question, Record, store
from report.analysis import Analysis
from report.page.values import Page
from report.page.whole_page import WrittenPage, page_of, write
from tests.helpers import ROOT, cases, records_fleet
from tests.helpers import records_builder as build
from tests.helpers.bundled import PAPER
from tests.helpers.cases import BY_MACHINE, CASES, Case, published
from tests.helpers.records_card import CHECKED, checked_card, three_others


@dataclass(frozen=True)
class Purpose:
    """What page one is about, and of which records."""

    asked: str
    case: Case


def _all_failed(root: Path) -> None:
    tried = build.two_cards()[0]
    failure = build.out_of_memory()
    failed = build.record(tried.trial, None, on=tried.machine, session=tried.session, failure=failure)
    build.write(root, [failed])
    published(root, "s004")


def machines(count: int, verdict: str = "valid") -> Case:
    fleet = cases.of(lambda: records_fleet.fleet(count, cards_per_machine=1, spread=0.2, verdict=verdict))
    return Case(f"{count}-machines-{verdict}", fleet)


def _two_stacks(root: Path) -> None:
    """torch 2.12.1 beside the image's 2.13.0: 4 % slower now for one work, equal for another, one failed."""
    noise = random.Random(4)
    on = build.machine("Constructed Card A", label="two-stacks", digits="a")
    records, order = [], 0
    for repeat in range(1, 9):
        hour = noise.gauss(1, 0.03)
        for kind, slower in ((build.CIFAR, 1.04), (build.LM, 1.0)):
            for lock, torch, seconds in (("a", "2.13.0", slower), ("b", "2.12.1", 1.0)):
                asked = build.trial(kind, "fp32-ieee", repeat, lock_sha256=lock * 64)
                step = 0.02 * hour * seconds * noise.gauss(1, 0.005)
                found = build.measurement(kind, asked, step, card="Constructed Card A", seed=order)
                found = build.changed(found, packages={"torch": torch, "numpy": "2.4.0"})
                found = build.changed(found, versions={**found.versions, "torch": torch})
                within, order = build.environment(lock_sha256=lock * 64), order + 1
                records.append(build.record(asked, found, on=on, within=within, order=order))
    tried = build.trial(build.LM, "amp-bf16", 1, lock_sha256="b" * 64)
    failure = build.out_of_memory()
    records.append(build.record(tried, None, on=on, order=order + 1, failure=failure))
    build.write(root, records)
    (session,) = store.read_sessions(root)
    against = Against(asked=("torch==2.12.1",), environment="cuda", lock_sha256="b" * 64)
    store.write_session(root, session.model_copy(update={"against": against}))


def _check(name: str, *, parts: int | None = None, **values: Any) -> Purpose:
    """A card's check beside three others of its model."""

    def records() -> list[Record]:
        return [*checked_card(**values)[:parts], *three_others()]

    return Purpose("sound", Case(f"check-{name}", cases.of(records), session=CHECKED))


def _check_published(root: Path) -> None:
    """A card that no record is of, with the published figures of the clone, beside one of another model."""
    build.write(root, [*checked_card(card=PAPER), *checked_card("d", machine="d", card="NVIDIA H200")])
    shutil.copytree(ROOT / "results" / "tables", root / "results" / "tables")
    shutil.copy(ROOT / "results" / "cards.toml", root / "results")


def _by_machine(name: str) -> Purpose:
    return Purpose("faster", replace(CASES[name], question=BY_MACHINE))


PURPOSES = {
    "buyer": Purpose("cost", CASES["three-cards-watched-priced"]),
    "buyer-without-watts": Purpose("cost", CASES["two-cards-proven-priced"]),
    "pair": _by_machine("two-cards-proven"),
    "one-machine": Purpose("faster", CASES["profiles-and-modes"]),
    "first-look": Purpose("faster", CASES["generated-data"]),
    "twenty-machines": Purpose("faster", replace(machines(20), question=BY_MACHINE)),
    "researcher": Purpose("holds", replace(CASES["published-judged"], question=Question(kind="holds"))),
    "card-sound": _check("sound"),
    "card-slow": _check("slow", speeds={"copy_gb_per_second": 0.7, "gemm_bf16_tflops": 0.8}),
    "card-long": _check("long", parts=2),
    "card-flips": _check("flips", at=lambda second: 0.8 if second // 15 % 2 else 1.0),
    "card-differs": _check("differs", differing=3),
    "card-unknown": _check("unknown", card="Constructed Card B"),
    "card-published": Purpose("sound", Case("check-published", _check_published, session=CHECKED)),
    "two-stacks": Purpose("faster", Case("two-stacks", _two_stacks)),
    "failed": Purpose("failed", Case("failed", _all_failed)),
    "nothing": Purpose("nothing", CASES["published-alone"]),
    "committed": _by_machine("results-desk"),
}


def analysis_of(name: str) -> Analysis:
    return cases.analysis_of(PURPOSES[name].case)


@cache
def page(name: str) -> Page:
    """The page of a purpose as data."""
    return page_of(analysis_of(name))


@cache
def written(name: str) -> WrittenPage:
    """The page of a purpose as files."""
    return write(analysis_of(name), Path(tempfile.mkdtemp()))
