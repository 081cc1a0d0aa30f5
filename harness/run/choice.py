"""Which trials a line will run: what the device can do, what the budget holds, and how long it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness.data.fetch import Resolved
from harness.errors import UserError
from harness.plan import estimate, plan, selection
from harness.plan.plan import Planned
from harness.plan.selection import supported
from harness.record import DataSource, LeftOut, Record, Trial, store
from harness.record.cards import find as find_card
from harness.record.cards import load_cards, peak_tflops
from harness.record.claims import load_claims
from harness.run import setup
from harness.run.session import PAUSE
from harness.run.setup import Bench
from harness.units import seconds_of

REFERENCE = "RTX 2080 Ti"
"""The card whose published durations are known for every depth."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The trials of a plan on this machine, what was left out of it, and how long the rest will take."""

    planned: tuple[Planned, ...]
    everything: frozenset[str]
    """The ids of all trials that the plan has on this ground, dropped ones included."""
    order_seed: int
    left_out: tuple[LeftOut, ...]
    seconds: float
    budget_seconds: float | None
    speeds: estimate.Speeds
    """What the records and publications said of durations when these were chosen."""


def choose(bench: Bench, found: Mapping[str, Resolved] | None = None) -> Chosen:
    """The trials of a line. Without `found`, nothing being fetched yet, all data is taken to be real.

    Raises UserError where the device can do none of them.
    """
    lock = bench.engine.expected(bench.image).environment.lock_sha256
    on = setup.ground(bench, lock, found or {})
    if found is None:
        on = replace(on, sources=_all_real(bench), weights=_all_weights(bench))
    everything, seed = setup.planned(bench, on)
    card = bench.selection.gpus[0] if bench.selection.gpus else None
    able, left = supported(everything, bench.selection.kind, card, len(bench.selection.gpus))
    if not able:
        raise UserError(
            f"plan '{bench.plan.name}' has nothing that {card.name if card else 'this CPU'} can do",
            remedy="choose another plan",
        )
    speeds = _speeds(bench)
    seconds_each = partial(estimate.seconds, known=speeds)
    ids = frozenset(item.trial.id for item in everything)
    length = seconds_of(bench.settings.budget) if bench.settings.budget else None
    if length is None:
        kept = plan.order(selection.one_full_each(able), seed, bench.plan.blocks)
        seconds = sum(map(seconds_each, kept)) + pause_seconds(kept, seconds_each)
        return Chosen(kept, ids, seed, left, seconds, None, speeds)
    pause = pause_seconds(able, seconds_each)
    fitted = selection.fit(able, seconds_each, length - pause)
    kept = plan.order(fitted.planned, seed, bench.plan.blocks)
    return Chosen(kept, ids, seed, (*left, *fitted.left_out), fitted.seconds + pause, length, speeds)


def pause_seconds(planned: Sequence[Planned], seconds_each: Callable[[Planned], float]) -> float:
    """What the pauses between blocks take beside the full-length trials that stand in them."""
    pauses = max((item.block for item in planned), default=1) - 1
    full = sum(seconds_each(item) for item in planned if item.block == plan.NO_BLOCK)
    return max(0.0, pauses * PAUSE.total_seconds() - full)


def trial_seconds(speeds: estimate.Speeds, machine: str, trial: Trial, records: Iterable[Record]) -> float:
    """A trial's estimated duration, from what was known before and a session's records by now."""
    planned = Planned(trial, "timing", trial.asked.variant.model)
    return estimate.seconds(planned, estimate.learned(speeds, records, machine))


def _all_real(bench: Bench) -> dict[str, DataSource]:
    return dict.fromkeys(plan.datasets(bench.plan, bench.selection.kind), "real")


def _all_weights(bench: Bench) -> dict[str, bool]:
    return dict.fromkeys(plan.pretrained_models(bench.plan, bench.selection.kind), True)


def _speeds(bench: Bench) -> estimate.Speeds:
    records = [stored.record for stored in store.read_all(bench.root).records]
    published = _published(bench.root)
    return estimate.speeds(records, bench.machine.id, published, scale=_scale(bench))


def _published(root: Path) -> dict[tuple[str, ...], float]:
    """The reference card's durations by workload, protocol, model and precision."""
    rows = load_claims(root).published_rows()
    return {
        (row.workload, row.protocol, row.model, row.precision): row.seconds
        for row in rows
        if row.card == REFERENCE and row.precision is not None
    }


def _scale(bench: Bench) -> float:
    """The published card's 16-bit peak over this one's: a rough guide to a duration, and no more."""
    if not bench.selection.gpus:
        return 1.0
    cards = load_cards(bench.root)
    ours = find_card(bench.selection.gpus[0].name, cards)
    published = find_card(REFERENCE, cards)
    peaks = [peak_tflops(card, "fp16-master") if card else None for card in (published, ours)]
    return peaks[0] / peaks[1] if peaks[0] and peaks[1] else 1.0
