"""Writes a purchase.toml for the buyer to edit: each key with its meaning, cards and works on record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import tomlkit

from commands.terminal import relative_path
from harness.errors import UserError
from harness.record import Model, Record
from harness.record.store import read_results
from harness.summary.trial_devices import device_name
from report.buying.purchase import Offer, Purchase, PurchaseWork

OPENING = """\
# Your prices and your own work: invoke report then says what each card costs. The file stays here.
# Put a value after the = of each line you need, and take the # away. A value is a number, or a range:
# { low = 3, best = 4, high = 5 }. docs/buying.md has an example.
# Any card and any work may be typed: where no record is of them, the page has what is expected of the card.
"""


TrainedWork = tuple[str, str, str, int]
"""Workload, model, precision and batch size."""


def recorded_works(records: Sequence[Record]) -> tuple[list[str], list[TrainedWork]]:
    """Return each card and each training on one device, as the report names them.

    Where machines of several labels have a card of one name, it is named by their labels.
    """
    works = {
        (asked.workload, variant.model, variant.precision, variant.batch_size): None
        for record in records
        if record.measurement
        and not record.measurement.ceilings
        and (variant := (asked := record.trial.asked).variant).gpus == 1
    }
    labels: dict[str, set[str]] = {}
    for record in records:
        if record.measurement:
            labels.setdefault(device_name(record), set()).add(record.machine.label)
    cards = {name for card, own in labels.items() for name in (own if len(own) > 1 else (card,))}
    return sorted(cards), sorted(works)


def purchase_text(cards: Sequence[str], works: Sequence[TrainedWork]) -> str:
    """Return the file's text: one offer for each card, and one line of work for each work on record."""
    lines = [OPENING, *_key_lines(Purchase, {})]
    for card in cards or ("",):
        lines += ["", "# [[offer]]", *_key_lines(Offer, {"card": card})]
    for workload, model, precision, batch_size in works:
        work = {"workload": workload, "model": model, "precision": precision, "batch_size": batch_size}
        lines += ["", "# [[work]]", *_key_lines(PurchaseWork, work)]
    return "\n".join(lines) + "\n"


def _key_lines(table: type[Model], known: Mapping[str, object]) -> Iterator[str]:
    """Yield a line for each known key of a table, and for each that has a meaning."""
    for name, field in table.model_fields.items():
        given = tomlkit.dumps({name: known[name]}).strip() if name in known else f"{name} ="
        needed = "needed: " if field.is_required() else ""
        meaning = f"  # {needed}{field.description}" if field.description else ""
        if meaning or name in known:
            yield f"# {given}{'' if known.get(name) else meaning}"


def quote(root: Path) -> None:
    """Write purchase.toml, and say so; raises UserError where it is there already."""
    path = root / "purchase.toml"
    if path.exists():
        raise UserError(
            f"{relative_path(path)} is there already", remedy="edit it, or move it away for a new one"
        )
    cards, works = recorded_works([stored.record for stored in read_results(root).records])
    path.write_text(purchase_text(cards, works), encoding="utf-8")
    print(f"written: {relative_path(path)}, with {len(cards)} cards and {len(works)} works; edit it")
