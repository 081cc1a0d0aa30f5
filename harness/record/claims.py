"""The published figures of results/claims/*.toml: read strictly, with all problems reported at once.

A file may hold `[defaults]`, which stand in every claim and curve that does not say otherwise, and
`[caveats]`, sentences that claims name by their keys.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from harness.errors import UserError
from harness.record import Claim, Curve, DeviceKind, Model
from harness.record.cards import Card, find, in_class, plain_name

FOLDER = Path("results") / "claims"


@dataclass(frozen=True, slots=True)
class ClaimSet:
    """All claims and curves, in the order of their files."""

    claims: tuple[Claim, ...] = ()
    curves: tuple[Curve, ...] = ()

    def curves_for(self, workload: str) -> tuple[Curve, ...]:
        """The curves of whole protocols of one workload; lead-in runs are left out."""
        return tuple(
            curve for curve in self.curves if curve.workload == workload and curve.part == "protocol"
        )


def load_claims(root: Path) -> ClaimSet:
    """The claims below `root`; none where there is no folder.

    Raises UserError that lists every problem of every file, each as `path: field: message`.
    """
    claims: list[Claim] = []
    curves: list[Curve] = []
    problems: list[str] = []
    for path in sorted((root / FOLDER).glob("*.toml")):
        file = _ClaimReader(path, str(path.relative_to(root)))
        claims += file.claims
        curves += file.curves
        problems += file.problems
    for name, count in Counter(claim.id for claim in claims).items():
        if count > 1:
            problems.append(f"{FOLDER}: claims.{name}.id: stands {count} times")
    if problems:
        listed = "\n  ".join(problems)
        noun = "problem" if len(problems) == 1 else "problems"
        raise UserError(f"{len(problems)} {noun} in the claims\n  {listed}", remedy="mend the fields named")
    return ClaimSet(tuple(claims), tuple(curves))


class _Shape(Model):
    defaults: dict[str, Any] = {}
    caveats: dict[str, str] = {}
    claims: tuple[dict[str, Any], ...] = ()
    curves: tuple[dict[str, Any], ...] = ()


M = TypeVar("M", bound=Model)


class _ClaimReader:
    """One file's claims and curves, and what is wrong in it."""

    def __init__(self, path: Path, shown: str) -> None:
        self.problems: list[str] = []
        self.claims: list[Claim] = []
        self.curves: list[Curve] = []
        self._shown = shown
        self._used: set[str] = set()
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            self._problem("the whole", f"is not readable TOML ({error})")
            return
        self._read(content)

    def _problem(self, field: str, message: str) -> None:
        self.problems.append(f"{self._shown}: {field}: {message}")

    def _read(self, content: Mapping[str, Any]) -> None:
        shape = self._model(_Shape, "", content)
        if shape is None:
            return
        for key in sorted(shape.defaults.keys() - Claim.model_fields.keys()):
            self._problem(f"defaults.{key}", "unknown key")
        for number, table in enumerate(shape.claims):
            where = f"claims.{table.get('id', number)}"
            claim = self._model(Claim, where, self._spoken(where, shape.defaults | table, shape.caveats))
            if claim:
                self.claims.append(claim)
                self.problems += [f"{self._shown}: {where}.{fault}" for fault in _faults(claim)]
        shared = {key: value for key, value in shape.defaults.items() if key in Curve.model_fields}
        for number, table in enumerate(shape.curves):
            curve = self._model(Curve, f"curves.{number}", shared | table)
            if curve:
                self.curves.append(curve)
                self.problems += [f"{self._shown}: curves.{number}.{fault}" for fault in _curve_faults(curve)]
        for key in sorted(shape.caveats.keys() - self._used):
            self._problem(f"caveats.{key}", "no claim names it")

    def _spoken(self, where: str, table: dict[str, Any], sentences: Mapping[str, str]) -> dict[str, Any]:
        keys = table.get("caveats", [])
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            return table
        for key in keys:
            if key not in sentences:
                self._problem(f"{where}.caveats", f"'{key}' is not in [caveats]")
        self._used.update(keys)
        return table | {"caveats": [sentences[key] for key in keys if key in sentences]}

    def _model(self, model: type[M], where: str, table: Mapping[str, Any]) -> M | None:
        try:
            return model.model_validate(table)
        except ValidationError as error:
            for problem in error.errors(include_url=False):
                field = ".".join(str(part) for part in (where, *problem["loc"]) if part != "")
                unknown = problem["type"] == "extra_forbidden"
                self._problem(field, "unknown key" if unknown else problem["msg"])
            return None


def _faults(claim: Claim) -> Iterator[str]:
    compares = claim.kind in ("ratio", "order")
    if compares != (claim.over is not None):
        yield f"over: a claim of kind '{claim.kind}' {'needs a' if compares else 'has no'} second side"
    if claim.kind == "order" and (claim.relation == "equal" or claim.value is not None):
        yield "relation: an order is less or greater, and has no value"
    if claim.kind == "absolute" and claim.of.card is None:
        yield "of.card: an absolute figure stands for one card"
    if claim.kind == "absolute" and claim.reconstructed:
        yield "reconstructed: an absolute figure needs the published protocol itself"
    if claim.kind == "absolute" and claim.card_class is not None:
        yield "card_class: an absolute figure is claimed for its own card alone"
    if claim.value is None and claim.words is None:
        yield "value: a claim without a value is a claim in words"
    if not claim.source.strip():
        yield "source: is empty"


def _curve_faults(curve: Curve) -> Iterator[str]:
    for name in ("train_loss", "valid_loss", "quality"):
        count = len(getattr(curve, name))
        if count != len(curve.epochs):
            yield f"{name}: has {count} values for {len(curve.epochs)} epochs"
    if list(curve.epochs) != list(range(1, len(curve.epochs) + 1)):
        yield "epochs: do not count from 1"


def speaks_of(
    claim: Claim, kind: DeviceKind, name: str, capability: str | None, cards: Sequence[Card]
) -> bool | None:
    """Whether a claim may be judged on a device of that name; null where its class cannot be told.

    A ratio between two cards speaks of the card of either side.
    """
    if claim.card_class is not None:
        return in_class(claim.card_class, kind, name, capability, cards)
    named = {side.card for side in (claim.of, claim.over) if side and side.card}
    return not named or any(same_card(card, name, cards) for card in named)


def same_card(published: str, name: str, cards: Sequence[Card]) -> bool:
    """Whether a device's name is that of the card a publication names."""
    card = find(name, cards)
    return published == (card.name if card else plain_name(name))


def lines(claim_set: ClaimSet) -> list[str]:
    """What `invoke claims` prints: one line per claim, grouped by study and workload."""
    out: list[str] = []
    group: tuple[str, str] | None = None
    for claim in sorted(claim_set.claims, key=lambda claim: (claim.study, claim.workload)):
        if (claim.study, claim.workload) != group:
            group = (claim.study, claim.workload)
            out += ([""] if out else []) + [f"study {claim.study}, {claim.workload} {claim.protocol}"]
        out.append(f"  {claim.id:<58} {claim.kind:<9} {_figure(claim)}")
    claims, curves = len(claim_set.claims), len(claim_set.curves)
    epochs = sum(len(curve.epochs) for curve in claim_set.curves)
    return [*out, "", f"{claims} claims, {curves} curves of {epochs} epochs in all"]


def _figure(claim: Claim) -> str:
    metric = claim.metric.replace("_", " ")
    if claim.value is not None:
        sign = {"equal": "", "less": "less than ", "greater": "more than "}[claim.relation]
        return (
            f"{metric} {sign}{claim.value:g} {claim.unit}"
            if claim.value < 1e6
            else f"{metric} {claim.value:,.0f}"
        )
    if claim.kind == "order":
        return f"{metric} {claim.relation}: {claim.words}"
    return f"{metric} without a figure: {claim.words}"
