"""The tables of the money section."""

from __future__ import annotations

from collections.abc import Sequence

from report import text
from report.cost.inputs import Gathered
from report.cost.model import CostAnswer
from report.cost.numbers import Range
from report.cost.sensitivity import Sensitivity
from report.sections import cost_text
from report.sections.view import CostCell, CostTable, Table


def offers(found: Gathered, result: CostAnswer) -> CostTable:
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
        place = f"cards.{i}"
        counted = "–" if card.count is None else f"{card.count:,}"
        rows.append(
            (
                CostCell(found.offers[i].name, _why(found, i)),
                _cell(card.cost, f"{place}.cost", "number"),
                _cell(card.ratio, f"{place}.ratio", "times"),
                _cell(card.break_even, f"{place}.break_even", "price"),
                _cell(card.hours, f"{place}.hours", "number"),
                CostCell(counted, path=f"{place}.count", form="count"),
                _cell(card.week, f"{place}.week", "number"),
            )
        )
    caption = (
        "Each figure with its 95 % range beneath it, for any unit of the card's model. 'Wins below' is the "
        "price at which a card costs as much as the cheapest; of the cheapest, as much as the second. 'How "
        "many' is what budget, slots, watts and your number allow; so many train the mixes a week, or one "
        "where you set no limit."
    )
    return CostTable(caption, columns, tuple(rows))


def running(found: Gathered, result: CostAnswer) -> CostTable:
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
        place, efficient = f"cards.{i}", "–"
        if cheapest is not None:
            measured = found.measured_power[i] and found.measured_power[cheapest]
            names = (found.offers[i].name, found.offers[cheapest].name)
            efficient = cost_text.efficiency(card.energy, *names, measured)
        main, _, beneath = efficient.partition("\n")
        rows.append(
            (
                CostCell(found.offers[i].name),
                _cell(card.hourly, f"{place}.hourly", "number"),
                _cell(_per_thousand(card.cost), f"{place}.mixes", "number"),
                _cell(card.kwh, f"{place}.kwh", "number"),
                _cell(_per_thousand(card.kwh), f"{place}.per_mwh", "number"),
                CostCell(main, beneath),
            )
        )
    caption = (
        "Performance per money and per watt. At the wall: the card and its part of the host, times PUE. The "
        "last column is of the cards alone, and as filed."
    )
    return CostTable(caption, columns, tuple(rows))


def _per_thousand(cost: Range | None) -> Range | None:
    if cost is None or cost[0] <= 0:
        return None
    return 1000 / cost[2], 1000 / cost[1], 1000 / cost[0]


def _why(found: Gathered, i: int) -> str:
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


def _cell(values: Range | None, path: str, form: str) -> CostCell:
    if values is None:
        return CostCell("–", "", path, form)
    return CostCell(cost_text.written(values[1], form), cost_text.spread(values, form), path, form)


def works(found: Gathered, result: CostAnswer) -> CostTable:
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
            one, place = result.cards[i].rows[k], f"cards.{i}.rows.{k}"
            measured = line.cells[i] is None or found.measured_power[i] or one.joules is None
            joules = _cell(one.joules, f"{place}.joules", "number")
            if not measured:
                joules = CostCell(joules.text, "board power, not measured")
            epoch = (
                _cell(_divided(one.cost, line.epochs), f"{place}.epoch", "number")
                if not line.by_throughput
                else CostCell("–")
            )
            rows.append(
                (
                    CostCell(line.name, f"one {line.unit}"),
                    CostCell(offer.name, line.reasons[i]),
                    _cell(one.cost, f"{place}.cost", "number"),
                    epoch,
                    joules,
                    _cell(one.week, f"{place}.week", "number"),
                )
            )
    return CostTable("Every line of the mix by itself.", columns, tuple(rows))


def _divided(values: Range | None, by: int) -> Range | None:
    return None if values is None else (values[0] / by, values[1] / by, values[2] / by)


def levers(found: Gathered, moved: Sequence[Sensitivity], pair: tuple[int, int] | None) -> Table | None:
    """One row for each input, those that move the answer most at the top; null without two priced cards."""
    if pair is None or found.purchase is None or not moved:
        return None
    first, second = (found.offers[i].name for i in pair)
    rows = []
    for lever in moved:
        name, unit = cost_text.lever_name(lever, found.numbers, *pair, found.purchase.currency)
        low, high = sorted((1 / lever.at_low, 1 / lever.at_high))
        reach = f"{text.times(low)} to {text.times(high)}" if lever.reach > 1e-9 else "–"
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


def quotes(found: Gathered) -> Table | None:
    """The quotes with their dates and sources."""
    if found.purchase is None:
        return None
    rows = []
    for quote in found.purchase.quote:
        unit = f" {quote.currency}{' an hour' if quote.rented else ''}"
        between = cost_text.spread(quote.cost, "number")
        price = f"{cost_text.written(quote.cost[1], 'number')}{unit}" + (f"\n{between}" if between else "")
        rows.append(
            (text.clean(quote.card, 60), price, quote.date.isoformat(), text.clean(quote.source, 160))
        )
    return Table("The quotes, as given.", ("Card", "Price", "Date", "Source"), tuple(rows))
