"""The figures of a publication that a sentence of it speaks of: pairs alike but for what it compares."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from harness.record import Claim, Side

Pair = tuple[Claim, Claim]
"""The figures of a claim's `of` and of its `over`."""


def figures_of(claims: Iterable[Claim]) -> list[Claim]:
    """Figures above 0 of one side each; a sentence that names a figure, and a bound, is none."""
    return [
        claim
        for claim in claims
        if claim.over is None
        and claim.value is not None
        and claim.value > 0
        and claim.relation == "equal"
        and (claim.kind == "structure" or not claim.words)
    ]


def pairs_for(sentence: Claim, figures: Sequence[Claim], free: Collection[str] = ()) -> list[Pair]:
    """The study's own figures for both sides of a sentence, the finest printed one for each side.

    What the sentence leaves open is equal in both. Fields in `free` may be others than the sentence names;
    the model is equal in both all the same.
    """
    if sentence.over is None:
        return []
    alike = [figure for figure in figures if _same_measure(sentence, figure)]
    of, over = (_finest(alike, side, free) for side in (sentence.of, sentence.over))
    return [(first, second) for first in of for second in over if _comparable(sentence, first, second, free)]


def has_all_of(named: Side, side: Side, free: Collection[str] = ()) -> bool:
    """Whether a side is as another one says, where that says something."""
    fields = named.model_dump(exclude_none=True, exclude={"options", *free})
    same = all(getattr(side, name) == value for name, value in fields.items())
    return same and named.options.items() <= side.options.items()


def printed_range(figure: Claim) -> tuple[float, float]:
    """What was measured may lie between these: a figure give or take what rounding hides."""
    value = figure.value or 0.0
    return value - figure.half_digit, value + figure.half_digit


def _same_measure(sentence: Claim, figure: Claim) -> bool:
    names = ("study", "workload", "protocol", "metric")
    same = all(getattr(sentence, name) == getattr(figure, name) for name in names)
    return same and (None in (sentence.epochs, figure.epochs) or sentence.epochs == figure.epochs)


def _finest(figures: Sequence[Claim], side: Side, free: Collection[str]) -> list[Claim]:
    """For each side that fits, the figure that was printed with the most digits; the first of equals."""
    finest: dict[str, Claim] = {}
    for figure in figures:
        if has_all_of(side, figure.of, free):
            before = finest.setdefault(figure.of.canonical(), figure)
            if figure.half_digit < before.half_digit:
                finest[figure.of.canonical()] = figure
    return list(finest.values())


def _comparable(sentence: Claim, of: Claim, over: Claim, free: Collection[str]) -> bool:
    assert sentence.over is not None
    first, second = sentence.of, sentence.over
    open_fields = [
        name
        for name in Side.model_fields
        if name != "options"
        and name not in free
        and (getattr(first, name), getattr(second, name)) == (None, None)
    ]
    if "model" in free:
        open_fields.append("model")
    named = first.options.keys() | second.options.keys()
    options = [
        {name: value for name, value in figure.of.options.items() if name not in named}
        for figure in (of, over)
    ]
    fields = all(getattr(of.of, name) == getattr(over.of, name) for name in open_fields)
    return fields and options[0] == options[1]
