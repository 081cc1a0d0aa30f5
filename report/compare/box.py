"""A machine of several cards: which of them were measured alone, and which lie behind the others."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median

from scipy import special

from harness.record import Gpu
from harness.summary.trial_devices import cards_of_kind, used_cards
from report.compare.spread import ASSUMED_UNIT_CV
from report.trials.key import grouped_by
from report.trials.trial import TrialResult

ALPHA = 0.05
"""All that is judged of a box, each card and all together, calls at most so many sound boxes slow."""


@dataclass(frozen=True, slots=True)
class BoxCards:
    """The equal cards of a machine by their places: those measured alone, and the others."""

    measured: tuple[Gpu, ...] = ()
    missing: tuple[Gpu, ...] = ()

    @property
    def present(self) -> int:
        return len(self.measured) + len(self.missing)


@dataclass(frozen=True, slots=True)
class CardBehind:
    """A card that does less of the others' mean than `least`, which nearly all sound ones do."""

    gpu: Gpu
    ratio: float
    least: float


def cards_of_box(trials: Iterable[TrialResult]) -> BoxCards:
    """Return which cards of the trials' machine have a measurement of their own."""
    found: dict[tuple[int, str | None], tuple[Gpu, bool]] = {}
    for trial in _alone(trials):
        used = used_cards(trial.record)[:1]
        for gpu in cards_of_kind(trial.record):
            place = gpu.index, gpu.unit
            if any(gpu.name == one.name for one in used):
                done = gpu in used and trial.record.measurement is not None
                found[place] = gpu, done or (place in found and found[place][1])
    by_place = [found[place] for place in sorted(found, key=lambda place: place[0])]
    return BoxCards(
        tuple(gpu for gpu, done in by_place if done), tuple(gpu for gpu, done in by_place if not done)
    )


def _alone(trials: Iterable[TrialResult]) -> list[TrialResult]:
    return [one for one in trials if one.key.gpus == 1 and one.record.trial.asked.device != "cpu"]


def least_ratio(cards: int, works: int = 1) -> float:
    """Return what a sound card does of the mean of the others, at least: one-sided, all of a box together."""
    z = -float(special.ndtri(ALPHA / (works * (cards + 1))))
    return math.exp(-z * ASSUMED_UNIT_CV * math.sqrt(1 + 1 / (cards - 1)))


def cards_behind(trials: Iterable[TrialResult]) -> tuple[CardBehind, ...]:
    """Return the cards of a box that are too slow beside the others, in the work where they are slowest."""
    usable = [one for one in _alone(trials) if one.verdict != "invalid" and one.samples_per_second]
    by_work = grouped_by(usable, lambda one: one.key)
    found: dict[str | None, CardBehind] = {}
    for of_work in by_work.values():
        by_unit = grouped_by(of_work, lambda one: one.device_unit)
        logs = {
            unit: math.log(median(one.samples_per_second or 1.0 for one in own))
            for unit, own in by_unit.items()
            if unit
        }
        for unit in logs if len(logs) > 1 else ():
            ratio = math.exp(logs[unit] - fmean(log for other, log in logs.items() if other != unit))
            least, gpu = least_ratio(len(logs), len(by_work)), used_cards(by_unit[unit][0].record)[:1]
            if gpu and ratio < min(least, found[unit].ratio if unit in found else 1.0):
                found[unit] = CardBehind(gpu[0], ratio, least)
    return tuple(sorted(found.values(), key=lambda one: one.ratio))
