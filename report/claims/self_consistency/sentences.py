"""Rules that hold what a publication says against its own figures."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from harness.record import Claim
from report import text
from report.claims.self_consistency.inconsistency import (
    Inconsistency,
    both,
    inconsistency,
    place,
    releases,
    side,
    value,
    where,
)
from report.claims.self_consistency.own_figures import figures_of, has_all_of, pairs_for, printed_range

PARTS = ("train_items", "valid_items", "test_items")


def sentences(claims: Sequence[Claim]) -> Iterator[Inconsistency]:
    """A ratio or an order in words against the pairs of figures that it speaks of."""
    figures = figures_of(claims)
    for claim in claims:
        if not claim.words or claim.superlative:
            continue
        for of, over in pairs_for(claim, figures):
            factor = _contradicted(claim, of, over)
            if factor is not None:
                ratio = "" if claim.kind == "order" else f", {_ratio(of, over):.3g} times"
                own = f"{place(of, over)}{both(of, over)}{ratio}"
                yield inconsistency((claim, of, over), claim.words, own, factor)


def _contradicted(claim: Claim, of: Claim, over: Claim) -> float | None:
    """How far a sentence is off its own figures; null where rounding and its margin let both be true."""
    own = _ratio(of, over)
    if claim.kind == "order":
        holds = own > 1 if claim.relation == "less" else own < 1
        return None if holds else max(own, 1 / own)
    if claim.value is None:
        return None
    (of_low, of_high), (over_low, over_high) = printed_range(of), printed_range(over)
    said_low, said_high = printed_range(claim)
    low, high = over_low / of_high, over_high / of_low if of_low > 0 else math.inf
    holds = {
        "equal": low <= said_high * (1 + claim.margin) and high >= said_low / (1 + claim.margin),
        "less": low < said_high,
        "greater": high > said_low,
    }[claim.relation]
    return None if holds else max(own / claim.value, claim.value / own)


def superlatives(claims: Sequence[Claim]) -> Iterator[Inconsistency]:
    """A ratio called the largest or the smallest against those of the other models of its study."""
    figures = figures_of(claims)
    for claim in claims:
        if not claim.superlative or not claim.words:
            continue
        pairs = {of.of.model: (of, over) for of, over in pairs_for(claim, figures, ("model", "batch_size"))}
        ratios = {model: _ratio(*pair) for model, pair in pairs.items()}
        mine = ratios.get(claim.of.model)
        ranked = sorted(ratios, key=ratios.__getitem__, reverse=claim.superlative == "largest")
        if mine is None or ratios[ranked[0]] == mine:
            continue
        first = ranked[0]
        own = (
            f"{place(*pairs[first])}{text.model_name(first)} {ratios[first]:.3f} times, "
            f"{text.model_name(claim.of.model)} {mine:.3f} times"
        )
        factor = max(ratios[first] / mine, mine / ratios[first])
        yield inconsistency((claim, *pairs[first]), claim.words, own, factor)


def totals(claims: Sequence[Claim]) -> Iterator[Inconsistency]:
    """A number of all items against the sum of the parts that were trained, validated and tested on."""
    figures = figures_of(claims)
    for claim in figures:
        if claim.metric != "data_items" or not claim.value:
            continue
        parts: dict[str, Claim] = {
            figure.metric: figure
            for figure in figures
            if (figure.study, figure.workload) == (claim.study, claim.workload)
            and figure.metric in PARTS
            and has_all_of(claim.of, figure.of)
        }
        total = sum(figure.value or 0.0 for figure in parts.values())
        if len(parts) == len(PARTS) and abs(total - claim.value) > claim.half_digit:
            own = f"{' + '.join(f'{parts[part].value:,.0f}' for part in PARTS)} = {total:,.0f}"
            factor = max(total / claim.value, claim.value / total)
            yield inconsistency((claim, *parts.values()), claim.words or value(claim), own, factor)


def doubles(claims: Sequence[Claim]) -> Iterator[Inconsistency]:
    """Two figures of one study for one thing, further apart than rounding and the margin let them be."""
    groups: defaultdict[object, list[Claim]] = defaultdict(list)
    for figure in figures_of(claims):
        measure = (figure.study, figure.workload, figure.protocol, figure.metric, figure.epochs, figure.unit)
        groups[(*measure, figure.of.canonical())].append(figure)
    for alike in groups.values():
        ranked = sorted(alike, key=lambda figure: figure.value or 0.0)
        low, high = ranked[0], ranked[-1]
        apart = printed_range(high)[0] > printed_range(low)[1] * (1 + low.margin)
        if apart and not _of_other_releases(low, high):
            said, own = (f"{side(figure)}: {value(figure)}, in {where(figure)}" for figure in (high, low))
            yield inconsistency((high, low), said, own, (high.value or 0.0) / (low.value or 1.0))


def _of_other_releases(one: Claim, other: Claim) -> bool:
    first, second = releases(one), releases(other)
    return any(first[software] != second[software] for software in first.keys() & second.keys())


def _ratio(of: Claim, over: Claim) -> float:
    return (over.value or 0.0) / (of.value or 1.0)
