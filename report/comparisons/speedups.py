"""One precision against another on the same machine: every ratio names its denominator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.record import FULL_PRECISION
from report.comparisons.cells import Cell, Ratio, cell_ratio, repeated
from report.stats.intervals import Ranking, ranking
from report.trials.key import Value, differing
from report.trials.pairs import at_same_batch, grouped_by, matched, nearest_the_card, same_but, without

_place = same_but("precision", "batch_size", within=("length", "session", "machine", "card", "stack"))


@dataclass(frozen=True, slots=True)
class Speedup:
    """How many times as fast `of` trains as `over`, on one machine; both are named wherever it stands."""

    of: Cell
    over: Cell
    ratio: Ratio
    differs: tuple[tuple[str, Value, Value], ...]
    """What differs besides the precision."""

    @property
    def ranking(self) -> Ranking:
        """Whether `of` may be called faster or slower than `over`."""
        return ranking(tied=self.ratio.tied, ranked=self.of.ranked and self.over.ranked)


def speedups(cells: Sequence[Cell]) -> tuple[Speedup, ...]:
    """Each precision against fp32-ieee and fp32-tf32 of the same machine, session and stack.

    At the same batch where there is one; else at the batch that the denominator has, which is then named.
    The level holds for all speed-ups of one workload together.
    """
    gained = [cell for cell in cells if cell.key.precision != "fp32-ieee"]
    full = [cell for cell in cells if cell.key.precision in FULL_PRECISION]
    pairs = [
        (of, over)
        for of, references in matched(gained, full, _place)
        for over in _denominators(of, references)
    ]
    families = {
        place: sum(map(repeated, family))
        for place, family in grouped_by(pairs, lambda pair: _place(pair[0])).items()
    }
    gains = []
    for of, over in pairs:
        together = families[_place(of)]
        gain = cell_ratio(over, of, "seconds", comparisons=together)
        gain = gain or cell_ratio(of, over, "throughput", comparisons=together)
        if gain is not None:
            differs = differing(without(of.key, "precision"), without(over.key, "precision"))
            gains.append(Speedup(of, over, gain, differs))
    return tuple(gains)


def _denominators(of: Cell, references: Sequence[Cell]) -> list[Cell]:
    labels = [label for label in FULL_PRECISION if label != of.key.precision]
    near = [at_same_batch(of, (c for c in references if c.key.precision == label)) for label in labels]
    return [cell for cell in near if cell is not None]


_any_profile = same_but("profile", within=("limit", "session", "machine", "card", "stack"))


@dataclass(frozen=True, slots=True)
class ProfileGain:
    """How many times as fast `tuned` trains as `default`, on one machine and in one session."""

    tuned: Cell
    default: Cell
    ratio: Ratio


def profile_gains(cells: Sequence[Cell]) -> tuple[ProfileGain, ...]:
    """Each tuned cell against the default one that differs in nothing else; the level holds for all."""
    tuned = [cell for cell in cells if cell.key.profile == "tuned"]
    plain = [cell for cell in cells if cell.key == without(cell.key, "profile")]
    pairs = [(cell, references[-1]) for cell, references in matched(tuned, plain, _any_profile) if references]
    together = sum(map(repeated, pairs))
    gains = [(*pair, cell_ratio(*pair, "throughput", comparisons=together)) for pair in pairs]
    return tuple(ProfileGain(of, over, gain) for of, over, gain in gains if gain is not None)


def best_supported(gains: Sequence[Speedup]) -> list[Speedup]:
    """Of each model and pair of precisions the gain with the most runs, in the mode nearest the card."""
    supported: dict[tuple[object, ...], Speedup] = {}
    for gain in nearest_the_card(gains, lambda gain: gain.of.key):
        key = gain.of.key
        place = (key.protocol, key.model, key.precision, key.batch_size, gain.over.key.precision)
        if place not in supported or sum(gain.ratio.n) > sum(supported[place].ratio.n):
            supported[place] = gain
    return list(supported.values())


def best_of_each_workload(gains: Sequence[Speedup]) -> list[Speedup]:
    """The best supported gains of each workload, each in its own mode nearest the card."""
    by_workload = grouped_by(gains, lambda gain: gain.of.key.workload).values()
    return [gain for members in by_workload for gain in best_supported(members)]
