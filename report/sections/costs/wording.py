"""The sentences and figures of the money section."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date

from report import text
from report.cost.costs import Costs
from report.cost.inputs import CardNumbers, CostInputs, Numbers, Range
from report.cost.model import CostAnswer
from report.cost.purchase import Quote
from report.cost.sensitivity import Sensitivity

LEAST_EFFICIENCY = 0.05
"""Power sensors are documented to be off by 5 %: no card is called more efficient by less."""

MOST_LINES = 2
"""Of the work, that a sentence names: those of the most hours."""

INPUT_WORDS = {
    "life_years": ("years of life", ""),
    "utilisation": ("utilisation", ""),
    "electricity_price": ("price of electricity", " per kWh"),
    "pue": ("PUE", ""),
    "residual_share": ("residual share", ""),
    "host_price": ("host's price per card", ""),
    "host_watts": ("host's power per card", " W"),
}


def written(value: float, form: str) -> str:
    """One value: 'number', 'times' (two decimals), 'count' (whole) or 'price' (none below zero)."""
    if form == "count":
        return f"{value:,.0f}"
    if form == "times":
        return text.times(value)
    if form == "price" and value <= 0:
        return "no price"
    return text.number(value)


def spread(values: Range, form: str) -> str:
    """'120 to 150'; empty where nothing is uncertain."""
    low, _, high = values
    if low == high:
        return ""
    if form == "price":
        low, high = max(low, 0.0), max(high, 0.0)
    plain = "number" if form == "price" else form
    return f"{written(low, plain)} to {written(high, plain)}"


def about_price(values: Range, unit: str) -> str:
    """A price as a headline says it: '4,300 EUR (3,300 to 5,600)'.

    It has as many digits as its range bears, and one more where it begins with 1.
    """
    low, best, high = max(values[0], 0.0), values[1], max(values[2], 0.0)
    digits = text.digits_of(best, low, high)
    digits += best > 0 and best < 2 * 10 ** math.floor(math.log10(best))
    price = f"{text.rounded(best, digits)} {unit}"
    if values[0] == values[2]:
        return price
    return f"{price} ({text.rounded(low, digits)} to {text.rounded(high, digits)})"


def price_unit(currency: str, offer: Quote | CardNumbers) -> str:
    """'EUR', or 'EUR an hour' of what is rented"""
    return f"{currency} an hour" if offer.rented else currency


def price_of(quote: Quote) -> str:
    """'1,800 EUR' or '0.9 EUR an hour'"""
    return f"{text.number(quote.cost[1])} {price_unit(quote.currency, quote)}"


def less_or_least(answer: CostAnswer) -> str:
    """What the cheapest of the priced cards costs: 'less' of two, 'least' of more."""
    return "less" if len(answer.order) == 2 else "least"


def is_old(quote: Quote, today: date) -> bool:
    """Whether it is over a year old: page one says so."""
    return (today - quote.date).days > 365


def pair_sentences(costs: Costs, currency: str) -> Iterator[str]:
    """A year's cost and hours with the two cheapest, how they compare, and how many more offers there are."""
    answer, offers = costs.answer, [offer.name for offer in costs.inputs.offers]
    if answer is None:
        return
    if costs.pair is None:
        yield answer_sentence(answer, offers)
        return
    parts = []
    for place in costs.pair:
        cost, hours = answer.cards[place].cost, answer.cards[place].hours
        if cost and hours:
            a_year = f"{written(cost[1], 'price')} {currency} and {text.number(hours[1])} hours a year"
            parts.append(f"{a_year} with {text.the(offers[place])}")
    yield f"{text.joined(parts)}."
    ratio = answer.cards[costs.pair[1]].ratio
    if ratio is not None:
        multiple = f"{written(ratio[1], 'times')} times as much ({spread(ratio, 'times')})"
        tied = ", so no difference is shown" if costs.tied else ""
        yield f"{text.sentence(text.the(offers[costs.pair[1]]))} costs {multiple}{tied}."
    if (more := len(answer.order) - len(costs.pair)) > 0:
        yield f"{text.count(more, 'more offer')} below."


def contents_sentences(costs: Costs, currency: str) -> Iterator[str]:
    """What a year's cost is made of; none where all is rented."""
    if all(card.rented for card in costs.numbers.cards):
        return
    inputs = costs.numbers.inputs
    busy, years = text.percent(inputs["utilisation"][1]), f"{inputs['life_years'][1]:.2g} years"
    yield (
        f"A machine is taken to train {busy} of {years}, for you and for others; your work pays for its own "
        "hours."
    )
    host, kept = inputs["host_price"][1], inputs["residual_share"][1]
    parts = [f"a host of {written(host, 'price')} {currency} comes with each card"] if host else []
    parts += [f"{text.percent(kept)} of the price is left at the end"] if kept else []
    if parts:
        yield f"{text.sentence(text.joined(parts))}."
    if not costs.power_unknown:
        tariff = f"{inputs['electricity_price'][1]:.2f} {currency} per kWh"
        yield f"Electricity is added at {tariff}{_at_power(costs)}."


def _at_power(costs: Costs) -> str:
    """' and the power that you stated: 40 W with …'; else where all of it is from."""
    pair = costs.pair
    if pair is None:
        return ""
    measured = [costs.inputs.measured_power[place] for place in pair]
    offers = [costs.inputs.offers[place] for place in pair]
    stated = [
        f"{written(offer.quote.watts.values[1], 'count')} W with {text.the(offer.name)}"
        for offer in offers
        if offer.quote and offer.quote.watts
    ]
    if all(measured):
        return " and the power that was measured"
    if any(measured) or 0 < len(stated) < len(pair):
        return ""
    if not stated:
        return " and the power on the cards' data sheets"
    return f" and the power that you stated: {text.joined(stated)}"


def idle_sentence(costs: Costs, currency: str) -> str:
    """What each of the pair would cost that did nothing else; empty where that is not known."""
    if costs.idle is None or costs.pair is None:
        return ""
    names = [text.the(costs.numbers.cards[place].name) for place in costs.pair]
    figures = [text.number(each[1]) for each in (costs.idle.first, costs.idle.second)]
    opening = "If no other work shares the machine"
    if costs.idle_turns:
        opening = "The assumption that matters most is that other work shares the machine: if none does"
    least = costs.cheaper_idle
    if least is None:
        each = f"{figures[0]} {currency} a year with {names[0]}, {figures[1]} with {names[1]}"
        return f"{opening}, no difference in cost is shown: {each}."
    a_year = f"{figures[least]} {currency} a year against {figures[1 - least]}"
    return f"{opening}, {names[least]} costs less: {a_year}."


def turning_sentences(costs: Costs, currency: str) -> Iterator[str]:
    """What the answer depends on most, and whether the first offer reaches to where it turns."""
    if costs.answer is None or costs.pair is None:
        return
    first = costs.pair[0]
    if idle := idle_sentence(costs, currency):
        yield idle
    turn = costs.answer.cards[first].break_even
    names = [text.the(costs.numbers.cards[place].name) for place in costs.pair]
    unit = price_unit(currency, costs.numbers.cards[first])
    quote = costs.inputs.offers[first].quote
    if turn is not None and quote is not None and quote.cost[0] <= turn[0] < quote.cost[2]:
        offer = f"The offer of {spread(quote.cost, 'price')} {unit} for {names[0]}"
        yield f"{offer} reaches into the range where either may cost less."


def other_turn(costs: Costs, currency: str) -> str:
    """Below which price the second card is the cheapest; empty where it is at none."""
    if costs.answer is None or costs.pair is None:
        return ""
    second = costs.pair[1]
    names = [text.the(costs.numbers.cards[place].name) for place in costs.pair]
    unit = price_unit(currency, costs.numbers.cards[second])
    other = costs.answer.cards[second].break_even
    if other is None or other[1] <= 0:
        return ""
    less, price = less_or_least(costs.answer), about_price(other, unit)
    return f"If {names[0]} stays as offered, {names[1]} costs {less} below {price}."


def work_sentence(inputs: CostInputs) -> str:
    """Which hours a year's cost is of."""
    hours = text.number(sum(line.hours for line in inputs.lines))
    works, on = (
        text.count(len(inputs.lines), "line") + " of work",
        text.the(inputs.offers[inputs.numbers.hours_on].name),
    )
    if inputs.own_mix:
        longest = sorted(inputs.lines, key=lambda line: -line.hours)[:MOST_LINES]
        named = [f"{text.model_name(line.key.model)} in {line.key.precision}" for line in longest]
        if len(longest) < 2:
            return f"Your work is {hours} hours a year of {named[0]} on {on}."
        parts = [f"{text.number(line.hours)} of {name}" for line, name in zip(longest, named, strict=True)]
        more = [f"{len(inputs.lines) - MOST_LINES} more"] if len(inputs.lines) > MOST_LINES else []
        return f"Your work is {hours} hours a year on {on}: {text.joined([*parts, *more])}."
    why = "You gave no hours of your own"
    if inputs.purchase and inputs.purchase.work:
        why = "None of the work that you gave is on record"
    return f"{why}: {works} have equal shares of {hours} hours a year on {on}."


def left_out_sentence(inputs: CostInputs) -> str:
    """How many of the buyer's hours are of work that nothing on record answers; empty where none are."""
    if inputs.purchase is None or not inputs.own_mix:
        return ""
    asked = sum(work.hours_per_year for work in inputs.purchase.work)
    left = asked - sum(line.hours for line in inputs.lines)
    if left <= 1e-9 * asked:
        return ""
    hours = f"{text.number(left)} of your {text.number(asked)} hours a year"
    return f"{hours} are left out: no record is of that work."


def answer_sentence(answer: CostAnswer, names: Sequence[str]) -> str:
    """Which card costs least for the work, and how surely."""
    names = [text.the(name) for name in names]
    if not answer.order:
        return "No card's cost is known for your work."
    first = answer.order[0]
    if len(answer.order) < 2:
        return f"Of your offers only that of {names[first]} can be priced for your work."
    second = answer.order[1]
    ratio = answer.cards[second].ratio
    assert ratio is not None
    multiple = f"{written(ratio[1], 'times')} times as much"
    between = f"{written(ratio[0], 'times')} to {written(ratio[2], 'times')}"
    if ratio[0] <= 1:
        costly = f"{names[second]} costs {multiple} as {names[first]}"
        return f"No difference shown: for your work {costly} ({between})."
    cheapest = f"{names[first]} costs {less_or_least(answer)} for your work"
    return text.sentence(f"{cheapest}: {names[second]} costs {multiple} ({between}).")


def price_sentence(answer: CostAnswer, numbers: Numbers, currency: str, *, first: bool = True) -> str:
    """From which price on that would turn; empty where nothing stands against it.

    Without the `first` it is of the second card alone: a headline has said it of the other.
    """
    if len(answer.order) < 2:
        return ""
    sentences, less = [], less_or_least(answer)
    for i in answer.order[0 if first else 1 : 2]:
        turn, card = answer.cards[i].break_even, numbers.cards[i]
        if turn is None:
            continue
        unit = price_unit(currency, card)
        if turn[1] <= 0:
            sentences.append(text.sentence(f"{text.the(card.name)} costs {less} at no price."))
            continue
        between = spread(turn, "price")
        sentences.append(
            f"{text.sentence(text.the(card.name))} costs {less} below {written(turn[1], 'price')} {unit}"
            f"{f' ({between})' if between else ''}."
        )
    return " ".join(sentences)


def power_sentence(costs: Costs) -> str:
    """What leaving the cards' power out of the costs means; empty where it is in them."""
    if not costs.power_unknown:
        return ""
    left_out = (
        f"Power is left out, since nobody told that of {' or '.join(map(text.the, costs.power_unknown))}"
    )
    if costs.pair is None or costs.flip_watts is None:
        return f"{left_out}."
    first, second = (text.the(costs.numbers.cards[place].name) for place in costs.pair)
    return (
        f"{left_out}: {first} would have to draw {written(costs.flip_watts, 'count')} W more than "
        f"{second} to cost as much."
    )


def efficiency(ratio: Range | None, name: str, cheapest: str, measured: bool) -> str:
    """What may be said of energy for the same work: nothing below 5 %, nothing on a board's power."""
    if ratio is None:
        return "–"
    if not measured:
        return f"{written(ratio[1], 'times')}\npower not measured: no claim"
    words = f"{written(ratio[1], 'times')}\n{spread(ratio, 'times')}"
    if abs(ratio[1] - 1) < LEAST_EFFICIENCY or ratio[0] <= 1 <= ratio[2]:
        return f"{words}, no difference shown"
    return f"{words}, {cheapest if ratio[1] > 1 else name} is more efficient"


def most_sentence(most: Sensitivity, numbers: Numbers, pair: tuple[int, int], currency: str) -> str:
    """Which figure matters most, and at which value of it the second card costs as little as the first."""
    first, second = (text.the(numbers.cards[place].name) for place in pair)
    flip, best = most.flip, most.values[1]
    if most.key == "speed":
        quick, slow = (first, second) if best >= 1 else (second, first)
        best, flip = (best, flip) if best >= 1 else (1 / best, 1 / flip if flip else None)
        opening = f"Of all figures the speed of {quick} over {slow} matters most"
        turn = f"at {text.times(flip)} times instead of {text.times(best)} both would cost the same"
    else:
        name, unit = input_name(most, numbers, *pair, currency)
        opening = f"Of all figures the {name} matters most"
        turn = f"at {text.number(flip)}{unit} {first} and {second} would cost the same"
    return f"{opening}: {turn}." if flip is not None else f"{opening}."


def input_name(
    sensitivity: Sensitivity, numbers: Numbers, first: int, second: int, currency: str
) -> tuple[str, str]:
    """What an input is called, and its unit."""
    name, _, place = sensitivity.key.partition(":")
    if name == "speed":
        return (
            f"speed of {text.the(numbers.cards[first].name)} over {text.the(numbers.cards[second].name)}",
            "",
        )
    if name == "hours":
        return f"hours of {numbers.rows[int(place)].name}", " h"
    if name == "price":
        card = numbers.cards[int(place)]
        return f"price of {text.the(card.name)}", f" {price_unit(currency, card)}"
    if name == "watts":
        return f"power of {text.the(numbers.cards[int(place)].name)}", " W"
    words, unit = INPUT_WORDS[name]
    money = f" {currency}" if name in ("electricity_price", "host_price") else ""
    return words, f"{money}{unit}"
