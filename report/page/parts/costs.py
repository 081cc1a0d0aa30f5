"""What the work costs: its lines, a year's cost of each offer, and where prices are from."""

from __future__ import annotations

from dataclasses import dataclass

from report.analysis import Analysis
from report.charts.bars import Bar, Bars, Group
from report.charts.marks import KeyEntry
from report.page.filters import value
from report.page.one.offers import OffersView, offers
from report.page.values import Picture, Systems


@dataclass(frozen=True, slots=True)
class CostsView:
    """The offers, and the picture of what they cost."""

    offers: OffersView
    picture: Picture | None


def view(analysis: Analysis, systems: Systems) -> CostsView | None:
    """The offers; null where there is no buyer's file."""
    if analysis.costs is None:
        return None
    found = offers(analysis, systems)
    return CostsView(found, _picture(found))


def _picture(found: OffersView) -> Picture | None:
    """Return the bars of a year's cost, one for each offer that has one; null where none has."""
    if not found.priced:
        return None
    bars = tuple(
        Bar(
            row.system.name,
            row.system.look if row.measured else "expected",
            row.cost.value,
            row.cost.low,
            row.cost.high,
            text=value(row.cost),
            slot=row.system.slot,
        )
        for row in found.priced
    )
    looks = {bar.look for bar in bars}
    key = (KeyEntry("expected", "expected", bars[0].slot),) if "expected" in looks and len(looks) > 1 else ()
    alt = "; ".join(f"{bar.label}: {bar.text}" for bar in bars)
    chart = Bars((Group("", bars),), axis=found.currency, key=key, reference=None)
    return Picture("costs-a-year", chart, alt)
