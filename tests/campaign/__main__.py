"""The campaign: attacks of every kind in turn until the time is over, and their count as the last line."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import get_args

from harness.errors import PlanError
from harness.record.published.claims import nearest
from harness.units import seconds_of
from tests.campaign import answers, archives, contribution, faults, records, tables, trials, verbs
from tests.campaign.attack import Attack, Breach, Count, bound_memory, make

ATTACKS: Mapping[str, Attack] = {
    **tables.ATTACKS,
    **trials.ATTACKS,
    **records.ATTACKS,
    **archives.ATTACKS,
    **answers.ATTACKS,
    **contribution.ATTACKS,
    **verbs.ATTACKS,
    **faults.FAULTS,
}
SLOW = frozenset({"verb", *faults.FAULTS})
"""One of these takes as long as ten others or more."""


def names(first_seed: int) -> Iterator[str]:
    """Without end: rounds of all quick kinds, after every second one a fault, after every tenth a verb."""
    hard = sorted(faults.FAULTS)
    for round_number in range(1 << 62):
        seed = first_seed + round_number
        yield from (f"{kind}:{seed}" for kind in ATTACKS if kind not in SLOW)
        if round_number % 10 == 4:
            yield f"verb:{seed}"
        if round_number % 2:
            yield f"{hard[round_number // 2 % len(hard)]}:{seed}"


def main(words: list[str]) -> int:
    """1 unless nothing was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("what", help="how long, as 20m, or an attack to repeat, as record:7")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9), help="of the first round")
    parser.add_argument("--rounds", type=int, help="end after so many rounds at the latest")
    given = parser.parse_args(words)
    kind, colon, _ = given.what.partition(":")
    if colon and kind not in ATTACKS:
        parser.error(f"there is no attack '{kind}'{nearest(kind, ATTACKS)}")
    try:
        seconds = 0.0 if colon else seconds_of(given.what)
    except PlanError as error:
        parser.error(str(error))
    bound_memory()
    if colon:
        breach = make(given.what, ATTACKS)
        print(_line(breach) if breach else f"{given.what} broke nothing")
        return 1 if breach else 0
    return _through(seconds, given.seed, given.rounds)


def _through(most_seconds: float, first_seed: int, rounds: int | None) -> int:
    print(f"seeds from {first_seed} on", flush=True)
    until = time.monotonic() + most_seconds
    made: Counter[str] = Counter()
    breaches: list[Breach] = []
    for name in names(first_seed):
        kind, _, seed = name.partition(":")
        if time.monotonic() > until or (rounds is not None and int(seed) >= first_seed + rounds):
            break
        made["faults" if kind in faults.FAULTS else "inputs"] += 1
        breach = make(name, ATTACKS)
        if breach is not None:
            breaches.append(breach)
            print(_line(breach), flush=True)
    counts = Counter(breach.count for breach in breaches)
    parts = [f"{made[what]:,} {what}" for what in ("inputs", "faults")]
    print(", ".join([*parts, *(f"{counts[count]} {count}" for count in get_args(Count))]))
    return 1 if breaches else 0


def _line(breach: Breach) -> str:
    return f"{breach.name} ({breach.count}): {breach.said!r}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
