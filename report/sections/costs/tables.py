"""The tables of the money section."""

from __future__ import annotations

from collections.abc import Sequence

from report import text as words
from report.cost.inputs import CostInputs, Range
from report.cost.model import CostAnswer
from report.cost.sensitivity import Sensitivity
from report.sections.costs import wording
from report.sections.view import Table, tabled


def offers(inputs: CostInputs, result: CostAnswer) -> Table:
    """One row for each card: what the work costs on it, and from which price on."""
    currency = inputs.purchase.currency if inputs.purchase else ""
    rows = [
        {
            "Card": _over(inputs.offers[i].name, _why(inputs, i)),
            f"Cost a year, {currency}": _cell(card.cost, "number"),
            "Against the cheapest": _cell(card.ratio, "times"),
            f"Costs least below, {currency}": _cell(card.break_even, "price"),
            "Hours a year": _cell(card.hours, "number"),
            "How many": "–" if card.count is None else f"{card.count:,}",
            "Times your work": _cell(card.times, "number"),
        }
        for i, card in enumerate(result.cards)
    ]
    caption = (
        "Each figure with its 95 % range beneath it, for any unit of the card's model. 'Costs least below' "
        "is the price at which a card costs as much as the cheapest; of the cheapest, as much as the second. "
        "'How many' is what budget, slots, watts and your number allow. 'Times your work' is what so many "
        "train in a year, or one where you set no limit."
    )
    return tabled(caption, rows)


def running(inputs: CostInputs, result: CostAnswer) -> Table:
    """One row for each card: money and energy for an hour and for the work."""
    currency = inputs.purchase.currency if inputs.purchase else ""
    cheapest = result.order[0] if result.order else None
    rows = []
    for i, card in enumerate(result.cards):
        efficient = "–"
        if cheapest is not None:
            measured = inputs.measured_power[i] and inputs.measured_power[cheapest]
            names = (inputs.offers[i].name, inputs.offers[cheapest].name)
            efficient = wording.efficiency(card.energy, *names, measured)
        rows.append(
            {
                "Card": inputs.offers[i].name,
                f"An hour, {currency}": _cell(card.hourly, "number"),
                f"Years of work per 1,000 {currency}": _cell(_per_thousand(card.cost), "number"),
                "kWh a year, at the wall": _cell(card.kwh, "number"),
                "Years of work per MWh": _cell(_per_thousand(card.kwh), "number"),
                "Energy against the cheapest": efficient,
            }
        )
    caption = (
        "Performance per money and per watt. At the wall: the card and its part of the host, times PUE. The "
        "last column is of the cards alone."
    )
    return tabled(caption, rows)


def _per_thousand(cost: Range | None) -> Range | None:
    if cost is None or cost[0] <= 0:
        return None
    return 1000 / cost[2], 1000 / cost[1], 1000 / cost[0]


def _why(inputs: CostInputs, i: int) -> str:
    """Why a card has no total, and what is unknown of it."""
    card, offer = inputs.numbers.cards[i], inputs.offers[i]
    if not card.fits:
        return "does not fit: too little memory"
    reasons = [
        f"{line.name}: {line.reasons[i]}" for line in inputs.lines if line.hours > 0 and line.reasons[i]
    ]
    if reasons:
        return "; ".join(reasons[:3])
    if offer.quote is None:
        return "no quote" if any(card.watts) else "no quote, and its power is not known"
    if not card.rented and not inputs.measured_power[i]:
        return "power not known: give watts" if not any(card.watts) else "board power, not measured"
    return "rented" if card.rented else ""


def _cell(values: Range | None, form: str, unit: str = "") -> str:
    if values is None:
        return "–"
    return _over(wording.written(values[1], form) + unit, wording.spread(values, form))


def _over(text: str, beneath: str) -> str:
    return f"{text}\n{beneath}" if beneath else text


def works(inputs: CostInputs, result: CostAnswer) -> Table:
    """One row for each line and card: one unit of its work."""
    currency = inputs.purchase.currency if inputs.purchase else ""
    rows = []
    for k, line in enumerate(inputs.lines):
        for i, offer in enumerate(inputs.offers):
            work = result.cards[i].rows[k]
            measured = line.cells[i] is None or inputs.measured_power[i] or work.joules is None
            joules = _cell(work.joules, "number")
            if not measured:
                joules = _over(joules.partition("\n")[0], "board power, not measured")
            epoch = None if line.by_throughput else _divided(work.cost, line.epochs)
            rows.append(
                {
                    "Line": _over(line.name, f"one {line.unit}"),
                    "Card": _over(offer.name, line.reasons[i]),
                    f"Cost of one, {currency}": _cell(work.cost, "number"),
                    f"Cost of an epoch, {currency}": _cell(epoch, "number"),
                    "Joules of the card": joules,
                    "A year, one card": _cell(work.year, "number"),
                }
            )
    return tabled("Every line of the work by itself.", rows)


def _divided(values: Range | None, by: int) -> Range | None:
    return None if values is None else (values[0] / by, values[1] / by, values[2] / by)


def sensitivities(
    inputs: CostInputs, ranked: Sequence[Sensitivity], pair: tuple[int, int] | None
) -> Table | None:
    """One row for each input, those that move the answer most at the top; null without two priced cards."""
    if pair is None or inputs.purchase is None or not ranked:
        return None
    first, second = (words.the(inputs.offers[i].name) for i in pair)
    rows = []
    for sensitivity in ranked:
        name, unit = wording.input_name(sensitivity, inputs.numbers, *pair, inputs.purchase.currency)
        low, high = sorted((1 / sensitivity.at_low, 1 / sensitivity.at_high))
        reach = f"{words.times(low)} to {words.times(high)}" if sensitivity.reach > 1e-9 else "–"
        flip = "at no value"
        if sensitivity.flip is not None:
            flip = f"{wording.written(sensitivity.flip, 'number')}{unit}"
            flip += "\nwithin its range" if sensitivity.within else ""
        rows.append((name, _cell(sensitivity.values, "number", unit), reach, flip))
    caption = (
        f"What matters: how far each input moves the cost of {second} over {first}, while all others stay "
        "at best; and at which value the two cost the same."
    )
    return Table(caption, ("Input", "Value", "Moves the ratio to", "The ranking turns at"), tuple(rows))


def quotes(inputs: CostInputs) -> Table | None:
    """The quotes with their dates and sources."""
    if inputs.purchase is None:
        return None
    rows = []
    for quote in inputs.purchase.quote:
        unit = f" {wording.price_unit(quote.currency, quote)}"
        price, source = _cell(quote.cost, "number", unit), words.clean(quote.source, 160)
        rows.append((words.clean(quote.card, 60), price, quote.date.isoformat(), source))
    return Table("The quotes, as given.", ("Card", "Price", "Date", "Source"), tuple(rows))
