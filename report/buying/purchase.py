"""The buyer's file, purchase.toml: offers, limits, running costs, and the buyer's own work.

It belongs to the buyer and is never in the repository. No price is built in: what it does not say is unknown.
The docstring of a field is what `invoke quote` asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from harness.errors import UserError
from harness.record import Model, parse_toml
from harness.record.published.problems import TomlLines, causes, of_validation
from harness.record.trial import DataMode
from harness.record.vocabulary.precision import Precision

FILE = "purchase.toml"
WEEKS_A_YEAR = 365 / 7
HOURS_A_YEAR = 8784
SMALLEST = 1e-6
"""What is nearer to 0 is a slip of the keyboard."""
REMEDY = "correct it, or let `invoke quote` write it; docs/buying.md explains each key"

Use = Literal["shared", "alone"]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Whole = Annotated[int, Field(strict=True, ge=1, le=100_000)]
Text = Annotated[str, Field(min_length=1, max_length=200)]


class InputRange(Model):
    """A value that is not certain. A plain number in the file is a range of no width."""

    low: Number
    best: Number
    high: Number

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.low <= self.best <= self.high:
            raise ValueError(f"{self.low:g}, {self.best:g}, {self.high:g} are not low ≤ best ≤ high")
        return self

    @property
    def values(self) -> tuple[float, float, float]:
        """Low, best, high."""
        return self.low, self.best, self.high


def _widened(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"low": value, "best": value, "high": value}
    if not isinstance(value, dict | InputRange):
        raise ValueError("it has to be a number, or { low = …, best = …, high = … }")
    return value


def _within(least: float, most: float, *, above: bool = False, below: bool = False) -> Callable[[Any], Any]:
    """A check of a number or range against sane bounds; `above` and `below` leave the bound itself out."""

    def check(value: Any) -> Any:
        for number in value.values if isinstance(value, InputRange) else (value,):
            low = (number <= least if above else number < least) or 0 < number < SMALLEST
            high = number >= most if below else number > most
            if low or high:
                first = f"above {least:g}" if above else f"at least {least:g}"
                last = f"below {most:g}" if below else f"at most {most:g}"
                raise ValueError(f"{number:g} cannot be meant: it has to be {first} and {last}")
        return value

    return check


def _ranged(least: float, most: float, **open_ends: bool) -> tuple[Any, Any]:
    return BeforeValidator(_widened), AfterValidator(_within(least, most, **open_ends))


def _currency(letters: str) -> str:
    if len(letters) != 3 or not (letters.isascii() and letters.isalpha() and letters.isupper()):
        raise ValueError("it has to be three capital letters, such as EUR")
    return letters


def _dated(day: date) -> date:
    # A day ahead is today somewhere else.
    if day.year < 2000 or day > date.today() + timedelta(days=1):
        raise ValueError(f"{day} is no date of an offer: it has to be from 2000 on, and not to come")
    return day


Day = Annotated[date, AfterValidator(_dated)]
Currency = Annotated[str, AfterValidator(_currency)]
Price = Annotated[InputRange, *_ranged(0.001, 1e12)]
Money = Annotated[Number, AfterValidator(_within(0, 1e15, above=True))]


class Offer(Model):
    """One offer: bought at a price, or rented at a price per hour."""

    card: Text
    """the card, as the report names it, or its machine's label"""
    price: Price | None = None
    """price of the offer; nothing if it is rented"""
    price_per_hour: Price | None = None
    """price of one hour of it, rented"""
    units: Annotated[Whole, Field(le=10_000)] = 1
    """how many cards are in it; nothing: 1"""
    currency: Currency | None = None
    date: Day
    """its date, as 2026-01-31; nothing: today"""
    source: Text
    """where the price is from"""
    watts: Annotated[InputRange, *_ranged(1, 5000)] | None = None
    """power limit of one card as offered, W"""

    @model_validator(mode="after")
    def _bought_or_rented(self) -> Self:
        if (self.price is None) == (self.price_per_hour is None):
            raise ValueError("it needs either 'price' or 'price_per_hour', and not both")
        return self

    @property
    def rented(self) -> bool:
        return self.price is None

    @property
    def cost(self) -> tuple[float, float, float]:
        """The price of one card, or of one hour of it: low, best, high."""
        price = self.price or self.price_per_hour
        assert price is not None
        return price.low / self.units, price.best / self.units, price.high / self.units


class Work(Model):
    """One line of the buyer's work. What is left out may be anything, as long as one work on record fits."""

    workload: Text
    """a work of yours, by its name; nothing: no more"""
    model: Text | None = None
    """its model, where several were measured"""
    precision: Precision | None = None
    """its precision, where several were measured, such as amp-bf16"""
    protocol: Text | None = None
    batch_size: Whole | None = None
    data_mode: DataMode | None = None
    image_size: Whole | None = None
    sequence_length: Whole | None = None
    hours_per_year: Annotated[Number, AfterValidator(_within(0, 1e8, above=True))] | None = None
    """hours a year; nothing if you know its share alone"""
    share: Annotated[Number, AfterValidator(_within(0, 1, above=True))] | None = None
    """share of the hours in which a card trains, 0 to 1"""

    @model_validator(mode="after")
    def _hours_or_share(self) -> Self:
        if (self.hours_per_year is None) == (self.share is None):
            raise ValueError("it needs either 'hours_per_year' or 'share', and not both")
        return self


class Purchase(Model):
    """purchase.toml. Money in `currency`, electricity in it per kWh, power in watts, memory in GiB."""

    currency: Currency
    """currency, as three letters"""
    use: Use = "shared"
    """shared with other work, or alone; nothing: shared"""
    offer: Annotated[tuple[Offer, ...], Field(min_length=1)]
    """offers"""
    life_years: Annotated[InputRange, *_ranged(0.1, 20)] | None = None
    """years of life; nothing: 4 are assumed, 2 to 8"""
    utilisation: Annotated[InputRange, *_ranged(0.001, 1)] | None = None
    """utilisation, of all hours those in which a card trains, 0 to 1"""
    electricity_price: Annotated[InputRange, *_ranged(0, 1e6)] | None = None
    """price of a kilowatt-hour"""
    pue: Annotated[InputRange, *_ranged(1, 4)] = InputRange(low=1, best=1, high=1)
    """PUE, power of the room over power of the machines"""
    residual_share: Annotated[InputRange, *_ranged(0, 1, below=True)] = InputRange(low=0, best=0, high=0)
    """what is left of the price at the end, 0 to 1"""
    host_price: Annotated[InputRange, *_ranged(0, 1e12)] = InputRange(low=0, best=0, high=0)
    """the share of the computer's price that falls to one card"""
    host_watts: Annotated[InputRange, *_ranged(0, 10_000)] = InputRange(low=0, best=0, high=0)
    """the share of the computer's power that falls to one card, W"""
    budget: Money | None = None
    """budget"""
    cards: Whole | None = None
    """how many cards at most"""
    slots: Whole | None = None
    """slots"""
    watts_available: Annotated[Number, AfterValidator(_within(0, 1e9, above=True))] | None = None
    """watts available"""
    memory_gib: Annotated[Number, AfterValidator(_within(0, 10_000, above=True))] | None = None
    """memory that your model needs on one card, GiB"""
    # The coefficient of variation of the speed of units of one model; nobody is asked for it.
    unit_cv: Annotated[Number, AfterValidator(_within(0, 0.2))] | None = None
    work: tuple[Work, ...] = ()
    """lines of work"""
    hours_on: Text | None = None
    """the card on which these hours hold; nothing: the slowest"""

    @property
    def buys(self) -> bool:
        """Whether a card is bought, and not all of them rented."""
        return not all(offer.rented for offer in self.offer)

    @model_validator(mode="after")
    def _one_currency(self) -> Self:
        for number, offer in enumerate(self.offer, 1):
            if offer.currency not in (None, self.currency):
                raise ValueError(
                    f"offer {number} ('{offer.card}') is in {offer.currency} and the file in "
                    f"{self.currency}: currencies are not mixed, so convert it and name its rate"
                )
        return self

    @model_validator(mode="after")
    def _work_fits_into_a_year(self) -> Self:
        hours = [work.hours_per_year for work in self.work if work.hours_per_year is not None]
        shares = [work.share for work in self.work if work.share is not None]
        cards = max(self.cards or 1, *(offer.units for offer in self.offer))
        if hours and shares:
            raise ValueError("the work has hours and shares: give all of it one or the other")
        if sum(hours) > HOURS_A_YEAR * cards:
            raise ValueError(
                f"the work takes {sum(hours):,.0f} hours a year, more than {cards} of the cards have; "
                "'cards', or 'units' of an offer, says how many there are"
            )
        if sum(shares) > 1 + SMALLEST:
            raise ValueError(f"the shares of the work are {sum(shares):g} together, more than 1")
        return self

    @model_validator(mode="after")
    def _has_what_its_costs_need(self) -> Self:
        needed = ("utilisation", "electricity_price") if self.buys else ()
        for name in needed:
            if getattr(self, name) is None:
                raise ValueError(f"a card that is bought needs '{name}'")
        if self.use == "alone" and not self.work:
            raise ValueError("use = \"alone\" needs '[[work]]', which alone fills the year")
        return self


def load_purchase(root: Path) -> Purchase | None:
    """The buyer's file under `root`, or null where there is none; raises UserError, a line for each cause."""
    path = root / FILE
    if not path.is_file():
        return None
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UserError(f"{FILE} cannot be read ({error.strerror})", remedy=REMEDY) from None
    return parse_purchase(text)


def parse_purchase(text: str | bytes, where: str = FILE) -> Purchase:
    """A buyer's file from its text; raises UserError that names the line, the key and what is wrong."""
    content = text.encode() if isinstance(text, str) else text
    try:
        return Purchase.model_validate(lifted(parse_toml(content)))
    except ValidationError as error:
        present = content.decode().replace("[[quote]]", "[[offer]]")
        found = causes(of_validation(error, where, TomlLines(present)))
        raise UserError("\n  ".join(found), remedy=REMEDY) from None
    except ValueError as error:
        raise UserError(f"{where} is not TOML: {error}", remedy=REMEDY) from None


def lifted(given: Mapping[str, Any]) -> dict[str, Any]:
    """A file of an earlier shape in the present one: a `quote` is an offer, `hours` of work are of a week."""
    now = dict(given)
    if "quote" in now and "offer" not in now:
        now["offer"] = now.pop("quote")
    if isinstance(now.get("work"), list):
        now["work"] = [_of_a_year(work) for work in now["work"]]
    return now


def _of_a_year(work: Any) -> Any:
    week = work.get("hours") if isinstance(work, dict) else None
    if not isinstance(week, int | float) or isinstance(week, bool) or "hours_per_year" in work:
        return work
    return {name: value for name, value in work.items() if name != "hours"} | {
        "hours_per_year": week * WEEKS_A_YEAR
    }
