"""The money section: what stands on the buyer's file, or the break-even ratio alone where there is none."""

from __future__ import annotations

import math
from datetime import date

from report.analysis import Analysis
from report.cost.inputs import DRAWS, CostInputs
from report.cost.model import Draws
from report.cost.purchase import Purchase
from report.sections import cost_charts, cost_tables, cost_text
from report.sections.view import CostView, Table
from report.text import clean, count, number, times

OLD_DAYS = 90
"""A quote older than this is named."""

RULES = (
    "A card whose memory is less than what you need, or that failed on a line with hours, counts as not "
    "fit: it has no total and cannot win. Its other lines stay.",
    "A line that was not measured on a card leaves that card without a total; it is never counted as slow.",
    "The total is your hours, each line at its own speed. There is no score without its lines.",
    "Ranges hold 95 %: the measured interval, widened to any unit of the card's model, together with the "
    f"ranges of your file, over {DRAWS:,} draws that are the same each time.",
    "A card is called more efficient only where its measured energy differs by 5 % or more.",
)


def view(analysis: Analysis) -> CostView | None:
    """The section, or null where nothing on the page may be ranked and no file asks for it."""
    costs, purchase = analysis.costs, analysis.evidence.purchase
    if costs is None:
        return None if purchase is None else _nothing(purchase)
    found, result, pair, moved = costs.inputs, costs.answer, costs.pair, costs.sensitivities
    if purchase is None or result is None:
        return _ratios(found) if len(found.offers) > 1 else None
    names = [offer.name for offer in found.offers]
    drawn = [cost_charts.cost_and_time(result, found.numbers, purchase.currency)]
    if pair:
        drawn.append(cost_charts.break_even(result, found.numbers, pair, purchase.currency))
        drawn.append(cost_charts.tornado(moved, found.numbers, pair, purchase.currency))
    return CostView(
        answer=cost_text.answer_sentence(result, names),
        turn=cost_text.price_sentence(result, found.numbers, purchase.currency),
        setting=_setting(found),
        offers=cost_tables.offers(found, result),
        running=cost_tables.running(found, result),
        works=cost_tables.works(found, result),
        sensitivities=cost_tables.levers(found, moved, pair),
        panels=tuple(panel for panel in drawn if panel),
        quotes=cost_tables.quotes(found),
        rules=RULES,
        caveats=(*_doubts(found, analysis.question.now.date()), *found.caveats),
    )


def _nothing(purchase: Purchase) -> CostView:
    text = "Nothing on this page may be ranked yet, so no price can be set against it."
    wanted = ", ".join(clean(quote.card, 40) for quote in purchase.quote)
    turn = f"What is missing: ranked runs of {wanted}, in results/."
    return CostView(text, turn)


def _ratios(found: CostInputs) -> CostView:
    """Without prices: how many times another card's price each may cost, by speed alone."""
    drawn, base = Draws(found.numbers), found.numbers.hours_on
    rows, best = [], ("", 0.0)
    for i, offer in enumerate(found.offers):
        one, other = drawn.hours_best(i), drawn.hours_best(base)
        if i == base or one is None or other is None:
            continue
        low, high = drawn.pair_ends(i, base)
        speed, ends = other / one, (other / one * math.exp(-high), other / one * math.exp(-low))
        between = f"{times(ends[0])} to {times(ends[1])}"
        tied = "no difference shown" if ends[0] <= 1 <= ends[1] else ""
        name = found.offers[base].name
        rows.append((offer.name, f"{times(speed)} × the price of the {name}\n{between}", tied or "–"))
        if speed > best[1]:
            best = f"The {offer.name} wins below {times(speed)} times the price of the {name}", speed
            best = f"{best[0]} ({between}){': no difference in speed shown' if tied else ''}.", speed
    if not rows:
        return CostView("No two cards on this page did the same work.", "", caveats=found.caveats)
    note = "By speed alone, as if power and host cost nothing; purchase.toml (invoke quote) takes them in."
    caption = f"Break-even, in prices of the {found.offers[base].name}. {_setting(found)}"
    ratios = Table(caption, ("Card", "Wins below", ""), tuple(rows))
    return CostView(best[0], note, ratios=ratios, caveats=found.caveats)


def _setting(found: CostInputs) -> str:
    on = found.offers[found.numbers.hours_on].name
    lines = count(len(found.lines), "line")
    if found.own_mix:
        hours = number(sum(line.hours for line in found.lines))
        return f"The mix: {lines} of your own, {hours} hours a week on the {on}."
    return f"The mix: {lines} of equal work, an hour of each on the {on}, since no mix of your own is given."


def _doubts(found: CostInputs, today: date) -> tuple[str, ...]:
    lines = []
    for quote in found.purchase.quote if found.purchase else ():
        age, name = (today - quote.date).days, clean(quote.card, 60)
        if age > OLD_DAYS:
            lines.append(f"The quote for '{name}' is {age:,} days old.")
        if age < -1:
            lines.append(f"The quote for '{name}' is dated after this page was written.")
    if len(found.offers) < 2:
        lines.append(
            f"Only the {found.offers[0].name} has ranked runs: to compare, copy another card's "
            "records into results/."
        )
    if any(line.key.data_mode == "host" for line in found.lines):
        lines.append(
            "Part of the mix was fed by the host's loader: there the ranking is of machines, not of cards."
        )
    if any(len({cell.stack for cell in line.cells if cell}) > 1 for line in found.lines):
        lines.append("The cards ran on different stacks, which the charts of each line name.")
    return tuple(lines)
