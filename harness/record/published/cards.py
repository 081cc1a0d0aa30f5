"""What cards can do on paper: dense peaks, memory and power, with where each row comes from.

A card that the table does not have is unknown, and nothing is guessed for it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from harness.device_kinds import Vendor
from harness.errors import UserError
from harness.record import PRECISIONS, CardClass, DeviceKind, Model, Precision

FILE = Path("results") / "cards.toml"
REMEDY = "correct the field it names"

_PREFIX = r"(?:(?:NVIDIA|AMD) )?(?:(?:GeForce|Tesla|Quadro|Radeon Instinct|Radeon|Instinct) )?"

_SIMPLE = re.compile(r"[A-Za-z0-9 /|.()?-]{1,200}")
"""A pattern without repetition, so that no name takes long: a bundle brings patterns of its own."""

MEMORY_APART = 1.15
"""An RTX 3080 has 10 or 12 GB; a driver reports up to a fourteenth less than a model's nominal memory."""

FIRST_SOLD_GIB = {"GTX 1060": 6, "RTX 2060": 6, "RTX 3050": 8, "RTX 3060": 12, "RTX 3080": 10}
"""The memory that a publication means that gives none, for names that were later sold with another."""

Positive = Annotated[float, Field(gt=0)]


class Peaks(Model):
    """Dense TFLOP/s; null where the card has no such path, or no source says.

    `fp32_matrix` is full FP32 on matrix units; `fp16` accumulates in FP32 and `fp16_acc16` in FP16.
    """

    fp32: Positive | None = None
    fp32_matrix: Positive | None = None
    tf32: Positive | None = None
    fp16: Positive | None = None
    fp16_acc16: Positive | None = None
    bf16: Positive | None = None
    fp8: Positive | None = None


class Card(Model):
    """One card or module as it is sold. A framework sees `devices` devices in it, each with an equal part.

    `name_regex` matches the whole of a device's name after vendor and family (GeForce, Tesla, Instinct, …).
    """

    name: str
    vendor: Vendor
    architecture: str
    capability: Annotated[str, Field(pattern=r"^(\d+\.\d|gfx[0-9a-f]+)$")]
    form: str
    name_regex: str
    pci: tuple[Annotated[str, Field(pattern=r"^[0-9a-f]{4}(:[0-9a-f]{2})?$")], ...] = ()
    """Its chips by PCI device id; with a revision where other cards have the same chip."""
    devices: Annotated[int, Field(ge=1)] = 1
    matrix_units: bool
    units: Annotated[int | None, Field(ge=1)] = None
    boost_mhz: Positive | None = None
    fma16_per_unit_clock: Positive | None = None
    memory_gb: Positive | None = None
    memory_type: str | None = None
    bandwidth_gbs: Positive | None = None
    power_watts: Positive | None = None
    peaks: Peaks = Peaks()
    processor: Literal["aarch64"] | None = None
    """That of a module which has one of its own."""
    launch: Annotated[str, Field(pattern=r"^\d{4}-\d{2}$")] | None = None
    launch_price_usd: Positive | None = None
    source: str
    confidence: Literal["A", "B"]
    """A: a source and the arithmetic of units × clock agree; B: one source, or the arithmetic alone."""
    note: str | None = None

    @field_validator("name_regex")
    @classmethod
    def _check_pattern(cls, pattern: str) -> str:
        if not _SIMPLE.fullmatch(pattern):
            raise ValueError("is no name with optional parts: letters, digits, '(…)?', '?' and '|'")
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"is no regular expression ({error})") from None
        return pattern


class _CardFile(Model):
    cards: tuple[dict[str, Any], ...]


def load_cards(root: Path) -> tuple[Card, ...]:
    """Return the cards of results/cards.toml; raises UserError with the card and the field that is wrong."""
    path = root / FILE
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{FILE} cannot be read ({error.strerror})", remedy="restore it from git") from None
    rows = _CardFile.parse_toml(content, str(FILE), REMEDY, UserError).cards
    return tuple(Card.parse(row, f"{FILE}: card '{row.get('name')}'", REMEDY, UserError) for row in rows)


def find_card(name: str, cards: Sequence[Card]) -> Card | None:
    """Return the card of that device name; null for none, as for a MIG slice or a laptop part."""
    return next((card for card in cards if _pattern(card.name_regex).fullmatch(name.strip())), None)


def card_family(published: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the cards that a name without form or memory may mean: 'A100' may be any of four."""
    whole = re.compile(rf"{re.escape(published)} (SXM|PCIe|\d+GB)")
    return () if published in known else tuple(name for name in known if whole.match(name))


_NEXT_WORDS = ("ti", "super", "nvl", "xt", "xtx", "gre", "d")
_LATER_WORDS = ("laptop", "mobile", "max-q", "mig", "ada")
OTHER_MODEL = frozenset((*_NEXT_WORDS, *_LATER_WORDS))
"""Words by which a card is another than the one whose name lacks them."""
_SAME_MODEL = rf"(?!\w)(?![ -](?:{'|'.join(_NEXT_WORDS)})\b)(?!.*\b(?:{'|'.join(_LATER_WORDS)})\b)"


def means_card(words: str, name: str) -> bool:
    """Return whether words name a card's model: no A10 is an A100, and no RTX 3060 a Ti."""
    return bool(re.search(rf"(?<!\w){re.escape(words.casefold())}{_SAME_MODEL}", name.casefold()))


def differs_in_memory(one_bytes: float, other_bytes: float) -> bool:
    """Return whether two devices of one name are two models, beyond what drivers and ECC take."""
    return max(one_bytes, other_bytes) > MEMORY_APART * min(one_bytes, other_bytes)


def sold_with_memory(published: str, memory_bytes: int | None) -> bool:
    """Return whether a card of a published name has so much memory, as far as both are known."""
    first_gib = FIRST_SOLD_GIB.get(plain_name(published))
    return not (first_gib and memory_bytes and differs_in_memory(first_gib * 2**30, memory_bytes))


@cache
def _pattern(name_regex: str) -> re.Pattern[str]:
    return re.compile(f"{_PREFIX}(?:{name_regex})", re.IGNORECASE)


_SHARED_NAME = re.compile(r"^AMD (?:device |Radeon(?:\(TM\))? Graphics$)|/", re.IGNORECASE)
"""What a driver says of a card that its tables do not know, or of a chip that several models have."""


def is_shared_name(name: str) -> bool:
    """Return whether several models share a device's name."""
    return bool(_SHARED_NAME.search(name.strip()))


def find_card_by_chip(
    capability: str | None, compute_units: int | None, pci_id: str | None, cards: Sequence[Card]
) -> Card | None:
    """Return the one card with a device of that gfx number, compute units and PCI id; else null.

    `pci_id` is the chip and its revision, as 744c:c8. Other facts that are null exclude no card.
    """
    ids = {(pci_id or "").partition(":")[0], pci_id}
    fitting = [
        card
        for card in cards
        if ids & set(card.pci)
        and capability in (None, card.capability)
        and (None in (compute_units, card.units) or compute_units == (card.units or 0) // card.devices)
    ]
    return fitting[0] if len(fitting) == 1 else None


def plain_name(name: str) -> str:
    """Return a device's name without vendor and family: 'NVIDIA GeForce RTX 2060' is 'RTX 2060'."""
    return re.sub(f"^{_PREFIX}", "", name.strip(), flags=re.IGNORECASE)


def peak_tflops(card: Card, label: Precision) -> float | None:
    """Return one device's dense peak in a precision label's arithmetic, TFLOP/s; null where unknown.

    FP32 takes the matrix units where they compute full FP32.
    """
    field = PRECISIONS[label].peak
    if field is None:
        return None
    whole: float | None = getattr(card.peaks, field, None)
    if field == "fp32" and card.peaks.fp32_matrix:
        whole = max(card.peaks.fp32 or 0.0, card.peaks.fp32_matrix)
    return whole / card.devices if whole else None


def is_in_class(
    card_class: CardClass, kind: DeviceKind, name: str, capability: str | None, cards: Sequence[Card]
) -> bool | None:
    """Return whether a device is of a class that claims speak of; null where that is not known."""
    if card_class == "any":
        return True
    if kind == "cpu":
        return False
    if card_class == "gpu":
        return True
    card = find_card(name, cards)
    has = card.matrix_units if card else _has_matrix_units(name, capability)
    return None if has is None else has == (card_class == "matrix-units")


def _has_matrix_units(name: str, capability: str | None) -> bool | None:
    """Return whether compute capability (7.0 on, no GTX 16) or gfx number (CDNA, RDNA 3) has them."""
    if capability is None:
        return None
    if capability.startswith("gfx"):
        return bool(re.match(r"gfx(908|90a|94|95|11|12)", capability))
    try:
        number = float(capability)
    except ValueError:
        return None
    return number >= 7.0 and not re.search(r"\bGTX 16\d\d\b", name, re.IGNORECASE)
