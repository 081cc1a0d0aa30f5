"""Asks a buyer for what purchase.toml holds, by the fields of its models, and writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import tomlkit
from pydantic import TypeAdapter, ValidationError
from rich.console import Console
from rich.markup import escape
from rich.prompt import Confirm, InvalidResponse, PromptBase
from rich.text import Text
from tomlkit.items import AoT

from commands.terminal import relative
from harness.errors import UserError
from harness.record import Model, Record, first_problem
from harness.record.store import read_all
from harness.summary.device_checks import device_name
from report.buying.purchase import Offer, Purchase, Work, parse_purchase

OPENING = (
    "Answer with a number, or with three (low best high) where you are not sure. Nothing leaves a value out, "
    "except for those that are needed. You see the file before it is written."
)
OF_OWNED = (
    *("life_years", "utilisation", "electricity_price"),
    *("pue", "residual_share", "host_price", "host_watts"),
)
NEEDED_WHEN_ASKED = ("price_per_hour", "utilisation", "electricity_price", "share")


@dataclass(frozen=True, slots=True)
class Known:
    """What a list offers: cards, and work as workload, model, precision and batch size."""

    cards: tuple[str, ...] = ()
    work: tuple[tuple[str, str, str, int], ...] = ()


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


class _Field(PromptBase[Any]):
    """A field of a model, asked for until the answer can be meant; null where nothing leaves it out."""

    def __init__(self, model: type[Model], name: str, console: Console, *, another: bool = False) -> None:
        field = model.model_fields[name]
        self._model, self._name = model, name
        self._needed = not another and ((field.is_required() and name != "date") or name in NEEDED_WHEN_ASKED)
        question = f"{'another: ' if another else ''}{field.description}"
        super().__init__(Text(f"{question} (needed)" if self._needed else question), console=console)

    def process_response(self, value: str) -> Any:
        if not value.strip() and not self._needed:
            return None
        try:
            return answered(self._model, self._name, value.strip())
        except ValueError as error:
            raise InvalidResponse(escape(f"  {error}")) from None


def answered(model: type[Model], name: str, given: str) -> Any:
    """An answer as the field's value; raises ValueError with the reason in a clause."""
    field, reason = model.model_fields[name], ""
    kind: Any = field.annotation
    adapter = TypeAdapter[Any](Annotated[kind, *field.metadata] if field.metadata else kind)
    for meaning in (given, _number_or_range(given)):
        try:
            return adapter.validate_python(meaning)
        except ValidationError as error:
            reason = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
    raise ValueError(reason)


def _number_or_range(given: str) -> Any:
    try:
        numbers = [float(part) if set(part) & set(".enE") else int(part) for part in given.split()]
    except ValueError:
        return given
    if len(numbers) == 3:
        return dict(zip(("low", "best", "high"), numbers, strict=True))
    return numbers[0] if len(numbers) == 1 else given


class _Interview:
    """Questions to a buyer: each field that has a description, in the order of its model."""

    def __init__(self, console: Console, names: Known) -> None:
        self._console = console
        keys = ("workload", "model", "precision", "batch_size")
        works = {f"{'  '.join(map(str, work))}": dict(zip(keys, work, strict=True)) for work in names.work}
        self._lists: dict[str, tuple[type[Model], dict[str, dict[str, Any]]]] = {
            "offer": (Offer, {card: {"card": card} for card in names.cards}),
            "work": (Work, works),
        }

    def asked(self, model: type[Model], given: dict[str, Any]) -> dict[str, Any]:
        """What was given already, and the answers to the rest."""
        for name, field in model.model_fields.items():
            if field.description is None or name in given or _not_asked(name, given):
                continue
            several = name in self._lists
            answer = self._several(name) if several else _Field(model, name, self._console)()
            if name == "date":
                answer = answer or date.today()
            if answer is not None:
                given[name] = answer
        return given

    def _several(self, name: str) -> list[dict[str, Any]]:
        """The members of a list, each begun with a name as it is, or by its place among those on record."""
        model, offered = self._lists[name]
        key, found = next(iter(model.model_fields)), list[dict[str, Any]]()
        while True:
            for place, label in enumerate(offered, 1):
                self._console.print(f"  {place}  {label}", markup=False)
            answer = _Field(model, key, self._console, another=bool(found) or name == "work")()
            if answer is None:
                return found
            place = int(answer) if answer.isdecimal() and len(answer) < 4 else 0
            listed = list(offered.values())[place - 1] if 1 <= place <= len(offered) else {key: answer}
            found.append(self.asked(model, dict(listed)))


def _not_asked(name: str, given: dict[str, Any]) -> bool:
    """What another answer makes needless."""
    if name in OF_OWNED:
        return not any("price" in offer for offer in given["offer"])
    instead = {"price_per_hour": "price", "share": "hours_per_year"}
    return instead.get(name) in given or (name == "hours_on" and not given["work"])


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
    written = run(path, Console(highlight=False), names, without_asking=without_asking)
    print(f"{'written' if written else 'kept'}: {relative(path)}")


def run(path: Path, console: Console, names: Known, *, without_asking: bool = False) -> bool:
    """Asks and writes `path`; false where the buyer keeps the file that is there, or does not want this one.

    Raises UserError where the answers end too early or do not go together.
    """
    try:
        there = path.exists() and not without_asking
        overwrite = f"{path.name} is there already: overwrite it"
        if there and not Confirm.ask(overwrite, console=console, default=False):
            return False
        console.print(OPENING)
        values = _Interview(console, names).asked(Purchase, {})
        text = as_toml(Purchase.model_validate(values))
        parse_purchase(text, path.name)
        console.print(f"\n{text}", markup=False)
        if not without_asking and not Confirm.ask(f"write {path.name}", console=console, default=True):
            return False
    except EOFError:
        raise UserError(
            f"the answers ended before {path.name} was whole", remedy="nothing was written; ask again"
        ) from None
    except ValidationError as error:
        problem = first_problem(error)
        raise UserError(f"these answers do not go together: {problem}", remedy="ask again") from None
    path.write_text(text, encoding="utf-8")
    return True
