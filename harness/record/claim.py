"""A published number or sentence, with its card, protocol, source and caveats."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from harness.record.base import Model
from harness.record.trial import DataMode, Name, Precision

ClaimKind = Literal["absolute", "ratio", "order", "trend", "quality", "structure"]


CardClass = Literal["any", "gpu", "matrix-units", "no-matrix-units"]
"""any: a CPU too; matrix-units: GPUs with units for 16-bit matrices (Tensor Cores, Matrix Cores, WMMA)."""


class Side(Model):
    """What a claim speaks of: the records that it may be held against."""

    card: str | None = None
    """Null means any card."""
    model: str
    precision: Precision | None = None
    batch_size: int | None = None
    gpus: int = 1
    data_mode: DataMode | None = None
    layout: Literal["contiguous", "channels_last"] | None = None
    image_size: int | None = None
    options: dict[str, bool | int | float | str] = {}


class Point(Model):
    """One place of a trend: the figure of `of`, or of `over` ÷ `of`, at `at`, such as a number of layers."""

    at: Annotated[float, Field(gt=0)]
    of: Side
    over: Side | None = None


class Seeds(Model):
    """How far runs of one protocol with other seeds lie apart, as published.

    `spread` is the relative standard deviation of one run, pooled over `pairs` pairs of equal runs.
    """

    spread: Annotated[float, Field(gt=0, lt=1)]
    pairs: Annotated[int, Field(ge=2)]


class Claim(Model):
    """One published figure, or a sentence without one (`value` null, `words` set), which nothing can judge.

    A ratio is `over` ÷ `of` of the same metric; its `relation` says whether that is equal to, less or greater
    than `value`. An order says that `of` is less (or greater) than `over`; a trend that what its `points`
    have falls (or grows) from the first on. `half_digit` bounds the rounding; `spread` is null where the
    publication gave none. `of.card` says where it was measured, `card_class` on which cards it is claimed to
    hold, and `why`; where that is null it speaks of its own card alone.
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
        "test_perplexity",
        "valid_loss",
        "smoothed_train_loss",
        "peak_bytes",
        "parameters",
        "batch_ratio",
        "train_items",
        "valid_items",
    ]
    of: Side
    over: Side | None = None
    points: tuple[Point, ...] = ()
    """Of a trend, in the order that it speaks of; `of` and `over` are the first one's."""
    relation: Literal["equal", "less", "greater"] = "equal"
    value: float | None = None
    unit: str
    epochs: Annotated[int, Field(ge=1)] | None = None
    """How many epochs the figure stands for; null where it does not depend on them."""
    half_digit: Annotated[float, Field(ge=0)] = 0.0
    """Half of the last printed digit: what rounding may hide."""
    spread: float | None = None
    runs: int | None = None
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Declared beforehand: the relative difference that still counts as reproduced."""
    card_class: CardClass | None = None
    """The class of cards that a ratio, an order, a trend, a quality or a structure is claimed for."""
    why: str | None = None
    """Why it is claimed for a class where it was measured on one card; it stands among the caveats too."""
    seeds: Seeds | None = None
    """Of a quality: what stands for the spread where too few runs show their own."""
    reconstructed: bool = False
    """The published protocol is lost and ours stands for it: nothing can be called reproduced."""
    words: str | None = None
    """A claim in words, in our own."""
    source: str
    stack: str | None = None
    caveats: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _begins_at_its_first_point(cls, given: Any) -> Any:
        points = given.get("points") if isinstance(given, dict) else None
        if not (isinstance(points, (list, tuple)) and points and isinstance(points[0], dict)):
            return given
        return {name: points[0][name] for name in ("of", "over") if name in points[0]} | given


class Curve(Model):
    """A published per-epoch curve. A lead-in is an extra run that came before the protocol's own epochs."""

    study: Name
    workload: Name
    protocol: str
    part: Literal["protocol", "lead-in"] = "protocol"
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
