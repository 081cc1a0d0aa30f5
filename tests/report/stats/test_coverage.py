"""How often the product's rules are right, held against docs/coverage.csv.

A case draws pages by its own seed and counts those on which an event came. The long test draws a part of
them; GPUDYNO_ACCEPT=1 draws all and writes the rows of a group. A new case is one more `Case` of its group.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator

import numpy as np
import pytest

from harness.summary.steady_state import steady_state
from report.compare.card_units import UnitSpread
from report.stats.contrast import (
    HOUR_SIDE_BY_SIDE,
    Assumption,
    assumed_hours,
    contrast_interval,
    order_shown,
)
from report.stats.equivalence import EQUIVALENCE_LEVEL, bound_holds, equivalence
from report.stats.intervals import (
    BETWEEN_SESSIONS,
    BLOCKS_NEEDED,
    LEVEL,
    blocks_interval,
    rare_runs_missed,
)
from tests.helpers import ROOT
from tests.helpers import step_series as shapes
from tests.helpers.bent_figures import CASES as BENT
from tests.helpers.contrast_cases import CASES as CONTRASTS
from tests.helpers.coverage_case import SLOW_DRAWS, Case, Share, Target
from tests.helpers.drawn_runs import (
    BLOCK_CV,
    CV,
    contaminated,
    exponential,
    in_blocks,
    lognormal,
    runs,
    student,
)
from tests.helpers.sliced_runs import CASES as SLICED
from tests.helpers.step_series import drawn, until_held

TABLE = ROOT / "docs" / "coverage.csv"
PART = 10
FEW = 5
"""Fewer runs a side are a quick look."""
MARGIN, RATIO = 0.05, 1.5
EDGE = 1 + MARGIN


WELL, FAIR, SELDOM = Target("94 to 97.5", 94, 97.5), Target("≥ 92", 92), Target("≤ 3", 0, 3)
MOSTLY, DELIVERED = Target("≥ 97", 97), Target("≥ 95", 95)
WRONG, NONE, ENOUGH = Target("≤ 5", 0, 5), Target("none"), Target("≥ 80", 80)


def percent(share):
    return f"{share * 100:.0f} %"


def page(interval, truth=1.0, *, doubt=False):
    """Whether an interval holds the truth, and any doubt of its own or the page's; none at all never errs."""
    if interval is None:
        return True, True
    doubt = doubt or bool(interval.notes) or interval.hour_assumed > 0
    return interval.includes(truth), doubt


def contrast(of, over, *, paired=False, level=LEVEL):
    """The first over the second, beside a publication or an order."""
    hours = assumed_hours(of, over, paired=paired)
    return contrast_interval(of, over, paired=paired, assumed=hours, level=level)


def held(name, sides, *, target=FAIR, paired=False, doubt=False):
    """A ratio of two sides, whose truth is 1."""
    return Case(name, target, lambda rng: page(contrast(*sides(rng), paired=paired), doubt=doubt))


def two(name, of, over, *, target=FAIR, sizes=(3, 5, 10), rare=False):
    """A ratio of two sides whose runs are replicates; the page calls a quick look so."""
    for n in sizes:
        doubt = n < FEW or (rare and rare_runs_missed(n) is not None)
        sides = lambda rng, n=n: (runs(of(rng, n)), runs(over(rng, n)))  # noqa: E731
        yield held(f"{name}, n = {n}", sides, target=target, doubt=doubt)


def blocks(name, of, over=(), *, paired=False, cv=BLOCK_CV):
    """Two equal sides in blocks of time; `paired` ones share what a block does."""

    def sides(rng):
        shared = rng.normal(0, cv, len(of)) if paired else None
        return [
            in_blocks(rng, own, block_cv=cv, effects=shared[: len(own)] if paired else None)
            for own in (of, over or of)
        ]

    return held(name, sides, paired=paired, doubt=paired and len(of) < BLOCKS_NEEDED)


def intervals() -> Iterator[Case]:
    for times in (1, 2, 5):
        yield from two(f"log-normal, SD ratio {times}", lognormal(), lognormal(times * CV), target=WELL)
    yield from two("exponential skew in both arms", exponential, exponential)
    yield from two("exponential skew in one arm", exponential, lognormal())
    yield from two("skew in one arm, the other 10 times quieter", exponential, lognormal(CV / 10))
    yield from two("tails of Student's t with 3 degrees in both arms", student, student)
    yield from two("tails of Student's t with 3 degrees in one arm", student, lognormal())
    for many, slow in ((10, 0.05), (10, 0.1), (10, 0.2), (10, 0.5), (50, 0.5)):
        name, of = f"1 run in {many} of one arm {percent(slow)} slow", contaminated(1 / many, slow)
        yield from two(name, of, lognormal(), sizes=(5, 10), rare=True)
    yield blocks("two machines, 1 block of 10, block CV 1 %", (10,))
    yield blocks("two machines, 2 blocks of 5", (5, 5))
    yield blocks("two machines, 3 blocks of 4", (4, 4, 4))
    yield blocks("two machines, 5 blocks of 2", (2,) * 5)
    yield blocks("two machines, 3 blocks of 8, 2 and 2", (8, 2, 2))
    yield blocks("two machines, 3 blocks of 4 against 2 of 5", (4, 4, 4), (5, 5))
    for name, lengths in (("1 block of 5", (5,)), ("3 blocks of 4", (4, 4, 4))):
        for cv in (0.02, 0.03):
            yield blocks(f"two machines, {name}, block CV {percent(cv)}", lengths, cv=cv)
    yield blocks("one machine, 1 block of 5", (5,), paired=True)
    yield blocks("one machine, 3 blocks of 4", (4, 4, 4), paired=True)
    yield blocks("one machine, 3 blocks of 8, 2 and 2", (8, 2, 2), paired=True)
    yield blocks("one machine, 5 blocks against the first 3", (2,) * 5, (2,) * 3, paired=True)


def said(name, words, judged, target=WRONG):
    """How often each of the words is the verdict; one that assumes how blocks differ has a caveat."""
    for word, state in words.items():

        def draw(rng, state=state):
            verdict = judged(rng)
            return verdict.state == state, verdict.hour_assumed > 0

        yield Case(f"{name}: '{word}'", target, draw)


def order(lengths, block_cv=BLOCK_CV):
    def judged(rng):
        sides = [in_blocks(rng, lengths, block_cv=block_cv) for _ in range(2)]
        return bound_holds(contrast(*sides, level=EQUIVALENCE_LEVEL), "less")

    return judged


def ratio(lengths, truth, *, paired=False):
    """A ratio published as 1, which is `truth`."""

    def judged(rng):
        effects = rng.normal(0, 0.01, len(lengths)) if paired else None
        sides = [in_blocks(rng, lengths, effects=effects, times=times) for times in (truth, 1)]
        found = contrast(*sides, paired=paired, level=EQUIVALENCE_LEVEL)
        return equivalence(found, 1.0, MARGIN)

    return judged


def absolute(lengths):
    """A figure published as 1, which is at its margin."""

    def judged(rng):
        side = in_blocks(rng, lengths, times=EDGE)
        found = blocks_interval(side, level=EQUIVALENCE_LEVEL, assumed=BETWEEN_SESSIONS)
        return equivalence(found, 1.0, MARGIN)

    return judged


def verdicts() -> Iterator[Case]:
    here = {"holds here": "holds", "does not hold here": "fails"}
    figure = {"reproduced": "holds", "not reproduced": "fails"}
    one, three, unequal = (
        ("1 block of 5", (5,)),
        ("3 blocks of 4", (4,) * 3),
        ("3 blocks of 8, 2 and 2", (8, 2, 2)),
    )
    for name, lengths in (one, three):
        for cv in (0.02, 0.03):
            yield from said(f"order of equal cards, {name}, block CV {percent(cv)}", here, order(lengths, cv))
    for name, lengths in (three, one, unequal):
        yield from said(f"order of equal cards, {name}", here, order(lengths))
        for where, paired in (("two machines", False), ("one machine", True)):
            judged = ratio(lengths, EDGE, paired=paired)
            yield from said(f"a ratio at its margin, {where}, {name}", here, judged)
        yield from said(f"a figure at its margin, {name}", figure, absolute(lengths))
    for where, paired in (("one machine", True), ("two machines", False)):
        judged = ratio((4, 4, 4), 1, paired=paired)
        yield from said(
            f"a ratio as published, {where}, 3 blocks of 4", {"holds here": "holds"}, judged, DELIVERED
        )


def one_unit_each(cv):
    """The page's range from one unit of each of two models; any other two units are delivered."""

    def draw(rng):
        measured, delivered = (lognormal(cv)(rng, 2) for _ in range(2))
        levels = zip((1.0, RATIO), measured, strict=True)
        first, second = (in_blocks(rng, (4, 4, 4), times=level * speed) for level, speed in levels)
        found = contrast_interval(second, first, paired=False, assumed=[UnitSpread().assumption] * 2)
        return found.includes(float(RATIO * delivered[0] / delivered[1])), True

    return Case(f"range of any two units, one measured each, unit CV {100 * cv:.2g} %", DELIVERED, draw)


def purchase() -> Iterator[Case]:
    yield from (one_unit_each(cv) for cv in (0.015, 0.02, 0.03))
    yield one_unit_each(0.04)


TOGGLING = ("clocks that toggle by 3 %, 5 s each", shapes.switching(0.03, (5, 5)))
BURSTS = ("1 step in 200 ten times as long", shapes.bursts(0.005, 10))
HEAVY = ("tails of Student's t with 3 degrees", shapes.heavy())
NORMAL = ("normal steps, CV 1 %", shapes.normal())


def called(name, shape, seconds, kinds, target, most=0):
    """How often step times are of these kinds, in up to `most` seconds; unproven ones are never ranked."""

    def draw(rng):
        series = until_held(rng, shape, seconds, most) if most else drawn(rng, shape, seconds)
        kind = steady_state(series).kind
        return kind in kinds, kind == "unproven"

    window, words = f"{seconds} to {most} s" if most else f"{seconds} s", "' or '".join(kinds)
    return Case(f"{name}, {window}: '{words}'", target, draw, SLOW_DRAWS)


def steady() -> Iterator[Case]:
    for scenario in (
        TOGGLING,
        ("clocks that toggle by 1 %, 5 s each", shapes.switching(0.01, (5, 5))),
        ("clocks that toggle by 3 %, 15 s each", shapes.switching(0.03, (15, 15))),
        ("a neighbour, 2 s on and 20 s off, × 1.5", shapes.switching(0.5, (20, 2))),
        ("1/f noise, CV 2 %", shapes.pink(0.02)),
    ):
        yield from (called(*scenario, seconds, ("none",), SELDOM) for seconds in (75, 300))
        yield called(*scenario, 75, ("unproven", "none"), SELDOM, 300)
    related, stationary = ("AR(0.9) steps, CV 2 %", shapes.correlated(0.9, 0.02)), ("flat", "recurrent")
    for scenario, seconds in ((related, 75), (related, 300), (NORMAL, 75), (HEAVY, 75), (BURSTS, 75)):
        yield called(*scenario, seconds, stationary, MOSTLY)
    yield from (called("a ramp of 3 %", shapes.ramp(0.03), long, ("slowdown",), MOSTLY) for long in (75, 300))
    half, fifth, late = (shapes.stepped(*step) for step in ((0.05, 0.5), (-0.02, 0.2), (-0.1, 0.95)))
    yield called("5 % slower from half of the window on", half, 300, ("slowdown",), MOSTLY)
    yield called("2 % faster from a fifth of the window on", fifth, 120, ("warm-up",), MOSTLY)
    yield called("10 % faster shortly before the end", late, 300, (*stationary, "warm-up"), SELDOM)


def two_stacks(pairs, slower, word, target):
    """An evening of neighbours: what the hour does to both is shared, and each run has its own CV of 1 %."""

    def draw(rng):
        hours = np.exp(rng.normal(0, 0.03, pairs))
        first, second = (hours * np.exp(rng.normal(0, 0.01, pairs)) for _ in range(2))
        of, over = (runs(values, (1,) * pairs) for values in (first * (1 - slower), second))
        ratio = contrast_interval(of, over, paired=True, assumed=[Assumption("hour", HOUR_SIDE_BY_SIDE)])
        order = order_shown(ratio, pairs)
        return order == word if slower else order in ("faster", "slower"), False

    name = f"two stacks, {pairs} pairs, CV 1 %, "
    return Case(
        name + (f"a loss of {percent(slower)}: '{word}'" if slower else "equal: called different"),
        target,
        draw,
    )


def stacks() -> Iterator[Case]:
    yield two_stacks(10, 0.02, "slower", ENOUGH)
    yield two_stacks(5, 0.03, "slower", ENOUGH)
    yield from (two_stacks(pairs, 0.0, "equal", WRONG) for pairs in (3, 5, 10))


GROUPS: dict[str, list[Case]] = {
    "A contrast": CONTRASTS,
    "Intervals hold the truth": [*intervals()],
    "A verdict": [*verdicts()],
    "A buyer's range holds the delivered pair": [*purchase()],
    "Two stacks, pair by pair": [*stacks()],
    "Two programs that take turns": SLICED,
    "The kind of a trial's step times": [*steady()],
    "No end, loss or neighbour bends a figure": BENT,
}


def rows() -> list[list[str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def write(group: str) -> None:
    head, *old = rows()
    made = [(group, *case.row()) for case in GROUPS[group]]
    kept = [
        row for name in GROUPS for row in (made if name == group else [row for row in old if row[0] == name])
    ]
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *kept])


@pytest.mark.whole
@pytest.mark.parametrize("group", GROUPS)
def test_the_committed_shares_are_those_of_today_s_rules_and_each_miss_has_its_caveat(group):
    if os.environ.get("GPUDYNO_ACCEPT") == "1":
        write(group)
    committed = {row[1]: row[2:] for row in rows() if row[0] == group}
    for case in GROUPS[group]:
        share, (found, error, target, _) = case.share(case.draws // PART), committed[case.name]
        assert case.target.words == target, case.name
        assert abs(share.found - float(found)) <= 4 * math.hypot(share.error, float(error)), case.name
        assert not share.is_short_of(case.target, 4), case.name


def test_the_committed_table_has_a_row_of_every_case_and_every_case_draws_a_page():
    cases = [(group, case) for group, cases in GROUPS.items() for case in cases]
    assert [row[:2] for row in rows()[1:]] == [[group, case.name] for group, case in cases]
    assert all(case.share(1).found in (0, 100) for _, case in cases)


def test_a_case_counts_its_event_and_of_the_pages_that_err_those_without_a_caveat():
    pages = iter([(True, False), (False, True), (False, False), (True, True)] * 10)
    share = Case("every other page errs", FAIR, lambda rng: next(pages)).share(40)
    assert share[:3] == (50.0, 50.0, 25.0) and share.is_short_of(FAIR, 2)
    assert not Share(60.0, 50.0, 7.0, 0.8).is_short_of(FAIR, 2)
    assert not Share(91.0, 0.0, 9.0, 0.5).is_short_of(FAIR, 2)
    assert Share(20.0, 50.0, 9.0, 0.6).is_short_of(WRONG, 2)
