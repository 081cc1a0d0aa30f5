"""The published record held against itself, by rules that read the claims alone and know no study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.record import Claim
from report.claims.self_consistency import sentences, tables
from report.claims.self_consistency.inconsistency import Inconsistency


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule's name, what it says, and the function that finds what breaks it."""

    name: str
    sentence: str
    find: Callable[[Sequence[Claim]], Iterable[Inconsistency]]


RULES = (
    Rule(
        "Sentences beside figures",
        "A ratio or an order in words is held against the figures of the same source for both of its sides. "
        "Each figure counts plus or minus half of its last digit. The claim's own margin is added.",
        sentences.sentences,
    ),
    Rule(
        "The largest and the smallest",
        "What a source calls the largest or the smallest is held against the same ratio of its other models.",
        sentences.superlatives,
    ),
    Rule("Totals", "A number of all items is held against the sum of its parts.", sentences.totals),
    Rule(
        "Two figures for one thing",
        "A source prints two figures for the same thing that neither rounding nor 5 % brings together.",
        sentences.doubles,
    ),
    Rule(
        "More than the number of devices",
        "Several devices gain more than 5 % above their number. Our own trials are invalid by the same rule.",
        tables.beyond_linear,
    ),
    Rule(
        "Off row and column",
        "A figure comes, for each device, to ten times or a tenth of those that stand in its row and column. "
        "Our own trials are invalid by the same rule.",
        tables.off_trend,
    ),
    Rule(
        "Several releases in one table",
        "A table compares cards, its rows come from several releases of the software, and no column says so.",
        tables.mixed_releases,
    ),
    Rule(
        "Another card than the name",
        "A row is named after another form of the card than its own system file has. Our own trials are "
        "warned of by the same rule.",
        tables.other_cards,
    ),
    Rule(
        "Fast, and nothing learned",
        "A speed stands in a table, and its run guessed. Our own trials are invalid then.",
        tables.guesses,
    ),
)


def inconsistencies(claims: Sequence[Claim]) -> dict[Rule, tuple[Inconsistency, ...]]:
    """What each rule finds, in the order of the claims; rules that find nothing are left out."""
    found = {rule: tuple(rule.find(claims)) for rule in RULES}
    return {rule: each for rule, each in found.items() if each}
