"""The buyer's file, purchase.toml: quotes, limits, running costs, and the buyer's own work.

It belongs to the buyer and is never in the repository. No price is built in: what it does not say is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from harness.errors import UserError
from harness.record import Model, parse_toml
from harness.record.trial import DataMode
from harness.record.vocabulary.precision import Precision

FILE = "purchase.toml"
WEEKS_A_YEAR = 365 / 7
HOURS_A_YEAR = 8784
REMEDY = "correct it, or let `invoke quote` write it; docs/buying.md explains each key"
NO_RANGE = "it has to be a number, or { low = …, best = …, high = … }"
MESSAGES = {
    "extra_forbidden": "unknown key",
    "missing": "it is missing",
    "string_pattern_mismatch": "it has to be three capital letters",
}

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Whole = Annotated[int, Field(strict=True, ge=1, le=100_000)]
Text = Annotated[str, Field(min_length=1, max_length=200)]
Currency = Annotated[str, Field(pattern="^[A-Z]{3}$")]


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
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return {"low": value, "best": value, "high": value} if plain else value


def _within(least: float, most: float, *, above: bool = False, below: bool = False) -> Callable[[Any], Any]:
    """A check of a number or range against sane bounds; `above` and `below` leave the bound itself out."""

    def check(value: Any) -> Any:
        for number in value.values if isinstance(value, InputRange) else (value,):
            low = number <= least if above else number < least
            high = number >= most if below else number > most
            if low or high:
                first = f"above {least:g}" if above else f"at least {least:g}"
                last = f"below {most:g}" if below else f"at most {most:g}"
                raise ValueError(f"{number:g} cannot be meant: it has to be {first} and {last}")
        return value

    return check


_WIDENED = BeforeValidator(_widened)

Price = Annotated[InputRange, _WIDENED, AfterValidator(_within(0.001, 1e12))]
CardWatts = Annotated[InputRange, _WIDENED, AfterValidator(_within(1, 5000))]
Years = Annotated[InputRange, _WIDENED, AfterValidator(_within(0.1, 20))]
Share = Annotated[InputRange, _WIDENED, AfterValidator(_within(0, 1, above=True))]
Tariff = Annotated[InputRange, _WIDENED, AfterValidator(_within(0, 1e6))]
Pue = Annotated[InputRange, _WIDENED, AfterValidator(_within(1, 4))]
Residual = Annotated[InputRange, _WIDENED, AfterValidator(_within(0, 1, below=True))]
HostPrice = Annotated[InputRange, _WIDENED, AfterValidator(_within(0, 1e12))]
HostWatts = Annotated[InputRange, _WIDENED, AfterValidator(_within(0, 10_000))]
Money = Annotated[Number, AfterValidator(_within(0, 1e15, above=True))]
UnitCv = Annotated[Number, AfterValidator(_within(0, 0.2))]
Hours = Annotated[Number, AfterValidator(_within(0, 1e6, above=True))]
Watts = Annotated[Number, AfterValidator(_within(0, 1e9, above=True))]
Gib = Annotated[Number, AfterValidator(_within(0, 10_000, above=True))]


class Quote(Model):
    """One offer for one card: bought at a price, or rented at a price per hour. Money in `currency`."""

    card: Text
    """A part of the card's name, or of a machine's label, as the report shows it."""
    price: Price | None = None
    price_per_hour: Price | None = None
    currency: Currency
    date: Annotated[date, AfterValidator(lambda day: _dated(day))]
    source: Text
    watts: CardWatts | None = None
    """The power limit of the card as offered."""

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
        """The price, or the price per hour: low, best, high."""
        price = self.price or self.price_per_hour
        assert price is not None
        return (price.low, price.best, price.high)


def _dated(day: date) -> date:
    # A day ahead is today somewhere else.
    if day.year < 2000 or day > date.today() + timedelta(days=1):
        raise ValueError(f"{day} is no date of a quote: it has to be from 2000 on, and not to come")
    return day


class WorkloadHours(Model):
    """One line of the buyer's work: what is trained, and for how many hours a year on the card `hours_on`."""

    workload: Text
    model: Text
    precision: Precision
    hours_per_year: Hours
    protocol: Text | None = None
    batch_size: Whole | None = None
    data_mode: DataMode | None = None
    image_size: Whole | None = None
    sequence_length: Whole | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_a_week(cls, given: Any) -> Any:
        """Files from before hours were a year's say `hours`, of a week."""
        if not isinstance(given, dict) or "hours" not in given or "hours_per_year" in given:
            return given
        week = given["hours"]
        if not isinstance(week, int | float) or isinstance(week, bool):
            raise ValueError("'hours' is of a week and no number: write 'hours_per_year'")
        rest = {name: value for name, value in given.items() if name != "hours"}
        return {**rest, "hours_per_year": week * WEEKS_A_YEAR}


class Purchase(Model):
    """purchase.toml. Money in `currency`, electricity in it per kWh, power in watts, memory in GiB."""

    currency: Currency
    quote: Annotated[tuple[Quote, ...], Field(min_length=1)]
    budget: Money | None = None
    cards: Whole | None = None
    slots: Whole | None = None
    watts_available: Watts | None = None
    memory_gib: Gib | None = None
    """What the buyer's own model needs on one card."""
    life_years: Years | None = None
    utilisation: Share | None = None
    electricity_price: Tariff | None = None
    pue: Pue = InputRange(low=1, best=1, high=1)
    residual_share: Residual = InputRange(low=0, best=0, high=0)
    host_price: HostPrice = InputRange(low=0, best=0, high=0)
    """The share of the computer's price that falls to one card."""
    host_watts: HostWatts = InputRange(low=0, best=0, high=0)
    unit_cv: UnitCv | None = None
    """The coefficient of variation of the speed of units of one model."""
    hours_on: Text | None = None
    """The card on which the work takes the hours given."""
    work: tuple[WorkloadHours, ...] = ()

    @property
    def buys(self) -> bool:
        """Whether a card is bought, and not all of them rented."""
        return not all(quote.rented for quote in self.quote)

    @model_validator(mode="after")
    def _one_currency(self) -> Self:
        for number, quote in enumerate(self.quote, 1):
            if quote.currency != self.currency:
                raise ValueError(
                    f"quote {number} ('{quote.card}') is in {quote.currency} and the file in "
                    f"{self.currency}: currencies are not mixed, so convert it and name its rate"
                )
        return self

    @model_validator(mode="after")
    def _hours_are_of_a_year(self) -> Self:
        hours, cards = sum(work.hours_per_year for work in self.work), self.cards or 1
        if hours > HOURS_A_YEAR * cards:
            has = f"{cards} cards have" if self.cards else "one card has, and 'cards' says how many there are"
            raise ValueError(f"the work takes {hours:,.0f} hours a year, more than {has}")
        return self

    @model_validator(mode="after")
    def _bought_cards_have_running_costs(self) -> Self:
        if not self.buys:
            return self
        for name in ("utilisation", "electricity_price"):
            if getattr(self, name) is None:
                raise ValueError(f"a card that is bought needs '{name}'")
        return self


def load_purchase(root: Path) -> Purchase | None:
    """The buyer's file under `root`, or null where there is none; raises UserError in one sentence."""
    path = root / FILE
    if not path.is_file():
        return None
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UserError(f"{FILE} cannot be read ({error.strerror})", remedy=REMEDY) from None
    return parse_purchase(text)


def parse_purchase(text: str | bytes, where: str = FILE) -> Purchase:
    """A buyer's file from its text; raises UserError that names the quote, the key and what is wrong."""
    try:
        return Purchase.model_validate(parse_toml(text.encode() if isinstance(text, str) else text))
    except ValidationError as error:
        raise UserError(f"{where}: {problem(error)}", remedy=REMEDY) from None
    except ValueError as error:
        raise UserError(f"{where} is not TOML: {error}", remedy=REMEDY) from None


def problem(error: ValidationError) -> str:
    """The first finding as a clause: quotes and lines of work are counted from 1."""
    first = error.errors(include_url=False)[0]
    parts: list[str] = []
    for part in first["loc"]:
        if isinstance(part, int):
            parts[-1] = f"{parts[-1]} {part + 1}"
        else:
            parts.append(str(part))
    sentence = first["msg"].removeprefix("Value error, ")
    sentence = sentence.replace("Input should be a valid dictionary or instance of InputRange", NO_RANGE)
    sentence = sentence.replace("Input should be", "it has to be")
    sentence = MESSAGES.get(first["type"], sentence)
    return f"'{'.'.join(parts)}': {sentence}" if parts else sentence
