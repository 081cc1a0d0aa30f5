"""The sentences and figures of the money section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from report import text
from report.cost.costs import Costs
from report.cost.inputs import CostInputs, Numbers, Range
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
    """A price as a headline says it, with the digits that its range bears: '4,300 EUR (3,300 to 5,600)'."""
    low, best, high = max(values[0], 0.0), values[1], max(values[2], 0.0)
    price = f"{text.about(best, low, high)} {unit}"
    return price if low == high else f"{price} ({' to '.join(text.about_range(best, low, high))})"


def price_of(quote: Quote) -> str:
    """'1,800 EUR' or '0.9 EUR an hour'"""
    return f"{text.number(quote.cost[1])} {quote.currency}{' an hour' if quote.rented else ''}"


def less_or_least(answer: CostAnswer) -> str:
    """What the cheapest of the priced cards costs: 'less' of two, 'least' of more."""
    return "less" if len(answer.order) == 2 else "least"


def is_old(quote: Quote, today: date) -> bool:
    """Whether it is over a year old: page one says so."""
    return (today - quote.date).days > 365


def offer_sentence(costs: Costs, place: int, quote: Quote, today: date) -> str:
    """One card's cost and hours of a year, its price and how old that is."""
    name, answer = text.sentence(text.the(costs.inputs.offers[place].name)), costs.answer
    card = answer.cards[place] if answer else None
    a_year = f"{written(card.cost[1], 'price')} {quote.currency}" if card and card.cost else "no cost"
    hours = f" and {text.number(card.hours[1])} hours for your work" if card and card.hours else ""
    old = ", over a year ago" if is_old(quote, today) else ""
    return f"{name}: {a_year} a year{hours}, at {price_of(quote)} (offer of {text.day(quote.date)}{old})."


def contents_sentence(costs: Costs) -> str:
    """What a year's cost is made of; empty where all is rented."""
    if all(card.rented for card in costs.numbers.cards):
        return ""
    years = f"{costs.numbers.inputs['life_years'][1]:.2g}"
    share = f"A year's cost is the price of card and host spread over {years} years"
    if costs.power_unknown:
        return f"{share}."
    known = "" if all(costs.inputs.measured_power) else " Power is as stated in your file."
    return f"{share}, and a year's electricity.{known}"


def turning_sentences(costs: Costs, currency: str) -> Iterator[str]:
    """The prices at which another card becomes the cheapest."""
    if costs.answer is None or costs.pair is None:
        return
    (first, second), less = costs.pair, less_or_least(costs.answer)
    turn = costs.answer.cards[first].break_even
    names = [text.the(costs.numbers.cards[place].name) for place in costs.pair]
    unit = f"{currency} an hour" if costs.numbers.cards[first].rented else currency
    if turn is not None and turn[1] > 0:
        low, high = text.about_range(turn[1], max(turn[0], 0.0), turn[2])
        price = f"{text.about(turn[1], *turn[::2])} {unit}"
        between = "" if turn[0] == turn[2] else f"; between {low} and {high} either may be the cheaper"
        yield f"{text.sentence(names[0])} costs {less} below {price}{between}."
        quote = costs.inputs.offers[first].quote
        if quote is not None and quote.cost[0] <= turn[0] < quote.cost[2]:
            yield f"Its offer of {spread(quote.cost, 'price')} {unit} reaches into that range."
    other = costs.answer.cards[second].break_even
    if other is not None and other[1] > 0:
        price = about_price(other, unit)
        yield f"With {names[0]} as offered, {names[1]} costs {less} if its own price falls below {price}."


def work_sentence(inputs: CostInputs) -> str:
    """Which hours a year's cost is of."""
    hours = text.number(sum(line.hours for line in inputs.lines))
    works, on = (
        text.count(len(inputs.lines), "line") + " of work",
        text.the(inputs.offers[inputs.numbers.hours_on].name),
    )
    if inputs.own_mix:
        longest = sorted(inputs.lines, key=lambda line: -line.hours)[:MOST_LINES]
        unit = " hours" if len(longest) > 1 else ""
        named = [
            f"{text.model_name(line.key.model)} in {line.key.precision} ({text.number(line.hours)}{unit})"
            for line in longest
        ]
        more = [f"{len(inputs.lines) - MOST_LINES} more"] if len(inputs.lines) > MOST_LINES else []
        return f"Your work takes {hours} hours a year on {on}: {text.joined([*named, *more])}."
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
        unit = f"{currency} an hour" if card.rented else currency
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
    name, unit = input_name(most, numbers, *pair, currency)
    first, second = (text.the(numbers.cards[place].name) for place in pair)
    if most.flip is None:
        return f"Of all figures the {name} matters most."
    if most.key.partition(":")[0] == "speed":
        instead = f"{text.number(most.flip)} times as fast instead of {text.times(most.values[1])}"
        turn = f"were {first} {instead}, both would cost the same"
    else:
        turn = f"at {text.number(most.flip)}{unit} {first} and {second} would cost the same"
    return f"Of all figures the {name} matters most: {turn}."


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
        return f"price of {text.the(card.name)}", f" {currency}{' an hour' if card.rented else ''}"
    if name == "watts":
        return f"power of {text.the(numbers.cards[int(place)].name)}", " W"
    words, unit = INPUT_WORDS[name]
    money = f" {currency}" if name in ("electricity_price", "host_price") else ""
    return words, f"{money}{unit}"
