"""The tables of the money section."""

from __future__ import annotations

from collections.abc import Sequence

from report import text as words
from report.cost.inputs import CostInputs, Range
from report.cost.model import CostAnswer
from report.cost.sensitivity import Sensitivity
from report.sections import cost_text
from report.sections.view import Table


def offers(found: CostInputs, result: CostAnswer) -> Table:
    """One row for each card: what the mix costs on it, and from which price on."""
    currency = found.purchase.currency if found.purchase else ""
    columns = (
        "Card",
        f"A week's mix, {currency}",
        "Against the cheapest",
        f"Wins below, {currency}",
        "Hours for the mix",
        "How many",
        "Mixes a week",
    )
    rows = []
    for i, card in enumerate(result.cards):
        rows.append(
            (
                _over(found.offers[i].name, _why(found, i)),
                _cell(card.cost, "number"),
                _cell(card.ratio, "times"),
                _cell(card.break_even, "price"),
                _cell(card.hours, "number"),
                "–" if card.count is None else f"{card.count:,}",
                _cell(card.week, "number"),
            )
        )
    caption = (
        "Each figure with its 95 % range beneath it, for any unit of the card's model. 'Wins below' is the "
        "price at which a card costs as much as the cheapest; of the cheapest, as much as the second. 'How "
        "many' is what budget, slots, watts and your number allow; so many train the mixes a week, or one "
        "where you set no limit."
    )
    return Table(caption, columns, tuple(rows))


def running(found: CostInputs, result: CostAnswer) -> Table:
    """One row for each card: money and energy for an hour and for the mix."""
    currency = found.purchase.currency if found.purchase else ""
    columns = (
        "Card",
        f"An hour, {currency}",
        f"Mixes per 1,000 {currency}",
        "kWh a mix, at the wall",
        "Mixes per MWh",
        "Energy against the cheapest",
    )
    cheapest = result.order[0] if result.order else None
    rows = []
    for i, card in enumerate(result.cards):
        efficient = "–"
        if cheapest is not None:
            measured = found.measured_power[i] and found.measured_power[cheapest]
            names = (found.offers[i].name, found.offers[cheapest].name)
            efficient = cost_text.efficiency(card.energy, *names, measured)
        rows.append(
            (
                found.offers[i].name,
                _cell(card.hourly, "number"),
                _cell(_per_thousand(card.cost), "number"),
                _cell(card.kwh, "number"),
                _cell(_per_thousand(card.kwh), "number"),
                efficient,
            )
        )
    caption = (
        "Performance per money and per watt. At the wall: the card and its part of the host, times PUE. The "
        "last column is of the cards alone."
    )
    return Table(caption, columns, tuple(rows))


def _per_thousand(cost: Range | None) -> Range | None:
    if cost is None or cost[0] <= 0:
        return None
    return 1000 / cost[2], 1000 / cost[1], 1000 / cost[0]


def _why(found: CostInputs, i: int) -> str:
    """Why a card has no total, and what is unknown of it."""
    card, offer = found.numbers.cards[i], found.offers[i]
    if not card.fits:
        return "does not fit: too little memory"
    reasons = [
        f"{line.name}: {line.reasons[i]}" for line in found.lines if line.hours > 0 and line.reasons[i]
    ]
    if reasons:
        return "; ".join(reasons[:3])
    if offer.quote is None:
        return "no quote" if any(card.watts) else "no quote, and its power is not known"
    if not card.rented and not found.measured_power[i]:
        return "power not known: give watts" if not any(card.watts) else "board power, not measured"
    return "rented" if card.rented else ""


def _cell(values: Range | None, form: str) -> str:
    return (
        "–" if values is None else _over(cost_text.written(values[1], form), cost_text.spread(values, form))
    )


def _over(text: str, beneath: str) -> str:
    return f"{text}\n{beneath}" if beneath else text


def works(found: CostInputs, result: CostAnswer) -> Table:
    """One row for each line and card: one unit of its work."""
    currency = found.purchase.currency if found.purchase else ""
    columns = (
        "Line",
        "Card",
        f"Cost of one, {currency}",
        f"Cost of an epoch, {currency}",
        "Joules of the card",
        "A week, one card",
    )
    rows = []
    for k, line in enumerate(found.lines):
        for i, offer in enumerate(found.offers):
            one = result.cards[i].rows[k]
            measured = line.cells[i] is None or found.measured_power[i] or one.joules is None
            joules = _cell(one.joules, "number")
            if not measured:
                joules = _over(joules.partition("\n")[0], "board power, not measured")
            epoch = None if line.by_throughput else _divided(one.cost, line.epochs)
            rows.append(
                (
                    _over(line.name, f"one {line.unit}"),
                    _over(offer.name, line.reasons[i]),
                    _cell(one.cost, "number"),
                    _cell(epoch, "number"),
                    joules,
                    _cell(one.week, "number"),
                )
            )
    return Table("Every line of the mix by itself.", columns, tuple(rows))


def _divided(values: Range | None, by: int) -> Range | None:
    return None if values is None else (values[0] / by, values[1] / by, values[2] / by)


def levers(found: CostInputs, moved: Sequence[Sensitivity], pair: tuple[int, int] | None) -> Table | None:
    """One row for each input, those that move the answer most at the top; null without two priced cards."""
    if pair is None or found.purchase is None or not moved:
        return None
    first, second = (found.offers[i].name for i in pair)
    rows = []
    for lever in moved:
        name, unit = cost_text.lever_name(lever, found.numbers, *pair, found.purchase.currency)
        low, high = sorted((1 / lever.at_low, 1 / lever.at_high))
        reach = f"{words.times(low)} to {words.times(high)}" if lever.reach > 1e-9 else "–"
        flip = "at no value"
        if lever.flip is not None:
            flip = f"{cost_text.written(lever.flip, 'number')}{unit}"
            flip += "\nwithin its range" if lever.within else ""
        between = cost_text.spread(lever.values, "number")
        value = f"{cost_text.written(lever.values[1], 'number')}{unit}" + (f"\n{between}" if between else "")
        rows.append((name, value, reach, flip))
    caption = (
        f"What matters: how far each input, over its own range and all others at best, moves the cost of the "
        f"{second} over the {first}, and at which value the two cost the same."
    )
    return Table(caption, ("Input", "Value", "Moves the ratio to", "The ranking turns at"), tuple(rows))


def quotes(found: CostInputs) -> Table | None:
    """The quotes with their dates and sources."""
    if found.purchase is None:
        return None
    rows = []
    for quote in found.purchase.quote:
        unit = f" {quote.currency}{' an hour' if quote.rented else ''}"
        between = cost_text.spread(quote.cost, "number")
        price = f"{cost_text.written(quote.cost[1], 'number')}{unit}" + (f"\n{between}" if between else "")
        rows.append(
            (words.clean(quote.card, 60), price, quote.date.isoformat(), words.clean(quote.source, 160))
        )
    return Table("The quotes, as given.", ("Card", "Price", "Date", "Source"), tuple(rows))
