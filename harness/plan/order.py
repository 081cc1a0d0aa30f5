"""A plan's trials in their order: whole rounds, shuffled, the trials of two stacks next to each other."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from harness.errors import PlanError
from harness.record import Role, TrialSpec

NO_BLOCK = 0
"""The block of a full-length trial: it runs between blocks of time, and may fill their pause."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Planned:
    """A trial with its place in the plan."""

    trial: TrialSpec
    role: Role
    model: str
    priority: int = 1
    place: int = 0
    """The place of its variant in the plan's file."""
    block: int = 1
    """The block of time; NO_BLOCK for a full-length trial, which runs between blocks."""

    @property
    def twins(self) -> str:
        """Return what trials of one repeat share that differ in their stack alone."""
        return f"{self.trial.repeat} {self.trial.asked.work}"


Twins = list[Planned]
"""Trials that differ in their stack alone; one where the session has one stack."""


def order_trials(planned: Iterable[Planned], seed: int, blocks: int = 1) -> tuple[Planned, ...]:
    """Return whole rounds of timing trials, shuffled within priorities; two stacks' trials are neighbours.

    Interleaving keeps a drift of the machine from looking like a difference between variants. Full-length
    trials run between blocks, or between start, middle and end where there is one block. In the first
    round the batches of a sweep grow, so that those above one that does not fit need not be tried. Raises
    PlanError where there are fewer rounds than blocks.
    """
    rng = random.Random(seed)
    rounds: dict[int, dict[int, list[Twins]]] = {}
    full: list[Twins] = []
    pairs: dict[str, Twins] = {}
    for item in sorted(planned, key=lambda item: item.trial.id):
        pairs.setdefault(item.twins, []).append(item)
    for pair in pairs.values():
        if pair[0].role == "full":
            full.append([replace(item, block=NO_BLOCK) for item in pair])
        else:
            rounds.setdefault(pair[0].trial.repeat, {}).setdefault(pair[0].priority, []).append(pair)
    timing = [_shuffle_round(rounds[repeat], repeat, rng) for repeat in sorted(rounds)]
    rng.shuffle(full)
    if blocks > max(len(timing), 1):
        raise PlanError(
            f"{len(timing)} repeats cannot be spread over {blocks} blocks",
            remedy="ask for fewer blocks, or for more repeats in the plan",
        )
    parts = _split_evenly(timing, 3 if full and blocks == 1 else blocks)
    between = _split_evenly(full, max(len(parts) - 1, 1))
    ordered: list[Planned] = []
    for at, part in enumerate(parts):
        number = at + 1 if blocks > 1 else 1
        for pair in itertools.chain.from_iterable(part):
            ordered += [replace(item, block=number) for item in rng.sample(pair, len(pair))]
        for pair in between[at] if at < len(between) else []:
            ordered += rng.sample(pair, len(pair))
    return tuple(ordered)


def _shuffle_round(by_priority: Mapping[int, list[Twins]], repeat: int, rng: random.Random) -> list[Twins]:
    """Return one round: each priority's trials in an order drawn at random."""
    shuffled: list[Twins] = []
    for priority in sorted(by_priority):
        members = by_priority[priority]
        rng.shuffle(members)
        shuffled += _sort_sweeps(members) if repeat == 1 else members
    return shuffled


def _sort_sweeps(members: list[Twins]) -> list[Twins]:
    """Return the trials of batch-size sweeps in order of their batch size, at the places that they have."""
    sweep = [pair for pair in members if pair[0].role == "batch-sweep"]
    growing = iter(sorted(sweep, key=lambda pair: pair[0].trial.asked.variant.batch_size))
    return [next(growing) if pair[0].role == "batch-sweep" else pair for pair in members]


def _split_evenly(items: Sequence[T], count: int) -> list[list[T]]:
    """Return neighbours together, in parts whose lengths differ by one at most, the longer ones first."""
    size, more = divmod(len(items), count)
    edges = [at * size + min(at, more) for at in range(count + 1)]
    return [list(items[low:high]) for low, high in itertools.pairwise(edges)]
