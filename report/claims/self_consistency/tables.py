"""Rules that hold the figures of a publication's tables against each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from harness.record import Claim
from report import text
from report.claims.self_consistency.inconsistency import (
    Inconsistency,
    inconsistency,
    releases,
    row,
    side,
    table,
    value,
)
from report.claims.self_consistency.own_figures import figures_of, printed_range
from report.trials.key import PARALLEL
from report.trials.sanity import above_linear, jump, other_form

LEAST_OTHERS = 3
"""Figures that a trend needs beside the one that is held against it."""


def beyond_linear(claims: Sequence[Claim]) -> Iterator[Inconsistency]:
    """A gain by several devices of more than their number."""
    for alike in _groups(claims, lambda figure: (figure.of.layout, figure.stack, table(figure))).values():
        singles = [figure for figure in alike if figure.of.gpus == 1]
        single = median(_rate(figure) for figure in singles) if singles else None
        for figure in alike:
            flag = above_linear(single, _rate(figure), figure.of.gpus)
            if flag and single:
                devices = figure.of.gpus
                said = f"{side(figure)}: {value(figure)} on {devices} devices, {value(singles[0])} on one"
                factor = _rate(figure) / single / devices
                yield inconsistency((figure, singles[0]), said, flag.sentence, factor)


def off_trend(claims: Sequence[Claim]) -> Iterator[Inconsistency]:
    """A figure that comes, for each device, to ten times those in its row and column."""
    for alike in _groups(claims, lambda figure: None).values():
        shares = [_rate(figure) / figure.of.gpus for figure in alike]
        for at, figure in enumerate(alike):
            others = [*shares[:at], *shares[at + 1 :]]
            flag = jump(shares[at], others) if len(others) >= LEAST_OTHERS else None
            if flag:
                said = f"{side(figure)}: {value(figure)} on {text.count(figure.of.gpus, 'device')}"
                factor = shares[at] / median(others)
                own = f"for each device {flag.sentence}"
                yield inconsistency((figure,), said, own, max(factor, 1 / factor))


def mixed_releases(claims: Sequence[Claim]) -> Iterator[Inconsistency]:
    """Rows of one table that several releases of the same software made."""
    tables: defaultdict[object, list[Claim]] = defaultdict(list)
    for figure in figures_of(claims):
        # A folder's files are not one table.
        if row(figure) and not table(figure).endswith("/"):
            tables[(figure.study, figure.workload, figure.metric, table(figure))].append(figure)
    for rows in tables.values():
        counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for figure in rows:
            for software, found in releases(figure).items():
                counted[software].update(found)
        mixed = {software: found for software, found in counted.items() if len(found) > 1}
        if mixed:
            model = text.model_name(rows[0].of.model)
            said = f"one table: {text.count(len(rows), 'figure')} of {model} side by side"
            own = "; ".join(f"{software} {', '.join(sorted(found))}" for software, found in mixed.items())
            whole = rows[0].model_copy(update={"source": table(rows[0])})
            yield inconsistency((whole,), said, own)


def other_cards(claims: Sequence[Claim]) -> Iterator[Inconsistency]:
    """A row whose name says another form of card than the one that it was measured on."""
    for figure in figures_of(claims):
        if figure.of.card and other_form(row(figure), figure.of.card):
            said = f"row '{row(figure)}': {value(figure)}"
            yield inconsistency((figure,), said, f"measured on {figure.of.card}")


def guesses(claims: Sequence[Claim]) -> Iterator[Inconsistency]:
    """A speed of a run whose accuracy is that of guessing."""
    figures = figures_of(claims)
    for figure in figures:
        classes = figure.of.options.get("classes")
        if figure.metric != "accuracy" or not isinstance(classes, int) or classes < 2:
            continue
        if printed_range(figure)[0] > 1 / classes:
            continue
        for timed in figures:
            same = (timed.study, timed.workload, timed.of) == (figure.study, figure.workload, figure.of)
            if same and _rate(timed):
                own = f"accuracy {value(figure)}, that of guessing among {classes} classes"
                yield inconsistency((timed, figure), f"{side(timed)}: {value(timed)}", own)


def _groups(claims: Sequence[Claim], besides: Callable[[Claim], object]) -> dict[object, list[Claim]]:
    """Figures that can be read as a rate, together where all is equal but number of devices and batch."""
    groups: defaultdict[object, list[Claim]] = defaultdict(list)
    for figure in figures_of(claims):
        if _rate(figure):
            options = {name: each for name, each in figure.of.options.items() if name != PARALLEL}
            alone = {"gpus": 1, "batch_size": None, "layout": None, "options": options}
            measure = (figure.study, figure.workload, figure.protocol, figure.metric, figure.epochs)
            groups[(*measure, figure.of.model_copy(update=alone).canonical(), besides(figure))].append(figure)
    return groups


def _rate(figure: Claim) -> float:
    """Work a second, in a unit that is the same for all figures of a metric; 0 where it is no rate."""
    printed = figure.value or 0.0
    if figure.metric == "throughput":
        return printed
    if figure.metric == "step_seconds" and printed:
        return figure.of.gpus / printed
    return 1 / printed if figure.metric in ("protocol_seconds", "epoch_seconds") and printed else 0.0
