"""How far expected values lie from published ones: a card, a table or the years to come are left out.

    python -m benchmarks.expected                        the figures against their goals (exit 1 if missed)
    python -m benchmarks.expected --without "RTX 3090"   that card's rows over their ranges, text and picture

Each card counts alike, and errors are standard errors over cards. The model's settings were fixed on these
tables before the run that docs/statistics.md quotes, so that the figures are not of unseen tables.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from harness.errors import UserError
from harness.record.published.cards import load_cards
from report.expected.expected import UNKNOWN_LEVEL, ExpectationModel, ExpectedValue, model_of
from report.expected.figures import PublishedRow, TrainingTask, figures_of, read_tables
from report.expected.model import FEWEST_CARDS, SETTINGS, described, fit, modelled
from report.expected.refusal import Refusal
from report.expected.specs import CardSpecs, load_specs, named

ROOT = Path(__file__).resolve().parents[1]
COVERAGE, WIDTH, FORWARD, REFUSED = (0.88, 0.95), 1.35, 0.85, 0.25
CUTS = (2020, 2022)
SOFTWARE_GOALS, CARD_GOALS = (0.8, 0.95), (0.0, 0.9)
LATEST = "-2026"
"""How the names of the tables end that came in last."""
BEFORE = replace(SETTINGS, card=0.072, card_work=0.034)
"""The settings until then."""


def looks(model: ExpectationModel, figures: pd.DataFrame) -> pd.DataFrame:
    """What the model says of a left-out card's figures.

    `error` is of the logarithm, `reach` that of the 90 % range; both are null where it refuses.
    """
    found = []
    for (name, software), rows in figures.groupby(["card", "software"]):
        card, figure = model.specs[str(name)], dict(zip(rows.task, rows.log_speed, strict=True))
        tasks = [model.tasks[key] for key in figure if key in model.tasks]
        found += [(card.name, math.nan, math.nan)] * (len(figure) - len(tasks))
        for task in tasks:
            said = model.ask(card, task, software=str(software))
            found.append((card.name, *_error(said, figure[task.key])))
    return pd.DataFrame(found, columns=["card", "error", "reach"])


def _error(said: ExpectedValue | Refusal, log_speed: float) -> tuple[float, float]:
    if isinstance(said, Refusal):
        return math.nan, math.nan
    return abs(log_speed - said.task.log_speed(said.value)), math.log(said.factor)


@dataclass(frozen=True)
class Tables:
    """What is asked about: rows by table, and all figures of tasks that enough cards have."""

    rows: dict[str, tuple[PublishedRow, ...]]
    all_rows: list[PublishedRow]
    specs: dict[str, CardSpecs]
    figures: pd.DataFrame


def read() -> Tables:
    """The clone's tables."""
    specs, rows = load_specs(ROOT, load_cards(ROOT)), read_tables(ROOT)
    every = [row for table in rows.values() for row in table]
    return Tables(rows, every, specs, modelled(described(figures_of(every), specs)))


def each_card(tables: Tables) -> Iterator[pd.DataFrame]:
    """Every card left out of everything, scatter and ranges too."""
    for card, rows in tables.figures.groupby("card"):
        model = model_of([r for r in tables.all_rows if r.card != card], tables.specs)
        yield looks(model, rows)


def each_table(tables: Tables) -> pd.DataFrame:
    """Every table left out, so that its software is of no table; its cards may be in others."""
    outcomes = []
    for name, table in tables.rows.items():
        asked = described(figures_of(table), tables.specs)
        rest = [row for other, rows in tables.rows.items() if other != name for row in rows]
        held = modelled(described(figures_of(rest), tables.specs))
        asked = asked[asked.task.isin(set(held.task)) & ~asked.software.isin(set(held.software))]
        if len(asked):
            model = model_of(rest, tables.specs)
            outcomes.append(looks(model, asked.reset_index(drop=True)))
    return pd.concat(outcomes)


def forward(tables: Tables, year: int) -> pd.DataFrame:
    """Cards launched after a year, from those up to it."""
    known = {name for name, card in tables.specs.items() if card.year <= year}
    rows = [row for row in tables.all_rows if row.card in known]
    model = model_of(rows, tables.specs)
    later = tables.figures[~tables.figures.card.isin(known)]
    later = later[later.task.isin(set(model.tasks))].reset_index(drop=True)
    return looks(model, later)


def frozen(tables: Tables) -> pd.DataFrame:
    """What the model said of the tables of 2026 before they came in, each card left out of all tables."""
    before = {name: rows for name, rows in tables.rows.items() if not name.endswith(LATEST)}
    rest = [row for rows in before.values() for row in rows]
    asked = [row for name, rows in tables.rows.items() if name not in before for row in rows]
    figures = described(figures_of(asked), tables.specs)
    held = set(modelled(described(figures_of(rest), tables.specs)).task)
    found = []
    for card, rows in figures[figures.task.isin(held)].groupby("card"):
        model = model_of([row for row in rest if row.card != card], tables.specs, BEFORE)
        found.append(looks(model, rows))
    return pd.concat(found)


def medians(title: str, ratios: Sequence[float], goals: Sequence[tuple[float, float]]) -> bool:
    """Prints how many medians of true over expected lie where; whether the goals are met."""
    found, met = np.exp(ratios), []
    for low, high in ((0.9, 1.1), (0.8, 1.25)):
        met.append(float(np.mean((found >= low) & (found <= high))))
    print(f"{title:58} {len(found):4}  {met[0]:6.1%}  {met[1]:6.1%}", flush=True)
    return all(one >= goal for one, goal in zip(met, goals, strict=True))


def software_and_cards(tables: Tables) -> dict[str, bool]:
    """Medians of true over expected: one software of a card left out, then whole cards."""
    fitted = fit(tables.figures)
    figures = fitted.figures
    same, other, known, first = [], [], [], []
    for _, rows in figures.groupby("card"):
        for _, own in rows.groupby("software"):
            if len(own) < len(rows):
                errors, _ = fitted.before(own.index.to_numpy()).without(own.index.to_numpy())
                has = (rows.drop(own.index).program == own.program.iloc[0]).any()
                (same if has else other).append(float(np.median(errors)))
        errors, deviations = fitted.before(rows.index.to_numpy()).without(rows.index.to_numpy())
        alone = figures[figures.architecture == rows.architecture.iloc[0]].card.nunique() == 1
        errors = errors[deviations < UNKNOWN_LEVEL]
        if len(errors):
            (first if alone else known).append(float(np.median(errors)))
    print(f"\n{'median of true over expected, left out':58} {'':4}  0.9-1.1  0.8-1.25")
    medians("one software of a card that has another of the program", same, SOFTWARE_GOALS)
    medians("one software of a card that has only other programs", other, SOFTWARE_GOALS)
    goal = medians("one software of a card that has another", same + other, SOFTWARE_GOALS)
    whole = medians("a whole card, others of its architecture known", known, CARD_GOALS)
    medians("a whole card, the first of its architecture", first, CARD_GOALS)
    return {"left-out software": goal, "left-out cards": whole}


def quantile(values: pd.Series, cards: pd.Series, level: float) -> float:
    """The quantile of values, each card counting alike."""
    order = np.argsort(values.to_numpy())
    reached = np.cumsum((1 / cards.map(cards.value_counts())).to_numpy()[order]) / cards.nunique()
    return float(values.to_numpy()[order][min(int(np.searchsorted(reached, level)), len(values) - 1)])


@dataclass(frozen=True, slots=True)
class Summary:
    """Coverage of the 90 % ranges with its standard error, their median factor, and the cards refused."""

    coverage: float
    error: float
    width: float
    refused: float


HEADING = (
    f"{'left out':34} {'cards':>5} {'figures':>7}  {'coverage':>14}   {'width (by figure)':>17}"
    f"   {'median':>6} {'90 %':>6}   {'refused':>7}"
)


def summary(title: str, found: pd.DataFrame) -> Summary:
    """Prints a row; a card is refused where every figure of it is."""
    said = found.dropna()
    by_card = (said.error <= said.reach).groupby(said.card).mean()
    one = Summary(
        coverage=float(by_card.mean()),
        error=float(by_card.std() / math.sqrt(len(by_card))),
        width=math.exp(quantile(said.reach, said.card, 0.5)),
        refused=1 - len(by_card) / found.card.nunique(),
    )
    print(
        f"{title:34} {len(by_card):5} {len(said):7}  {one.coverage:6.1%} ± {one.error:4.1%}"
        f"   ×/÷ {one.width:.2f} ({math.exp(said.reach.median()):.2f})"
        f"   {math.expm1(quantile(said.error, said.card, 0.5)):6.1%}"
        f" {math.expm1(quantile(said.error, said.card, 0.9)):6.1%}   {one.refused:6.1%}",
        flush=True,
    )
    return one


Baseline = Callable[[pd.DataFrame, pd.DataFrame], np.ndarray]
"""The logarithms for rows of one task, from the other cards' rows of it."""


def nearest(rows: pd.DataFrame, others: pd.DataFrame) -> np.ndarray:
    """The figure of the card whose peak is nearest."""
    return others.log_speed.to_numpy()[_nearest(rows, others)]


def _nearest(rows: pd.DataFrame, others: pd.DataFrame) -> np.ndarray:
    a, b = np.stack(list(rows.features)), np.stack(list(others.features))
    return np.abs(a[:, :1] - b[:, 0]).argmin(axis=1)


def scaled(rows: pd.DataFrame, others: pd.DataFrame) -> np.ndarray:
    """That figure, times the ratio of the bandwidths."""
    place = _nearest(rows, others)
    a, b = np.stack(list(rows.features)), np.stack(list(others.features))[place]
    return others.log_speed.to_numpy()[place] + a[:, 2] - b[:, 2]


def roofline(rows: pd.DataFrame, others: pd.DataFrame) -> np.ndarray:
    """A time per peak and a time per bandwidth, fitted to the task's other cards without weights."""
    a, b = (np.exp(-np.stack(list(frame.features))[:, [0, 2]]) for frame in (rows, others))
    speeds = np.exp(others.log_speed.to_numpy())
    found, _ = nnls(b * speeds[:, None], np.ones(len(b)))
    return -np.log(a @ found)


def baseline(tables: Tables, title: str, predict: Baseline) -> None:
    """Prints the median and the 90th percentile of a baseline's errors, each card left out."""
    found = pd.concat(
        pd.DataFrame({"card": card, "error": np.abs(own.log_speed - predict(own, rows[rows.card != card]))})
        for _, rows in tables.figures.groupby("task")
        for card, own in rows.groupby("card")
    )
    median, upper = (math.expm1(quantile(found.error, found.card, level)) for level in (0.5, 0.9))
    print(f"{title:34} {median:6.1%} {upper:6.1%}")


def measure() -> int:
    """Prints everything; the number of goals that were missed."""
    started, tables = time.monotonic(), read()
    print(
        f"{len(tables.all_rows)} rows of one device, {len(tables.figures)} figures of "
        f"{tables.figures.task.nunique()} tasks that {FEWEST_CARDS} cards or more have, "
        f"{tables.figures.card.nunique()} cards; settings as committed\n\n{HEADING}",
        flush=True,
    )
    summary("frozen: the tables of 2026, card left out", frozen(tables))
    paper = summary("one card, from specifications", pd.concat(each_card(tables)))
    summary("one table: its software is new", each_table(tables))
    later = [summary(f"cards after {year}", forward(tables, year)) for year in CUTS]
    print(f"\n{'baseline, one card left out':34} {'median':>6} {'90 %':>6}")
    for name, predict in (("nearest peak", nearest), ("scaled by bandwidth", scaled), ("roofline", roofline)):
        baseline(tables, name, predict)
    goals = software_and_cards(tables) | {
        "coverage from specifications": COVERAGE[0] <= paper.coverage <= COVERAGE[1],
        f"median width at most ×/÷ {WIDTH}": paper.width <= WIDTH,
        f"coverage of later cards at least {FORWARD:.0%}": min(one.coverage for one in later) >= FORWARD,
        f"at most {REFUSED:.0%} of the cards refused": paper.refused <= REFUSED,
    }
    missed = [name for name, met in goals.items() if not met]
    print(f"\n{time.monotonic() - started:.0f} s; goals missed: {'; '.join(missed) or 'none'}")
    print(
        f"coverage {paper.coverage:.1%} ± {paper.error:.1%}, width ×/÷ {paper.width:.2f}, later cards "
        f"{' and '.join(f'{one.coverage:.1%}' for one in later)}, refused {paper.refused:.1%}"
    )
    return len(missed)


def without(name: str) -> None:
    """One card's rows over the ranges that the other cards give, as text and as a picture."""
    tables = read()
    card = named(name, {key: tables.specs[key] for key in set(tables.figures.card)})
    model = model_of([row for row in tables.all_rows if row.card != card.name], tables.specs)
    shown: list[tuple[TrainingTask, str, float, ExpectedValue]] = []
    for row in tables.figures[tables.figures.card == card.name].itertuples():
        task = model.tasks.get(str(row.task))
        said = model.ask(card, task, software=str(row.software)) if task else Refusal("task")
        name = f"{row.program} {row.work}, {row.precision}, {row.software}"
        if isinstance(said, Refusal):
            print(f"{name:90} refused: {said.reason} {said.found}")
        else:
            shown.append((said.task, name, said.task.value(float(row.log_speed)), said))
    for task, name, value, said in shown:
        mark = "" if min(said.low, said.high) <= value <= said.high else "  OUTSIDE"
        print(
            f"{name:90} {value:10.4g} {task.unit:10} expected {said.value:10.4g} "
            f"({said.low:.4g} to {said.high:.4g}){mark}"
        )
    _draw(card.name, [(name, value / said.value, said) for _, name, value, said in shown])


def _draw(card: str, shown: Sequence[tuple[str, float, ExpectedValue]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 0.6 + 0.2 * len(shown)), layout="constrained")
    axes = figure.subplots()
    for place, (_, ratio, said) in enumerate(shown):
        axes.plot([said.low / said.value, said.high / said.value], [place] * 2, color="#c8d4e8", lw=6)
        axes.plot([ratio], [place], "o", color="#333333", ms=4)
    axes.axvline(1, color="#888888", lw=0.8)
    axes.set_yticks(range(len(shown)), [name for name, _, _ in shown], fontsize=7)
    axes.set_xscale("log")
    axes.set_xlabel(f"{card}: published ÷ expected; ranges of 90 % from the other cards")
    path = Path(f"expected-{card.replace(' ', '-')}.svg")
    figure.savefig(path)
    print(f"drawn in {path}")


def main() -> int:
    """The verb that was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--without", metavar="CARD")
    asked = parser.parse_args()
    try:
        if asked.without:
            without(asked.without)
        else:
            return 1 if measure() else 0
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
