"""Asks a buyer for what purchase.toml holds, one value at a time, each checked before the next."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import tomlkit
from pydantic import TypeAdapter, ValidationError
from tomlkit.items import AoT

from harness.errors import UserError
from harness.record import Model
from report.cost.purchase import Purchase, Quote, WorkloadHours, parse_purchase, problem

Ask = Callable[[str], str]
Say = Callable[[str], None]

OPENING = "Answer with a number, or three (low best high) where it is not sure; nothing leaves a value out."

QUOTE = {
    "card": "the card, as the report names it",
    "price": "its price; nothing if it is rented",
    "price_per_hour": "its price per hour",
    "date": "the quote's date, as 2026-01-31",
    "source": "where the price is from",
    "watts": "its power limit, W",
}
OWNED = {
    "life_years": "years of life",
    "utilisation": "utilisation, of all hours those in which it trains, 0 to 1",
    "electricity_price": "price of a kilowatt-hour",
}
RUNNING = {
    "pue": "PUE, power of the room over power of the machines",
    "residual_share": "what is left of the price at the end, 0 to 1",
    "host_price": "the box's price that falls to one card",
    "host_watts": "the box's power that falls to one card, W",
}
LIMITS = {
    "budget": "budget",
    "cards": "how many cards at most",
    "slots": "slots",
    "watts_available": "watts available",
    "memory_gib": "memory that your model needs on a card, GiB",
}
WORK = {
    "model": "its model",
    "precision": "its precision, such as amp-bf16",
    "batch_size": "its batch size",
    "hours": "hours a week",
}
REQUIRED = {"currency", "card", "price_per_hour", "date", "source", *OWNED, "model", "precision", "hours"}


def interview(ask: Ask, say: Say) -> Purchase:
    """A whole purchase from answers; a value that cannot be meant is asked for again, with the reason.

    Raises UserError where the answers end too early, or do not go together.
    """
    say(OPENING)
    currency = _answered(ask, say, Purchase, "currency", "currency, as three letters")
    quotes = [_quote(ask, say, currency)]
    while _yes(ask, "another card"):
        quotes.append(_quote(ask, say, currency))
    values: dict[str, Any] = {"currency": currency, "quote": quotes}
    owned = any(quote.get("price") is not None for quote in quotes)
    values |= _several(ask, say, Purchase, {**OWNED, **RUNNING} if owned else {})
    values |= _several(ask, say, Purchase, LIMITS)
    workloads = []
    while name := ask("a workload of your mix, as the report names it (nothing: no more): ").strip():
        workloads.append({"workload": name, **_several(ask, say, WorkloadHours, WORK)})
    values["work"] = workloads
    if workloads and (on := ask("the card on which these hours hold (nothing: the slowest): ").strip()):
        values["hours_on"] = on
    try:
        return Purchase.model_validate(values)
    except ValidationError as error:
        raise UserError(f"these answers do not go together: {problem(error)}", remedy="ask again") from None


def _quote(ask: Ask, say: Say, currency: str) -> dict[str, Any]:
    values = {name: _answered(ask, say, Quote, name, QUOTE[name]) for name in ("card", "price")}
    if values["price"] is None:
        values["price_per_hour"] = _answered(ask, say, Quote, "price_per_hour", QUOTE["price_per_hour"])
    rest = {name: QUOTE[name] for name in ("date", "source", "watts")}
    return {**values, **_several(ask, say, Quote, rest), "currency": currency}


def _several(ask: Ask, say: Say, model: type[Model], questions: dict[str, str]) -> dict[str, Any]:
    values = {name: _answered(ask, say, model, name, question) for name, question in questions.items()}
    return {name: value for name, value in values.items() if value is not None}


def _answered(ask: Ask, say: Say, model: type[Model], name: str, question: str) -> Any:
    """A field's value; null where nothing was answered and nothing is needed."""
    while True:
        text = ask(f"{question}: ").strip()
        if not text and name not in REQUIRED:
            return None
        try:
            return checked(model, name, text)
        except ValueError as error:
            say(f"  {error}")


def checked(model: type[Model], name: str, text: str) -> Any:
    """An answer as the field's value; raises ValueError with the reason in a clause."""
    field = model.model_fields[name]
    kind: Any = field.annotation
    adapter: TypeAdapter[Any] = TypeAdapter(Annotated[kind, *field.metadata] if field.metadata else kind)
    reasons = []
    for value in (_read(text), text):
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            reasons.append(problem(error))
    raise ValueError(reasons[0])


def _read(text: str) -> Any:
    """A number, three as a range, a date, or the text itself; a comma may stand for the decimal point."""
    parts = text.split()
    numbers = [number for part in parts if (number := _number(part)) is not None]
    if len(numbers) == len(parts) == 3:
        return dict(zip(("low", "best", "high"), numbers, strict=True))
    if len(numbers) == len(parts) == 1:
        return numbers[0]
    try:
        return date.fromisoformat(text)
    except ValueError:
        return text


def _number(text: str) -> int | float | None:
    try:
        value = tomllib.loads(f"value = {text.replace(',', '.')}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _yes(ask: Ask, question: str) -> bool:
    return ask(f"{question}? [y/N] ").strip().casefold() in ("y", "yes")


def write(path: Path, purchase: Purchase) -> None:
    """Writes the file, after reading its text back."""
    text = as_toml(purchase)
    parse_purchase(text, path.name)
    path.write_text(text, encoding="utf-8")


def as_toml(purchase: Purchase) -> str:
    """The file's text; what is not given, and what has its neutral default, is left out."""
    given = purchase.model_dump(exclude_defaults=True)
    document = tomlkit.document()
    document.update({name: _as_item(value) for name, value in given.items()})
    return tomlkit.dumps(document)


def _as_item(value: Any) -> Any:
    """A range of no width becomes one number, any other one line; a whole number has no point."""
    if isinstance(value, tuple):
        return AoT([_as_item(member) for member in value])
    if isinstance(value, dict):
        if "best" in value and value["low"] == value["high"]:
            return _as_item(value["best"])
        table = tomlkit.inline_table() if "best" in value else tomlkit.table()
        table.update({name: _as_item(member) for name, member in value.items()})
        return table
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


def run(path: Path, *, overwrite: bool, ask: Ask, say: Say) -> bool:
    """Asks and writes `path`; false where the user keeps the file that is there.

    Raises UserError where the answers end too early or do not go together.
    """
    try:
        if path.exists() and not overwrite and not _yes(ask, f"{path.name} is there already: overwrite it"):
            return False
        purchase = interview(ask, say)
    except EOFError:
        raise UserError(
            f"the answers ended before {path.name} was whole", remedy="nothing was written; ask again"
        ) from None
    write(path, purchase)
    return True
