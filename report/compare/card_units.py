"""Units of one card: how far they lie apart, how many miss a figure by that, and which of a box is behind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy
from scipy import special

from harness.record import Gpu
from harness.summary.trial_devices import cards_of_kind, used_cards
from report.expected.published_speeds import UNIT_SD
from report.stats.contrast import Assumption
from report.stats.intervals import LEVEL
from report.trials.key import grouped_by
from report.trials.trial import PROVEN, TrialResult

ASSUMED_SPREAD = math.expm1(math.sqrt(2) * float(special.ndtri((1 + LEVEL) / 2)) * UNIT_SD)
"""How much faster than another one unit may be, in 95 of 100 pairs of one model, by the assumed deviation."""

ALPHA = 0.05
"""All that is judged of a box, each card and all together, calls at most so many sound boxes slow."""

UNITS_TO_MEASURE = 3
_LEAST_CV = 1e-9
"""In place of none, by which nothing can be divided."""


@dataclass(frozen=True, slots=True)
class UnitSpread:
    """How far the units of one model lie apart, as the coefficient of variation (CV) of their speeds.

    `df` is infinite where the CV was not measured; `units` are on record.
    """

    cv: float = UNIT_SD
    df: float = math.inf
    units: int = 1

    @property
    def measured(self) -> bool:
        return math.isfinite(self.df)

    @property
    def assumption(self) -> Assumption:
        """Return what is assumed of a side where another unit is spoken of than was measured.

        Both units are draws, so the variance is twice that of one.
        """
        return Assumption("unit", math.sqrt(2) * self.cv, self.df)


def unit_spread(levels: Sequence[float]) -> UnitSpread:
    """From one mean per unit of a model, in any one metric: measured where three units are on record."""
    m = len(levels)
    if m < UNITS_TO_MEASURE:
        return UnitSpread(units=max(m, 1))
    return UnitSpread(float(numpy.log(levels).std(ddof=1)), m - 1, m)


def unit_spreads(trials: Iterable[TrialResult]) -> dict[str, UnitSpread]:
    """Return each card's spread, over the one work and stack that most of its units have measured."""
    cards = grouped_by(trials, lambda trial: trial.card)
    units = {card: units_of_most(own).values() for card, own in cards.items()}
    return {
        card: unit_spread([fmean(trial.samples_per_second or 0.0 for trial in own) for own in measured])
        for card, measured in units.items()
    }


def units_of_most(trials: Iterable[TrialResult]) -> dict[str, list[TrialResult]]:
    """The proven trials of each unit, on the one card, work and stack that most units of one build ran."""
    timed = [trial for trial in trials if trial.verdict in PROVEN and trial.samples_per_second]
    works = grouped_by(timed, lambda trial: (trial.key, trial.card, trial.stack, _unit_build(trial)))
    by_unit = (grouped_by(own, _unit_id) for own in works.values())
    known = ({unit: own for unit, own in units.items() if unit} for units in by_unit)
    return max(known, key=len, default={})


def _unit_id(trial: TrialResult) -> str:
    """The card's own id; a processor is that of its machine."""
    return trial.device_unit or (trial.machine if trial.environment.device == "cpu" else "")


def _unit_build(trial: TrialResult) -> tuple[float | None, ...]:
    """What makes units alike: of a processor its cores and memory, of a card memory and declared limit."""
    machine = trial.record.machine
    if trial.environment.device == "cpu":
        return machine.cpu.cores, machine.cpu.threads, machine.cpu.usable, _memory_class(machine.memory_bytes)
    limits = [gpu.power_limit_watts for gpu in used_cards(trial.record)] if machine.declared else []
    return _memory_class(trial.device_memory_bytes), *limits


def _memory_class(memory: int | None) -> float | None:
    """Its half octave: a machine tells a little less than what it was sold with."""
    return math.floor(2 * math.log2(1.05 * memory)) if memory else None


def missing_share(spread: UnitSpread, margin: float) -> float:
    """Return the share of sound machines that do less than 1 − margin of a figure of another unit.

    Logarithms of the speeds of units are normal with standard deviation CV, so the share is
    T(ln(1 − margin) ÷ (√2·CV)), T being Student's distribution function with df, normal for an assumed CV.
    """
    beyond = math.log1p(-margin) / max(spread.cv, _LEAST_CV) / math.sqrt(2)
    return float(special.stdtr(spread.df, beyond) if spread.measured else special.ndtr(beyond))


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
    return math.exp(-z * UNIT_SD * math.sqrt(1 + 1 / (cards - 1)))


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
