"""Where published studies contradict their own figures, held against docs/published-record.csv."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from itertools import permutations

from harness.record import Claim, Side
from tests.helpers import ROOT
from tests.helpers.here import load_claims

TABLE = ROOT / "docs" / "published-record.csv"
COLUMNS = ("claim", "published", "its_own_data", "times_apart")
TERMS = ("study", "workload", "protocol", "metric", "epochs")
ROUNDED = 1.025
MOST_PER_DEVICE = 1.1


def named(side: Side) -> dict[str, object]:
    return {key: value for key, value in side.model_dump(exclude={"options"}).items() if value} | side.options


def unlike(first: Side, second: Side) -> set[str]:
    return {key for key, _ in named(first).items() ^ named(second).items()}


def document(claim: Claim) -> str:
    return re.split(", row|, cell| and ", claim.source)[0]


def terms(claim: Claim) -> tuple[object, ...]:
    return tuple(getattr(claim, term) for term in TERMS)


def figure(claim: Claim) -> str:
    return f"{' '.join(map(str, named(claim.of).values()))}: {claim.value:,g} {claim.unit}"


def apart(said: Claim, one: Claim, two: Claim) -> float:
    """How many times a study's own two figures are from its sentence; 0 where they bear it out."""
    times = two.value / one.value / (said.value or 1.0)
    wrong = {"equal": max(times, 1 / times), "less": times, "greater": 1 / times}[said.relation]
    wrong = 1 / wrong if said.kind == "order" else wrong
    return wrong if wrong >= (1.0 if said.kind == "order" else ROUNDED) else 0.0


def contradictions(claims: Sequence[Claim]) -> Iterator[tuple[str, str, str, float]]:
    """Yield each sentence, the two figures on a card that deny it most, and each gain above its devices."""
    own = [claim for claim in claims if claim.kind in ("absolute", "quality") and claim.over is None]
    pairs = [
        (one, two)
        for one, two in permutations(own, 2)
        if one.study == two.study and document(one) == document(two)
    ]
    alike: dict[tuple[object, ...], list[tuple[Claim, Claim]]] = {}
    for pair in pairs:
        if terms(pair[0]) == terms(pair[1]):
            alike.setdefault(terms(pair[0]), []).append(pair)
    for said in (each for each in claims if each.words and each.over):
        if said.kind != "order" and (said.kind != "ratio" or said.value is None):
            continue
        free = unlike(said.of, said.over) | (set() if said.of.batch_size else {"batch_size"})
        worst = {}
        for one, two in alike.get(terms(said), ()):
            sides = ((said.of, one.of), (said.over, two.of))
            meant = all(named(asked).items() <= named(found).items() for asked, found in sides)
            if meant and unlike(one.of, two.of) <= free and (times := apart(said, one, two)):
                row = (said.id, said.words, f"{figure(one)}; {figure(two)}", times)
                worst[one.of.card] = max(row, worst.get(one.of.card, row), key=lambda each: each[-1])
        yield from worst.values()
    for one, two in pairs:
        scaled = one.metric == "throughput" and one.source == two.source
        if (
            scaled
            and unlike(one.of, two.of) == {"gpus"}
            and one.of.gpus == 1
            and (times := two.value / one.value / two.of.gpus) > MOST_PER_DEVICE
        ):
            yield two.id, figure(two), figure(one), times


def test_the_list_of_contradictions_is_that_of_the_claims():
    found = [(*row[:3], f"{row[3]:.2f}") for row in contradictions(load_claims(ROOT).claims)]
    if os.environ.get("GPUDYNO_ACCEPT"):
        with TABLE.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *found])
    with TABLE.open(encoding="utf-8", newline="") as file:
        assert [tuple(row) for row in csv.reader(file)] == [COLUMNS, *found]
