"""A published number or sentence, with its card, protocol, source and caveats."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.record.base import Model
from harness.record.trial import DataMode, Name, Precision

ClaimKind = Literal["absolute", "ratio", "order", "quality", "structure"]


class Side(Model):
    """What a claim speaks of: the records that it may be held against."""

    card: str | None = None
    """Null means any card."""
    model: str
    precision: Precision | None = None
    batch_size: int | None = None
    gpus: int = 1
    data_mode: DataMode | None = None
    options: dict[str, bool | int | float | str] = {}


class Claim(Model):
    """One published figure.

    A ratio is `over` ÷ `of` of the same metric; an order says that `of` is at most (or at least) `over`.
    `printed_digits` bounds the rounding; `spread` is null where the publication gave none.
    """

    id: Name
    study: Name
    kind: ClaimKind
    workload: Name
    protocol: str
    metric: Literal[
        "protocol_seconds",
        "epoch_seconds",
        "throughput",
        "accuracy",
        "perplexity",
        "valid_loss",
        "train_loss",
        "peak_bytes",
        "parameters",
        "batch_ratio",
    ]
    of: Side
    over: Side | None = None
    relation: Literal["equal", "less", "greater"] = "equal"
    value: float | None = None
    unit: str
    half_digit: Annotated[float, Field(ge=0)] = 0.0
    """Half of the last printed digit: what rounding may hide."""
    spread: float | None = None
    runs: int | None = None
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Declared beforehand: the relative difference that still counts as reproduced."""
    card_class: str | None = None
    """The class of cards that a ratio, an order or a quality is claimed for."""
    words: str | None = None
    """A claim in words, in our own."""
    source: str
    stack: str | None = None
    caveats: tuple[str, ...] = ()


class Curve(Model):
    """A published per-epoch curve."""

    study: Name
    workload: Name
    protocol: str
    side: Side
    epochs: tuple[int, ...]
    train_loss: tuple[float, ...]
    valid_loss: tuple[float, ...]
    quality: tuple[float, ...]
    source: str


class ClaimFile(Model):
    """results/claims/<study>.toml"""

    claims: tuple[Claim, ...] = ()
    curves: tuple[Curve, ...] = ()
