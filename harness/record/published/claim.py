"""A published number or sentence, with its card, protocol, source and caveats; and tables of many figures."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import ConfigDict, Field, model_validator

from harness.record.strict_model import Model
from harness.record.trial_spec import DataMode, Name, OptionValue, Role
from harness.record.vocabulary.precision import Precision

NOT_PUBLISHED = ("", "-", "–")
"""Cells without a figure."""

_LONGEST_ID = 64

_FIGURE = re.compile(r"-?\d[\d,]*(\.\d+)?")

Durations = Literal[
    "protocol_seconds", "epoch_seconds", "step_seconds", "inference_seconds", "seconds_to_target"
]
Items = Literal["train_items", "valid_items", "test_items", "data_items"]
Losses = Literal["valid_loss", "train_loss", "smoothed_train_loss", "best_loss"]
Perplexities = Literal["perplexity", "test_perplexity"]
Shares = Literal["accuracy", "best_accuracy", "early_fall"]
Percents = Literal["device_utilization", "device_memory_share"]
OtherMetrics = Literal["throughput", "peak_bytes", "parameters", "batch_ratio", "auc", "epochs_to_target"]
ClaimMetric = Literal[Durations, Items, Losses, Perplexities, Shares, Percents, OtherMetrics]
UNITS: Mapping[ClaimMetric, tuple[str, ...]] = {
    **dict.fromkeys(get_args(Durations), ("s",)),
    **dict.fromkeys(get_args(Items), ("images", "tokens")),
    **dict.fromkeys(get_args(Losses), ("loss",)),
    **dict.fromkeys(get_args(Perplexities), ("perplexity",)),
    **dict.fromkeys(get_args(Shares), ("fraction",)),
    **dict.fromkeys(get_args(Percents), ("%",)),
    "throughput": ("images/s", "tokens/s", "samples/s"),
    "peak_bytes": ("B",),
    "parameters": ("parameters",),
    "batch_ratio": ("x",),
    "auc": ("AUC",),
    "epochs_to_target": ("epochs",),
}
"""The units of each metric; a ratio of any metric has the unit "x"."""

ClaimKind = Literal["absolute", "ratio", "order", "trend", "quality", "structure"]


CardClass = Literal["any", "gpu", "matrix-units", "no-matrix-units"]
"""any: a CPU too; matrix-units: GPUs with units for 16-bit matrices (Tensor Cores, Matrix Cores, WMMA)."""


class Side(Model):
    """What a claim speaks of: the records that it may be held against."""

    card: str | None = None
    """Null means any card."""
    model: str
    precision: Precision | None = None
    batch_size: Annotated[int, Field(ge=1)] | None = None
    gpus: Annotated[int, Field(ge=1)] = 1
    data_mode: DataMode | None = None
    layout: Literal["contiguous", "channels_last"] | None = None
    image_size: Annotated[int, Field(ge=1)] | None = None
    sequence_length: Annotated[int, Field(ge=1)] | None = None
    options: dict[str, OptionValue] = {}


class Point(Model):
    """One place of a trend: the figure of `of`, or of `over` ÷ `of`, at `at`, such as a number of layers."""

    at: Annotated[float, Field(gt=0)]
    of: Side
    over: Side | None = None


class Seeds(Model):
    """How far runs of one protocol with other seeds are apart, as published.

    `spread` is the relative standard deviation of one run, pooled over `pairs` pairs of equal runs.
    """

    spread: Annotated[float, Field(gt=0, lt=1)]
    pairs: Annotated[int, Field(ge=2)]


class Claim(Model):
    """One published figure, or a sentence without one (`value` null, `words` set), which nothing can judge.

    A ratio is `over` ÷ `of` of the same metric; its `relation` says whether that is equal to, less or greater
    than `value`. An order says that `of` is less (or greater) than `over`; a trend, which is published and
    not judged, that what its `points` have falls (or grows) from the first on. `half_digit` bounds the
    rounding; `spread` is null where the publication gave none. `of.card` says where it was measured,
    `card_class` on which cards it is claimed to hold, and `why`; where that is null it speaks of its own card
    alone.
    """

    id: Name
    study: Name
    kind: ClaimKind
    workload: Name
    protocol: str
    metric: ClaimMetric
    of: Side
    over: Side | None = None
    points: tuple[Point, ...] = ()
    """The places of a trend, in its order; `of` and `over` are the first one's."""
    relation: Literal["equal", "less", "greater"] = "equal"
    value: float | None = None
    unit: str
    target: Annotated[float, Field(gt=0)] | None = None
    """The accuracy (0 to 1), perplexity or loss that ends a time to a target."""
    epochs: Annotated[int, Field(ge=1)] | None = None
    """How many epochs the figure is for; null where it does not depend on them."""
    half_digit: Annotated[float, Field(ge=0)] = 0.0
    """Half of the last printed digit: what rounding may hide."""
    spread: Annotated[float, Field(ge=0)] | None = None
    runs: Annotated[int, Field(ge=1)] | None = None
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Declared beforehand: the relative difference that still counts as reproduced."""
    card_class: CardClass | None = None
    """The class of cards that a ratio, an order, a trend, a quality or a structure is claimed for."""
    why: str | None = None
    """Why it is claimed for a class where it was measured on one card; it is one of the caveats too."""
    seeds: Seeds | None = None
    """The spread of a quality where too few runs show their own."""
    reconstructed: bool = False
    """The published protocol is lost and ours is used instead: nothing can be called reproduced."""
    words: str | None = None
    """A claim in words, in our own."""
    plans: dict[Name, Role] = {}
    """The plans that judge it, the first that can; each with the role of the rows that hold its sides."""
    source: str
    stack: str | None = None
    caveats: tuple[str, ...] = ()

    @property
    def compares(self) -> bool:
        """Return whether it has a second side, which a trend's points have instead."""
        return self.kind in ("ratio", "order")

    @property
    def can_be_judged(self) -> bool:
        """Return whether it says what a record can be held against: a value, or an order without one."""
        return self.value is not None or self.kind == "order"

    @property
    def is_relative(self) -> bool:
        """Return whether it compares two things: that matters to more readers than a single figure."""
        return self.kind in ("ratio", "order", "trend")

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


class Study(Model):
    """Who published the figures of a study, and when; claims and curves name it by its `id`."""

    id: Name
    name: Annotated[str, Field(min_length=1, max_length=40)]
    """What people call it: 'Bhutani 2019'."""
    title: Annotated[str, Field(min_length=1, max_length=160)]
    source: Annotated[str, Field(min_length=1)]
    """An address, or a repository as `github:owner/name`."""


class ClaimTable(Model):
    """`columns` and `rows`, and any field of a claim, for all figures of the table.

    A column is a field of a claim by its path (`of.card`, `stack`); or `row`, what the publication calls the
    row, which joins the source; or it holds figures: `value`, or fields and what they are for this column
    (`of.gpus=4`, `of.card=T4, of.precision=amp-fp16`). A figure is as printed, between quotes: its last
    digit says how far it was rounded, unless the table has a `half_digit`. Empty is what was not published.
    `id` names each figure by its own fields, such as `007-{of.card}-{row}`.
    """

    model_config = ConfigDict(extra="allow")

    id: str
    columns: Annotated[tuple[str, ...], Field(min_length=1)]
    rows: Annotated[tuple[tuple[OptionValue, ...], ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_a_table_of_figures(self) -> Self:
        if all(_column_settings(column) is None for column in self.columns):
            raise ValueError("columns: none is 'value' or has a field and its value, as in 'of.gpus=4'")
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.columns):
                raise ValueError(f"row {number}: {len(row)} cells for {len(self.columns)} columns")
            for name, cell in zip(self.columns, row, strict=True):
                if _column_settings(name) is not None and not _is_figure(cell):
                    raise ValueError(f"row {number}, '{name}': {cell!r} is no figure")
        return self


class ClaimFile(Model):
    """results/claims/<study>.toml"""

    studies: tuple[Study, ...] = ()
    claims: tuple[Claim, ...] = ()
    tables: tuple[ClaimTable, ...] = ()
    curves: tuple[Curve, ...] = ()


def expand_table(table: ClaimTable, defaults: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each figure of a table as a claim of a file; `defaults` are the file's."""
    shared = {**defaults, **(table.model_extra or {})}
    for row in table.rows:
        columns = list(zip(table.columns, row, strict=True))
        plain_fields = {column: cell for column, cell in columns if _column_settings(column) is None}
        for column, cell in columns:
            settings = _column_settings(column)
            if settings is not None and cell not in NOT_PUBLISHED:
                yield _claim_fields(table.id, shared, {**plain_fields, **settings}, cell)


def _column_settings(column: str) -> dict[str, OptionValue] | None:
    """Return the fields that a column of figures sets; null for a column that is itself a field."""
    if column == "value":
        return {}
    if "=" not in column:
        return None
    pairs = (setting.partition("=") for setting in column.split(","))
    return {path.strip(): _parse_value(value.strip()) for path, _, value in pairs}


def _parse_value(value: str) -> OptionValue:
    return int(value) if value.isdecimal() else value


def _is_figure(cell: OptionValue) -> bool:
    if isinstance(cell, str):
        return cell in NOT_PUBLISHED or _FIGURE.fullmatch(cell) is not None
    return not isinstance(cell, bool)


def _claim_fields(
    name: str, shared: Mapping[str, Any], fields: Mapping[str, OptionValue], cell: OptionValue
) -> dict[str, Any]:
    claim = dict(shared)
    for path, value in fields.items():
        if path != "row":
            claim = _set_field(claim, path.split("."), value)
    if "row" in fields:
        claim["source"] = f"{claim.get('source', '')}, row '{fields['row']}'"
    if isinstance(cell, str):
        decimals = len(cell.partition(".")[2])
        claim.setdefault("half_digit", float(f"5e-{decimals + 1}"))
        cell = float(cell.replace(",", ""))
    return {**claim, "id": _fill_id(name, {**claim, "row": fields.get("row", "")}), "value": cell}


def _set_field(table: Mapping[str, Any], path: list[str], value: OptionValue) -> dict[str, Any]:
    """Return the table with one more field, at a path through tables within it; nothing of it is changed."""
    head, *rest = path
    if not rest:
        return {**table, head: value}
    within = table.get(head)
    return {**table, head: _set_field(within if isinstance(within, dict) else {}, rest, value)}


def _fill_id(name: str, claim: Mapping[str, Any]) -> str:
    """Return the id with the fields in braces looked up; a field that is not there stays, and is refused.

    An id that is too long is cut, and ends with a hash, so that it differs from others that begin alike.
    """

    def look_up(braces: re.Match[str]) -> str:
        value: Any = claim
        for part in braces[1].split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        plain = re.sub(r"[^a-z0-9.]+", "-", str(value).casefold()).strip("-")
        return braces[0] if value is None else plain

    whole = re.sub(r"\{([\w.]+)\}", look_up, name)
    if len(whole) <= _LONGEST_ID:
        return whole
    mark = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{whole[: _LONGEST_ID - len(mark) - 1]}-{mark}"
