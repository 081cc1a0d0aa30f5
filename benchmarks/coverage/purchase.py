"""What a buyer may expect: the range in which the pair of cards that is delivered lies."""

from __future__ import annotations

import numpy as np

from benchmarks.coverage.cases import Case, Draw, Generator, Target
from benchmarks.coverage.lines import line
from benchmarks.coverage.samples import CV, Floats, in_blocks, scaled
from report.compare.groups import comparison_groups
from report.compare.pairs import expectations
from report.compare.spread import UnitSpread, cv_words, spreads_among, unit_band, unit_spread
from report.stats.intervals import blocks_interval

DELIVERED = Target(95)
RATIO = 1.5
"""Of the two models' speeds."""


def units(cv: float, rng: Generator, count: int) -> Floats:
    """Speeds of so many units of a model."""
    return np.exp(rng.normal(0, cv, count))


def one_unit_each(cv: float, *, works: int = 1, given: float | None = None) -> Case:
    """The page's own range, of one unit a model in three blocks; any other two units are delivered."""

    def draw(rng: Generator) -> Draw:
        measured, delivered = units(cv, rng, 2), units(cv, rng, 2)
        cells = [
            line(scaled(in_blocks(rng, (4, 4, 4)), level / speed), place=place, model=f"model {work}")
            for work in range(works)
            for place, (level, speed) in enumerate(zip((1.0, RATIO), measured, strict=True))
        ]
        groups = comparison_groups(cells, cells[0].session, baseline=None)
        (expected,) = expectations(groups, spreads=spreads_among(cells, given))
        truth = RATIO * delivered[0] / delivered[1]
        caveat = given is None and not expected.band.measured
        return Draw(expected.model is not None and expected.model.includes(float(truth)), caveat)

    known = "" if given is None else f", given as {cv_words(given)}"
    count = "" if works == 1 else f", {works} works"
    return Case(
        f"range of any two units, one measured each, unit CV {cv_words(cv)}{known}{count}", DELIVERED, draw
    )


def many_units(count: int, cv: float, runs_cv: float) -> Case:
    """Units on record: the last one measured, and one more of each model delivered."""

    def draw(rng: Generator) -> Draw:
        levels = [units(cv, rng, count) for _ in range(2)]
        spreads: list[UnitSpread] = [unit_spread(level.tolist()) for level in levels]
        sides = [scaled(in_blocks(rng, (4, 4, 4), block_cv=0, cv=runs_cv), level[-1]) for level in levels]
        ratio = blocks_interval(*sides)
        assert ratio is not None
        low, high = unit_band(*spreads).around(ratio.low, ratio.estimate, ratio.high)
        truth = units(cv, rng, 2)
        return Draw(low <= truth[0] / truth[1] <= high)

    return Case(f"range of any two units, {count} on record each, unit CV {cv_words(cv)}", DELIVERED, draw)


CASES = [
    *(one_unit_each(cv) for cv in (0.015, 0.02, 0.03)),
    *(one_unit_each(cv, given=cv) for cv in (0.015, 0.04, 0.06)),
    one_unit_each(0.04),
    one_unit_each(0.03, works=4),
    *(many_units(count, 0.04, CV / 10) for count in (3, 5, 10)),
    many_units(3, 0.02, 2 * CV),
]
