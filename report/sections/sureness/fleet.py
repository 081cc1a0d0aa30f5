"""A fleet on the page: its units in order, those that stand out, and what their spread stands for."""

from __future__ import annotations

from collections.abc import Sequence

from report import text
from report.charts.lines import Curve, Curves
from report.comparisons.units.fleet import Fleet, Unit
from report.comparisons.units.outliers import FEWEST, LEVEL
from report.comparisons.units.spread import ASSUMED_UNIT_CV, cv_words
from report.sections.view import FleetView, Panel, Table

MOST_ROWS = 80
"""Of a table; of a larger fleet the fastest and the slowest are shown."""


def views(fleets: Sequence[Fleet]) -> tuple[FleetView, ...]:
    """Each card's fleet: what is said of it, its units in order, and a table of them."""
    return tuple(
        FleetView(
            text.clean(fleet.card, 60), _sentences(fleet), _panel(fleet, f"fleet-{place}"), _table(fleet)
        )
        for place, fleet in enumerate(fleets, 1)
    )


def _sentences(fleet: Fleet) -> tuple[str, ...]:
    key, units = fleet.key, fleet.units
    ahead = _percent(units[0].rate / units[-1].rate - 1)
    spread, assumed = cv_words(fleet.spread.cv), cv_words(ASSUMED_UNIT_CV)
    said = [
        f"{len(units)} units ran {text.model_name(key.model)} in {key.precision}, batch {key.batch_size}: "
        f"the fastest is {ahead} ahead of the slowest. Standard deviation {spread}, {fleet.spread.words}; "
        f"it stands in every purchase figure of this card in place of an assumed {assumed}."
    ]
    named = [f"{unit.name} ({_against(unit)})" for unit in fleet.standing_out]
    if named:
        stand, them = ("stands", "it") if len(named) == 1 else ("stand", "them")
        again = f"Measure {them} once more before anything follows from that."
        said.append(f"{', '.join(named)} {stand} out. {again}")
    elif len(units) >= FEWEST:
        said.append("No unit stands out.")
    else:
        said.append(f"Of fewer than {FEWEST} units none is said to stand out.")
    said.append(
        f"Generalised extreme Studentised deviate test on logarithms, at {text.percent(LEVEL)} for the whole "
        f"fleet of {len(units)}: of twenty fleets that differ by chance alone one has a unit named."
    )
    if fleet.told_apart is not None:
        said.append(
            f"Two units closer than {_percent(fleet.told_apart)} have no order: "
            "so far apart lie runs of one unit."
        )
    else:
        said.append("Each unit ran once, so its place may be that of the run: repeats would tell.")
    return tuple(said)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _against(unit: Unit) -> str:
    return f"{_percent(abs(unit.share - 1))} {'slower' if unit.share < 1 else 'faster'} than the median"


def _panel(fleet: Fleet, name: str) -> Panel:
    placed = list(enumerate(fleet.units, 1))
    card, precision = text.clean(fleet.card, 60), fleet.key.precision
    alike = tuple((float(place), unit.share) for place, unit in placed if not unit.stands_out)
    apart = tuple((float(place), unit.share) for place, unit in placed if unit.stands_out)
    last = float(len(placed))
    curves = [
        Curve("median", ((1.0, 1.0), (last, 1.0)), precision, card, published=True),
        Curve("units", alike, precision, card, marked=True, turn=0),
    ]
    curves += [Curve("stands out", (point,), precision, card, marked=True, turn=1) for point in apart]
    alt = "; ".join(f"{place}. {unit.name}: {text.times(unit.share)}" for place, unit in placed[:24])
    unit = f"{fleet.units[0].trials[0].sample_unit}s a second over the median unit's, the fastest first"
    return Panel(name, f"{len(placed)} units in order", unit, Curves(tuple(curves), "rank", "times"), alt)


def _table(fleet: Fleet) -> Table:
    placed = list(enumerate(fleet.units, 1))
    shown = placed if len(placed) <= MOST_ROWS else [*placed[: MOST_ROWS // 2], *placed[-MOST_ROWS // 2 :]]
    rows = tuple(_row(place, unit) for place, unit in shown)
    rate = f"{fleet.units[0].trials[0].sample_unit.capitalize()}s / s"
    caption = "Units of one card, the fastest first, by the mean of their runs."
    if len(shown) < len(placed):
        caption += f" {len(placed) - len(shown)} between them are left out; `invoke report --csv` has all."
    return Table(
        caption, ("Place", "Unit", rate, "Over the median", "Standard deviations", "Runs", "Note"), rows
    )


def _row(place: int, unit: Unit) -> tuple[str, ...]:
    causes = dict.fromkeys(text.named(cause) for trial in unit.trials for cause in trial.causes)
    note = [*(["stands out"] if unit.stands_out else []), *causes]
    return (
        str(place),
        unit.name,
        text.number(unit.rate, 4),
        f"{100 * (unit.share - 1):+.1f} %",
        f"{unit.deviations:+.1f}",
        str(len(unit.trials)),
        text.clean("; ".join(note) or "–", 200),
    )
