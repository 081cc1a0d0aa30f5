"""The buyer's file, purchase.toml: offers, running costs, and the buyer's own work.

It belongs to the buyer and is never in the repository. No price is built in: what it does not say is unknown.
The docstring of a field is its comment in the file that `invoke quote` writes.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from harness.errors import UserError
from harness.record import Model, parse_toml
from harness.record.trial_spec import DataMode
from harness.record.vocabulary.precision import Precision

FILE = "purchase.toml"
REMEDY = "correct it; docs/buying.md explains each key"
UNFILLED = f"{FILE} is not filled in: no [[offer]] has a price"

FiniteNumber = Annotated[float, Field(strict=True, allow_inf_nan=False)]
CountNumber = Annotated[int, Field(strict=True, ge=1, le=100_000)]
ShortText = Annotated[str, Field(min_length=1, max_length=200)]


class InputRange(Model):
    """A value that is not certain. A plain number in the file is a range of no width."""

    low: FiniteNumber
    best: FiniteNumber
    high: FiniteNumber

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


def _ranged(least: float, most: float, *, below: bool = False) -> tuple[Any, Any]:
    """Return what makes a plain number a range and checks its bounds; `below` leaves the upper one out."""

    def check(given: InputRange) -> InputRange:
        for number in given.values:
            if number < least or number > most or (below and number == most):
                last = f"below {most:g}" if below else f"at most {most:g}"
                raise ValueError(f"{number:g} cannot be meant: it has to be at least {least:g} and {last}")
        return given

    return BeforeValidator(_widened), AfterValidator(check)


def _currency(letters: str) -> str:
    if len(letters) != 3 or not (letters.isascii() and letters.isalpha() and letters.isupper()):
        raise ValueError("it has to be three capital letters, such as EUR")
    return letters


def _dated(day: date) -> date:
    # A day ahead is today somewhere else.
    if day.year < 2000 or day > date.today() + timedelta(days=1):
        raise ValueError(f"{day} is no date of an offer: it has to be from 2000 on, and not to come")
    return day


OfferDate = Annotated[date, AfterValidator(_dated)]
Price = Annotated[InputRange, *_ranged(0.001, 1e12)]


class Offer(Model):
    """One offer: bought at a price, or rented at a price per hour."""

    card: ShortText
    """any card by its name, on record or not, or the label of a machine that is"""
    price: Price | None = None
    """needed, or price_per_hour in its place: of one card that is bought"""
    price_per_hour: Price | None = None
    """of one hour of a rented card, with power and host in it"""
    number: CountNumber | None = None
    """how many you order; fewer than your work needs is said"""
    date: OfferDate | None = None
    """of the offer"""
    source: ShortText | None = None
    """where the price is from"""
    watts: Annotated[InputRange, *_ranged(1, 5000)] | None = None
    """the card's power limit as offered; it counts where no power was measured"""

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
        return price.values


class PurchaseWork(Model):
    """One line of the buyer's work. What is left out may be anything, as long as one work on record fits."""

    workload: ShortText
    model: ShortText | None = None
    precision: Precision | None = None
    protocol: ShortText | None = None
    batch_size: CountNumber | None = None
    data_mode: DataMode | None = None
    image_size: CountNumber | None = None
    sequence_length: CountNumber | None = None
    hours_per_year: Annotated[FiniteNumber, Field(gt=0, le=1e8)]
    """how long it takes in a year on the card that 'hours_on' names, above"""


class Purchase(Model):
    """purchase.toml. Money in `currency`, electricity in it per kWh, power in watts."""

    currency: Annotated[str, AfterValidator(_currency)] = "EUR"
    """three letters; every price is in it"""
    offer: Annotated[tuple[Offer, ...], Field(min_length=1)]
    life_years: Annotated[InputRange, *_ranged(0.1, 20)] | None = None
    """how long a card is used; 4 years, 2 to 8, where left out"""
    busy_share: Annotated[InputRange, *_ranged(0.001, 1)] = InputRange(low=0.8, best=0.8, high=0.8)
    """the most of a year that one card can train; more work needs another card"""
    electricity_price: Annotated[InputRange, *_ranged(0, 1e6)] | None = None
    """of one kWh; the sum is without power where left out"""
    pue: Annotated[InputRange, *_ranged(1, 4)] = InputRange(low=1, best=1, high=1)
    """power of the room over power of its machines"""
    residual_share: Annotated[InputRange, *_ranged(0, 1, below=True)] = InputRange(low=0, best=0, high=0)
    """the share of the price that is left at the end"""
    host_price: Annotated[InputRange, *_ranged(0, 1e12)] = InputRange(low=0, best=0, high=0)
    """the share of the computer's price that falls to one card"""
    host_watts: Annotated[InputRange, *_ranged(0, 10_000)] = InputRange(low=0, best=0, high=0)
    """the share of the computer's power that falls to one card"""
    hours_on: ShortText | None = None
    """the card on which your work takes the hours that you give, on record or not"""
    work: tuple[PurchaseWork, ...] = ()


def load_purchase(root: Path) -> Purchase | None:
    """Return the buyer's file under `root`; null where there is none, and where no offer has a price.

    Raises UserError with the key and what is wrong.
    """
    path = root / FILE
    if not path.is_file():
        return None
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UserError(f"{FILE} cannot be read ({error.strerror})", remedy=REMEDY) from None
    with suppress(ValueError):
        offers = parse_toml(text).get("offer", [])
        tables = [offer for offer in offers if isinstance(offer, dict)]
        if not any({"price", "price_per_hour"} & set(table) for table in tables):
            return None
    return parse_purchase(text)


def parse_purchase(text: str | bytes) -> Purchase:
    """Return a buyer's file from its text; raises UserError with the key and what is wrong."""
    return Purchase.parse_toml(text.encode() if isinstance(text, str) else text, FILE, REMEDY, UserError)
