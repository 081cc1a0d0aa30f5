"""What happened to trials, counted in plain words: for the terminal, and for what is sent to others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.record import Record
from harness.summary.checks import cause_name

WORDS = {
    "busy-machine": "the machine did other work just before",
    "foreign-process": "another process was on the card",
    "generated-data": "trained on generated data",
    "short-window": "ended before the speed had settled",
    "no-steady-state": "steps still changed at the end",
    "slowdown": "steps became slower",
    "input-bound": "waited for input",
    "thermal-throttling": "the card was held back by heat",
    "power-brake": "the card's power was cut from outside",
    "hardware-slowdown": "the card slowed itself down",
    "locked-clocks": "the card's clocks are locked",
    "power-limit": "the card's power limit is not its usual one",
    "memory-error": "the card's memory had errors",
    "device-fault": "the driver reported a fault",
    "precision": "computed in another precision than the label",
    "not-finite": "the loss was no longer a number",
    "collapsed": "learned nothing, or lost it again",
    "start-temperature": "began at another temperature than the others",
}
"""What a cause is for a reader; any other keeps its name."""

MOST_NAMED = 8


def sentences(records: Iterable[Record]) -> tuple[str, ...]:
    """'12 of 12 trials: the machine did other work just before', what most trials met first."""
    return of_causes([record.summary.causes for record in records if record.summary])


def of_causes(trials: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The same, of the causes of each measured trial."""
    counted = Counter(name for causes in trials for name in dict.fromkeys(map(cause_name, causes)))
    return tuple(
        f"{n} of {len(trials)} measured trials: {WORDS.get(name, name)}"
        for name, n in counted.most_common(MOST_NAMED)
    )
