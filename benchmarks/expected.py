"""How far expected values lie from published ones: a card, a table or one software of a card is left out.

    python -m benchmarks.expected   the figures against their goals (exit 1 if missed)

Each card counts alike, and errors are standard errors over cards. The model's settings were fixed on these
tables before the run that docs/statistics.md quotes, so that the figures are not of unseen tables.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from harness.record.published.cards import load_cards
from report.expected.expected import UNKNOWN_LEVEL, ExpectationModel, Refusal, model_of
from report.expected.figures import PublishedRow, figures_of, read_tables
from report.expected.model import FEWEST_CARDS, described, fit, modelled
from report.expected.specs import CardSpecs, load_specs

ROOT = Path(__file__).resolve().parents[1]
COVERAGE = (0.88, 0.95)
SOFTWARE_GOALS, CARD_GOALS = (0.8, 0.95), (0.0, 0.9)


def left_out_errors(model: ExpectationModel, figures: pd.DataFrame) -> pd.DataFrame:
    """Return what the model says of a left-out card's figures, where it does not refuse.

    `error` is of the logarithm, `reach` that of the 90 % range.
    """
    errors = []
    for (name, software), rows in figures.groupby(["card", "software"]):
        card, figure = model.specs[str(name)], dict(zip(rows.task, rows.log_speed, strict=True))
        for task in (model.tasks[key] for key in figure if key in model.tasks):
            said = model.ask(card, task, software=str(software))
            if not isinstance(said, Refusal):
                error = abs(figure[task.key] - task.log_speed(said.value))
                errors.append((card.name, error, math.log(said.factor)))
    return pd.DataFrame(errors, columns=["card", "error", "reach"])


@dataclass(frozen=True)
class Tables:
    """What is asked about: rows by table, and all figures of tasks that enough cards have."""

    rows: dict[str, tuple[PublishedRow, ...]]
    all_rows: list[PublishedRow]
    specs: dict[str, CardSpecs]
    figures: pd.DataFrame


def read_all_tables() -> Tables:
    """Return the clone's tables."""
    specs, rows = load_specs(ROOT, load_cards(ROOT)), read_tables(ROOT)
    every = [row for table in rows.values() for row in table]
    return Tables(rows, every, specs, modelled(described(figures_of(every), specs)))


def leave_out_cards(tables: Tables) -> Iterator[pd.DataFrame]:
    """Yield the errors of each card, left out of everything, scatter and ranges too."""
    for card, rows in tables.figures.groupby("card"):
        model = model_of([r for r in tables.all_rows if r.card != card], tables.specs)
        yield left_out_errors(model, rows)


def leave_out_tables(tables: Tables) -> pd.DataFrame:
    """Return the errors with each table left out: its software is of no table, its cards may be in others."""
    outcomes = []
    for name, table in tables.rows.items():
        asked = described(figures_of(table), tables.specs)
        rest = [row for other, rows in tables.rows.items() if other != name for row in rows]
        held = modelled(described(figures_of(rest), tables.specs))
        asked = asked[asked.task.isin(set(held.task)) & ~asked.software.isin(set(held.software))]
        if len(asked):
            model = model_of(rest, tables.specs)
            outcomes.append(left_out_errors(model, asked.reset_index(drop=True)))
    return pd.concat(outcomes)


def print_medians(title: str, ratios: Sequence[float], goals: tuple[float, float]) -> bool:
    """Print the spread of the medians of true over expected; return whether the goals are met."""
    factors, met = np.exp(ratios), []
    for low, high in ((0.9, 1.1), (0.8, 1.25)):
        met.append(float(np.mean((factors >= low) & (factors <= high))))
    print(f"{title:58} {len(factors):4}  {met[0]:6.1%}  {met[1]:6.1%}", flush=True)
    return all(one >= goal for one, goal in zip(met, goals, strict=True))


def print_repeats(figures: pd.DataFrame) -> None:
    """Print how near one card's figures in two software of a program are: what a model can hope for."""
    pairs = figures.merge(figures, on=["program", "task", "card"]).query("software_x < software_y")
    gains = pairs.log_speed_x - pairs.log_speed_y
    ratios = gains.groupby([pairs.software_x, pairs.software_y, pairs.card]).median()
    print_medians("no model: one software of a card over another", list(ratios), (0, 0))


def software_and_cards(tables: Tables) -> dict[str, bool]:
    """Return which goals are met by medians of true over expected: software left out, then whole cards."""
    fitted = fit(tables.figures)
    figures = fitted.figures
    same, other, known, first = [], [], [], []
    for _, rows in figures.groupby("card"):
        for _, group in rows.groupby("software"):
            if len(group) < len(rows):
                errors, _ = fitted.before(group.index.to_numpy()).without(group.index.to_numpy())
                has = (rows.drop(group.index).program == group.program.iloc[0]).any()
                (same if has else other).append(float(np.median(errors)))
        errors, deviations = fitted.before(rows.index.to_numpy()).without(rows.index.to_numpy())
        alone = figures[figures.architecture == rows.architecture.iloc[0]].card.nunique() == 1
        errors = errors[deviations < UNKNOWN_LEVEL]
        if len(errors):
            (first if alone else known).append(float(np.median(errors)))
    print(f"\n{'median of true over expected, left out':58} {'':4}  0.9-1.1  0.8-1.25")
    print_medians("one software of a card that has another of the program", same, SOFTWARE_GOALS)
    print_medians("one software of a card that has only other programs", other, SOFTWARE_GOALS)
    goal = print_medians("one software of a card that has another", same + other, SOFTWARE_GOALS)
    whole = print_medians("a whole card, others of its architecture known", known, CARD_GOALS)
    print_medians("a whole card, the first of its architecture", first, CARD_GOALS)
    print_repeats(figures)
    return {"left-out software": goal, "left-out cards": whole}


HEADING = f"{'left out':42} {'cards':>5} {'figures':>7}  {'coverage':>14}   {'width':>8}"


def print_coverage(title: str, said: pd.DataFrame) -> float:
    """Print a row, each card counting alike, and return the coverage."""
    by_card = (said.error <= said.reach).groupby(said.card).mean()
    coverage, error = float(by_card.mean()), float(by_card.std() / math.sqrt(len(by_card)))
    weights = 1 / said.card.map(said.card.value_counts())
    width = math.exp(np.quantile(said.reach, 0.5, weights=weights, method="inverted_cdf"))
    counts = f"{len(by_card):5} {len(said):7}"
    print(f"{title:42} {counts}  {coverage:6.1%} ± {error:4.1%}   ×/÷ {width:.2f}", flush=True)
    return coverage


def print_all() -> int:
    """Print everything; return the number of goals that were missed."""
    started, tables = time.monotonic(), read_all_tables()
    print(
        f"{len(tables.all_rows)} rows of one device, {len(tables.figures)} figures of "
        f"{tables.figures.task.nunique()} tasks that {FEWEST_CARDS} cards or more have, "
        f"{tables.figures.card.nunique()} cards; settings as committed\n\n{HEADING}",
        flush=True,
    )
    coverage = print_coverage("one card, from specifications", pd.concat(leave_out_cards(tables)))
    print_coverage("one table: its software is new", leave_out_tables(tables))
    goals = software_and_cards(tables) | {
        "coverage from specifications": COVERAGE[0] <= coverage <= COVERAGE[1]
    }
    missed = [name for name, met in goals.items() if not met]
    print(f"\n{time.monotonic() - started:.0f} s; goals missed: {'; '.join(missed) or 'none'}")
    return len(missed)


if __name__ == "__main__":
    sys.exit(1 if print_all() else 0)
