"""The money section: what stands on the buyer's file, or the break-even ratio alone where there is none."""

from __future__ import annotations

import math
from datetime import date

from report.analysis import Analysis
from report.cost.inputs import DRAWS, CostInputs
from report.cost.model import Draws
from report.cost.purchase import Purchase
from report.sections.costs import charts, tables, wording
from report.sections.view import Badge, CostView, Table
from report.text import clean, count, joined, the, times

OLD_DAYS = 90
"""A quote older than this is named."""

RULES = (
    "A card whose memory is less than what you need, or that failed on a line with hours, counts as not "
    "fit: it has no total and cannot win. Its other lines stay.",
    "A line that was not measured on a card leaves that card without a total; it is never counted as slow.",
    "The total is your hours, each line at its own speed. There is no score without its lines.",
    "Ranges hold 95 %: the measured interval, widened to any unit of the card's model, together with the "
    f"ranges of your file. They are {DRAWS:,} draws that are the same each time.",
    "A card is called more efficient only where its measured energy differs by 5 % or more.",
)


def view(analysis: Analysis) -> CostView | None:
    """The section, or null where nothing on the page may be ranked and no file asks for it."""
    costs, purchase = analysis.costs, analysis.evidence.purchase
    if costs is None:
        return None if purchase is None else _nothing(purchase)
    inputs, result, pair, sensitivities = costs.inputs, costs.answer, costs.pair, costs.sensitivities
    if purchase is None or result is None:
        return _ratios(inputs) if len(inputs.offers) > 1 else None
    names = [offer.name for offer in inputs.offers]
    drawn = [charts.price_line(costs, purchase.currency)]
    drawn.append(charts.cost_and_time(result, costs.numbers, purchase.currency))
    if pair:
        drawn.append(charts.tornado(sensitivities, costs.numbers, pair, purchase.currency))
    turns = (
        wording.price_sentence(result, costs.numbers, purchase.currency),
        wording.power_sentence(costs),
    )
    return CostView(
        answer=wording.answer_sentence(result, names),
        turn=" ".join(sentence for sentence in turns if sentence),
        setting=_setting(inputs),
        offers=tables.offers(inputs, result),
        running=tables.running(inputs, result),
        works=tables.works(inputs, result),
        sensitivities=tables.sensitivities(inputs, sensitivities, pair),
        panels=tuple(panel for panel in drawn if panel),
        quotes=tables.quotes(inputs),
        rules=RULES,
        caveats=(*_caveats(inputs, analysis.question.now.date()), *inputs.caveats),
    )


def badges(analysis: Analysis) -> tuple[Badge, ...]:
    """A label where an offer that the answer stands on is over a year old."""
    costs, today = analysis.costs, analysis.question.now.date()
    if costs is None or costs.answer is None:
        return ()
    offers = [costs.inputs.offers[place] for place in costs.answer.order]
    old = [the(offer.name) for offer in offers if offer.quote and wording.is_old(offer.quote, today)]
    if not old:
        return ()
    return (Badge("offer over a year old", f"it is that for {joined(old)}"),)


def _nothing(purchase: Purchase) -> CostView:
    text = "Nothing on this page may be ranked yet, so no price can be set against it."
    wanted = ", ".join(clean(quote.card, 40) for quote in purchase.quote)
    turn = f"What is missing: ranked runs of {wanted}, in results/."
    return CostView(text, turn)


def _ratios(inputs: CostInputs) -> CostView:
    """Without prices: how many times another card's price each may cost, by speed alone."""
    drawn, base = Draws(inputs.numbers), inputs.numbers.hours_on
    rows, best = [], ("", 0.0)
    for i, offer in enumerate(inputs.offers):
        own_hours, other = drawn.hours_best(i), drawn.hours_best(base)
        if i == base or own_hours is None or other is None:
            continue
        low, high = drawn.pair_ends(i, base)
        speed, ends = (
            other / own_hours,
            (other / own_hours * math.exp(-high), other / own_hours * math.exp(-low)),
        )
        between = f"{times(ends[0])} to {times(ends[1])}"
        tied = "no difference shown" if ends[0] <= 1 <= ends[1] else ""
        name = the(inputs.offers[base].name)
        rows.append((offer.name, f"{times(speed)} × the price of {name}\n{between}", tied or "–"))
        if speed > best[1]:
            card = the(offer.name)
            price = f"{times(speed)} times the price of {name} ({between})"
            said = f"If both are kept busy, {card} is the cheaper below {price}."
            if tied:
                said = (
                    f"No difference in speed is shown: {card} is worth {between} times the price of {name}."
                )
            best = said, speed
    if not rows:
        return CostView("No two cards on this page did the same work.", "", caveats=inputs.caveats)
    note = "By speed alone, as if power and host cost nothing; purchase.toml (invoke quote) takes them in."
    caption = f"Break-even, in prices of {the(inputs.offers[base].name)}. {_setting(inputs)}"
    ratios = Table(caption, ("Card", "Costs less below", "Standing"), tuple(rows))
    return CostView(best[0], note, ratios=ratios, caveats=inputs.caveats)


def _setting(inputs: CostInputs) -> str:
    on = the(inputs.offers[inputs.numbers.hours_on].name)
    if inputs.purchase is None:
        return f"Equal shares of {count(len(inputs.lines), 'work')} that both have done, on {on}."
    return wording.work_sentence(inputs)


def _caveats(inputs: CostInputs, today: date) -> tuple[str, ...]:
    lines = []
    for quote in inputs.purchase.quote if inputs.purchase else ():
        age, name = (today - quote.date).days, clean(quote.card, 60)
        if age > OLD_DAYS:
            lines.append(f"The quote for '{name}' is {age:,} days old.")
        if age < -1:
            lines.append(f"The quote for '{name}' is dated after this page was written.")
    if len(inputs.offers) < 2:
        lines.append(
            f"Only {the(inputs.offers[0].name)} has ranked runs: to compare, copy another card's "
            "records into results/."
        )
    if any(line.key.data_mode == "host" for line in inputs.lines):
        lines.append(
            "Part of the work was fed by the host's loader: there the ranking is of machines, not of cards."
        )
    if any(len({cell.stack for cell in line.cells if cell}) > 1 for line in inputs.lines):
        lines.append("The cards ran on different stacks, which the charts of each line name.")
    return tuple(lines)
