"""Asks a buyer for what purchase.toml holds: each value checked at once, all of them reviewed at the end."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import tomlkit
from pydantic import TypeAdapter, ValidationError
from tomlkit.items import AoT

from commands.terminal import relative
from harness.errors import UserError
from harness.record import Model, Record
from harness.record.store import read_all
from harness.summary.device_checks import device_name
from report.buying.purchase import Purchase, Quote, WorkloadHours, parse_purchase, problem

Ask = Callable[[str], str]
Say = Callable[[str], None]

OPENING = (
    "Answer with a number, or with three (low best high) where you are not sure. Nothing leaves a value out, "
    "except for those that are needed. You can look over and correct all of it before it is written."
)
NEEDED = " (needed)"
NO = ("n", "no")

QUOTE = {
    "card": "the card, as the report names it",
    "price": "its price; nothing if it is rented",
    "price_per_hour": "its price per hour",
    "date": "the quote's date, as 2026-01-31",
    "source": "where the price is from",
    "watts": "its power limit, W",
}
OWNED = {
    "life_years": "years of life; nothing: 4 are assumed, 2 to 8",
    "utilisation": "utilisation, of all hours those in which it trains, 0 to 1",
    "electricity_price": "price of a kilowatt-hour",
}
RUNNING = {
    "pue": "PUE, power of the room over power of the machines",
    "residual_share": "what is left of the price at the end, 0 to 1",
    "host_price": "the share of the computer's price that falls to one card",
    "host_watts": "the share of the computer's power that falls to one card, W",
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
}
HOURS = {"hours_per_year": "hours a year"}
REQUIRED = {
    *("currency", "card", "price_per_hour", "source", "utilisation", "electricity_price"),
    *("model", "precision", "hours_per_year"),
}

_GROUPED = re.compile(r"[1-9]\d{0,2}(?:([.,])\d{3})(?:\1\d{3})+")
"""Several groups of three: 1,800,000 or 1.800.000."""
_GROUPED_DECIMAL = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+\.\d+|[1-9]\d{0,2}(?:\.\d{3})+,\d+")
_AMBIGUOUS = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")
_DECIMAL = re.compile(r"-?\d+(?:[.,]\d+)?(?:e-?\d+)?")


@dataclass(frozen=True, slots=True)
class Known:
    """What a list offers: cards, and work as workload, model, precision and batch size."""

    cards: tuple[str, ...] = ()
    work: tuple[tuple[str, str, str, int], ...] = ()
    today: date = field(default_factory=date.today)


@dataclass(frozen=True, slots=True)
class _Given:
    """An answer that the review shows and may change: a model's field, and the table that has its value."""

    model: type[Model]
    name: str
    question: str
    table: dict[str, Any]


def known(records: Sequence[Record]) -> Known:
    """Each card and each work that was measured, as the report names them.

    Where machines of several labels have a card of one name, their labels tell them apart.
    """
    work = {
        (asked.workload, variant.model, variant.precision, variant.batch_size): None
        for record in records
        if record.measurement and (variant := (asked := record.trial.asked).variant).gpus == 1
    }
    labels: dict[str, set[str]] = {}
    for record in records:
        if record.measurement:
            labels.setdefault(device_name(record), set()).add(record.machine.label)
    cards = {name for card, own in labels.items() for name in (own if len(own) > 1 else (card,))}
    return Known(tuple(sorted(cards)), tuple(sorted(work)))


class _Interview:
    """Questions to a buyer, in order, and what was answered."""

    def __init__(self, ask: Ask, say: Say, names: Known) -> None:
        self.given: list[_Given] = []
        self._ask = ask
        self._say = say
        self._names = names

    def purchase(self) -> dict[str, Any]:
        """The whole file's values."""
        self._say(OPENING)
        values: dict[str, Any] = {}
        self._several(values, Purchase, {"currency": "currency, as three letters"})
        quotes = [self._quote(values["currency"], self._card("the card"))]
        while (card := self._card("another card; nothing: no more")).casefold() not in ("", *NO):
            quotes.append(self._quote(values["currency"], card))
        values["quote"] = quotes
        owned = any(quote.get("price") is not None for quote in quotes)
        self._several(values, Purchase, {**OWNED, **RUNNING} if owned else {})
        self._several(values, Purchase, LIMITS)
        values["work"] = self._mix()
        if values["work"]:
            card = self._card("the card on which these hours hold; nothing: the slowest")
            if card:
                values["hours_on"] = card
        return values

    def _card(self, question: str) -> str:
        """A card's name, given as it is or by its place in the list; the first one is needed."""
        while True:
            answer = self._chosen(question, self._names.cards)
            if answer or question != "the card":
                return answer
            self._say("  at least one card is needed")

    def _chosen(self, question: str, offered: Sequence[str]) -> str:
        for place, name in enumerate(offered, 1):
            self._say(f"  {place}  {name}")
        hint = " (its name, or a number of the list)" if offered else ""
        answer = self._ask(f"{question}{hint}: ").strip()
        place = int(answer) if answer.isdecimal() and len(answer) < 4 else 0
        return offered[place - 1] if 1 <= place <= len(offered) else answer

    def _quote(self, currency: str, card: str) -> dict[str, Any]:
        while card.casefold() in ("y", "yes"):
            card = self._card("the card")
        quote: dict[str, Any] = {"card": card, "currency": currency}
        self.given.append(_Given(Quote, "card", QUOTE["card"], quote))
        self._several(quote, Quote, {"price": QUOTE["price"]})
        if quote.get("price") is None:
            self._several(quote, Quote, {"price_per_hour": QUOTE["price_per_hour"]})
        today = self._names.today
        self._several(quote, Quote, {"date": f"{QUOTE['date']}; nothing: today, {today}"})
        quote.setdefault("date", today)
        self._several(quote, Quote, {name: QUOTE[name] for name in ("source", "watts")})
        return quote

    def _mix(self) -> list[dict[str, Any]]:
        offered = ["  ".join((*names, f"batch {size}")) for *names, size in self._names.work]
        lines: list[dict[str, Any]] = []
        while answer := self._chosen("a workload of yours; nothing: no more", offered):
            line: dict[str, Any] = {"workload": answer}
            if answer in offered:
                fields = ("workload", "model", "precision", "batch_size")
                line = dict(zip(fields, self._names.work[offered.index(answer)], strict=True))
                self._several(line, WorkloadHours, HOURS)
            else:
                self._several(line, WorkloadHours, {**WORK, **HOURS})
            lines.append(line)
        return lines

    def _several(self, table: dict[str, Any], model: type[Model], questions: dict[str, str]) -> None:
        for name, question in questions.items():
            given = _Given(model, name, question, table)
            self.answer(given)
            self.given.append(given)

    def answer(self, given: _Given) -> None:
        """Asks until the answer can be meant; nothing takes a value out that is not needed."""
        needed = given.name in REQUIRED
        while True:
            text = self._ask(f"{given.question}{NEEDED if needed else ''}: ").strip()
            if not text and not needed:
                given.table.pop(given.name, None)
                return
            try:
                given.table[given.name] = checked(given.model, given.name, text)
                return
            except ValueError as error:
                self._say(f"  {error}")

    def review(self) -> bool:
        """Shows every answer; a number changes one. False where the buyer leaves without writing."""
        while True:
            for place, given in enumerate(self.given, 1):
                self._say(f"  {place:>2}  {given.question.partition(';')[0]}: {_shown(given)}")
            answer = self._ask("a number corrects a line; nothing writes the file; no leaves it unwritten: ")
            answer = answer.strip().casefold()
            if answer in ("", "y", "yes", *NO):
                return answer not in NO
            place = int(answer) if answer.isdecimal() and len(answer) < 4 else 0
            if 1 <= place <= len(self.given):
                self.answer(self.given[place - 1])
            else:
                self._say(f"  there is no line '{answer}'")


def _shown(given: _Given) -> str:
    value = given.table.get(given.name)
    if value is None:
        return "–"
    values = getattr(value, "values", None)
    if values is None:
        return str(value)
    low, best, high = (f"{number:.12g}" for number in values)
    return best if low == high else f"{low} to {high}, best {best}"


def checked(model: type[Model], name: str, text: str) -> Any:
    """An answer as the field's value; raises ValueError with the reason in a clause."""
    field_of = model.model_fields[name]
    kind: Any = field_of.annotation
    adapter: TypeAdapter[Any] = TypeAdapter(
        Annotated[kind, *field_of.metadata] if field_of.metadata else kind
    )
    reasons = []
    for value in (_date(text),) if name == "date" else (_read(text), text):
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            reasons.append(problem(error))
    raise ValueError(reasons[0])


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"'{text}' is no date: write the year, the month and the day, as 2026-01-31"
        ) from None


def _read(text: str) -> Any:
    """A number, three as a range, or the text itself; raises ValueError where a number has two meanings."""
    parts = text.split()
    numbers = [number for part in parts if (number := _number(part)) is not None]
    if len(numbers) == len(parts) == 3:
        return dict(zip(("low", "best", "high"), numbers, strict=True))
    if len(numbers) == len(parts) == 1:
        return numbers[0]
    return text


def _number(text: str) -> int | float | None:
    """As people write one: a comma or a point before decimals, or between groups of three; else null."""
    if _AMBIGUOUS.fullmatch(text):
        whole, decimals = re.split("[.,]", text)
        raise ValueError(
            f"{text} has two meanings: write {whole}{decimals}, or {whole}.{decimals.rstrip('0') or '0'}"
        )
    if _GROUPED.fullmatch(text):
        return int(re.sub("[.,]", "", text))
    if _GROUPED_DECIMAL.fullmatch(text):
        point = text[max(text.rfind("."), text.rfind(","))]
        return float(text.replace("." if point == "," else ",", "").replace(point, "."))
    if not _DECIMAL.fullmatch(text):
        return None
    plain = text.replace(",", ".")
    return float(plain) if set(plain) & set(".e") else int(plain)


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


def quote(root: Path, to: str, *, without_asking: bool) -> None:
    """Asks at the terminal about what `root` has records of, writes the file, and says so."""
    names = known([stored.record for stored in read_all(root).records])
    path = root / to
    written = run(path, ask=input, say=print, names=names, without_asking=without_asking)
    print(f"{'written' if written else 'kept'}: {relative(path)}")


def run(path: Path, *, ask: Ask, say: Say, names: Known, without_asking: bool = False) -> bool:
    """Asks and writes `path`; false where the buyer keeps the file that is there, or leaves the review.

    Raises UserError where the answers end too early or do not go together.
    """
    try:
        if (
            path.exists()
            and not without_asking
            and not _yes(ask, f"{path.name} is there already: overwrite it")
        ):
            return False
        interview = _Interview(ask, say, names)
        values = interview.purchase()
        if not without_asking and not interview.review():
            return False
    except EOFError:
        raise UserError(
            f"the answers ended before {path.name} was whole", remedy="nothing was written; ask again"
        ) from None
    try:
        purchase = Purchase.model_validate(values)
    except ValidationError as error:
        raise UserError(f"these answers do not go together: {problem(error)}", remedy="ask again") from None
    write(path, purchase)
    return True
